//! Judging and taking one charge, on the path of every request.

use std::sync::MutexGuard;

use tidegate_core::algorithm::{
    Algorithm, CalendarState, FixedWindowState, SlidingCounterState, SlidingWindow, SlidingWindowState,
    SlidingWindowSummary, TokenBucketState,
};
use tidegate_core::{Cost, Counter, Standing, Timestamp, Verdict};

use super::bank::Spot;
use super::cells::{Closed, Held};

/// What a look at one charge's limit found.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    /// The cell's word that it was found by; a locked cell that still has it has that state.
    pub(super) word: u64,
    /// Whether somebody held the cell meanwhile, and may have committed to other cells already.
    pub(super) is_held: bool,
    pub(super) verdict: Verdict,
    /// How the limit stands. None where the word alone tells: most looks end in a charge, after
    /// which it stands otherwise.
    standing: Option<Standing>,
}

impl Look {
    /// How the limit stands, by the state that was looked at.
    pub(super) fn standing(&self, algorithm: &Algorithm, now: Timestamp) -> Standing {
        match (self.standing, algorithm) {
            (Some(standing), _) => standing,
            (None, Algorithm::FixedWindow(rule)) => standing_of(rule, FixedWindowState::unpack(self.word), now),
            (None, Algorithm::TokenBucket(rule)) => standing_of(rule, TokenBucketState::unpack(self.word), now),
            (None, _) => Standing::default(),
        }
    }

    pub(super) const fn set_standing(&mut self, standing: Standing) {
        self.standing = Some(standing);
    }
}

/// Judges a charge by the committed state of its cell, without locking it.
pub(super) fn look(algorithm: &Algorithm, spot: Option<Spot<'_>>, cost: Cost, now: Timestamp) -> Result<Look, Closed> {
    let (word, is_held) = match spot {
        Some(spot) => spot.table.cells.cell(spot.index).look()?,
        None => (0, false),
    };
    let by_word = |verdict| Look { is_held, ..by_word(word, verdict) };
    Ok(match algorithm {
        Algorithm::FixedWindow(rule) => by_word(verdict_of(rule, FixedWindowState::unpack(word), cost, now)),
        Algorithm::TokenBucket(rule) => by_word(verdict_of(rule, TokenBucketState::unpack(word), cost, now)),
        Algorithm::SlidingCounter(rule) => {
            let (word, state) = read_wide(spot, |Spot { table, index }| table.counter(index))?;
            by_state(rule, state, cost, now, word)
        }
        Algorithm::Calendar(rule) => {
            let (word, state) = read_wide(spot, |Spot { table, index }| table.calendar(index))?;
            by_state(rule, state, cost, now, word)
        }
        Algorithm::SlidingWindow(rule) => {
            let (word, summary): (u64, SlidingWindowSummary) =
                read_wide(spot, |Spot { table, index }| table.summary(index))?;
            let (verdict, standing) = match (rule.judge(&summary, cost, now), spot) {
                (None, Some(spot)) => judge_log(rule, &*open_log(spot)?, cost, now),
                (judged, _) => judged.unwrap_or((Verdict::Admit, Standing::default())),
            };
            Look { word, is_held: false, verdict, standing: Some(standing) }
        }
    })
}

/// Judges a charge by the state in a cell that the caller has locked.
pub(super) fn judge_held(algorithm: &Algorithm, spot: Spot<'_>, held: &Held<'_>, cost: Cost, now: Timestamp) -> Look {
    let (Spot { table, index }, word) = (spot, held.word());
    match algorithm {
        Algorithm::FixedWindow(rule) => by_word(word, verdict_of(rule, FixedWindowState::unpack(word), cost, now)),
        Algorithm::TokenBucket(rule) => by_word(word, verdict_of(rule, TokenBucketState::unpack(word), cost, now)),
        Algorithm::SlidingCounter(rule) => by_state(rule, table.counter(index), cost, now, word),
        Algorithm::Calendar(rule) => by_state(rule, table.calendar(index), cost, now, word),
        Algorithm::SlidingWindow(rule) => {
            let judged = table.log(index).map(|log| judge_log(rule, &log, cost, now));
            let (verdict, standing) = judged.unwrap_or((Verdict::Admit, Standing::default()));
            Look { word, is_held: false, verdict, standing: Some(standing) }
        }
    }
}

