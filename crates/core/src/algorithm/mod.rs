//! The counting rules: pure functions from (state, cost, now) to (state, verdict).
//!
//! Each file opens with its formula, a worked example, its error bound and its size. What they
//! share is the trait [`Counter`]; what a limits file chooses among is the enum [`Algorithm`].

mod calendar;
mod fixed_window;
mod sliding_counter;
mod sliding_window;
mod token_bucket;

use std::fmt::Debug;

pub use calendar::{Calendar, CalendarState};
pub use fixed_window::{FixedWindow, FixedWindowState};
pub use sliding_counter::{SlidingCounter, SlidingCounterState};
pub use sliding_window::{SlidingWindow, SlidingWindowState, SlidingWindowSummary};
pub use token_bucket::{TokenBucket, TokenBucketState};

use crate::decision::{Standing, Verdict};
use crate::period::PeriodError;
use crate::units::{Cost, Span, Timestamp};

/// One counting rule.
///
/// The calls for one request come in this order, all with one `now`: [`advance`](Self::advance),
/// which says what time it is *inside this cell*; then [`check`](Self::check); then, only if every
/// limit of the request admits it, [`take`](Self::take); then [`standing`](Self::standing).
///
/// Contract: `check` never changes anything; `take` is called only after `check` said
/// [`Verdict::Admit`] for the same cost; the default state is that of a key never seen, and a state
/// whose [`expires_at`](Self::expires_at) has come behaves exactly as the default state does.
pub trait Counter {
    /// What is kept for one key.
    type State: Clone + Debug + Default + PartialEq + Eq;

    /// The most that can be admitted at one instant: the quota of a window, the burst of a bucket.
    fn capacity(&self) -> u64;

    /// The time in which a full capacity comes back; what the IETF header calls the window `w`.
    fn window(&self) -> Span;

    /// Moves the state to `now`, dropping what has passed, and returns the time inside the cell:
    /// `now`, or the cell's own latest time if the clock was set back. (A bucket has no time of its
    /// own: set back, it is in debt.)
    fn advance(&self, state: &mut Self::State, now: Timestamp) -> Timestamp;

    /// Whether `cost` would be admitted. A cost of 0 always is.
    fn check(&self, state: &Self::State, cost: Cost, now: Timestamp) -> Verdict;

    /// Takes `cost`, which `check` has admitted.
    fn take(&self, state: &mut Self::State, cost: Cost, now: Timestamp);

    /// How the limit stands.
    fn standing(&self, state: &Self::State, now: Timestamp) -> Standing;

    /// From this instant on the state equals that of a key never seen.
    fn expires_at(&self, state: &Self::State) -> Timestamp;
}

/// The counting rule of a limit, with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// `fixed_window`: windows aligned to the epoch.
    FixedWindow(FixedWindow),
    /// `sliding_window`: an exact log of what was admitted.
    SlidingWindow(SlidingWindow),
    /// `sliding_counter`: two windows, weighted.
    SlidingCounter(SlidingCounter),
    /// `token_bucket`: a steady rate with a burst, kept as GCRA.
    TokenBucket(TokenBucket),
    /// A civil period in a time zone: hour, day, week, month, year.
    Calendar(Calendar),
}

