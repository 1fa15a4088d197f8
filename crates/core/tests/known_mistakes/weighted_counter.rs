//! The sum of two windows, weighted.

use tidegate_core::{Cost, Counter, Span, Verdict};

use crate::cell::Answer::{Passes, Waits};
use crate::cell::{at, sliding_counter};

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
