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