impl Algorithm {
    /// The name in the limits file; calendar limits are named by `period` there.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::FixedWindow(_) => "fixed_window",
            Self::SlidingWindow(_) => "sliding_window",
            Self::SlidingCounter(_) => "sliding_counter",
            Self::TokenBucket(_) => "token_bucket",
            Self::Calendar(_) => "calendar",
        }
    }

    /// The most that can be admitted at one instant.
    pub fn capacity(&self) -> u64 {
        match self {
            Self::FixedWindow(rule) => rule.capacity(),
            Self::SlidingWindow(rule) => rule.capacity(),
            Self::SlidingCounter(rule) => rule.capacity(),
            Self::TokenBucket(rule) => rule.capacity(),
            Self::Calendar(rule) => rule.capacity(),
        }
    }

    /// The time in which a full capacity comes back; for a calendar limit the longest its period
    /// can be.
    pub fn window(&self) -> Span {
        match self {
            Self::FixedWindow(rule) => rule.window(),
            Self::SlidingWindow(rule) => rule.window(),
            Self::SlidingCounter(rule) => rule.window(),
            Self::TokenBucket(rule) => rule.window(),
            Self::Calendar(rule) => rule.window(),
        }
    }

    /// Whether this rule reads the states of the `other`. Of a calendar the anchor day is not compared: any
    /// calendar rule reads any period.
    pub fn has_layout_of(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::FixedWindow(own), Self::FixedWindow(other)) => own.window() == other.window(),
            (Self::TokenBucket(own), Self::TokenBucket(other)) => own.unit() == other.unit(),
            (Self::SlidingCounter(own), Self::SlidingCounter(other)) => own.window() == other.window(),
            (Self::SlidingWindow(own), Self::SlidingWindow(other)) => own.window() == other.window(),
            (Self::Calendar(own), Self::Calendar(other)) => {
                let (own, other) = (own.civil(), other.civil());
                own.kind() == other.kind() && own.zone_name() == other.zone_name()
            }
            _ => false,
        }
    }

    /// The rule for one of `parts` equal parts of the limit: at least 1 of what allows anything, so that the
    /// parts together may allow a little more where the quota is small.
    ///
    /// A window has a part of the quota; a bucket a part of the burst, and refills so many times slower.
    #[must_use]
    pub fn part_of(&self, parts: u64) -> Self {
        let parts = parts.max(1);
        let part = |quota: u64| if quota == 0 { 0 } else { (quota / parts).max(1) };
        match self {
            Self::FixedWindow(rule) => Self::FixedWindow(rule.with_quota(part(rule.capacity()))),
            Self::SlidingWindow(rule) => Self::SlidingWindow(rule.with_quota(part(rule.capacity()))),
            Self::SlidingCounter(rule) => Self::SlidingCounter(rule.with_quota(part(rule.capacity()))),
            Self::TokenBucket(rule) => Self::TokenBucket(rule.part_of(parts)),
            Self::Calendar(rule) => Self::Calendar(Calendar::new(part(rule.capacity()), rule.civil().clone())),
        }
    }

    /// Names what a stored state means: a counter can be read on under any rule of equal layout,
    /// whatever its quota or burst.
    pub fn layout(&self) -> String {
        match self {
            Self::TokenBucket(rule) => {
                let (token_ticks, ticks_per_us) = rule.unit();
                format!("token_bucket/{token_ticks}:{ticks_per_us}")
            }
            Self::Calendar(rule) => format!("calendar/{}", rule.civil()),
            windowed => format!("{}/{}", windowed.name(), windowed.window()),
        }
    }
}

/// Why numbers do not make a counting rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlgorithmError {
    /// The quota does not fit the rule's state.
    #[error("{algorithm} counts up to {most} a window, not {quota}; use {instead}")]
    QuotaTooLarge {
        /// The rule.
        algorithm: &'static str,
        /// What was asked for.
        quota: u64,
        /// The largest quota.
        most: u64,
        /// What to use for larger ones.
        instead: &'static str,
    },
    /// More than 1,024 tokens a microsecond.
    #[error("a token_bucket refills at most 1024 tokens a microsecond")]
    RateTooFine,
    /// A burst of 0 with a rate above 0.
    #[error("burst is 0, so nothing could ever pass; use a rate of 0 to refuse everything")]
    BurstZero,
    /// The bucket would take longer than 71 years to refill.
    #[error("a bucket of {burst} at this rate takes more than 71 years to refill; lower burst or raise rate")]
    BurstTooLarge {
        /// What was asked for.
        burst: u64,
    },
    /// The calendar period is not valid.
    #[error(transparent)]
    Period(#[from] PeriodError),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    #[test]
    fn parts_allow_what_the_whole_does_but_for_the_last_few() {
        let rate = |count| Rate::new(count, 60).unwrap();
        for quota in [0, 1, 2, 7, 100, 1_000_003] {
            let rules = [
                Algorithm::FixedWindow(FixedWindow::new(rate(quota)).unwrap()),
                Algorithm::SlidingWindow(SlidingWindow::new(rate(quota.min(100_000))).unwrap()),
                Algorithm::SlidingCounter(SlidingCounter::new(rate(quota)).unwrap()),
                Algorithm::TokenBucket(TokenBucket::new(rate(quota), None).unwrap()),
            ];
            for rule in rules {
                for parts in [0, 1, 2, 3, 64, u64::MAX] {
                    let (part, whole) = (rule.part_of(parts), rule.capacity());
                    let expected = if whole == 0 { 0 } else { (whole / parts.max(1)).max(1) };
                    assert_eq!(part.capacity(), expected, "{parts} of {rule:?}");
                    if !matches!(rule, Algorithm::TokenBucket(_)) {
                        assert!(rule.has_layout_of(&part));
                    }
                }
            }
        }
        let Algorithm::TokenBucket(part) = Algorithm::TokenBucket(TokenBucket::new(rate(60), None).unwrap()).part_of(4)
        else {
            panic!("a bucket stays one");
        };
        assert_eq!((part.capacity(), part.unit(), part.window()), (15, (4_000_000, 1), Span::from_secs(60)));
    }
}
