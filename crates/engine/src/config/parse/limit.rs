//! One limit of the file.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_core::{Limit, Unit};

use super::counting::{self, Counting};
use super::{MODES, cost, when};
use crate::config::fault::{Finding, Findings, quoted};
use crate::config::place::Place;
use crate::config::raw::{Group, LIMIT, MISSING, OVERRIDE};
use crate::config::scalar;
use crate::config::suggest::nearest;
use crate::config::tree::{Kind, Node};
use crate::policy::{Condition, Missing, OnFailure, Override, Rule, Share};

/// The longest name of a limit, a level or an attribute, in characters.
const NAME_CHARS_MAX: usize = 64;
/// How many attributes `per` may name.
const PER_MAX: usize = 16;
/// How many overrides a limit may have.
const OVERRIDES_MAX: usize = 100_000;
/// Units of the file format that this version does not count.
const LATER_UNITS: [&str; 4] = ["tokens", "input_tokens", "output_tokens", "usd"];
/// How far from zero `order` may be.
const ORDER_MAX: i64 = 1_000_000;

/// Where the parts of a rule stand.
#[derive(Debug)]
pub(crate) struct RulePlaces {
    /// The value of `name`.
    pub(crate) name: Place,
    /// The value of `rate` or `quota`.
    pub(crate) numbers: Place,
    /// The value of `burst`, or of the rate where there is none.
    pub(crate) burst: Place,
    /// The value of `mode`, or of the name.
    pub(crate) mode: Place,
    /// The value of `missing`, or of the name.
    pub(crate) missing: Place,
    /// One for each condition.
    pub(crate) when: Vec<Place>,
    /// Where the weights stand.
    pub(crate) cost: cost::WeightPlaces,
    /// One for each override.
    pub(crate) overrides: Vec<OverridePlaces>,
}

/// Where the parts of an override stand.
#[derive(Debug)]
pub(crate) struct OverridePlaces {
    /// The override as a whole.
    pub(crate) whole: Place,
    /// One for each condition.
    pub(crate) when: Vec<Place>,
}

/// Reads the limit that is the `number`th of the file, counted from 1. `by_default` is what the file says of
/// limits that do not say themselves what they do while the store does not answer.
pub(crate) fn rule(
    node: &Node<'_>,
    number: usize,
    by_default: Option<OnFailure>,
    names: &mut HashMap<String, Place>,
    findings: &mut Findings,
) -> Option<(Rule, RulePlaces)> {
    let whose = called(node, number);
    let group = Group::read(node, &LIMIT, &whose, findings)?;
    // All parts are read before the first missing one ends this, so that each tells its faults.
    let name = name(&group, &whose, names, findings);
    let level = group.value("level").map(|level| word(level, "level", findings));
    let per = per(&group, &whose, findings);
    let counting = counting::limit(&group, &whose, findings);
    let units = [(Unit::Requests.name(), Unit::Requests)];
    let unit = group.value("unit").map(|unit| scalar::choice(unit, "unit", &units, &LATER_UNITS, findings));
    let conditions = group.value("when").map(|when| when::conditions(when, findings));
    let weights = group.value("cost").map(|cost| cost::weights(cost, findings));
    let overrides = group.value("overrides").map(|list| overrides(list, &whose, counting.as_ref(), findings));
    let mode = group.value("mode").map(|mode| scalar::choice(mode, "mode", &MODES, &[], findings));
    let missing = group.value("missing").map(|missing| self::missing(missing, findings));
    let on_failure = group.value("on_failure").map(|node| failure_policy(node, findings));
    let shares = [("full", Share::Full), ("fair", Share::Fair)];
    let share = group.value("share").map(|node| scalar::choice(node, "share", &shares, &[], findings));
    let order = group.value("order").map(|order| scalar::signed(order, "order", ORDER_MAX, findings));
    let algorithm = counting.as_ref().and_then(|counting| counting.build(&group, findings));

    let (name, name_place) = name?;
    let (per, counting, algorithm) = (per?, counting?, algorithm?);
    let level = match level {
        Some(level) => level?.into(),
        None => Limit::level_of(&per, &algorithm),
    };
    let (conditions, condition_places) = conditions.unwrap_or_else(|| Some(Vec::new()))?.into_iter().unzip();
    let (weights, weight_places) = match weights {
        Some(weights) => weights?,
        None => cost::one(name_place),
    };
    let (overrides, override_places) = overrides.unwrap_or_else(|| Some(Vec::new()))?.into_iter().unzip();
    let place_of = |key: &str| group.value(key).map_or(name_place, |value| value.place);
    let places = RulePlaces {
        name: name_place,
        numbers: counting.place,
        burst: group.value("burst").map_or(counting.place, |burst| burst.place),
        mode: place_of("mode"),
        missing: place_of("missing"),
        when: condition_places,
        cost: weight_places,
        overrides: override_places,
    };
    let limit = Limit {
        name,
        level,
        per,
        unit: unit.unwrap_or(Some(Unit::Requests))?,
        mode: mode.unwrap_or_else(|| Some(tidegate_core::Mode::default()))?,
        algorithm,
    };
    let missing = missing.unwrap_or_else(|| Some(Missing::default()))?;
    let on_failure = match on_failure {
        Some(on_failure) => on_failure?,
        None => by_default.unwrap_or(OnFailure::default_of(&limit.algorithm)),
    };
    let share = share.unwrap_or_else(|| Some(Share::default()))?;
    let order = match order {
        Some(order) => Some(order?),
        None => None,
    };
    Some((Rule { limit, when: conditions, weights, overrides, missing, on_failure, share, order }, places))
}

