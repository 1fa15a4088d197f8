//! Warnings about one limit by itself.

use std::collections::HashSet;
use std::sync::Arc;

use super::conditions::{Steps, contradicts, implies};
use crate::config::fault::{Finding, Findings, quoted};
use crate::config::parse::{OverridePlaces, RulePlaces};
use crate::config::suggest::did_you_mean;
use crate::policy::{Condition, Missing, Override, Policy, Rule, Test};
use tidegate_core::{Algorithm, Counter, Mode};

/// From here on the log of a `sliding_window` is worth a word.
const LOG_ENTRIES_MANY: u64 = 10_000;
/// How many overrides of a limit are compared with each other.
const OVERRIDES_COMPARED_MAX: usize = 1_000;
const DAY_US: u128 = 86_400_000_000;

/// Finds what one limit may say and cannot mean.
pub(super) fn warn(policy: &Policy, rule: &Rule, places: &RulePlaces, steps: &mut Steps, findings: &mut Findings) {
    let name = &rule.limit.name;
    if rule.limit.mode == Mode::Disabled {
        findings.push(
            Finding::new(places.mode, format!("limit '{name}' is disabled: it counts and refuses nothing"))
                .hint("remove the limit, or its mode"),
        );
        return;
    }
    let enforced = rule.limit.mode.or_milder(policy.mode) == Mode::Enforce;
    // With conditions it is a kill switch, which says whom it stops; so does an override of 0.
    if enforced && rule.limit.capacity() == 0 && rule.when.is_empty() {
        findings.push(
            Finding::new(places.numbers, format!("limit '{name}' is 0: it refuses every request that it applies to"))
                .hint("keep it to stop everybody, else raise it, or say with 'when' whom it is to stop"),
        );
    }
    applies_never(rule, places, findings);
    if rule.limit.per.is_empty() && rule.missing != Missing::Skip {
        findings.push(
            Finding::new(places.missing, format!("'missing' changes nothing in limit '{name}', whose 'per' is empty"))
                .hint("remove it"),
        );
    }
    cost(rule, places, findings);
    algorithm(name, &rule.limit.algorithm, places, findings);
    overrides(policy, rule, places, steps, findings);
}

/// An attribute that `per` needs and `when` forbids.
fn applies_never(rule: &Rule, places: &RulePlaces, findings: &mut Findings) {
    let name = &rule.limit.name;
    for (condition, place) in rule.when.iter().zip(&places.when) {
        if condition.test != Test::Absent || !rule.limit.per.contains(&condition.attribute) {
            continue;
        }
        let attribute = quoted(&condition.attribute);
        let effect = match rule.missing {
            Missing::Skip => "never applies",
            Missing::Deny => "refuses every request that it applies to",
            Missing::Value(_) => continue,
        };
        let message =
            format!("limit '{name}' {effect}: 'when' asks for no {attribute}, and 'per' counts by {attribute}");
        findings.push(Finding::new(*place, message).hint("remove one of the two"));
    }
}

fn cost(rule: &Rule, places: &RulePlaces, findings: &mut Findings) {
    let name = &rule.limit.name;
    let weights = &rule.weights;
    let by = || weights.by.iter().flat_map(|(_, values)| values);
    if weights.base == 0 && by().all(|(_, weight)| *weight == 0) {
        findings.push(
            Finding::new(places.cost.base, format!("limit '{name}' counts nothing: every cost is multiplied by 0"))
                .hint("raise 'cost', or remove the limit"),
        );
    }
    let rules = rule.overrides.iter().map(|other| &other.algorithm);
    let most = rules.map(Algorithm::capacity).fold(rule.limit.capacity(), u64::max);
    // A limit of 0 refuses for another reason, which was told.
    let above = |weight: u64| most > 0 && weight > most;
    let hint = format!("it allows {most} at most: lower the cost, or raise the limit");
    if above(weights.base) {
        let message = if weights.by.is_empty() {
            format!("limit '{name}' refuses every request that it applies to: each costs {}", weights.base)
        } else {
            format!("limit '{name}' refuses every request without a cost of its own: each costs {}", weights.base)
        };
        findings.push(Finding::new(places.cost.base, message).hint(&hint));
    }
    for ((attribute, values), value_places) in weights.by.iter().zip(&places.cost.by) {
        for ((value, weight), place) in values.iter().zip(value_places).filter(|((_, weight), _)| above(*weight)) {
            let message = format!(
                "limit '{name}' refuses every request with {} {}: each costs {weight}",
                quoted(attribute),
                quoted(value)
            );
            findings.push(Finding::new(*place, message).hint(&hint));
        }
    }
}

