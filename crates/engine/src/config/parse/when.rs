//! Conditions: which requests a limit or an override applies to.

use super::limit::attribute;
use crate::config::fault::{Finding, Findings, clipped, quoted};
use crate::config::place::Place;
use crate::config::raw::{Group, TEST, entries};
use crate::config::scalar;
use crate::config::tree::{Kind, Node};
use crate::policy::{Condition, Glob, Test};

/// The longest value that a condition may ask for, in bytes.
pub(crate) const VALUE_BYTES_MAX: usize = 1_024;
/// How many attributes a `when` may name.
const CONDITIONS_MAX: usize = 32;
/// How many values a list may hold.
const VALUES_MAX: usize = 10_000;
/// The longest pattern: matching takes up to pattern × value steps.
const GLOB_BYTES_MAX: usize = 256;

/// Reads a `when`: attribute names, each with a text, a list, or `{prefix | glob | absent}`.
pub(crate) fn conditions(node: &Node<'_>, findings: &mut Findings) -> Option<Vec<(Condition, Place)>> {
    let entries = entries(node, "'when'", "write when: {tool: search}", findings)?;
    if entries.is_empty() {
        findings.push(
            Finding::new(node.place, "'when' names no attribute").hint("remove it, or write when: {tool: search}"),
        );
        return None;
    }
    if entries.len() > CONDITIONS_MAX {
        let message = format!("'when' names {} attributes, {CONDITIONS_MAX} are the most", entries.len());
        findings.push(Finding::new(node.place, message));
        return None;
    }
    let read: Vec<_> = entries
        .iter()
        .map(|entry| {
            let attribute = attribute(&entry.key, &quoted(&entry.key), entry.place, findings);
            let test = test(&entry.value, &clipped(&entry.key), findings);
            Some((Condition { attribute: attribute?, test: test? }, entry.place))
        })
        .collect();
    read.into_iter().collect()
}

fn test(node: &Node<'_>, key: &str, findings: &mut Findings) -> Option<Test> {
    match &node.kind {
        Kind::Map(_) => special(node, key, findings),
        Kind::List(items) if items.is_empty() => {
            let message = format!("'{key}' is an empty list, which no request meets");
            findings.push(Finding::new(node.place, message).hint("name at least one value, or remove the condition"));
            None
        }
        Kind::List(items) if items.len() > VALUES_MAX => {
            let message = format!("'{key}' lists {} values, {VALUES_MAX} are the most", items.len());
            findings.push(Finding::new(node.place, message));
            None
        }
        Kind::List(items) => {
            let read: Vec<_> = items.iter().map(|item| value(item, key, VALUE_BYTES_MAX, findings)).collect();
            read.into_iter().map(|value| value.map(str::to_owned)).collect::<Option<_>>().map(Test::In)
        }
        _ => value(node, key, VALUE_BYTES_MAX, findings).map(|value| Test::Equals(value.to_owned())),
    }
}

fn special(node: &Node<'_>, key: &str, findings: &mut Findings) -> Option<Test> {
    let whose = format!("the condition on '{key}'");
    let group = Group::read(node, &TEST, &whose, findings)?;
    let given: Vec<&str> = TEST.known.iter().copied().filter(|test| group.value(test).is_some()).collect();
    let [one] = given[..] else {
        if group.key_count() == given.len() {
            findings.push(
                Finding::new(node.place, format!("{whose} needs exactly one of {}", TEST.known.join(", ")))
                    .hint("to ask for several things at once, write several limits"),
            );
        }
        return None;
    };
    let wanted = group.value(one)?;
    match one {
        "prefix" => value(wanted, "prefix", VALUE_BYTES_MAX, findings).map(|prefix| Test::Prefix(prefix.to_owned())),
        "glob" => value(wanted, "glob", GLOB_BYTES_MAX, findings).map(|pattern| Test::Glob(Glob::new(pattern))),
        _ => {
            let absent = scalar::flag(wanted, "absent", findings)?;
            if !absent {
                findings.push(
                    Finding::new(wanted.place, "'absent' can only be true")
                        .hint(format!("write {key}: {{glob: \"*\"}} to ask for any value")),
                );
            }
            absent.then_some(Test::Absent)
        }
    }
}

fn value<'n>(node: &'n Node<'_>, key: &str, bytes_max: usize, findings: &mut Findings) -> Option<&'n str> {
    let text = scalar::text(node, key, findings)?;
    if text.len() > bytes_max {
        findings.push(Finding::new(node.place, format!("'{key}' has {} bytes, {bytes_max} are the most", text.len())));
        return None;
    }
    Some(text)
}
