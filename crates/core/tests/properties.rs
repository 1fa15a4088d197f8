//! Every counting rule against a brute-force model of it, step by step over random histories.
//!
//! `PROPTEST_CASES` sets how many histories each test tries. What fails is shrunk, and its seed is kept
//! under `seeds/` and tried first from then on.

// Lints that are milder in tests are milder in all of this file.
#![cfg(test)]

mod civil;
mod models;
mod walk;

use models::{CalendarModel, CivilModel, FixedWindowModel, SlidingCounterModel, SlidingWindowModel, TokenBucketModel};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tidegate_core::algorithm::{
    Calendar, FixedWindow, FixedWindowState, SlidingCounter, SlidingWindow, SlidingWindowState, TokenBucket,
    TokenBucketState,
};
use tidegate_core::{CivilPeriod, Cost, Counter, PeriodKind, Rate, Timestamp, Verdict};
use walk::{Step, Walk, back_and_forth, forward};

/// So many histories, unless `PROPTEST_CASES` says how many; the failing seeds go to `file`.
fn histories(cases: u32, file: &'static str) -> ProptestConfig {
    let default = ProptestConfig::default();
    let cases = if std::env::var_os("PROPTEST_CASES").is_some() { default.cases } else { cases };
    let failure_persistence = Some(Box::new(FileFailurePersistence::Direct(file)) as Box<_>);
    // What does not fit is thrown away, in proportion to the cases.
    let (max_global_rejects, max_local_rejects) = (cases.saturating_mul(2), cases.saturating_mul(50));
    ProptestConfig { cases, failure_persistence, max_global_rejects, max_local_rejects, ..default }
}

const FIXED_WINDOW_SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/fixed_window.txt");
const SLIDING_WINDOW_SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/sliding_window.txt");
const SLIDING_COUNTER_SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/sliding_counter.txt");
const TOKEN_BUCKET_SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/token_bucket.txt");
const CALENDAR_SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/calendar.txt");

const PERIODS_SECS: [u64; 12] = [1, 2, 3, 7, 10, 30, 60, 90, 3_600, 86_400, 604_800, Rate::PERIOD_MAX_SECS];

fn rates(count_max: u64) -> impl Strategy<Value = Rate> {
    let count = prop_oneof![
        1 => Just(0),
        4 => 1..=12_u64,
        4 => prop::sample::select(vec![7, 13, 60, 97, 100, 997, 1_000, 1_009]),
        2 => 1..=count_max,
        1 => Just(count_max),
    ];
    let period = prop_oneof![3 => prop::sample::select(PERIODS_SECS.to_vec()), 1 => 1..=Rate::PERIOD_MAX_SECS];
    (count, period).prop_map(move |(count, period_secs)| Rate::new(count.min(count_max), period_secs).unwrap())
}

/// The epoch itself, our time, and the far end.
fn starts() -> impl Strategy<Value = u64> {
    prop_oneof![
        1 => 0..=3_000_000_u64,
        6 => 1_700_000_000_000_000..=1_900_000_000_000_000_u64,
        1 => 0..=3_900_000_000_000_000_u64,
    ]
}

/// No stretch from a multiple of W to the next holds more than L.
fn aligned_windows_hold(quota: u64, window_us: u64, admitted: &[(u64, u64)]) {
    for window in admitted.iter().map(|(at, _)| at / window_us) {
        let sum: u128 =
            admitted.iter().filter(|(at, _)| at / window_us == window).map(|(_, cost)| u128::from(*cost)).sum();
        assert!(sum <= u128::from(quota), "{sum} of {quota} in window {window}");
    }
}

/// No (t − W, t] holds more than L.
fn sliding_windows_hold(quota: u64, window_us: u64, admitted: &[(u64, u64)]) {
    for (end, _) in admitted {
        let inside = |at: &u64| at <= end && at + window_us > *end;
        let sum: u128 = admitted.iter().filter(|(at, _)| inside(at)).map(|(_, cost)| u128::from(*cost)).sum();
        assert!(sum <= u128::from(quota), "{sum} of {quota} in the window that ends at {end}");
    }
}

fn walk_fixed_window(rate: Rate, start: u64, steps: &[Step]) {
    let rule = FixedWindow::new(rate).unwrap();
    let (quota, window_us) = (rate.count(), rate.period().as_micros());
    let walk = Walk::new(&rule, FixedWindowModel::new(quota, window_us), start).go(steps, |state, _, _| {
        let word = state.pack();
        assert!(word < (1 << 63) - 1, "63 bits, and never all ones: {word:#x}");
        assert_eq!(FixedWindowState::unpack(word), *state);
    });
    let admitted = walk.admitted();
    aligned_windows_hold(quota, window_us, &admitted);
}

