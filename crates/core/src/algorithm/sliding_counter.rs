//! Sliding counter: two adjacent windows, the older one weighted by how much of it is still in view.
//!
//! ```text
//! e = now mod W      admit ⇔ prev·(W − e) + (cur + c)·W ≤ L·W
//! ```
//!
//! Example, 100/min with 80 in the last minute and 30 in this one, 15 s in: 80·45 + 30·60 = 5,400 of
//! 6,000, so 10 more pass.
//!
//! The last W holds between cur and cur + prev units; the estimate is off by at most
//! −prev·(1 − e/W) to +prev·e/W. For quotas too large for an exact log.
//! State: 20 bytes. Work: a few 128-bit products, no division but in `standing`.

use super::{AlgorithmError, Counter};
use crate::decision::{Standing, Verdict};
use crate::units::{Cost, Rate, Span, Timestamp};

/// At most `quota` units in the weighted sum of two windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingCounter {
    quota: u64,
    window: Span,
}

/// What was taken in the current window and in the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingCounterState {
    /// The current window's number since the epoch.
    pub window: u64,
    /// Units taken in the window before.
    pub previous: u64,
    /// Units taken in the current window.
    pub current: u64,
}

impl SlidingCounter {
    /// The rule for `rate`; a rate of 0 refuses everything.
    ///
    /// # Errors
    /// None today: every rate has its sliding counter.
    pub const fn new(rate: Rate) -> Result<Self, AlgorithmError> {
        Ok(Self { quota: rate.count(), window: rate.period() })
    }

    /// The same window with a smaller quota.
    pub(super) const fn with_quota(self, quota: u64) -> Self {
        Self { quota, ..self }
    }

    const fn start(&self, state: &SlidingCounterState) -> Timestamp {
        Timestamp::from_micros(state.window.saturating_mul(self.window.as_micros()))
    }

    /// How far into the current window `now` is, 0 ≤ e ≤ W.
    fn elapsed_us(&self, state: &SlidingCounterState, now: Timestamp) -> u64 {
        now.since(self.start(state)).as_micros().min(self.window.as_micros())
    }

    /// The weighted sum, in units · µs.
    fn sum(&self, state: &SlidingCounterState, now: Timestamp) -> u128 {
        let window_us = self.window.as_micros();
        let in_view_us = window_us - self.elapsed_us(state, now);
        u128::from(state.previous) * u128::from(in_view_us) + u128::from(state.current) * u128::from(window_us)
    }

    /// How far into a window the sum first leaves room for `cost`, if `previous` were taken in the
    /// window before and `current` in it; none if that window never does.
    fn room_at_us(&self, previous: u64, current: u64, cost: u64) -> Option<u64> {
        let window_us = self.window.as_micros();
        let free = self.quota.checked_sub(current.checked_add(cost)?)?;
        let free_us = u128::from(free) * u128::from(window_us);
        let in_view_us = free_us.checked_div(u128::from(previous)).unwrap_or(u128::MAX);
        Some(window_us - u64::try_from(in_view_us).unwrap_or(u64::MAX).min(window_us))
    }

    /// The wait until `cost`, at most the quota, is admitted.
    fn wait(&self, state: &SlidingCounterState, cost: u64, now: Timestamp) -> Span {
        let elapsed_us = self.elapsed_us(state, now);
        if let Some(at_us) = self.room_at_us(state.previous, state.current, cost) {
            return Span::from_micros(at_us.saturating_sub(elapsed_us));
        }
        let next_us = self.room_at_us(state.current, 0, cost).unwrap_or(self.window.as_micros());
        Span::from_micros(self.window.as_micros() - elapsed_us + next_us)
    }
}

impl Counter for SlidingCounter {
    type State = SlidingCounterState;

    fn capacity(&self) -> u64 {
        self.quota
    }

    fn window(&self) -> Span {
        self.window
    }

    fn advance(&self, state: &mut SlidingCounterState, now: Timestamp) -> Timestamp {
        let window = now.as_micros() / self.window.as_micros();
        if window > state.window {
            let previous = if window == state.window + 1 { state.current } else { 0 };
            *state = SlidingCounterState { window, previous, current: 0 };
        }
        now.max(self.start(state))
    }

    fn check(&self, state: &SlidingCounterState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.is_zero() {
            return Verdict::Admit;
        }
        if cost.units() > self.quota {
            return Verdict::Never;
        }
        let window_us = u128::from(self.window.as_micros());
        let wanted = self.sum(state, now) + u128::from(cost.units()) * window_us;
        if wanted <= u128::from(self.quota) * window_us {
            Verdict::Admit
        } else {
            Verdict::Wait(self.wait(state, cost.units(), now))
        }
    }

    fn take(&self, state: &mut SlidingCounterState, cost: Cost, _now: Timestamp) {
        let current = state.current.saturating_add(cost.units());
        assert!(cost.is_zero() || current <= self.quota, "take follows a check that admitted");
        state.current = current;
    }

