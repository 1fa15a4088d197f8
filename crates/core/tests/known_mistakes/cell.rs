//! A key of one rule, or of any, and what it is asked.

use Answer::{Never, Passes, Waits};
use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{CivilPeriod, Cost, Counter, PeriodKind, Rate, Span, Standing, Timestamp, Verdict};

/// A multiple of a day after the epoch, hence of every window here.
pub(crate) const START: Timestamp = Timestamp::from_secs(20_000 * 86_400);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Passes,
    /// In milliseconds.
    Waits(u64),
    Never,
}

/// A key of one rule.
pub(crate) struct Cell<C: Counter> {
    pub(crate) rule: C,
    pub(crate) state: C::State,
}

impl<C: Counter> Cell<C> {
    pub(crate) fn new(rule: C) -> Self {
        Self { rule, state: C::State::default() }
    }

    /// Asks for `cost`, and takes it if it passes.
    pub(crate) fn ask(&mut self, at_ms: u64, cost: u64) -> Answer {
        let now = self.rule.advance(&mut self.state, at(at_ms));
        match self.rule.check(&self.state, Cost::new(cost), now) {
            Verdict::Admit => {
                self.rule.take(&mut self.state, Cost::new(cost), now);
                Passes
            }
            Verdict::Wait(wait) => {
                assert!(wait.as_micros().is_multiple_of(1_000), "no whole milliseconds: {wait}");
                Waits(wait.as_micros() / 1_000)
            }
            Verdict::Never => Never,
        }
    }

    /// Asks at each instant for a cost; compares the answer, and what remains after it.
    #[track_caller]
    pub(crate) fn history(mut self, steps: &[(u64, u64, Answer, u64)]) {
        for (number, (at_ms, cost, answer, remaining)) in steps.iter().copied().enumerate() {
            assert_eq!(self.ask(at_ms, cost), answer, "step {number}: {cost} at {at_ms} ms");
            assert_eq!(self.standing(at_ms).remaining, remaining, "remaining after step {number}");
        }
    }
}

pub(crate) fn at(ms: u64) -> Timestamp {
    START.after(Span::from_millis(ms))
}

pub(crate) fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

pub(crate) fn fixed_window(text: &str) -> Cell<FixedWindow> {
    Cell::new(FixedWindow::new(rate(text)).unwrap())
}

pub(crate) fn sliding_window(text: &str) -> Cell<SlidingWindow> {
    Cell::new(SlidingWindow::new(rate(text)).unwrap())
}

pub(crate) fn sliding_counter(text: &str) -> Cell<SlidingCounter> {
    Cell::new(SlidingCounter::new(rate(text)).unwrap())
}

pub(crate) fn token_bucket(text: &str, burst: u64) -> Cell<TokenBucket> {
    Cell::new(TokenBucket::new(rate(text), Some(burst)).unwrap())
}

pub(crate) fn calendar(quota: u64, kind: PeriodKind, zone: &str) -> Cell<Calendar> {
    Cell::new(Calendar::new(quota, CivilPeriod::new(kind, zone, None).unwrap()))
}

/// A key of any rule.
pub(crate) trait Key {
    fn ask(&mut self, at_ms: u64, cost: u64) -> Answer;
    fn standing_at(&mut self, now: Timestamp) -> Standing;
    fn standing(&mut self, at_ms: u64) -> Standing {
        self.standing_at(at(at_ms))
    }
    fn expires_at(&self) -> Timestamp;
    /// All that is kept, written out.
    fn kept(&self) -> String;
}

impl<C: Counter> Key for Cell<C> {
    fn ask(&mut self, at_ms: u64, cost: u64) -> Answer {
        Self::ask(self, at_ms, cost)
    }

    fn standing_at(&mut self, now: Timestamp) -> Standing {
        let now = self.rule.advance(&mut self.state, now);
        self.rule.standing(&self.state, now)
    }

    fn expires_at(&self) -> Timestamp {
        self.rule.expires_at(&self.state)
    }

    fn kept(&self) -> String {
        format!("{:?}", self.state)
    }
}

/// A key of each rule that admits `quota` at once, and no more for an hour.
pub(crate) fn every_rule(quota: u64) -> [Box<dyn Key>; 5] {
    let hourly = format!("{quota}/h");
    [
        Box::new(fixed_window(&hourly)),
        Box::new(sliding_window(&hourly)),
        Box::new(sliding_counter(&hourly)),
        Box::new(token_bucket("1/366d", quota)),
        Box::new(calendar(quota, PeriodKind::Day, "UTC")),
    ]
}
