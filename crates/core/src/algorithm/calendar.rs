//! Calendar: at most L units in each civil period (hour, day, week, month, year) of a time zone.
//!
//! ```text
//! [start, end) = the period that holds now      admit ⇔ used + c ≤ L
//! remaining = L − used                          reset = end − now
//! ```
//!
//! Example, 1,000 a month in Europe/Berlin: the month of March 2026 has 743 hours there, one fewer
//! than in UTC, and begins at 23:00 UTC on 28 February.
//!
//! Exact. The period is computed once, when the first request in it arrives, and kept with the
//! count, so both always belong together. State: 24 bytes. Work: two comparisons.

use super::Counter;
use crate::decision::{Standing, Verdict};
use crate::period::CivilPeriod;
use crate::units::{Cost, Span, Timestamp};

/// At most `quota` units in each civil period.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    quota: u64,
    civil: CivilPeriod,
}

/// The period in which something was last taken, and how much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CalendarState {
    /// The first instant of the period.
    pub start: Timestamp,
    /// The first instant after it.
    pub end: Timestamp,
    /// Units taken in it.
    pub used: u64,
}

impl Calendar {
    /// The rule for `quota` units in each `civil` period; a quota of 0 refuses everything.
    pub const fn new(quota: u64, civil: CivilPeriod) -> Self {
        Self { quota, civil }
    }

    /// The periods it counts in.
    pub const fn civil(&self) -> &CivilPeriod {
        &self.civil
    }
}

impl Counter for Calendar {
    type State = CalendarState;

    fn capacity(&self) -> u64 {
        self.quota
    }

    fn window(&self) -> Span {
        self.civil.longest()
    }

    fn advance(&self, state: &mut CalendarState, now: Timestamp) -> Timestamp {
        if now >= state.end {
            let (start, end) = self.civil.around(now);
            *state = CalendarState { start, end, used: 0 };
        }
        now.max(state.start)
    }

    fn check(&self, state: &CalendarState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.units() <= self.quota.saturating_sub(state.used) {
            Verdict::Admit
        } else if cost.units() > self.quota {
            Verdict::Never
        } else {
            Verdict::Wait(state.end.since(now))
        }
    }

    fn take(&self, state: &mut CalendarState, cost: Cost, _now: Timestamp) {
        let used = state.used.saturating_add(cost.units());
        assert!(cost.is_zero() || used <= self.quota, "take follows a check that admitted");
        state.used = used;
    }

    fn standing(&self, state: &CalendarState, now: Timestamp) -> Standing {
        let remaining = self.quota.saturating_sub(state.used);
        let reset = state.end.since(now);
        Standing { remaining, reset, next: if remaining < self.quota { reset } else { Span::ZERO } }
    }

    fn expires_at(&self, state: &CalendarState) -> Timestamp {
        // An empty period still holds back a clock that is set back behind it.
        if state.used == 0 { state.start } else { state.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::period::PeriodKind;

    fn month(quota: u64) -> Calendar {
        Calendar::new(quota, CivilPeriod::new(PeriodKind::Month, "UTC", None).unwrap())
    }

    fn at(text: &str) -> Timestamp {
        let instant: jiff::Timestamp = text.parse().unwrap();
        Timestamp::from_micros(u64::try_from(instant.as_microsecond()).unwrap())
    }

    /// Takes `cost` if it is admitted, and says what was said.
    fn ask(rule: &Calendar, state: &mut CalendarState, cost: u64, now: Timestamp) -> Verdict {
        let now = rule.advance(state, now);
        let verdict = rule.check(state, Cost::new(cost), now);
        if verdict.admits() {
            rule.take(state, Cost::new(cost), now);
        }
        verdict
    }

    #[test]
    fn a_month_limit_spent_on_30_november_is_reset_on_1_december() {
        let (rule, mut state) = (month(1_000), CalendarState::default());
        let now = at("2026-11-30T12:00:00Z");
        assert_eq!(ask(&rule, &mut state, 1_000, now), Verdict::Admit);
        let half_a_day = Span::from_secs(12 * 3_600);
        assert_eq!(ask(&rule, &mut state, 1, now), Verdict::Wait(half_a_day));
        assert_eq!(rule.standing(&state, now), Standing { remaining: 0, reset: half_a_day, next: half_a_day });
        let first = at("2026-12-01T00:00:00Z");
        assert_eq!(rule.expires_at(&state), first);
        assert!(!ask(&rule, &mut state, 1, first.before(Span::from_micros(1))).admits());
        assert_eq!(ask(&rule, &mut state, 1_000, first), Verdict::Admit);
        assert_eq!(rule.standing(&state, first).reset, Span::from_secs(31 * 86_400));
    }

    #[test]
    fn a_period_does_not_refill_while_it_lasts() {
        let (rule, mut state) = (month(1), CalendarState::default());
        assert!(ask(&rule, &mut state, 1, at("2026-01-01T00:00:00Z")).admits());
        for day in 1..=31 {
            assert!(!ask(&rule, &mut state, 1, at(&format!("2026-01-{day:02}T23:59:59Z"))).admits());
        }
    }

    #[test]
    fn a_clock_set_back_stays_in_the_later_period() {
        let (rule, mut state) = (month(10), CalendarState::default());
        assert!(ask(&rule, &mut state, 10, at("2026-12-01T00:00:00Z")).admits());
        assert!(!ask(&rule, &mut state, 1, at("2026-11-30T23:59:59Z")).admits());
    }

    #[test]
    fn quotas_and_costs_at_the_edge_of_64_bits() {
        let (rule, mut state) = (month(u64::MAX), CalendarState::default());
        let now = at("2026-11-30T12:00:00Z");
        assert_eq!(ask(&rule, &mut state, u64::MAX - 1, now), Verdict::Admit);
        assert_eq!(rule.standing(&state, now).remaining, 1);
        assert!(matches!(ask(&rule, &mut state, u64::MAX, now), Verdict::Wait(_)));
        assert_eq!(ask(&rule, &mut state, 1, now), Verdict::Admit);
        assert!(matches!(ask(&rule, &mut state, 1, now), Verdict::Wait(_)));
        assert_eq!(ask(&month(5), &mut state, u64::MAX, now), Verdict::Never);
        assert_eq!(month(5).standing(&state, now).remaining, 0, "a quota lowered below what was taken");
    }

    #[test]
    fn a_quota_of_zero_refuses_everything_for_good() {
        let (rule, mut state) = (month(0), CalendarState::default());
        let now = at("2026-11-30T12:00:00Z");
        assert_eq!(ask(&rule, &mut state, 1, now), Verdict::Never);
        assert_eq!(ask(&rule, &mut state, 0, now), Verdict::Admit);
        assert_eq!(rule.standing(&state, now).next, Span::ZERO, "nothing ever remains");
    }

    #[test]
    fn the_end_of_time_is_no_panic() {
        let (rule, mut state) = (month(1), CalendarState::default());
        assert!(ask(&rule, &mut state, 1, Timestamp::MAX).admits());
        rule.standing(&state, Timestamp::MAX);
    }
}
