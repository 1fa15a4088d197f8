//! What one limit says of one charge.

use crate::units::Span;

/// Whether a limit admits a charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may pass.
    Admit,
    /// Not now: the same charge passes after this wait, if nothing else is taken meanwhile.
    Wait(Span),
    /// Not now and not later: the cost is above the limit's capacity, or the limit is 0.
    Never,
}

impl Verdict {
    /// Whether the charge may pass.
    pub const fn admits(self) -> bool {
        matches!(self, Self::Admit)
    }

    /// The longer of two waits; `Never` is the longest.
    #[must_use]
    pub fn or_longer(self, other: Self) -> Self {
        match (self, other) {
            (Self::Never, _) | (_, Self::Never) => Self::Never,
            (Self::Wait(a), Self::Wait(b)) => Self::Wait(a.max(b)),
            (Self::Admit, verdict) | (verdict, Self::Admit) => verdict,
        }
    }
}

/// How a limit stands after a decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Standing {
    /// What can still be taken now, 0 to capacity.
    pub remaining: u64,
    /// Fixed window and calendar: to the period's end. Bucket: until full again. Sliding window:
    /// until the oldest admitted entry leaves. Sliding counter: until both windows are empty.
    pub reset: Span,
    /// Until `remaining` next grows by itself; zero if it cannot.
    pub next: Span,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longer_of_two_verdicts() {
        let wait = |secs| Verdict::Wait(Span::from_secs(secs));
        let longer = [
            (Verdict::Admit, Verdict::Admit, Verdict::Admit),
            (Verdict::Admit, wait(1), wait(1)),
            (wait(1), wait(2), wait(2)),
            (wait(2), Verdict::Never, Verdict::Never),
            (Verdict::Admit, Verdict::Never, Verdict::Never),
        ];
        for (one, other, expected) in longer {
            assert_eq!(one.or_longer(other), expected);
            assert_eq!(other.or_longer(one), expected);
        }
        assert!(Verdict::Admit.admits() && !wait(0).admits() && !Verdict::Never.admits());
    }
}