fn walk_sliding_window(rate: Rate, start: u64, steps: &[Step]) {
    let rule = SlidingWindow::new(rate).unwrap();
    let (quota, window_us) = (rate.count(), rate.period().as_micros());
    let walk = Walk::new(&rule, SlidingWindowModel::new(quota, window_us), start).go(steps, |state, model, at| {
        let mut expected: Vec<(u64, u64)> = Vec::new();
        for (then, units) in model.in_view(at) {
            match expected.last_mut() {
                Some((last, sum)) if *last == then => *sum += units,
                _ => expected.push((then, units)),
            }
        }
        let entries: Vec<_> = state.entries().map(|(then, units)| (then.as_micros(), units)).collect();
        assert_eq!(entries, expected, "the log is what is in view, one entry an instant");
        summary_tells_no_lie(&rule, state, at);
    });
    let admitted = walk.admitted();
    sliding_windows_hold(quota, window_us, &admitted);
    aligned_windows_hold(quota, window_us, &admitted);
}

fn walk_sliding_counter(rate: Rate, start: u64, steps: &[Step]) {
    let rule = SlidingCounter::new(rate).unwrap();
    let (quota, window_us) = (rate.count(), rate.period().as_micros());
    let walk = Walk::new(&rule, SlidingCounterModel::new(quota, window_us), start).go(steps, |state, model, at| {
        let (previous, current) = model.previous_and_current(at);
        assert_eq!((u128::from(state.previous), u128::from(state.current)), (previous, current));
    });
    let admitted = walk.admitted();
    aligned_windows_hold(quota, window_us, &admitted);
    weighted_windows_hold(quota, window_us, &admitted);
    stated_error_holds(window_us, &admitted);
}

/// Whenever something was admitted, the weighted sum with it kept to the quota.
fn weighted_windows_hold(quota: u64, window_us: u64, admitted: &[(u64, u64)]) {
    for (index, (now, _)) in admitted.iter().enumerate() {
        let sum = |window: Option<u64>| -> u128 {
            let inside = admitted[..=index].iter().filter(|(at, _)| Some(at / window_us) == window);
            inside.map(|(_, cost)| u128::from(*cost)).sum()
        };
        let window = now / window_us;
        let (previous, current) = (sum(window.checked_sub(1)), sum(Some(window)));
        let weighted = previous * u128::from(window_us - now % window_us) + current * u128::from(window_us);
        assert!(weighted <= u128::from(quota) * u128::from(window_us), "over the weighted quota at {now}");
    }
}

/// The estimate is off by −prev·(1 − e/W) to +prev·e/W: checked for the instant of each admission.
fn stated_error_holds(window_us: u64, admitted: &[(u64, u64)]) {
    let sum = |inside: &dyn Fn(u64) -> bool| -> i128 {
        admitted.iter().filter(|(at, _)| inside(*at)).map(|(_, cost)| i128::from(*cost)).sum()
    };
    for (now, _) in admitted {
        let (start, elapsed_us) = (now - now % window_us, i128::from(now % window_us));
        let current = sum(&|at| at >= start && at <= *now);
        let previous = sum(&|at| at < start && at + window_us >= start);
        let in_view = sum(&|at| at <= *now && at + window_us > *now);
        let window_us = i128::from(window_us);
        let error = previous * (window_us - elapsed_us) + current * window_us - in_view * window_us;
        assert!(-previous * elapsed_us <= error && error <= previous * (window_us - elapsed_us));
    }
}

/// Rates whose ticks are exact, and a burst that fills in at most twelve years.
fn exact_buckets() -> impl Strategy<Value = (Rate, u64)> {
    let exact = |rate: &Rate| rate.count() / gcd(rate.count(), rate.period().as_micros()).max(1) <= 1_024;
    (rates(1 << 40).prop_filter("a whole number of ticks", exact), bursts()).prop_filter_map("a bucket", fitting)
}

