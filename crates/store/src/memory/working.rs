//! One charge at work: its counting rule together with the state it is judged by.

use std::sync::MutexGuard;

use tidegate_core::algorithm::{
    Algorithm, Calendar, CalendarState, FixedWindow, FixedWindowState, SlidingCounter, SlidingCounterState,
    SlidingWindow, SlidingWindowState, TokenBucket, TokenBucketState,
};
use tidegate_core::{Cost, Counter, Standing, Timestamp, Verdict};

use super::bank::Spot;
use super::cells::{Closed, Held};

/// A rule and a copy of a state.
#[derive(Clone, Debug)]
pub(super) enum Working<'a> {
    Fixed(&'a FixedWindow, FixedWindowState),
    Bucket(&'a TokenBucket, TokenBucketState),
    Counter(&'a SlidingCounter, SlidingCounterState),
    Calendar(&'a Calendar, CalendarState),
    /// A log is copied only where a batch touches it twice, and for listings; see [`judge_log`].
    Log(&'a SlidingWindow, SlidingWindowState),
}

/// What a look at one charge's limit found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// The cell's word that it was found by; a locked cell that still has it has that state.
    pub(super) word: u64,
    pub(super) verdict: Verdict,
    pub(super) standing: Standing,
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

    /// Judges a charge by the state in a cell that the caller has locked.
    pub(super) fn judge_held(
        algorithm: &Algorithm,
        spot: Spot<'_>,
        held: &Held<'_>,
        cost: Cost,
        now: Timestamp,
    ) -> Look {
        if let Algorithm::SlidingWindow(rule) = algorithm
            && let Some(log) = spot.table.log(spot.index)
        {
            let (verdict, standing) = judge_log(rule, &log, cost, now);
            return Look { word: held.word(), verdict, standing };
        }
        Working::held(algorithm, spot, held).judge(cost, now, held.word())
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

    fn judge(mut self, cost: Cost, now: Timestamp, word: u64) -> Look {
        let now = self.advance(now);
        Look { word, verdict: self.check(cost, now), standing: self.standing(now) }
    }
}

/// Judges a charge by the committed state of its cell, without locking it.
pub(super) fn look(algorithm: &Algorithm, spot: Option<Spot<'_>>, cost: Cost, now: Timestamp) -> Result<Look, Closed> {
    let Some(Spot { table, index }) = spot else {
        return Ok(Working::fresh(algorithm).judge(cost, now, 0));
    };
    let cell = table.cells.cell(index);
    let word = cell.read()?;
    Ok(match algorithm {
        Algorithm::FixedWindow(rule) => Working::Fixed(rule, FixedWindowState::unpack(word)).judge(cost, now, word),
        Algorithm::TokenBucket(rule) => Working::Bucket(rule, TokenBucketState::unpack(word)).judge(cost, now, word),
        Algorithm::SlidingCounter(rule) => {
            let (word, state) = cell.read_wide(|| table.counter(index))?;
            Working::Counter(rule, state).judge(cost, now, word)
        }
        Algorithm::Calendar(rule) => {
            let (word, state) = cell.read_wide(|| table.calendar(index))?;
            Working::Calendar(rule, state).judge(cost, now, word)
        }
        Algorithm::SlidingWindow(rule) => {
            let (word, summary) = cell.read_wide(|| table.summary(index))?;
            let (verdict, standing) = match rule.judge(&summary, cost, now) {
                Some(judged) => judged,
                None => judge_log(rule, &*open_log(Spot { table, index })?, cost, now),
            };
            Look { word, verdict, standing }
        }
    })
}

/// The log of a cell whose table has not been replaced: a closed table's logs may have moved on to
/// its successor.
fn open_log(spot: Spot<'_>) -> Result<MutexGuard<'_, SlidingWindowState>, Closed> {
    let log = spot.table.log(spot.index).ok_or(Closed)?;
    spot.table.cells.cell(spot.index).read()?;
    Ok(log)
}

/// Judges a charge by the log itself, where its summary does not tell. Changes nothing: what has
/// left the window is skipped, and dropped by the next to take.
fn judge_log(rule: &SlidingWindow, log: &SlidingWindowState, cost: Cost, now: Timestamp) -> (Verdict, Standing) {
    let mut summary = log.summary();
    let now = now.max(summary.newest);
    for (at, units) in log.entries() {
        if at.after(rule.window()) > now {
            (summary.oldest, summary.oldest_units) = (at, units);
            break;
        }
        summary.used -= units;
    }
    if let Some(judged) = rule.judge(&summary, cost, now) {
        return judged;
    }
    // A wait until several entries have left.
    let mut log = log.clone();
    let now = rule.advance(&mut log, now);
    (rule.check(&log, cost, now), rule.standing(&log, now))
}

/// Takes a charge that a look has admitted and whose cell, locked since, has not changed. Returns
/// how the limit stands then.
pub(super) fn take_held(
    algorithm: &Algorithm,
    spot: Spot<'_>,
    held: &mut Held<'_>,
    cost: Cost,
    now: Timestamp,
) -> Standing {
    if let Algorithm::SlidingWindow(rule) = algorithm
        && let Some(mut log) = spot.table.log(spot.index)
    {
        let now = rule.advance(&mut log, now);
        rule.take(&mut log, cost, now);
        spot.table.set_summary(spot.index, log.summary());
        held.set(held.word() + 1);
        return rule.standing(&log, now);
    }
    let mut working = Working::held(algorithm, spot, held);
    let now = working.advance(now);
    working.take(cost, now);
    let standing = working.standing(now);
    working.store(spot, held);
    standing
}