/// Takes a charge that was judged by the state that its cell, now locked, still has. Returns how the
/// limit stands then.
pub(super) fn take_held(
    algorithm: &Algorithm,
    spot: Spot<'_>,
    held: &mut Held<'_>,
    cost: Cost,
    now: Timestamp,
) -> Standing {
    let Spot { table, index } = spot;
    match algorithm {
        Algorithm::FixedWindow(rule) => {
            let (state, standing) = taken(rule, FixedWindowState::unpack(held.word()), cost, now);
            held.set(state.pack());
            standing
        }
        Algorithm::TokenBucket(rule) => {
            let (state, standing) = taken(rule, TokenBucketState::unpack(held.word()), cost, now);
            held.set(state.pack());
            standing
        }
        Algorithm::SlidingCounter(rule) => {
            let (state, standing): (SlidingCounterState, _) = taken(rule, table.counter(index), cost, now);
            table.set_counter(index, state);
            held.set(held.word() + 1);
            standing
        }
        Algorithm::Calendar(rule) => {
            let (state, standing): (CalendarState, _) = taken(rule, table.calendar(index), cost, now);
            table.set_calendar(index, state);
            held.set(held.word() + 1);
            standing
        }
        Algorithm::SlidingWindow(rule) => {
            let Some(mut log) = table.log(index) else { return Standing::default() };
            let now = rule.advance(&mut log, now);
            rule.take(&mut log, cost, now);
            table.set_summary(index, log.summary());
            held.set(held.word() + 1);
            rule.standing(&log, now)
        }
    }
}

/// The log of a cell whose table has not been replaced: a closed table's logs may have moved on to
/// its successor.
pub(super) fn open_log(spot: Spot<'_>) -> Result<MutexGuard<'_, SlidingWindowState>, Closed> {
    let log = spot.table.log(spot.index).ok_or(Closed)?;
    spot.table.cells.cell(spot.index).read()?;
    Ok(log)
}

/// Judges a charge by the log itself, where its summary does not tell. Changes nothing: what has
/// left the window is skipped, and dropped by the next to take.
fn judge_log(rule: &SlidingWindow, log: &SlidingWindowState, cost: Cost, now: Timestamp) -> (Verdict, Standing) {
    let mut summary = log.summary();
    let now = now.max(summary.not_before);
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

/// Reads a wide state without locking its cell, and the version it is of.
fn read_wide<T: Default>(spot: Option<Spot<'_>>, read: impl Fn(Spot<'_>) -> T) -> Result<(u64, T), Closed> {
    match spot {
        Some(spot) => spot.table.cells.cell(spot.index).read_wide(|| read(spot)),
        None => Ok((0, T::default())),
    }
}

const fn by_word(word: u64, verdict: Verdict) -> Look {
    Look { word, is_held: false, verdict, standing: None }
}

fn by_state<A: Counter>(rule: &A, mut state: A::State, cost: Cost, now: Timestamp, word: u64) -> Look {
    let now = rule.advance(&mut state, now);
    Look { word, is_held: false, verdict: rule.check(&state, cost, now), standing: Some(rule.standing(&state, now)) }
}

fn verdict_of<A: Counter>(rule: &A, mut state: A::State, cost: Cost, now: Timestamp) -> Verdict {
    let now = rule.advance(&mut state, now);
    rule.check(&state, cost, now)
}

fn standing_of<A: Counter>(rule: &A, mut state: A::State, now: Timestamp) -> Standing {
    let now = rule.advance(&mut state, now);
    rule.standing(&state, now)
}

fn taken<A: Counter>(rule: &A, mut state: A::State, cost: Cost, now: Timestamp) -> (A::State, Standing) {
    let now = rule.advance(&mut state, now);
    rule.take(&mut state, cost, now);
    let standing = rule.standing(&state, now);
    (state, standing)
}
