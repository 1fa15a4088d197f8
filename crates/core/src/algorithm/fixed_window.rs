//! Fixed window: at most L units in each window of length W, windows aligned to the epoch.
//!
//! ```text
//! window = ⌊now / W⌋        admit ⇔ used + c ≤ L
//! remaining = L − used      reset = (window + 1)·W − now
//! ```
//!
//! Example, 3/min: at 14:03:50 three pass, the fourth waits 10 s; at 14:04:00 three more pass.
//!
//! Known trade-off: up to 2 L pass in a time of W that spans a boundary. Exact within its windows.
//! State: 63 bits (window 32, used 31). Work: one division.

use super::{AlgorithmError, Counter};
use crate::decision::{Standing, Verdict};
use crate::units::{Cost, Rate, Span, Timestamp};

/// At most `quota` units in each epoch-aligned window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    quota: u64,
    window: Span,
}

/// Which window, and what was taken in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FixedWindowState {
    /// The window's number since the epoch, below 2^32 − 1.
    pub window: u32,
    /// Units taken in it, at most 2^31 − 1.
    pub used: u32,
}

/// A window is at least a second, so only in 2106 would a number pass this. One below all ones, so
/// that a packed state never is.
const WINDOW_MAX: u64 = u32::MAX as u64 - 1;

impl FixedWindow {
    /// The largest quota: `used` has 31 bits.
    pub const QUOTA_MAX: u64 = (1 << 31) - 1;

    /// The rule for `rate`; a rate of 0 refuses everything.
    ///
    /// # Errors
    /// [`AlgorithmError::QuotaTooLarge`] above 2^31 − 1.
    pub const fn new(rate: Rate) -> Result<Self, AlgorithmError> {
        if rate.count() > Self::QUOTA_MAX {
            return Err(AlgorithmError::QuotaTooLarge {
                algorithm: "fixed_window",
                quota: rate.count(),
                most: Self::QUOTA_MAX,
                instead: "token_bucket or sliding_counter",
            });
        }
        Ok(Self { quota: rate.count(), window: rate.period() })
    }

    const fn start(&self, state: &FixedWindowState) -> Timestamp {
        Timestamp::from_micros((state.window as u64).saturating_mul(self.window.as_micros()))
    }

    const fn end(&self, state: &FixedWindowState) -> Timestamp {
        Timestamp::from_micros((state.window as u64 + 1).saturating_mul(self.window.as_micros()))
    }
}

impl FixedWindowState {
    /// The 63 bits that a cell keeps; never all ones.
    pub const fn pack(self) -> u64 {
        (self.window as u64) << 31 | self.used as u64
    }

    /// Back from [`pack`](Self::pack).
    pub const fn unpack(word: u64) -> Self {
        Self { window: (word >> 31) as u32, used: (word & 0x7fff_ffff) as u32 }
    }
}

impl Counter for FixedWindow {
    type State = FixedWindowState;

    fn capacity(&self) -> u64 {
        self.quota
    }

    fn window(&self) -> Span {
        self.window
    }

    fn advance(&self, state: &mut FixedWindowState, now: Timestamp) -> Timestamp {
        let window = (now.as_micros() / self.window.as_micros()).min(WINDOW_MAX) as u32;
        if window > state.window {
            *state = FixedWindowState { window, used: 0 };
        }
        now.max(self.start(state))
    }

    fn check(&self, state: &FixedWindowState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.units() <= self.quota.saturating_sub(u64::from(state.used)) || cost.is_zero() {
            Verdict::Admit
        } else if cost.units() > self.quota {
            Verdict::Never
        } else {
            Verdict::Wait(self.end(state).since(now))
        }
    }

    fn take(&self, state: &mut FixedWindowState, cost: Cost, _now: Timestamp) {
        let used = u64::from(state.used) + cost.units();
        assert!(cost.is_zero() || used <= self.quota, "take follows a check that admitted");
        state.used = u32::try_from(used).unwrap_or(u32::MAX);
    }

    fn standing(&self, state: &FixedWindowState, now: Timestamp) -> Standing {
        let remaining = self.quota.saturating_sub(u64::from(state.used));
        let reset = self.end(state).since(now);
        Standing { remaining, reset, next: if remaining < self.quota { reset } else { Span::ZERO } }
    }

    fn expires_at(&self, state: &FixedWindowState) -> Timestamp {
        // An empty window still holds back a clock that is set back behind it.
        if state.used == 0 { self.start(state) } else { self.end(state) }
    }
}
