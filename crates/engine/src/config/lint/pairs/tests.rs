//! What is told is tried: whenever a limit that "changes nothing" refuses, so does the other.

use std::collections::HashMap;

use proptest::prelude::*;
use tidegate_core::algorithm::{
    CalendarState, FixedWindowState, SlidingCounterState, SlidingWindowState, TokenBucketState,
};
use tidegate_core::{Algorithm, Cost, Counter, Timestamp};

use super::*;
use crate::config::tests::loaded;

/// One counter.
enum Cell {
    FixedWindow(FixedWindowState),
    SlidingWindow(SlidingWindowState),
    SlidingCounter(SlidingCounterState),
    TokenBucket(TokenBucketState),
    Calendar(CalendarState),
}

impl Cell {
    fn new(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(_) => Self::FixedWindow(FixedWindowState::default()),
            Algorithm::SlidingWindow(_) => Self::SlidingWindow(SlidingWindowState::default()),
            Algorithm::SlidingCounter(_) => Self::SlidingCounter(SlidingCounterState::default()),
            Algorithm::TokenBucket(_) => Self::TokenBucket(TokenBucketState::default()),
            Algorithm::Calendar(_) => Self::Calendar(CalendarState::default()),
        }
    }

    /// Whether it admits `cost`; takes it if asked to.
    fn admits(&mut self, algorithm: &Algorithm, cost: u64, now: Timestamp, take: bool) -> bool {
        fn step<C: Counter>(rule: &C, state: &mut C::State, cost: u64, now: Timestamp, take: bool) -> bool {
            let (cost, now) = (Cost::new(cost), rule.advance(state, now));
            let admits = rule.check(state, cost, now).admits();
            if take {
                rule.take(state, cost, now);
            }
            admits
        }
        match (algorithm, self) {
            (Algorithm::FixedWindow(rule), Self::FixedWindow(state)) => step(rule, state, cost, now, take),
            (Algorithm::SlidingWindow(rule), Self::SlidingWindow(state)) => step(rule, state, cost, now, take),
            (Algorithm::SlidingCounter(rule), Self::SlidingCounter(state)) => step(rule, state, cost, now, take),
            (Algorithm::TokenBucket(rule), Self::TokenBucket(state)) => step(rule, state, cost, now, take),
            (Algorithm::Calendar(rule), Self::Calendar(state)) => step(rule, state, cost, now, take),
            _ => unreachable!("the cell was made for the algorithm"),
        }
    }
}

/// One limit with its counters; keys are the values of its `per`.
struct Counters<'r> {
    rule: &'r Rule,
    cells: HashMap<Vec<bool>, Cell>,
}

impl Counters<'_> {
    fn admits(&mut self, call: &Call, now: Timestamp, take: bool) -> bool {
        let value = |attribute: &Arc<str>| if **attribute == *"org" { call.org } else { call.agent };
        let key = self.rule.limit.per.iter().map(value).collect();
        let algorithm = &self.rule.limit.algorithm;
        let cell = self.cells.entry(key).or_insert_with(|| Cell::new(algorithm));
        cell.admits(algorithm, call.cost * self.rule.weights.base, now, take)
    }
}

/// One request, some time after the one before. There is another limit that may refuse it.
#[derive(Clone, Debug)]
struct Call {
    gap_us: u64,
    org: bool,
    agent: bool,
    cost: u64,
    refused_elsewhere: bool,
}

fn call() -> impl Strategy<Value = Call> {
    let gap_us = prop_oneof![
        4 => 0..1_500_000_u64,
        4 => 0..100_000_u64,
        2 => Just(1_000_000_u64),
        1 => 0..90_000_000_u64,
        1 => 0..100_000_000_000_u64,
    ];
    let cost = prop_oneof![8 => Just(1_u64), 1 => 0..8_u64];
    (gap_us, any::<bool>(), any::<bool>(), cost, prop::bool::weighted(0.1))
        .prop_map(|(gap_us, org, agent, cost, refused_elsewhere)| Call { gap_us, org, agent, cost, refused_elsewhere })
}

fn limit() -> impl Strategy<Value = String> {
    let per = prop::sample::select(vec!["[]", "[]", "[org]", "[org, agent]", "[agent]"]);
    let window = prop::sample::select(vec!["s", "s", "2s", "2s", "3s", "min", "h"]);
    let count = prop_oneof![0..4_u64, 0..40_u64];
    let rate = (count, window).prop_map(|(count, window)| format!("rate: {count}/{window}"));
    let windowed = prop::sample::select(vec!["fixed_window", "sliding_window", "sliding_counter"]);
    let windowed = (rate.clone(), windowed).prop_map(|(rate, algorithm)| format!("{rate}, algorithm: {algorithm}"));
    let bucket = (rate, 1..12_u64).prop_map(|(rate, burst)| format!("{rate}, algorithm: token_bucket, burst: {burst}"));
    let period = prop::sample::select(vec!["hour", "day", "week", "month"]);
    let calendar = (0..60_u64, period).prop_map(|(quota, period)| format!("quota: {quota}, period: {period}"));
    let counting = prop_oneof![3 => windowed, 1 => bucket, 1 => calendar];
    let cost = prop_oneof![4 => Just(1_u64), 1 => 0..4_u64];
    (per, counting, cost).prop_map(|(per, counting, cost)| format!("per: {per}, {counting}, cost: {cost}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, ..ProptestConfig::default() })]

    #[test]
    fn a_limit_that_changes_nothing_never_refuses_alone(
        one in limit(),
        other in limit(),
        start_us in 0..10_000_000_000_000_u64,
        calls in prop::collection::vec(call(), 1..200),
    ) {
        let text = format!("limits:\n  - {{ name: a, {one} }}\n  - {{ name: b, {other} }}\n");
        let policy = loaded(&text).policy;
        let [one, other] = &policy.rules[..] else { unreachable!("two limits") };
        // A claim is made in about one case of six.
        let (one, other) = match [(one, other), (other, one)]
            .into_iter()
            .find(|(one, other)| changes_nothing(one, other, &mut Steps::default()))
        {
            Some(claimed) => claimed,
            None => return Ok(()),
        };

        let mut limits = [one, other].map(|rule| Counters { rule, cells: HashMap::new() });
        let mut now_us = start_us;
        for call in &calls {
            now_us += call.gap_us;
            let now = Timestamp::from_micros(now_us);
            let [own, others] = &mut limits;
            let (own_admits, others_admit) = (own.admits(call, now, false), others.admits(call, now, false));
            prop_assert!(own_admits || !others_admit, "{text} at {now_us}: {call:?}");
            if own_admits && others_admit && !call.refused_elsewhere {
                own.admits(call, now, true);
                others.admits(call, now, true);
            }
        }
    }
}