/// Rates whose ticks are rounded up.
fn rounded_buckets() -> impl Strategy<Value = (Rate, u64)> {
    let counts = prop_oneof![
        2 => prop::sample::select(vec![1_031, 10_007, 100_003, 1_000_003, 999_999_937]),
        2 => 1_025..=1_000_000_u64,
        1 => 1_025..=1_000_000_000_u64,
    ];
    let rounded = |rate: &Rate| rate.count() / gcd(rate.count(), rate.period().as_micros()).max(1) > 1_024;
    let rate = (counts, prop::sample::select(PERIODS_SECS.to_vec())).prop_map(|(c, p)| Rate::new(c, p).unwrap());
    (rate.prop_filter("no whole number of ticks", rounded), bursts()).prop_filter_map("a bucket", fitting)
}

fn fitting((rate, burst): (Rate, Option<u64>)) -> Option<(Rate, u64)> {
    let burst = burst.unwrap_or(rate.count());
    let rule = TokenBucket::new(rate, Some(burst)).ok()?;
    let twelve_years_us = 12 * 365 * 86_400_000_000;
    (rule.window().as_micros() <= twelve_years_us).then_some((rate, burst))
}

fn bursts() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![2 => Just(None), 2 => (1..=20_u64).prop_map(Some), 1 => (1..=1_000_000_u64).prop_map(Some)]
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn packs(state: &TokenBucketState) {
    let word = state.pack();
    assert!(word < (1 << 62), "62 bits: {word:#x}");
    assert_eq!(TokenBucketState::unpack(word), *state);
}

fn walk_exact_bucket((rate, burst): (Rate, u64), start: u64, steps: &[Step]) {
    let rule = TokenBucket::new(rate, Some(burst)).unwrap();
    let model = |burst| TokenBucketModel::new(rate.count(), rate.period().as_micros(), burst);
    let capacity = if rate.count() == 0 { 0 } else { burst };
    let walk = Walk::new(&rule, model(capacity), start).go(steps, |state, _, _| packs(state));
    model(capacity).bounds(&walk.admitted());
}

/// The documented rounding, T = ⌈1024·P/L⌉ ticks of 1/1024 µs, followed exactly.
fn walk_rounded_bucket((rate, burst): (Rate, u64), start: u64, steps: &[Step]) {
    let rule = TokenBucket::new(rate, Some(burst)).unwrap();
    let ticks = (u128::from(rate.period().as_micros()) * 1_024).div_ceil(u128::from(rate.count()));
    let model = || TokenBucketModel::with_parts(1, ticks, 1_024, burst);
    let admitted = Walk::new(&rule, model(), start).go(steps, |state, _, _| packs(state)).admitted();
    model().bounds(&admitted);
    // Rounded up, so with a clock that only goes on, never more than at the rate that was asked for.
    if admitted.is_sorted_by_key(|(at, _)| *at) {
        TokenBucketModel::new(rate.count(), rate.period().as_micros(), burst).bounds(&admitted);
    }
}

fn zones() -> impl Strategy<Value = (PeriodKind, &'static str, u64)> {
    let zone = prop::sample::select(vec![
        "UTC",
        "Europe/Berlin",
        "Europe/Dublin",
        "America/New_York",
        "America/Sao_Paulo",
        "America/St_Johns",
        "America/Havana",
        "Australia/Lord_Howe",
        "Asia/Kathmandu",
        "Pacific/Chatham",
        "Pacific/Apia",
        "Asia/Kolkata",
    ]);
    let period = prop_oneof![
        Just((PeriodKind::Hour, 1)),
        Just((PeriodKind::Day, 1)),
        (1..=7_u64).prop_map(|anchor| (PeriodKind::Week, anchor)),
        (1..=31_u64).prop_map(|anchor| (PeriodKind::Month, anchor)),
        Just((PeriodKind::Year, 1)),
    ];
    (period, zone).prop_map(|((kind, anchor_day), zone)| (kind, zone, anchor_day))
}

fn walk_calendar(quota: u64, (kind, zone, anchor_day): (PeriodKind, &str, u64), start: u64, steps: &[Step]) {
    let rule = Calendar::new(quota, CivilPeriod::new(kind, zone, Some(anchor_day)).unwrap());
    let civil = CivilModel::new(kind, zone, anchor_day);
    let walk = Walk::new(&rule, CalendarModel::new(quota, &civil), start).go(steps, |state, _, at| {
        assert_eq!((state.start.as_micros(), state.end.as_micros()), civil.around(at));
    });
    let admitted = walk.admitted();
    for (at, _) in &admitted {
        let (start, end) = civil.around(*at);
        let inside = admitted.iter().filter(|(then, _)| start <= *then && *then < end);
        let sum: u128 = inside.map(|(_, cost)| u128::from(*cost)).sum();
        assert!(sum <= u128::from(quota), "{sum} of {quota} in the period from {start}");
    }
}

