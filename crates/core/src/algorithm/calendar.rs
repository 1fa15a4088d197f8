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
        if cost.units() <= self.quota.saturating_sub(state.used) || cost.is_zero() {
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