/// How messages call a limit: by its name if it has one.
fn called(node: &Node<'_>, number: usize) -> String {
    if let Kind::Map(entries) = &node.kind
        && let Some(entry) = entries.iter().find(|entry| entry.key == "name")
        && let Kind::Scalar(name) = &entry.value.kind
        && !name.is_null()
    {
        return format!("limit {}", quoted(&name.written));
    }
    format!("limit number {number}")
}

fn name(
    group: &Group<'_, '_>,
    whose: &str,
    names: &mut HashMap<String, Place>,
    findings: &mut Findings,
) -> Option<(Arc<str>, Place)> {
    let Some(node) = group.value("name") else {
        findings.push(
            Finding::new(group.place, format!("{whose} has no name"))
                .hint("add name: and a word that answers and logs will call it by"),
        );
        return None;
    };
    let name = word(node, "name", findings)?;
    if let Some(first) = names.get(name) {
        let message = format!("the name {} is taken by the limit at {}:{}", node.describe(), first.line, first.column);
        findings.push(Finding::new(node.place, message).hint("give each limit its own name"));
        return None;
    }
    names.insert(name.to_owned(), node.place);
    Some((name.into(), node.place))
}

/// A text that can be a name of a limit or a level.
fn word<'n>(node: &'n Node<'_>, key: &str, findings: &mut Findings) -> Option<&'n str> {
    let text = scalar::text(node, key, findings)?;
    let fits = !text.is_empty()
        && text.len() <= NAME_CHARS_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    if !fits {
        let message = format!("'{key}' cannot be {}", node.describe());
        let hint = "use 1 to 64 letters, digits, '.', '_' or '-'";
        findings.push(Finding::new(node.place, message).hint(hint));
    }
    fits.then_some(text)
}

/// The name of an attribute; `shown` is how a message shows the text.
pub(crate) fn attribute(text: &str, shown: &str, place: Place, findings: &mut Findings) -> Option<Arc<str>> {
    let fits = !text.is_empty()
        && text.len() <= NAME_CHARS_MAX
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:/@".contains(&byte));
    if !fits {
        let hint = "use 1 to 64 letters, digits, '.', '_', '-', ':', '/' or '@'";
        findings.push(Finding::new(place, format!("{shown} cannot be the name of an attribute")).hint(hint));
    }
    fits.then(|| text.into())
}