/// From 1972 on: before that a zone's offset may have odd seconds.
fn civil_starts() -> impl Strategy<Value = u64> {
    63_072_000_000_000..=2_500_000_000_000_000_u64
}

fn quotas() -> impl Strategy<Value = u64> {
    prop_oneof![1 => Just(0), 4 => 1..=12_u64, 2 => 1..=1_000_000_000_u64, 1 => any::<u64>().prop_map(|q| q.min(u64::MAX - 1))]
}

proptest! {
    #![proptest_config(histories(1_500, FIXED_WINDOW_SEEDS))]

    #[test]
    fn fixed_window_is_its_model(
        rate in rates(FixedWindow::QUOTA_MAX), start in starts(), steps in forward(),
    ) {
        walk_fixed_window(rate, start, &steps);
    }

    #[test]
    fn fixed_window_is_its_model_with_the_clock_set_back(
        rate in rates(FixedWindow::QUOTA_MAX), start in starts(), steps in back_and_forth(),
    ) {
        walk_fixed_window(rate, start, &steps);
    }

    #[test]
    fn fixed_window_keeps_its_counters_when_the_quota_changes(
        rates in two_rates(FixedWindow::QUOTA_MAX), start in starts(), steps in back_and_forth(),
    ) {
        let rules = rates.map(|rate| FixedWindow::new(rate).unwrap());
        let model = FixedWindowModel::new(rates[0].count(), rates[0].period().as_micros());
        reload(rules.each_ref(), model, start, &steps, |_, _, _| ());
    }
}

/// What the log's summary says is what the log says, at any time that the clock may show next; and it
/// says so wherever nothing has left the log and a wait is for the oldest entry alone.
fn summary_tells_no_lie(rule: &SlidingWindow, state: &SlidingWindowState, at: u64) {
    let (summary, quota) = (state.summary(), rule.capacity());
    let leaves = state.entries().next().map_or(at, |(oldest, _)| oldest.after(rule.window()).as_micros());
    for now in [at.saturating_sub(1_000_000), at, at + 1, leaves.saturating_sub(1), leaves, leaves + 1] {
        let now = Timestamp::from_micros(now);
        let mut advanced = state.clone();
        let inside = rule.advance(&mut advanced, now);
        let standing = rule.standing(&advanced, inside);
        let remaining = standing.remaining;
        for cost in [0, 1, remaining, remaining + 1, remaining + 2, quota, quota + 1, u64::MAX].map(Cost::new) {
            let verdict = rule.check(&advanced, cost, inside);
            let judged = rule.judge(&summary, cost, now);
            let one_leaves = verdict == Verdict::Wait(standing.reset);
            let telling = state.entries().eq(advanced.entries()) && summary.used <= quota;
            if telling && (verdict.admits() || verdict == Verdict::Never || one_leaves) {
                assert!(judged.is_some(), "the summary says nothing of {cost:?} at {now:?}: {state:?}");
            }
            assert!(judged.is_none_or(|judged| judged == (verdict, standing)), "{judged:?} of {cost:?} in {state:?}");
        }
    }
}

/// A walk under one rule, then on under another that reads the same counters.
fn reload<C: Counter, M: models::Quota>(
    rules: [&C; 2],
    model: M,
    start: u64,
    steps: &[Step],
    inspect: impl Fn(&C::State, &M, u64),
) {
    let (before, after) = steps.split_at(steps.len() / 2);
    let quota = rules[1].capacity();
    let walk = Walk::new(rules[0], model, start).go(before, &inspect);
    walk.reload(rules[1], |model| model.set_quota(quota)).go(after, &inspect);
}

/// A rate and another of the same period.
fn two_rates(count_max: u64) -> impl Strategy<Value = [Rate; 2]> {
    let secs = |rate: &Rate| rate.period().as_micros() / 1_000_000;
    (rates(count_max), rates(count_max)).prop_map(move |(one, two)| [one, Rate::new(two.count(), secs(&one)).unwrap()])
}

