//! Mistakes that rate limiters have been seen to make, each with the right answer. The figures come
//! from exact arithmetic, by hand; times are milliseconds after an instant that begins a window.

// Lints that are milder in tests are milder in all of this file.
#![cfg(test)]

use Answer::{Never, Passes, Waits};
use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{CivilPeriod, Cost, Counter, PeriodKind, Rate, Span, Standing, Timestamp, Verdict};

/// A multiple of a day after the epoch, hence of every window here.
const START: Timestamp = Timestamp::from_secs(20_000 * 86_400);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answer {
    Passes,
    /// In milliseconds.
    Waits(u64),
    Never,
}

/// A key of one rule.
struct Cell<C: Counter> {
    rule: C,
    state: C::State,
}

impl<C: Counter> Cell<C> {
    fn new(rule: C) -> Self {
        Self { rule, state: C::State::default() }
    }

    /// Asks for `cost`, and takes it if it passes.
    fn ask(&mut self, at_ms: u64, cost: u64) -> Answer {
        let now = self.rule.advance(&mut self.state, at(at_ms));
        match self.rule.check(&self.state, Cost::new(cost), now) {
            Verdict::Admit => {
                self.rule.take(&mut self.state, Cost::new(cost), now);
                Passes
            }
            Verdict::Wait(wait) => {
                assert!(wait.as_micros().is_multiple_of(1_000), "no whole milliseconds: {wait}");
                Waits(wait.as_micros() / 1_000)
            }
            Verdict::Never => Never,
        }
    }

    /// Asks at each instant for a cost; compares the answer, and what remains after it.
    #[track_caller]
    fn history(mut self, steps: &[(u64, u64, Answer, u64)]) {
        for (number, (at_ms, cost, answer, remaining)) in steps.iter().copied().enumerate() {
            assert_eq!(self.ask(at_ms, cost), answer, "step {number}: {cost} at {at_ms} ms");
            assert_eq!(self.standing(at_ms).remaining, remaining, "remaining after step {number}");
        }
    }
}

