//! Months, days and their zones.

use tidegate_core::{Cost, Counter, PeriodKind, Span, Timestamp};

use crate::cell::{at, calendar};

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
