//! Warnings about two limits: one that changes nothing, because whenever it refuses, another does.
//!
//! Limit B is *under* limit A if every request that B counts is counted by A at no lower cost, and
//! requests that share a counter of B share one of A. Then a counter of B never holds more than
//! the counter of A beside it, and how much A can admit in B's window bounds what B ever sees.

use std::sync::Arc;

use super::conditions::{Steps, implies};
use crate::config::fault::{Finding, Findings};
use crate::config::parse::Draft;
use crate::policy::{Missing, Rule, Weights};
use tidegate_core::{Algorithm, Counter, Mode, PeriodKind};

/// A calendar period can be longer than its kind usually is where a zone changes its clock or skips
/// a day.
const CALENDAR_SLACK_US: u128 = 2 * 86_400_000_000;

/// Tells each limit that changes nothing.
pub(super) fn warn(draft: &Draft, steps: &mut Steps, findings: &mut Findings) {
    let rules = &draft.policy.rules;
    let enforced = |rule: &Rule| rule.limit.mode == Mode::Enforce;
    for (at, (rule, places)) in rules.iter().zip(&draft.rules).enumerate().filter(|(_, (rule, _))| enforced(rule)) {
        let others =
            rules.iter().zip(&draft.rules).enumerate().filter(|(other, (rule, _))| *other != at && enforced(rule));
        for (other_at, (other, other_places)) in others {
            if !changes_nothing(rule, other, steps) {
                continue;
            }
            // Of two that change nothing beside each other, the later one is told.
            if other_at > at && changes_nothing(other, rule, steps) {
                continue;
            }
            let place = other_places.name;
            let (name, other_name) = (&rule.limit.name, &other.limit.name);
            let at = format!("{}:{}", place.line, place.column);
            let message = if same_counters(rule, other) {
                format!("limit '{name}' is shadowed by '{other_name}' ({at}), which counts the same and allows no more")
            } else {
                format!(
                    "limit '{name}' can never be what stops a request: whenever it refuses, '{other_name}' ({at}) does too"
                )
            };
            findings.push(Finding::new(places.numbers, message).hint("lower its numbers, or remove it"));
            break;
        }
    }
}

/// Whether `other` refuses whenever `rule` does.
fn changes_nothing(rule: &Rule, other: &Rule, steps: &mut Steps) -> bool {
    is_under(rule, other, steps) && is_looser(rule, other)
}

/// Whether two limits have the same counters, whatever their numbers.
fn same_counters(rule: &Rule, other: &Rule) -> bool {
    rule.limit.per == other.limit.per
        && rule.when == other.when
        && rule.limit.algorithm.name() == other.limit.algorithm.name()
        && rule.limit.window() == other.limit.window()
}

fn is_under(rule: &Rule, other: &Rule, steps: &mut Steps) -> bool {
    let all_in = |some: &[Arc<str>], all: &[Arc<str>]| some.iter().all(|one| all.contains(one));
    let per = &rule.limit.per;
    let missing_fits = match (&rule.missing, &other.missing) {
        // It counts only requests that have every attribute of its `per`.
        (Missing::Skip, _) => true,
        // The other misses nothing, or refuses what misses something, so that it is never counted.
        (Missing::Value(_), _) if other.limit.per.is_empty() => true,
        (Missing::Value(_), Missing::Deny) => true,
        (Missing::Value(value), Missing::Value(other)) => value == other,
        // It refuses by itself what misses something.
        (Missing::Deny, Missing::Deny) => all_in(per, &other.limit.per),
        _ => false,
    };
    rule.limit.unit == other.limit.unit
        && all_in(&other.limit.per, per)
        && missing_fits
        && costs_no_more(&rule.weights, &other.weights)
        && implies(&rule.when, &other.when, steps)
}

/// Whether no request costs more under `weights` than under `other`.
fn costs_no_more(weights: &Weights, other: &Weights) -> bool {
    let every = |weights: &Weights| -> Vec<u64> {
        let by = weights.by.iter().flat_map(|(_, values)| values.iter().map(|(_, weight)| *weight));
        by.chain([weights.base]).collect()
    };
    weights == other || every(weights).iter().max() <= every(other).iter().min()
}