fn at(ms: u64) -> Timestamp {
    START.after(Span::from_millis(ms))
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn fixed_window(text: &str) -> Cell<FixedWindow> {
    Cell::new(FixedWindow::new(rate(text)).unwrap())
}

fn sliding_window(text: &str) -> Cell<SlidingWindow> {
    Cell::new(SlidingWindow::new(rate(text)).unwrap())
}

fn sliding_counter(text: &str) -> Cell<SlidingCounter> {
    Cell::new(SlidingCounter::new(rate(text)).unwrap())
}

fn token_bucket(text: &str, burst: u64) -> Cell<TokenBucket> {
    Cell::new(TokenBucket::new(rate(text), Some(burst)).unwrap())
}

fn calendar(quota: u64, kind: PeriodKind, zone: &str) -> Cell<Calendar> {
    Cell::new(Calendar::new(quota, CivilPeriod::new(kind, zone, None).unwrap()))
}

/// A key of any rule.
trait Key {
    fn ask(&mut self, at_ms: u64, cost: u64) -> Answer;
    fn standing_at(&mut self, now: Timestamp) -> Standing;
    fn standing(&mut self, at_ms: u64) -> Standing {
        self.standing_at(at(at_ms))
    }
    fn expires_at(&self) -> Timestamp;
    /// All that is kept, written out.
    fn kept(&self) -> String;
}

impl<C: Counter> Key for Cell<C> {
    fn ask(&mut self, at_ms: u64, cost: u64) -> Answer {
        Self::ask(self, at_ms, cost)
    }

    fn standing_at(&mut self, now: Timestamp) -> Standing {
        let now = self.rule.advance(&mut self.state, now);
        self.rule.standing(&self.state, now)
    }

    fn expires_at(&self) -> Timestamp {
        self.rule.expires_at(&self.state)
    }

    fn kept(&self) -> String {
        format!("{:?}", self.state)
    }
}

/// A key of each rule that admits `quota` at once, and no more for an hour.
fn every_rule(quota: u64) -> [Box<dyn Key>; 5] {
    let hourly = format!("{quota}/h");
    [
        Box::new(fixed_window(&hourly)),
        Box::new(sliding_window(&hourly)),
        Box::new(sliding_counter(&hourly)),
        Box::new(token_bucket("1/366d", quota)),
        Box::new(calendar(quota, PeriodKind::Day, "UTC")),
    ]
}

// Counting

#[test]
fn a_refusal_takes_nothing() {
    // Seen: the counter is raised before it is compared, so one cost too high shuts the window.
    fixed_window("10/2min").history(&[
        (0, 11, Never, 10),
        (0, 5, Passes, 5),
        (0, 6, Waits(120_000), 5),
        (0, 5, Passes, 0),
        (0, 1, Waits(120_000), 0),
        (119_999, 1, Waits(1), 0),
        (120_000, 1, Passes, 9),
    ]);
}

#[test]
fn a_refusal_leaves_what_a_smaller_request_may_take() {
    fixed_window("5/10s").history(&[
        (0, 2, Passes, 3),
        (5_000, 2, Passes, 1),
        (9_000, 2, Waits(1_000), 1),
        (9_999, 1, Passes, 0),
        (10_000, 5, Passes, 0),
        (10_001, 1, Waits(9_999), 0),
    ]);
    fixed_window("5/10s").history(&[
        (0, 3, Passes, 2),
        (0, 3, Waits(10_000), 2),
        (0, 2, Passes, 0),
        (9_999, 1, Waits(1), 0),
        (10_000, 5, Passes, 0),
        (10_000, 1, Waits(10_000), 0),
    ]);
}

#[test]
fn a_caller_who_keeps_asking_is_not_locked_out_for_longer() {
    for mut cell in every_rule(10) {
        assert_eq!(cell.ask(0, 10), Passes);
        let before = cell.kept();
        for ms in 0..1_000 {
            assert_ne!(cell.ask(ms, 1), Passes);
        }
        assert_eq!(cell.kept(), before, "a refusal leaves no trace");
    }
}

#[test]
fn a_refusal_is_no_entry_in_the_log() {
    let mut cell = sliding_window("1/h");
    assert_eq!(cell.ask(0, 1), Passes);
    for ms in 0..100_000 {
        assert_ne!(cell.ask(ms, 1), Passes);
    }
    assert_eq!(cell.state.entries().count(), 1);
    assert_eq!(cell.state.heap_bytes(), 0);
}

#[test]
fn a_refusal_does_not_block_beyond_the_window() {
    fixed_window("2/s").history(&[
        (0, 3, Never, 2),
        (0, 2, Passes, 0),
        (500, 1, Waits(500), 0),
        (999, 1, Waits(1), 0),
        (1_000, 1, Passes, 1),
    ]);
}

#[test]
fn a_bucket_holds_no_more_than_its_burst_after_it_was_idle() {
    // Seen: 17 and more at once from a bucket of 10, where a stale arrival time counts from now − τ.
    token_bucket("60/min", 10).history(&[
        (0, 1, Passes, 9),
        (8_000, 1, Passes, 9),
        (8_000, 9, Passes, 0),
        (8_000, 8, Waits(8_000), 0),
        (8_000, 1, Waits(1_000), 0),
    ]);
    token_bucket("60/min", 10).history(&[
        (0, 10, Passes, 0),
        (0, 1, Waits(1_000), 0),
        (17_000, 18, Never, 10),
        (17_000, 1, Passes, 9),
        (17_000, 9, Passes, 0),
        (17_000, 1, Waits(1_000), 0),
    ]);
}

#[test]
fn a_bucket_is_never_over_full_however_long_it_is_idle() {
    let mut cell = token_bucket("60/min", 10);
    for idle_ms in [0, 1, 999, 1_000, 5_500, 8_000, 9_999, 10_000, 10_001, 19_999, 20_000, 86_400_000] {
        let mut cell = Cell { rule: cell.rule, state: cell.state };
        let admitted = (0..100).filter(|_| cell.ask(100_000 + idle_ms, 1) == Passes).count();
        assert_eq!(admitted, 10, "at once after {idle_ms} ms");
    }
    assert_eq!(cell.ask(100_000, 10), Passes);
    for idle_ms in [1_000, 5_500, 8_000, 9_999, 10_000, 10_001, 19_999, 20_000, 86_400_000] {
        let mut cell = Cell { rule: cell.rule, state: cell.state };
        let admitted = (0..100).filter(|_| cell.ask(100_000 + idle_ms, 1) == Passes).count() as u64;
        assert_eq!(admitted, (idle_ms / 1_000).min(10), "at once after {idle_ms} ms");
    }
}

#[test]
fn a_first_request_at_the_epoch_finds_a_full_bucket_and_so_does_one_today() {
    let rule = TokenBucket::new(rate("10/min"), Some(10)).unwrap();
    for now in [Timestamp::EPOCH, Timestamp::from_micros(1), START] {
        let mut state = Default::default();
        let now = rule.advance(&mut state, now);
        assert_eq!(rule.standing(&state, now), Standing { remaining: 10, reset: Span::ZERO, next: Span::ZERO });
        assert!(rule.check(&state, Cost::new(10), now).admits());
    }
}

#[test]
fn a_bucket_refills_bit_by_bit_and_not_in_whole_seconds_or_at_once() {
    token_bucket("60/min", 10).history(&[
        (0, 10, Passes, 0),
        (0, 1, Waits(1_000), 0),
        (999, 1, Waits(1), 0),
        (1_000, 1, Passes, 0),
        (2_500, 1, Passes, 0),
        (2_500, 1, Waits(500), 0),
        (12_500, 11, Never, 10),
        (12_500, 10, Passes, 0),
    ]);
    token_bucket("60/min", 5).history(&[
        (0, 3, Passes, 2),
        (0, 3, Waits(1_000), 2),
        (0, 2, Passes, 0),
        (1_000, 1, Passes, 0),
        (6_000, 5, Passes, 0),
        (6_000, 1, Waits(1_000), 0),
    ]);
}

#[test]
fn a_bucket_filled_to_its_brim_is_not_empty_a_moment_later() {
    // A leaking bucket lets one in each time that one has leaked out.
    token_bucket("10/10s", 10).history(&[
        (0, 10, Passes, 0),
        (0, 1, Waits(1_000), 0),
        (1_000, 1, Passes, 0),
        (1_000, 1, Waits(1_000), 0),
        (6_000, 5, Passes, 0),
    ]);
}

#[test]
fn two_buckets_of_one_request_wait_for_the_slower() {
    // 10 a second and 15 in ten seconds, both or neither.
    let mut fast = token_bucket("10/s", 10);
    let mut slow = token_bucket("15/10s", 15);
    let mut ask = |at_ms: u64, cost: u64| {
        let now = at(at_ms);
        let wait = |verdict| match verdict {
            Verdict::Wait(wait) => wait.as_micros(),
            Verdict::Admit => 0,
            Verdict::Never => u64::MAX,
        };
        let verdicts =
            [fast.rule.check(&fast.state, Cost::new(cost), now), slow.rule.check(&slow.state, Cost::new(cost), now)];
        let longest = verdicts[0].or_longer(verdicts[1]);
        if longest.admits() {
            fast.rule.take(&mut fast.state, Cost::new(cost), now);
            slow.rule.take(&mut slow.state, Cost::new(cost), now);
        }
        wait(longest)
    };
    assert_eq!(ask(0, 10), 0);
    assert_eq!(ask(1_000, 6), 0);
    assert_eq!(ask(1_000, 5), 3_000_000);
    assert_eq!(ask(1_000, 1), 333_334, "a third of a second, rounded up");
    assert_eq!(ask(2_000, 1), 0);
    assert_eq!(ask(2_000, 1), 0);
}

#[test]
fn a_window_ends_when_it_was_to_end_however_often_it_is_hit() {
    let mut cell = fixed_window("1000/min");
    for ms in (0..60_000).step_by(100) {
        assert_eq!(cell.ask(ms, 1), Passes);
        assert_eq!(cell.standing(ms).reset, Span::from_millis(60_000 - ms));
        assert_eq!(cell.rule.expires_at(&cell.state), at(60_000));
    }
    assert_eq!(cell.ask(60_000, 1_000), Passes);
}

#[test]
fn every_counter_that_holds_something_expires_and_not_before_it_may() {
    for mut cell in every_rule(10) {
        assert_eq!(cell.ask(0, 3), Passes);
        let expires_at = cell.expires_at();
        assert!(expires_at > at(0));
        let last = cell.standing_at(expires_at.before(Span::from_micros(1)));
        assert!(!last.reset.is_zero(), "still held the microsecond before");
        let standing = cell.standing_at(expires_at);
        assert_eq!((standing.remaining, standing.next), (10, Span::ZERO), "and then as good as new");
    }
}

#[test]
fn requests_of_one_instant_are_counted_one_by_one() {
    for mut cell in every_rule(5) {
        let admitted = (0..20).filter(|_| cell.ask(7, 1) == Passes).count();
        assert_eq!(admitted, 5);
    }
}

#[test]
fn what_has_left_the_window_is_dropped_before_it_is_counted() {
    sliding_window("3/10s").history(&[
        (0, 3, Passes, 0),
        (9_999, 1, Waits(1), 0),
        (10_000, 3, Passes, 0),
        (25_000, 3, Passes, 0),
    ]);
}

#[test]
fn an_entry_that_is_one_window_old_has_left() {
    let mut cell = sliding_window("1/min");
    assert_eq!(cell.ask(0, 1), Passes);
    assert_eq!(cell.ask(59_999, 1), Waits(1));
    assert_eq!(cell.ask(60_000, 1), Passes);
}

#[test]
fn a_budget_does_not_refill_within_its_period() {
    let mut cell = calendar(100, PeriodKind::Month, "UTC");
    let month = cell.standing(0).reset.as_millis_ceil();
    assert_eq!(cell.ask(0, 100), Passes);
    for part in 1..100 {
        assert_eq!(cell.standing(month / 100 * part).remaining, 0, "after {part} % of the month");
    }
    assert_eq!(cell.ask(month, 100), Passes);
}

#[test]
fn a_cost_above_the_capacity_is_told_apart_from_one_to_wait_for() {
    for mut cell in every_rule(10) {
        assert_eq!(cell.ask(0, 11), Never, "with nothing taken");
        assert_eq!(cell.ask(0, 10), Passes);
        assert!(matches!(cell.ask(0, 10), Waits(_)));
        assert_eq!(cell.ask(0, 11), Never, "with all taken");
        assert_eq!(cell.standing(0).remaining, 0);
    }
}

// The weighted counter

#[test]
fn the_weight_of_the_window_before_is_not_rounded_down() {
    // Seen: ⌊prev·weight⌋ lets one in a little after half of the window, which no sliding count admits.
    sliding_counter("2/min").history(&[
        (0, 1, Passes, 1),
        (0, 1, Passes, 0),
        (0, 1, Waits(90_000), 0),
        (60_000, 1, Waits(30_000), 0),
        (90_000, 1, Passes, 0),
        (90_001, 1, Waits(29_999), 0),
        (120_000, 1, Passes, 0),
    ]);
}

#[test]
fn a_limit_of_one_is_not_two_in_a_moment() {
    // Seen: the next window admits a millisecond after it begins, two windows' worth in one.
    sliding_counter("1/10s").history(&[
        (0, 1, Passes, 0),
        (5_000, 1, Waits(15_000), 0),
        (10_000, 1, Waits(10_000), 0),
        (10_001, 1, Waits(9_999), 0),
        (15_000, 1, Waits(5_000), 0),
        (20_000, 1, Passes, 0),
        (20_001, 1, Waits(19_999), 0),
    ]);
}

#[test]
fn what_remains_of_a_weighted_counter_is_what_would_pass() {
    sliding_counter("10/10s").history(&[
        (0, 10, Passes, 0),
        (0, 1, Waits(11_000), 0),
        (9_999, 1, Waits(1_001), 0),
        (10_000, 1, Waits(1_000), 0),
        (11_000, 1, Passes, 0),
        (12_000, 1, Passes, 0),
        (15_000, 5, Waits(2_000), 3),
        (20_000, 3, Passes, 5),
        (29_999, 1, Passes, 5),
    ]);
    sliding_counter("100/min").history(&[
        (0, 80, Passes, 20),
        (60_000, 20, Passes, 0),
        (60_000, 1, Waits(750), 0),
        (75_000, 20, Passes, 0),
        (90_000, 40, Waits(15_000), 20),
        (119_999, 20, Passes, 39),
        (120_000, 1, Passes, 39),
    ]);
}

#[test]
fn a_refusal_is_not_part_of_the_weighted_sum() {
    sliding_counter("10/10s").history(&[
        (0, 10, Passes, 0),
        (0, 1, Waits(11_000), 0),
        (10_000, 1, Waits(1_000), 0),
        (11_000, 1, Passes, 0),
        (15_000, 4, Passes, 0),
        (20_000, 3, Passes, 2),
    ]);
    sliding_counter("10/10s").history(&[
        (0, 10, Passes, 0),
        (11_000, 1, Passes, 0),
        (12_000, 1, Passes, 0),
        (15_000, 5, Waits(2_000), 3),
        (15_000, 3, Passes, 0),
        (20_000, 3, Passes, 2),
    ]);
}

#[test]
fn a_weight_is_reckoned_in_integers_also_where_a_window_is_a_second() {
    sliding_counter("5/s").history(&[(0, 3, Passes, 2), (1_001, 1, Passes, 1), (1_001, 1, Passes, 0)]);
    let mut cell = sliding_counter("5/s");
    assert_eq!(cell.ask(0, 3), Passes);
    assert_eq!(cell.ask(1_001, 2), Passes);
    // 3·(1 − e) + 2 + 1 ≤ 5 from e = 1/3 s on: at the next microsecond, and at 334 ms in milliseconds.
    let wait = cell.rule.check(&cell.state, Cost::ONE, at(1_001));
    assert_eq!(wait, Verdict::Wait(Span::from_micros(332_334)));
    assert_eq!(cell.ask(1_334, 1), Passes);
    assert_eq!(cell.ask(1_668, 1), Passes);
    assert_eq!(cell.ask(2_000, 1), Passes);
}

// Calendar

#[test]
fn a_month_is_neither_thirty_days_nor_counted_from_the_first_request() {
    // 30 November 2026, 12:00 UTC.
    let now = Timestamp::from_secs(1_796_040_000);
    let rule = calendar(5, PeriodKind::Month, "UTC").rule;
    let mut state = Default::default();
    let now = rule.advance(&mut state, now);
    rule.take(&mut state, Cost::new(5), now);
    assert_eq!(rule.standing(&state, now).reset, Span::from_secs(12 * 3_600), "on 1 December");
    let first = now.after(Span::from_secs(12 * 3_600));
    assert!(!rule.check(&state, Cost::ONE, now).admits());
    let inside = rule.advance(&mut state, first);
    assert!(rule.check(&state, Cost::new(5), inside).admits());
}

#[test]
fn a_day_belongs_to_the_zone_and_not_to_utc() {
    // 1 June 2026, 22:30 UTC, is past midnight in Berlin.
    let now = Timestamp::from_secs(1_780_353_000);
    for (zone, left_secs) in
        [("UTC", 5_400), ("Europe/Berlin", 86_400 - 1_800), ("America/New_York", 5 * 3_600 + 1_800)]
    {
        let rule = calendar(5, PeriodKind::Day, zone).rule;
        let mut state = Default::default();
        let now = rule.advance(&mut state, now);
        assert_eq!(rule.standing(&state, now).reset, Span::from_secs(left_secs), "{zone}");
    }
}

#[test]
fn the_period_and_its_count_always_belong_together() {
    // Seen: the period is taken from one reading of the clock and the reset from another, across the
    // boundary. Here both come from one `now`, also in the microseconds around midnight.
    let rule = calendar(5, PeriodKind::Day, "UTC").rule;
    let mut state = Default::default();
    let last = at(86_400_000).before(Span::from_micros(1));
    let now = rule.advance(&mut state, last);
    rule.take(&mut state, Cost::new(5), now);
    assert_eq!(rule.standing(&state, now).reset, Span::from_micros(1));
    let now = rule.advance(&mut state, at(86_400_000));
    assert_eq!((state.start, state.end, state.used), (at(86_400_000), at(2 * 86_400_000), 0));
    assert_eq!(rule.standing(&state, now).reset, Span::from_secs(86_400));
}

// Numbers

#[test]
fn high_rates_have_an_interval_and_low_ones_too() {
    for (text, burst) in
        [("1000000000/s", 1), ("1000000/s", 1), ("300000/s", 1), ("1/366d", 1), ("9007199254740991/366d", 1)]
    {
        let mut cell = token_bucket(text, burst);
        assert_eq!(cell.ask(0, 1), Passes);
        assert!(!cell.standing(0).reset.is_zero(), "{text}");
        assert_ne!(cell.rule.check(&cell.state, Cost::ONE, at(0)), Verdict::Admit, "{text}");
    }
}

#[test]
fn half_a_million_a_second_are_told_apart() {
    // A token every two microseconds: whole milliseconds would let 500 in at once, or none.
    let mut cell = token_bucket("500000/s", 1);
    let mut admitted = 0;
    for us in 0..10_000 {
        let now = START.after(Span::from_micros(us));
        if cell.rule.check(&cell.state, Cost::ONE, now).admits() {
            cell.rule.take(&mut cell.state, Cost::ONE, now);
            admitted += 1;
        }
    }
    assert_eq!(admitted, 5_000);
}

#[test]
fn a_request_exactly_at_the_boundary_passes_and_nothing_is_below_zero() {
    // Seen: in float seconds the request at 10 ms is refused, and −1 remains.
    token_bucket("100/s", 20).history(&[
        (0, 20, Passes, 0),
        (5, 1, Waits(5), 0),
        (10, 1, Passes, 0),
        (10, 1, Waits(10), 0),
        (55, 4, Passes, 0),
        (255, 20, Passes, 0),
        (255, 1, Waits(10), 0),
    ]);
}

#[test]
fn a_tenth_added_ten_times_is_one() {
    let mut cell = token_bucket("10/s", 10);
    assert_eq!(cell.ask(0, 10), Passes);
    for tenth in 1..=100_000_u64 {
        assert_eq!(cell.ask(tenth * 100 - 1, 1), Waits(1));
        assert_eq!(cell.ask(tenth * 100, 1), Passes);
    }
}

#[test]
fn remaining_does_not_wrap_when_a_limit_was_lowered() {
    // Seen: 18446744073709551116 remaining.
    let mut before = fixed_window("600/min");
    assert_eq!(before.ask(0, 600), Passes);
    let mut after = Cell { rule: FixedWindow::new(rate("100/min")).unwrap(), state: before.state };
    assert_eq!(after.standing(0).remaining, 0);
    assert_eq!(after.ask(0, 1), Waits(60_000));
    let mut raised = Cell { rule: FixedWindow::new(rate("1000/min")).unwrap(), state: after.state };
    assert_eq!(raised.standing(0).remaining, 400);
}

#[test]
fn the_largest_numbers_are_refused_and_break_nothing() {
    for mut cell in every_rule(10) {
        assert_eq!(cell.ask(0, 1), Passes);
        let before = cell.kept();
        for cost in [i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX] {
            assert_eq!(cell.ask(0, cost), Never);
        }
        assert_eq!(cell.kept(), before);
        assert_eq!(cell.standing(0).remaining, 9);
    }
}

#[test]
fn a_limit_of_zero_divides_nothing_and_admits_nothing() {
    let mut window = fixed_window("0/min");
    let mut log = sliding_window("0/min");
    let mut counter = sliding_counter("0/min");
    let mut bucket = token_bucket("0/min", 10);
    let mut month = calendar(0, PeriodKind::Month, "UTC");
    for ms in [0, 59_999, 60_000, 86_400_000] {
        for cost in [1, 2, u64::MAX] {
            let answers = [
                window.ask(ms, cost),
                log.ask(ms, cost),
                counter.ask(ms, cost),
                bucket.ask(ms, cost),
                month.ask(ms, cost),
            ];
            assert_eq!(answers, [Never; 5]);
        }
        let peeks = [window.ask(ms, 0), log.ask(ms, 0), counter.ask(ms, 0), bucket.ask(ms, 0), month.ask(ms, 0)];
        assert_eq!(peeks, [Passes; 5], "a peek asks for nothing");
    }
}

#[test]
fn a_bucket_whose_burst_is_nothing_is_an_error_and_no_open_door() {
    assert!(TokenBucket::new(rate("10/s"), Some(0)).is_err());
}

// Answers

#[test]
fn the_reset_of_a_log_is_when_the_oldest_leaves_and_not_the_newest() {
    let mut cell = sliding_window("2/min");
    assert_eq!(cell.ask(0, 1), Passes);
    assert_eq!(cell.standing(0).reset, Span::from_secs(60));
    assert_eq!(cell.ask(10_000, 1), Passes);
    assert_eq!(cell.standing(10_000).reset, Span::from_secs(50));
    assert_eq!(cell.ask(20_000, 1), Waits(40_000));
    assert_eq!(cell.standing(59_999).reset, Span::from_millis(1));
    assert_eq!(cell.standing(60_000).reset, Span::from_secs(10), "now the second is the oldest");
    assert_eq!(cell.standing(70_000).reset, Span::ZERO);
}

#[test]
fn a_reset_is_a_length_of_time_that_gets_shorter_and_no_instant() {
    for mut cell in every_rule(10) {
        assert_eq!(cell.ask(0, 3), Passes);
        let reset = cell.standing(0).reset;
        assert!(!reset.is_zero() && reset <= Span::from_secs(4 * 366 * 86_400), "{reset}");
        assert_eq!(cell.standing(1_000).reset, Span::from_micros(reset.as_micros() - 1_000_000));
    }
}

#[test]
fn the_reset_of_a_bucket_grows_with_what_was_taken() {
    let mut cell = token_bucket("60/min", 10);
    assert_eq!(cell.standing(0).reset, Span::ZERO, "it is full");
    for taken in 1..=10 {
        assert_eq!(cell.ask(0, 1), Passes);
        assert_eq!(cell.standing(0).reset, Span::from_secs(taken), "until it is full again");
        assert_eq!(cell.standing(0).next, Span::from_secs(1), "until one more is there: a second, not a minute");
    }
}

#[test]
fn nothing_grows_where_nothing_was_taken() {
    for mut cell in every_rule(10) {
        let standing = cell.standing(0);
        assert_eq!((standing.remaining, standing.next), (10, Span::ZERO));
        assert_eq!(cell.ask(0, 1), Passes);
        let standing = cell.standing(0);
        assert!(standing.remaining == 9 && !standing.next.is_zero());
    }
}

#[test]
fn a_peek_is_no_request() {
    for mut cell in every_rule(10) {
        for _ in 0..100 {
            assert_eq!(cell.ask(0, 0), Passes);
        }
        assert_eq!(cell.ask(0, 10), Passes);
        assert_eq!(cell.ask(0, 0), Passes, "also with nothing left");
        assert_eq!(cell.standing(0).remaining, 0);
    }
}