proptest! {
    #![proptest_config(histories(1_500, SLIDING_WINDOW_SEEDS))]

    #[test]
    fn sliding_window_is_its_model(
        rate in rates(SlidingWindow::QUOTA_MAX), start in starts(), steps in forward(),
    ) {
        walk_sliding_window(rate, start, &steps);
    }

    #[test]
    fn sliding_window_is_its_model_with_the_clock_set_back(
        rate in rates(SlidingWindow::QUOTA_MAX), start in starts(), steps in back_and_forth(),
    ) {
        walk_sliding_window(rate, start, &steps);
    }

    #[test]
    fn sliding_window_keeps_its_log_when_the_quota_changes(
        rates in two_rates(SlidingWindow::QUOTA_MAX), start in starts(), steps in back_and_forth(),
    ) {
        let rules = rates.map(|rate| SlidingWindow::new(rate).unwrap());
        let model = SlidingWindowModel::new(rates[0].count(), rates[0].period().as_micros());
        reload(rules.each_ref(), model, start, &steps, |state, _, at| {
            rules.iter().for_each(|rule| summary_tells_no_lie(rule, state, at));
        });
    }
}

proptest! {
    #![proptest_config(histories(1_500, SLIDING_COUNTER_SEEDS))]

    #[test]
    fn sliding_counter_is_its_model(rate in rates(Rate::COUNT_MAX), start in starts(), steps in forward()) {
        walk_sliding_counter(rate, start, &steps);
    }

    #[test]
    fn sliding_counter_is_its_model_with_the_clock_set_back(
        rate in rates(Rate::COUNT_MAX), start in starts(), steps in back_and_forth(),
    ) {
        walk_sliding_counter(rate, start, &steps);
    }

    #[test]
    fn sliding_counter_keeps_its_counters_when_the_quota_changes(
        rates in two_rates(Rate::COUNT_MAX), start in starts(), steps in back_and_forth(),
    ) {
        let rules = rates.map(|rate| SlidingCounter::new(rate).unwrap());
        let model = SlidingCounterModel::new(rates[0].count(), rates[0].period().as_micros());
        reload(rules.each_ref(), model, start, &steps, |_, _, _| ());
    }
}

proptest! {
    #![proptest_config(histories(1_500, TOKEN_BUCKET_SEEDS))]

    #[test]
    fn token_bucket_is_its_model(bucket in exact_buckets(), start in starts(), steps in forward()) {
        walk_exact_bucket(bucket, start, &steps);
    }

    #[test]
    fn token_bucket_is_its_model_with_the_clock_set_back(
        bucket in exact_buckets(), start in starts(), steps in back_and_forth(),
    ) {
        walk_exact_bucket(bucket, start, &steps);
    }

    #[test]
    fn token_bucket_keeps_its_debt_when_the_burst_changes(
        (rate, burst) in exact_buckets(), other in 1..=1_000_u64, start in starts(), steps in back_and_forth(),
    ) {
        prop_assume!(fitting((rate, Some(other))).is_some());
        let [one, two] = [burst, other].map(|burst| TokenBucket::new(rate, Some(burst)).unwrap());
        let model = TokenBucketModel::new(rate.count(), rate.period().as_micros(), one.capacity());
        reload([&one, &two], model, start, &steps, |_, _, _| ());
    }

    #[test]
    fn token_bucket_rounds_as_documented(bucket in rounded_buckets(), start in starts(), steps in forward()) {
        walk_rounded_bucket(bucket, start, &steps);
    }

    #[test]
    fn token_bucket_rounds_as_documented_with_the_clock_set_back(
        bucket in rounded_buckets(), start in starts(), steps in back_and_forth(),
    ) {
        walk_rounded_bucket(bucket, start, &steps);
    }
}

proptest! {
    #![proptest_config(histories(200, CALENDAR_SEEDS))]

    #[test]
    fn calendar_is_its_model(
        quota in quotas(), period in zones(), start in civil_starts(), steps in forward(),
    ) {
        walk_calendar(quota, period, start, &steps);
    }

    #[test]
    fn calendar_is_its_model_with_the_clock_set_back(
        quota in quotas(), period in zones(), start in civil_starts(), steps in back_and_forth(),
    ) {
        walk_calendar(quota, period, start, &steps);
    }

    #[test]
    fn calendar_keeps_its_counters_when_the_quota_changes(
        quotas in [quotas(), quotas()], (kind, zone, anchor_day) in zones(),
        start in civil_starts(), steps in back_and_forth(),
    ) {
        let rule = |quota| Calendar::new(quota, CivilPeriod::new(kind, zone, Some(anchor_day)).unwrap());
        let rules = quotas.map(rule);
        let civil = CivilModel::new(kind, zone, anchor_day);
        reload(rules.each_ref(), CalendarModel::new(quotas[0], &civil), start, &steps, |_, _, _| ());
    }
}
