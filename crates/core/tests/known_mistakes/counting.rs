//! What is counted, and what is not.

use tidegate_core::algorithm::TokenBucket;
use tidegate_core::{Cost, Counter, PeriodKind, Span, Standing, Timestamp, Verdict};

use crate::cell::Answer::{Never, Passes, Waits};
use crate::cell::{Cell, Key, START, at, calendar, every_rule, fixed_window, rate, sliding_window, token_bucket};

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
