//! The edges of numbers: very large, very fast, zero, and not quite whole.

use tidegate_core::algorithm::{FixedWindow, TokenBucket};
use tidegate_core::{Cost, Counter, PeriodKind, Span, Verdict};

use crate::cell::Answer::{Never, Passes, Waits};
use crate::cell::{
    Cell, Key, START, at, calendar, every_rule, fixed_window, rate, sliding_counter, sliding_window, token_bucket,
};

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