    fn standing(&self, state: &SlidingCounterState, now: Timestamp) -> Standing {
        let window_us = self.window.as_micros();
        let free = (u128::from(self.quota) * u128::from(window_us)).saturating_sub(self.sum(state, now));
        let remaining = u64::try_from(free / u128::from(window_us)).unwrap_or(u64::MAX);
        let to_end_us = window_us - self.elapsed_us(state, now);
        let reset_us = match (state.current, state.previous) {
            (0, 0) => 0,
            (0, _) => to_end_us,
            _ => to_end_us + window_us,
        };
        let next = if remaining >= self.quota { Span::ZERO } else { self.wait(state, remaining + 1, now) };
        Standing { remaining, reset: Span::from_micros(reset_us), next }
    }

    fn expires_at(&self, state: &SlidingCounterState) -> Timestamp {
        let window_us = self.window.as_micros();
        let windows = match (state.current, state.previous) {
            // Empty windows still hold back a clock that is set back behind them.
            (0, 0) => 0,
            (0, _) => 1,
            _ => 2,
        };
        Timestamp::from_micros((state.window + windows).saturating_mul(window_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_2027: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn rule(count: u64, secs: u64) -> SlidingCounter {
        SlidingCounter::new(Rate::new(count, secs).unwrap()).unwrap()
    }

    /// Takes `cost` if it is admitted, and says what was said.
    fn ask(rule: &SlidingCounter, state: &mut SlidingCounterState, cost: u64, now: Timestamp) -> Verdict {
        let now = rule.advance(state, now);
        let verdict = rule.check(state, Cost::new(cost), now);
        if verdict.admits() {
            rule.take(state, Cost::new(cost), now);
        }
        verdict
    }

    #[test]
    fn the_example_in_the_documentation() {
        let (rule, mut state) = (rule(100, 60), SlidingCounterState::default());
        let minute = Timestamp::from_secs(1_800_000_000 / 60 * 60);
        assert!(ask(&rule, &mut state, 80, minute).admits());
        let next = minute.after(Span::from_secs(60));
        assert!(ask(&rule, &mut state, 20, next).admits());
        let now = next.after(Span::from_secs(15));
        assert!(ask(&rule, &mut state, 10, now).admits(), "80·45 + 30·60 = 5,400 of 6,000");
        assert_eq!(rule.standing(&state, now).remaining, 10);
    }

    #[test]
    fn the_largest_quota_over_the_longest_window_is_no_overflow() {
        let (rule, mut state) = (rule(Rate::COUNT_MAX, Rate::PERIOD_MAX_SECS), SlidingCounterState::default());
        let year = Rate::PERIOD_MAX_SECS;
        let start = Timestamp::from_secs(57 * year);
        assert!(ask(&rule, &mut state, Rate::COUNT_MAX, start).admits());
        let late = Timestamp::from_secs(59 * year).before(Span::from_micros(1));
        // The last microsecond of the window before is still in view, with L/W units.
        let free = u128::from(Rate::COUNT_MAX) * (u128::from(year) * 1_000_000 - 1) / (u128::from(year) * 1_000_000);
        let now = rule.advance(&mut state, late);
        assert_eq!(u128::from(rule.standing(&state, now).remaining), free);
        for cost in [Rate::COUNT_MAX + 1, i64::MAX as u64, u64::MAX] {
            assert_eq!(ask(&rule, &mut state, cost, late), Verdict::Never);
        }
        assert_eq!(ask(&rule, &mut state, Rate::COUNT_MAX, late), Verdict::Wait(Span::from_micros(1)));
    }

    #[test]
    fn a_quota_of_zero_refuses_everything_for_good() {
        let (rule, mut state) = (rule(0, 60), SlidingCounterState::default());
        assert_eq!(ask(&rule, &mut state, 1, YEAR_2027), Verdict::Never);
        assert_eq!(ask(&rule, &mut state, 0, YEAR_2027), Verdict::Admit);
        assert_eq!(rule.standing(&state, YEAR_2027), Standing::default());
    }

    #[test]
    fn a_quota_lowered_below_what_was_taken_leaves_nothing_and_no_less() {
        let mut state = SlidingCounterState::default();
        let window = Timestamp::from_secs(1_800_000_000);
        assert!(ask(&rule(100, 60), &mut state, 80, window).admits());
        let lowered = rule(10, 60);
        assert_eq!(lowered.standing(&state, window).remaining, 0);
        // In the next window 80·(60 − e) ≤ (10 − 1)·60 from e = 53.25 s on.
        assert_eq!(ask(&lowered, &mut state, 1, window), Verdict::Wait(Span::from_millis(113_250)));
    }

    #[test]
    fn empty_windows_expire_at_their_start_since_they_hold_back_an_earlier_clock() {
        let (rule, mut state) = (rule(10, 60), SlidingCounterState::default());
        let now = rule.advance(&mut state, YEAR_2027.after(Span::from_secs(30)));
        assert!(rule.expires_at(&state) <= now);
        assert_eq!(rule.advance(&mut state, Timestamp::EPOCH), rule.expires_at(&state));
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let (rule, mut state) = (rule(Rate::COUNT_MAX, Rate::PERIOD_MAX_SECS), SlidingCounterState::default());
        for cost in [Rate::COUNT_MAX, 1, u64::MAX] {
            ask(&rule, &mut state, cost, Timestamp::MAX);
            rule.standing(&state, Timestamp::MAX);
        }
        assert_eq!(rule.expires_at(&state), Timestamp::MAX);
    }
}
