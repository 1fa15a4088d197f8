//! A counting rule together with a copy of a state: for what is rare. The path of every request is
//! `judge`, which copies no more than it has to.

use tidegate_core::algorithm::{
    Algorithm, Calendar, CalendarState, FixedWindow, FixedWindowState, SlidingCounter, SlidingCounterState,
    SlidingWindow, SlidingWindowState, TokenBucket, TokenBucketState,
};
use tidegate_core::{Cost, Counter, Standing, Timestamp, Verdict};

use super::bank::Spot;
use super::cells::{Closed, Held};
use super::judge::open_log;

/// A rule and a copy of a state.
#[derive(Clone, Debug)]
pub(super) enum Working<'a> {
    Fixed(&'a FixedWindow, FixedWindowState),
    Bucket(&'a TokenBucket, TokenBucketState),
    Counter(&'a SlidingCounter, SlidingCounterState),
    Calendar(&'a Calendar, CalendarState),
    /// A log is copied only where a batch touches it twice, and for listings; see `judge_log`.
    Log(&'a SlidingWindow, SlidingWindowState),
}

impl<'a> Working<'a> {
    /// The state of a key never seen.
    pub(super) fn fresh(algorithm: &'a Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(rule) => Self::Fixed(rule, FixedWindowState::default()),
            Algorithm::TokenBucket(rule) => Self::Bucket(rule, TokenBucketState::default()),
            Algorithm::SlidingCounter(rule) => Self::Counter(rule, SlidingCounterState::default()),
            Algorithm::Calendar(rule) => Self::Calendar(rule, CalendarState::default()),
            Algorithm::SlidingWindow(rule) => Self::Log(rule, SlidingWindowState::default()),
        }
    }

    /// The state in a cell that the caller has locked.
    pub(super) fn held(algorithm: &'a Algorithm, spot: Spot<'_>, held: &Held<'_>) -> Self {
        let Spot { table, index } = spot;
        match algorithm {
            Algorithm::FixedWindow(rule) => Self::Fixed(rule, FixedWindowState::unpack(held.word())),
            Algorithm::TokenBucket(rule) => Self::Bucket(rule, TokenBucketState::unpack(held.word())),
            Algorithm::SlidingCounter(rule) => Self::Counter(rule, table.counter(index)),
            Algorithm::Calendar(rule) => Self::Calendar(rule, table.calendar(index)),
            Algorithm::SlidingWindow(rule) => {
                Self::Log(rule, table.log(index).map(|log| log.clone()).unwrap_or_default())
            }
        }
    }

    /// The committed state of a cell, read without locking it.
    pub(super) fn seen(algorithm: &'a Algorithm, spot: Spot<'_>) -> Result<Self, Closed> {
        let Spot { table, index } = spot;
        let cell = table.cells.cell(index);
        Ok(match algorithm {
            Algorithm::FixedWindow(rule) => Self::Fixed(rule, FixedWindowState::unpack(cell.read()?)),
            Algorithm::TokenBucket(rule) => Self::Bucket(rule, TokenBucketState::unpack(cell.read()?)),
            Algorithm::SlidingCounter(rule) => Self::Counter(rule, cell.read_wide(|| table.counter(index))?.1),
            Algorithm::Calendar(rule) => Self::Calendar(rule, cell.read_wide(|| table.calendar(index))?.1),
            Algorithm::SlidingWindow(rule) => Self::Log(rule, open_log(spot)?.clone()),
        })
    }

    /// The same state under another rule of its layout.
    pub(super) fn read_by<'b>(self, algorithm: &'b Algorithm) -> Working<'b> {
        match (self, algorithm) {
            (Self::Fixed(_, state), Algorithm::FixedWindow(rule)) => Working::Fixed(rule, state),
            (Self::Bucket(_, state), Algorithm::TokenBucket(rule)) => Working::Bucket(rule, state),
            (Self::Counter(_, state), Algorithm::SlidingCounter(rule)) => Working::Counter(rule, state),
            (Self::Calendar(_, state), Algorithm::Calendar(rule)) => Working::Calendar(rule, state),
            (Self::Log(_, state), Algorithm::SlidingWindow(rule)) => Working::Log(rule, state),
            (_, other) => Working::fresh(other),
        }
    }

    /// Puts the state into a cell that the caller has locked.
    pub(super) fn store(self, spot: Spot<'_>, held: &mut Held<'_>) {
        let Spot { table, index } = spot;
        match self {
            Self::Fixed(_, state) => held.set(state.pack()),
            Self::Bucket(_, state) => held.set(state.pack()),
            Self::Counter(_, state) => {
                table.set_counter(index, state);
                held.set(held.word() + 1);
            }
            Self::Calendar(_, state) => {
                table.set_calendar(index, state);
                held.set(held.word() + 1);
            }
            Self::Log(_, state) => {
                table.set_summary(index, state.summary());
                if let Some(mut log) = table.log(index) {
                    *log = state;
                }
                held.set(held.word() + 1);
            }
        }
    }

    pub(super) fn advance(&mut self, now: Timestamp) -> Timestamp {
        match self {
            Self::Fixed(rule, state) => rule.advance(state, now),
            Self::Bucket(rule, state) => rule.advance(state, now),
            Self::Counter(rule, state) => rule.advance(state, now),
            Self::Calendar(rule, state) => rule.advance(state, now),
            Self::Log(rule, state) => rule.advance(state, now),
        }
    }

    pub(super) fn check(&self, cost: Cost, now: Timestamp) -> Verdict {
        match self {
            Self::Fixed(rule, state) => rule.check(state, cost, now),
            Self::Bucket(rule, state) => rule.check(state, cost, now),
            Self::Counter(rule, state) => rule.check(state, cost, now),
            Self::Calendar(rule, state) => rule.check(state, cost, now),
            Self::Log(rule, state) => rule.check(state, cost, now),
        }
    }

    pub(super) fn take(&mut self, cost: Cost, now: Timestamp) {
        match self {
            Self::Fixed(rule, state) => rule.take(state, cost, now),
            Self::Bucket(rule, state) => rule.take(state, cost, now),
            Self::Counter(rule, state) => rule.take(state, cost, now),
            Self::Calendar(rule, state) => rule.take(state, cost, now),
            Self::Log(rule, state) => rule.take(state, cost, now),
        }
    }

    pub(super) fn standing(&self, now: Timestamp) -> Standing {
        match self {
            Self::Fixed(rule, state) => rule.standing(state, now),
            Self::Bucket(rule, state) => rule.standing(state, now),
            Self::Counter(rule, state) => rule.standing(state, now),
            Self::Calendar(rule, state) => rule.standing(state, now),
            Self::Log(rule, state) => rule.standing(state, now),
        }
    }

    /// From this instant on the state equals that of a key never seen.
    pub(super) fn expires_at(&self) -> Timestamp {
        match self {
            Self::Fixed(rule, state) => rule.expires_at(state),
            Self::Bucket(rule, state) => rule.expires_at(state),
            Self::Counter(rule, state) => rule.expires_at(state),
            Self::Calendar(rule, state) => rule.expires_at(state),
            Self::Log(rule, state) => rule.expires_at(state),
        }
    }
}
