//! What is said of how a limit stands.

use tidegate_core::Span;

use crate::cell::Answer::{Passes, Waits};
use crate::cell::{Key, every_rule, sliding_window, token_bucket};

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
