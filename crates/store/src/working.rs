//! A counting rule together with a state of its own.

use tidegate_core::algorithm::{
    Algorithm, Calendar, CalendarState, FixedWindow, FixedWindowState, SlidingCounter, SlidingCounterState,
    SlidingWindow, SlidingWindowState, TokenBucket, TokenBucketState,
};
use tidegate_core::{Cost, Counter, Standing, Timestamp, Verdict};

/// A rule and a copy of a state.
#[derive(Clone, Debug)]
pub(crate) enum Working<'a> {
    Fixed(&'a FixedWindow, FixedWindowState),
    Bucket(&'a TokenBucket, TokenBucketState),
    Counter(&'a SlidingCounter, SlidingCounterState),
    Calendar(&'a Calendar, CalendarState),
    Log(&'a SlidingWindow, SlidingWindowState),
}

impl<'a> Working<'a> {
    /// The state of a key never seen.
    pub(crate) fn fresh(algorithm: &'a Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(rule) => Self::Fixed(rule, FixedWindowState::default()),
            Algorithm::TokenBucket(rule) => Self::Bucket(rule, TokenBucketState::default()),
            Algorithm::SlidingCounter(rule) => Self::Counter(rule, SlidingCounterState::default()),
            Algorithm::Calendar(rule) => Self::Calendar(rule, CalendarState::default()),
            Algorithm::SlidingWindow(rule) => Self::Log(rule, SlidingWindowState::default()),
        }
    }

    /// The same state under another rule of its layout.
    pub(crate) fn read_by<'b>(self, algorithm: &'b Algorithm) -> Working<'b> {
        match (self, algorithm) {
            (Self::Fixed(_, state), Algorithm::FixedWindow(rule)) => Working::Fixed(rule, state),
            (Self::Bucket(_, state), Algorithm::TokenBucket(rule)) => Working::Bucket(rule, state),
            (Self::Counter(_, state), Algorithm::SlidingCounter(rule)) => Working::Counter(rule, state),
            (Self::Calendar(_, state), Algorithm::Calendar(rule)) => Working::Calendar(rule, state),
            (Self::Log(_, state), Algorithm::SlidingWindow(rule)) => Working::Log(rule, state),
            (_, other) => Working::fresh(other),
        }
    }

    pub(crate) fn advance(&mut self, now: Timestamp) -> Timestamp {
        match self {
            Self::Fixed(rule, state) => rule.advance(state, now),
            Self::Bucket(rule, state) => rule.advance(state, now),
            Self::Counter(rule, state) => rule.advance(state, now),
            Self::Calendar(rule, state) => rule.advance(state, now),
            Self::Log(rule, state) => rule.advance(state, now),
        }
    }

    pub(crate) fn check(&self, cost: Cost, now: Timestamp) -> Verdict {
        match self {
            Self::Fixed(rule, state) => rule.check(state, cost, now),
            Self::Bucket(rule, state) => rule.check(state, cost, now),
            Self::Counter(rule, state) => rule.check(state, cost, now),
            Self::Calendar(rule, state) => rule.check(state, cost, now),
            Self::Log(rule, state) => rule.check(state, cost, now),
        }
    }

    pub(crate) fn take(&mut self, cost: Cost, now: Timestamp) {
        match self {
            Self::Fixed(rule, state) => rule.take(state, cost, now),
            Self::Bucket(rule, state) => rule.take(state, cost, now),
            Self::Counter(rule, state) => rule.take(state, cost, now),
            Self::Calendar(rule, state) => rule.take(state, cost, now),
            Self::Log(rule, state) => rule.take(state, cost, now),
        }
    }

    pub(crate) fn standing(&self, now: Timestamp) -> Standing {
        match self {
            Self::Fixed(rule, state) => rule.standing(state, now),
            Self::Bucket(rule, state) => rule.standing(state, now),
            Self::Counter(rule, state) => rule.standing(state, now),
            Self::Calendar(rule, state) => rule.standing(state, now),
            Self::Log(rule, state) => rule.standing(state, now),
        }
    }

    /// From this instant on the state equals that of a key never seen.
    pub(crate) fn expires_at(&self) -> Timestamp {
        match self {
            Self::Fixed(rule, state) => rule.expires_at(state),
            Self::Bucket(rule, state) => rule.expires_at(state),
            Self::Counter(rule, state) => rule.expires_at(state),
            Self::Calendar(rule, state) => rule.expires_at(state),
            Self::Log(rule, state) => rule.expires_at(state),
        }
    }
}