fn per(group: &Group<'_, '_>, whose: &str, findings: &mut Findings) -> Option<Vec<Arc<str>>> {
    let hint = "write per: [org] for one counter for each org, or per: [] for one counter that all share";
    let Some(node) = group.value("per") else {
        findings.push(Finding::new(group.place, format!("{whose} has no 'per'")).hint(hint));
        return None;
    };
    let items = scalar::list(node, "per", hint, findings)?;
    if items.len() > PER_MAX {
        let message = format!("'per' names {} attributes, {PER_MAX} are the most", items.len());
        findings.push(Finding::new(node.place, message));
        return None;
    }
    let mut names: Vec<Arc<str>> = Vec::with_capacity(items.len());
    let mut whole = true;
    for item in items {
        let text = scalar::text(item, "per", findings);
        let name = text.and_then(|text| attribute(text, &item.describe(), item.place, findings));
        match name {
            Some(name) if names.contains(&name) => {
                let message = format!("'per' names {} twice", item.describe());
                findings.push(Finding::new(item.place, message).hint("remove one of them"));
                whole = false;
            }
            Some(name) => names.push(name),
            None => whole = false,
        }
    }
    whole.then_some(names)
}

/// `skip`, `deny`, or `{value: anonymous}`. Another bare word is no value: a slip like `dney` would
/// silently become one.
/// `on_failure`.
pub(crate) fn failure_policy(node: &Node<'_>, findings: &mut Findings) -> Option<OnFailure> {
    let policies = [OnFailure::Local, OnFailure::Open, OnFailure::Closed].map(|policy| (policy.name(), policy));
    scalar::choice(node, "on_failure", &policies, &[], findings)
}

fn missing(node: &Node<'_>, findings: &mut Findings) -> Option<Missing> {
    if let Kind::Map(_) = node.kind {
        let group = Group::read(node, &MISSING, "'missing'", findings)?;
        let Some(value) = group.value("value") else {
            findings.push(Finding::new(node.place, "'missing' has no value").hint("write missing: {value: anonymous}"));
            return None;
        };
        let text = scalar::text(value, "value", findings)?;
        if text.is_empty() || text.len() > when::VALUE_BYTES_MAX {
            let message = format!("'value' has to have 1 to {} characters", when::VALUE_BYTES_MAX);
            findings.push(Finding::new(value.place, message));
            return None;
        }
        return Some(Missing::Value(text.into()));
    }
    let scalar = scalar::scalar(node, "missing", "skip, deny or {value: anonymous}", findings)?;
    match scalar.text() {
        "skip" => Some(Missing::Skip),
        "deny" => Some(Missing::Deny),
        other => {
            let message = format!("'missing' has to be skip, deny or {{value: …}}, not {}", scalar::shown(scalar));
            let hint = match nearest(other, ["skip", "deny"]) {
                Some(word) => format!("did you mean '{word}'?"),
                None => "write missing: {value: anonymous} to count such requests under that value".into(),
            };
            findings.push(Finding::new(node.place, message).hint(hint));
            None
        }
    }
}

type ReadOverride = (Override, OverridePlaces);

fn overrides(
    node: &Node<'_>,
    whose: &str,
    counting: Option<&Counting>,
    findings: &mut Findings,
) -> Option<Vec<ReadOverride>> {
    let hint = "write each as an item: '- when: {org: acme}' with a rate, quota or burst";
    let items = scalar::list(node, "overrides", hint, findings)?;
    if items.len() > OVERRIDES_MAX {
        let message = format!("{whose} has {} overrides, {OVERRIDES_MAX} are the most", items.len());
        findings.push(Finding::new(node.place, message));
        return None;
    }
    let read: Vec<_> = items.iter().map(|item| one_override(item, whose, counting, findings)).collect();
    read.into_iter().collect()
}

fn one_override(
    node: &Node<'_>,
    whose: &str,
    counting: Option<&Counting>,
    findings: &mut Findings,
) -> Option<ReadOverride> {
    let changed = whose;
    let whose = format!("an override of {changed}");
    let group = Group::read(node, &OVERRIDE, &whose, findings)?;
    let conditions = match group.value("when") {
        Some(when) => when::conditions(when, findings),
        None => {
            findings.push(
                Finding::new(node.place, format!("{whose} has no 'when'"))
                    .hint("add when: {org: acme}, or change the limit itself"),
            );
            None
        }
    };
    let counting = counting::instead(&group, changed, counting, findings);
    let algorithm = counting.as_ref().and_then(|counting| counting.build(&group, findings));
    let (when, when_places): (Vec<Condition>, Vec<Place>) = conditions?.into_iter().unzip();
    let places = OverridePlaces { whole: node.place, when: when_places };
    Some((Override { when, algorithm: algorithm? }, places))
}