fn algorithm(name: &str, algorithm: &Algorithm, places: &RulePlaces, findings: &mut Findings) {
    match algorithm {
        Algorithm::TokenBucket(bucket) if places.burst != places.numbers => {
            let (token_ticks, ticks_per_us) = bucket.unit();
            let day = (DAY_US * u128::from(ticks_per_us)).checked_div(u128::from(token_ticks));
            if let Some(day) = day.filter(|day| u128::from(bucket.capacity()) > *day) {
                let message = format!(
                    "the burst of limit '{name}', {}, is more than it refills in a day, {day}",
                    bucket.capacity()
                );
                let hint = "lower 'burst', or say what a day may hold with quota and period: day";
                findings.push(Finding::new(places.burst, message).hint(hint));
            }
        }
        Algorithm::SlidingWindow(window) if window.capacity() > LOG_ENTRIES_MANY => {
            let message = format!(
                "limit '{name}' keeps a log of up to {} entries for each counter, some bytes each",
                window.capacity()
            );
            findings.push(
                Finding::new(places.numbers, message).hint("sliding_counter keeps two numbers and is nearly as exact"),
            );
        }
        _ => {}
    }
}

fn overrides(policy: &Policy, rule: &Rule, places: &RulePlaces, steps: &mut Steps, findings: &mut Findings) {
    let mut attributes = None;
    for (at, (over, place)) in rule.overrides.iter().zip(&places.overrides).enumerate() {
        if let Some(finding) = never_matches(rule, places, at, over, place, steps) {
            findings.push(finding);
            continue;
        }
        for (condition, place) in over.when.iter().zip(&place.when) {
            if is_of(rule, &condition.attribute) || findings.is_full() {
                continue;
            }
            let named = attributes.get_or_insert_with(|| attributes_but_of_overrides(policy));
            let own = rule.limit.per.iter().chain(rule.when.iter().map(|condition| &condition.attribute));
            let suggestion = did_you_mean(&condition.attribute, own.map(AsRef::as_ref));
            if let Some(suggestion) = suggestion.filter(|_| !named.contains(&condition.attribute)) {
                let message = format!("no limit of the file counts by the attribute {}", quoted(&condition.attribute));
                findings.push(Finding::new(*place, message).hint(suggestion));
            }
        }
    }
}

fn never_matches(
    rule: &Rule,
    places: &RulePlaces,
    at: usize,
    over: &Override,
    place: &OverridePlaces,
    steps: &mut Steps,
) -> Option<Finding> {
    let name = &rule.limit.name;
    if let Some((condition, _)) = contradicts(&over.when, &rule.when, steps) {
        let attribute = over.when.get(condition).map(|condition| quoted(&condition.attribute)).unwrap_or_default();
        let message = format!("this override never applies: limit '{name}' asks for another {attribute}");
        let at = place.when.get(condition).copied().unwrap_or(place.whole);
        return Some(Finding::new(at, message).hint("make the two conditions fit, or remove the override"));
    }
    let needs = |condition: &&Condition| {
        condition.test == Test::Absent
            && rule.limit.per.contains(&condition.attribute)
            && !matches!(rule.missing, Missing::Value(_))
    };
    if let Some(condition) = over.when.iter().find(needs) {
        let message = format!(
            "this override never applies: it asks for no {attribute}, and 'per' counts by {attribute}",
            attribute = quoted(&condition.attribute)
        );
        return Some(Finding::new(place.whole, message).hint("remove the override"));
    }
    if at >= OVERRIDES_COMPARED_MAX {
        return None;
    }
    let earlier = rule.overrides.iter().take(at).position(|earlier| implies(&over.when, &earlier.when, steps))?;
    let first = places.overrides.get(earlier)?.whole;
    let message =
        format!("this override never applies: the one at {}:{} takes all its requests", first.line, first.column);
    Some(Finding::new(place.whole, message).hint("put the narrower one first, or remove it"))
}

fn is_of(rule: &Rule, attribute: &Arc<str>) -> bool {
    rule.limit.per.contains(attribute) || rule.when.iter().any(|condition| condition.attribute == *attribute)
}

/// The attributes that the file names anywhere but in the conditions of overrides.
fn attributes_but_of_overrides(policy: &Policy) -> HashSet<&Arc<str>> {
    policy
        .rules
        .iter()
        .flat_map(|rule| {
            let conditions = rule.when.iter().map(|condition| &condition.attribute);
            rule.limit.per.iter().chain(conditions).chain(rule.weights.by.iter().map(|(attribute, _)| attribute))
        })
        .collect()
}