/// Whether a counter of `rule` refuses only what a counter of `other` that holds at least as much
/// refuses too.
fn is_looser(rule: &Rule, other: &Rule) -> bool {
    let (Some(least), Some(most)) = (Bounds::of(rule), Bounds::of(other)) else { return false };
    let (own, others) = (&rule.limit.algorithm, &other.limit.algorithm);
    if most.most == 0 {
        return true;
    }
    match (own, others) {
        (Algorithm::TokenBucket(own), Algorithm::TokenBucket(others)) => {
            let (own_ticks, own_per_us) = own.unit();
            let (other_ticks, other_per_us) = others.unit();
            let refills_as_fast =
                u128::from(own_ticks) * u128::from(other_per_us) <= u128::from(other_ticks) * u128::from(own_per_us);
            own.capacity() >= others.capacity() && own.capacity() > 0 && refills_as_fast
        }
        (Algorithm::SlidingCounter(own), Algorithm::SlidingCounter(others)) => {
            own.window() == others.window() && least.least >= most.most
        }
        (Algorithm::TokenBucket(_) | Algorithm::SlidingCounter(_), _) => false,
        _ => admitted_in_window(own, others, most.most).is_some_and(|most| u128::from(least.least) >= most),
    }
}

/// The smallest and the largest capacity of a limit, overrides included.
struct Bounds {
    least: u64,
    most: u64,
}

impl Bounds {
    /// `None` where an override counts in another window, so that capacities do not compare.
    fn of(rule: &Rule) -> Option<Self> {
        let own = &rule.limit.algorithm;
        let mut bounds = Self { least: own.capacity(), most: own.capacity() };
        for over in &rule.overrides {
            if matches!(own, Algorithm::TokenBucket(_)) || over.algorithm.window() != own.window() {
                return None;
            }
            bounds.least = bounds.least.min(over.algorithm.capacity());
            bounds.most = bounds.most.max(over.algorithm.capacity());
        }
        Some(bounds)
    }
}

/// How much `others`, of which `most` is the largest capacity, can admit in any one window of `own`,
/// which counts what it admitted in a window.
fn admitted_in_window(own: &Algorithm, others: &Algorithm, most: u64) -> Option<u128> {
    let most = u128::from(most);
    let slack = if matches!(own, Algorithm::Calendar(_)) { CALENDAR_SLACK_US } else { 0 };
    let own_us = u128::from(own.window().as_micros()) + slack;
    let other_us = u128::from(others.window().as_micros());
    match others {
        Algorithm::Calendar(others) => {
            let Algorithm::Calendar(own) = own else { return None };
            let (own, others) = (own.civil(), others.civil());
            let touched = match own == others {
                true => 1,
                false if own.zone_name() == others.zone_name() => periods_touched(own.kind(), others.kind()),
                false => return None,
            };
            Some(most * touched)
        }
        Algorithm::SlidingWindow(_) => Some(most * own_us.div_ceil(other_us)),
        // Neither admits more than its quota in a window aligned to the epoch.
        Algorithm::FixedWindow(_) | Algorithm::SlidingCounter(_) => {
            let aligned = matches!(own, Algorithm::FixedWindow(_));
            let touched = match aligned {
                true if other_us.is_multiple_of(own_us) => 1,
                true if own_us.is_multiple_of(other_us) => own_us / other_us,
                _ => own_us / other_us + 2,
            };
            Some(most * touched)
        }
        Algorithm::TokenBucket(bucket) => {
            let (token_ticks, ticks_per_us) = bucket.unit();
            let refilled = (own_us * u128::from(ticks_per_us)).checked_div(u128::from(token_ticks))?;
            Some(most + refilled)
        }
    }
}

/// How many periods of kind `inner` one period of kind `outer` in the same zone can touch, at most,
/// whatever the anchor days.
fn periods_touched(outer: PeriodKind, inner: PeriodKind) -> u128 {
    use PeriodKind::{Day, Hour, Month, Week, Year};
    // An hour can be cut in two where the clock changes, and a day have 25 of them.
    const HOURS: u128 = 27;
    match (outer, inner) {
        (Hour, _) | (Day, Day | Week | Month | Year) => 1,
        (Day, Hour) => HOURS,
        (Week, Hour) => 7 * HOURS,
        (Week, Day) => 7,
        (Week, Week | Month | Year) => 2,
        (Month, Hour) => 31 * HOURS,
        (Month, Day) => 31,
        (Month, Week) => 6,
        (Month, Month | Year) => 2,
        (Year, Hour) => 366 * HOURS,
        (Year, Day) => 366,
        (Year, Week) => 54,
        (Year, Month) => 13,
        (Year, Year) => 1,
    }
}

#[cfg(test)]
mod tests;
