use super::*;

const YEAR_2027: Timestamp = Timestamp::from_secs(1_800_000_000);

fn rule(count: u64, secs: u64) -> SlidingWindow {
    SlidingWindow::new(Rate::new(count, secs).unwrap()).unwrap()
}

fn secs(secs: u64) -> Timestamp {
    YEAR_2027.after(Span::from_secs(secs))
}

/// Takes `cost` if it is admitted, and says what was said.
fn ask(rule: &SlidingWindow, state: &mut SlidingWindowState, cost: u64, now: Timestamp) -> Verdict {
    let now = rule.advance(state, now);
    let verdict = rule.check(state, Cost::new(cost), now);
    if verdict.admits() {
        rule.take(state, Cost::new(cost), now);
    }
    verdict
}

#[test]
fn the_example_in_the_documentation() {
    let (rule, mut state) = (rule(3, 60), SlidingWindowState::default());
    assert!([5, 20, 40].iter().all(|at| ask(&rule, &mut state, 1, secs(*at)).admits()));
    assert_eq!(ask(&rule, &mut state, 1, secs(50)), Verdict::Wait(Span::from_secs(15)));
    assert_eq!(ask(&rule, &mut state, 1, secs(65)), Verdict::Admit);
}

#[test]
fn thirty_requests_over_a_minute_take_four_bytes_each() {
    let (rule, mut state) = (rule(30, 60), SlidingWindowState::default());
    assert!((0..30).all(|number| ask(&rule, &mut state, 1, secs(2 * number)).admits()));
    assert_eq!(state.entries().count(), 30);
    assert_eq!(state.log.len(), 29 * 4, "the newest is kept beside the log");
    assert_eq!(size_of::<SlidingWindowState>(), 72);
}

#[test]
fn a_log_that_has_shrunk_gives_its_memory_back() {
    let (rule, mut state) = (rule(10_000, 60), SlidingWindowState::default());
    assert!((0..10_000).all(|ms| ask(&rule, &mut state, 1, YEAR_2027.after(Span::from_millis(ms))).admits()));
    let full = state.heap_bytes();
    rule.advance(&mut state, YEAR_2027.after(Span::from_millis(69_990)));
    assert!(state.heap_bytes() * 10 < full, "{} of {full} bytes", state.heap_bytes());
}

#[test]
fn units_of_one_instant_are_one_entry_and_all_are_counted() {
    let (rule, mut state) = (rule(100_000, 60), SlidingWindowState::default());
    assert!((0..1_000).all(|_| ask(&rule, &mut state, 100, YEAR_2027).admits()));
    assert_eq!(state.entries().collect::<Vec<_>>(), [(YEAR_2027, 100_000)]);
    assert!(!ask(&rule, &mut state, 1, YEAR_2027).admits());
}

#[test]
fn the_longest_gap_and_the_heaviest_entry_are_read_back() {
    let (rule, mut state) = (rule(SlidingWindow::QUOTA_MAX, Rate::PERIOD_MAX_SECS), SlidingWindowState::default());
    assert!(ask(&rule, &mut state, SlidingWindow::QUOTA_MAX - 1, YEAR_2027).admits());
    let last = YEAR_2027.after(rule.window()).before(Span::from_micros(1));
    assert!(ask(&rule, &mut state, 1, last).admits());
    assert_eq!(state.entries().collect::<Vec<_>>(), [(YEAR_2027, SlidingWindow::QUOTA_MAX - 1), (last, 1)]);
    assert_eq!(ask(&rule, &mut state, 1, last), Verdict::Wait(Span::from_micros(1)));
}

#[test]
fn a_quota_too_large_for_a_log_is_an_error_that_says_what_to_use() {
    let error = SlidingWindow::new(Rate::new(100_001, 60).unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "sliding_window counts up to 100000 a window, not 100001; use sliding_counter");
}

#[test]
fn costs_at_the_edge_of_64_bits_never_pass_and_leave_no_entry() {
    let (rule, mut state) = (rule(10, 60), SlidingWindowState::default());
    assert!(ask(&rule, &mut state, 10, YEAR_2027).admits());
    for cost in [11, i64::MAX as u64, u64::MAX] {
        assert_eq!(ask(&rule, &mut state, cost, YEAR_2027), Verdict::Never);
    }
    assert_eq!(state.entries().count(), 1);
}

#[test]
fn a_quota_of_zero_refuses_everything_for_good() {
    let (rule, mut state) = (rule(0, 60), SlidingWindowState::default());
    assert_eq!(ask(&rule, &mut state, 1, YEAR_2027), Verdict::Never);
    assert_eq!(ask(&rule, &mut state, 0, YEAR_2027), Verdict::Admit);
    assert_eq!(rule.standing(&state, YEAR_2027), Standing::default());
}

#[test]
fn what_has_left_the_window_does_not_come_back_with_a_clock_set_back() {
    let (rule, mut state) = (rule(1, 1), SlidingWindowState::default());
    assert!(ask(&rule, &mut state, 1, YEAR_2027).admits());
    // The clock jumps ahead, which drops the entry, and is set back to where the entry was in view.
    assert_eq!(rule.advance(&mut state, secs(3_600)), secs(3_600));
    assert_eq!(state.entries().count(), 0);
    assert_eq!(rule.advance(&mut state, YEAR_2027), secs(1), "when it left, and no earlier");
}

#[test]
fn a_quota_lowered_below_what_was_taken_says_when_something_remains_again() {
    let mut state = SlidingWindowState::default();
    assert!((0..10).all(|at| ask(&rule(10, 60), &mut state, 1, secs(at)).admits()));
    let (lowered, now) = (rule(3, 60), secs(10));
    let standing = lowered.standing(&state, now);
    // Of 0:00 to 0:09 eight have to leave before there are fewer than three.
    assert_eq!((standing.remaining, standing.next), (0, Span::from_secs(57)));
    assert_eq!(standing.reset, Span::from_secs(50), "the oldest leaves before");
    assert_eq!(ask(&lowered, &mut state, 1, now), Verdict::Wait(Span::from_secs(57)));
    assert_eq!(ask(&lowered, &mut state, 1, secs(67)), Verdict::Admit);
}

#[test]
fn the_end_of_time_is_no_overflow() {
    let (rule, mut state) = (rule(100, Rate::PERIOD_MAX_SECS), SlidingWindowState::default());
    for cost in [100, 1, u64::MAX] {
        ask(&rule, &mut state, cost, Timestamp::MAX);
        rule.standing(&state, Timestamp::MAX);
    }
    assert_eq!(rule.expires_at(&state), Timestamp::MAX);
}
