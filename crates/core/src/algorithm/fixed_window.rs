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

    /// The same window with a smaller quota.
    pub(super) const fn with_quota(self, quota: u64) -> Self {
        Self { quota, ..self }
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
    #[inline]
    pub const fn pack(self) -> u64 {
        (self.window as u64) << 31 | self.used as u64
    }

    /// Back from [`pack`](Self::pack).
    #[inline]
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

    #[inline]
    fn advance(&self, state: &mut FixedWindowState, now: Timestamp) -> Timestamp {
        // Nearly always the window goes on, and that takes no division.
        if now >= self.end(state) {
            let window = (now.as_micros() / self.window.as_micros()).min(WINDOW_MAX) as u32;
            if window > state.window {
                *state = FixedWindowState { window, used: 0 };
            }
        }
        now.max(self.start(state))
    }

    #[inline]
    fn check(&self, state: &FixedWindowState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.units() <= self.quota.saturating_sub(u64::from(state.used)) {
            Verdict::Admit
        } else if cost.units() > self.quota {
            Verdict::Never
        } else {
            Verdict::Wait(self.end(state).since(now))
        }
    }

    #[inline]
    fn take(&self, state: &mut FixedWindowState, cost: Cost, _now: Timestamp) {
        let used = u64::from(state.used) + cost.units();
        assert!(cost.is_zero() || used <= self.quota, "take follows a check that admitted");
        state.used = u32::try_from(used).unwrap_or(u32::MAX);
    }

    #[inline]
    fn standing(&self, state: &FixedWindowState, now: Timestamp) -> Standing {
        let remaining = self.quota.saturating_sub(u64::from(state.used));
        let reset = self.end(state).since(now);
        Standing { remaining, reset, next: if remaining < self.quota { reset } else { Span::ZERO } }
    }

    #[inline]
    fn expires_at(&self, state: &FixedWindowState) -> Timestamp {
        // An empty window still holds back a clock that is set back behind it.
        if state.used == 0 { self.start(state) } else { self.end(state) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const YEAR_2027: Timestamp = Timestamp::from_secs(1_800_000_000);

    fn rule(count: u64, secs: u64) -> FixedWindow {
        FixedWindow::new(Rate::new(count, secs).unwrap()).unwrap()
    }

    /// Takes `cost` if it is admitted, and says what was said.
    fn ask(rule: &FixedWindow, state: &mut FixedWindowState, cost: u64, now: Timestamp) -> Verdict {
        let now = rule.advance(state, now);
        let verdict = rule.check(state, Cost::new(cost), now);
        if verdict.admits() {
            rule.take(state, Cost::new(cost), now);
        }
        verdict
    }

    #[test]
    fn the_example_in_the_documentation() {
        let (rule, mut state) = (rule(3, 60), FixedWindowState::default());
        let minute = Timestamp::from_secs(1_800_000_000 / 60 * 60);
        let now = minute.after(Span::from_secs(50));
        assert!((0..3).all(|_| ask(&rule, &mut state, 1, now).admits()));
        assert_eq!(ask(&rule, &mut state, 1, now), Verdict::Wait(Span::from_secs(10)));
        assert_eq!(ask(&rule, &mut state, 3, minute.after(Span::from_secs(60))), Verdict::Admit);
    }

    #[test]
    fn the_largest_quota_is_counted_to_its_last_unit() {
        let (rule, mut state) = (rule(FixedWindow::QUOTA_MAX, 60), FixedWindowState::default());
        assert!(ask(&rule, &mut state, FixedWindow::QUOTA_MAX - 1, YEAR_2027).admits());
        assert_eq!(rule.standing(&state, YEAR_2027).remaining, 1);
        assert!(ask(&rule, &mut state, 1, YEAR_2027).admits());
        assert!(!ask(&rule, &mut state, 1, YEAR_2027).admits());
        assert_eq!(FixedWindowState::unpack(state.pack()), state);
        let error = FixedWindow::new(Rate::new(FixedWindow::QUOTA_MAX + 1, 60).unwrap()).unwrap_err();
        let message =
            "fixed_window counts up to 2147483647 a window, not 2147483648; use token_bucket or sliding_counter";
        assert_eq!(error.to_string(), message);
    }

    #[test]
    fn costs_at_the_edge_of_64_bits_never_pass() {
        let (rule, mut state) = (rule(FixedWindow::QUOTA_MAX, 1), FixedWindowState::default());
        assert!(ask(&rule, &mut state, 1, YEAR_2027).admits());
        for cost in [FixedWindow::QUOTA_MAX + 1, u64::from(u32::MAX) + 1, i64::MAX as u64, u64::MAX] {
            assert_eq!(ask(&rule, &mut state, cost, YEAR_2027), Verdict::Never);
        }
        assert_eq!(state.used, 1);
    }

    #[test]
    fn a_packed_state_is_never_all_ones() {
        let (rule, mut state) = (rule(FixedWindow::QUOTA_MAX, 1), FixedWindowState::default());
        for now in [Timestamp::from_secs(u64::from(u32::MAX)), Timestamp::MAX] {
            ask(&rule, &mut state, FixedWindow::QUOTA_MAX, now);
            assert_eq!(u64::from(state.used), FixedWindow::QUOTA_MAX, "as full as can be, as late as can be");
            assert!(state.pack() < (1 << 63) - 1);
            assert_eq!(FixedWindowState::unpack(state.pack()), state);
        }
    }

    #[test]
    fn a_quota_lowered_below_what_was_taken_leaves_nothing_and_no_less() {
        let mut state = FixedWindowState::default();
        assert!(ask(&rule(100, 60), &mut state, 80, YEAR_2027).admits());
        let lowered = rule(10, 60);
        assert_eq!(lowered.standing(&state, YEAR_2027).remaining, 0);
        assert!(matches!(ask(&lowered, &mut state, 1, YEAR_2027), Verdict::Wait(_)));
        assert_eq!(ask(&lowered, &mut state, 0, YEAR_2027), Verdict::Admit);
        assert_eq!(rule(200, 60).standing(&state, YEAR_2027).remaining, 120, "raised, what is more is there at once");
    }

    #[test]
    fn a_quota_of_zero_refuses_everything_for_good() {
        let (rule, mut state) = (rule(0, 60), FixedWindowState::default());
        assert_eq!(ask(&rule, &mut state, 1, YEAR_2027), Verdict::Never);
        assert_eq!(ask(&rule, &mut state, 0, YEAR_2027), Verdict::Admit);
        let standing = rule.standing(&state, YEAR_2027);
        assert_eq!((standing.remaining, standing.next), (0, Span::ZERO));
    }

    #[test]
    fn a_clock_set_back_stays_in_the_later_window() {
        let (rule, mut state) = (rule(10, 60), FixedWindowState::default());
        let window = Timestamp::from_secs(1_800_000_000 / 60 * 60);
        assert!(ask(&rule, &mut state, 10, window).admits());
        let before = window.before(Span::from_micros(1));
        assert_eq!(rule.advance(&mut state, before), window);
        assert!(!ask(&rule, &mut state, 1, before).admits());
    }

    #[test]
    fn an_empty_window_expires_at_its_start_since_it_holds_back_an_earlier_clock() {
        let (rule, mut state) = (rule(10, 60), FixedWindowState::default());
        let now = rule.advance(&mut state, YEAR_2027);
        assert_eq!(state.used, 0);
        assert!(rule.expires_at(&state) <= now);
        assert_eq!(rule.advance(&mut state, Timestamp::EPOCH), rule.expires_at(&state));
    }
}
