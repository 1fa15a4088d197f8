//! Copies of states, out of cells and back: for what is rare. The path of every request is `judge`, which
//! copies no more than it has to. A log is copied only where a batch touches it twice, and for listings.

use tidegate_core::Algorithm;
use tidegate_core::algorithm::{FixedWindowState, TokenBucketState};

use super::bank::Spot;
use super::cells::{Closed, Held};
use super::judge::open_log;
use crate::working::Working;

impl<'a> Working<'a> {
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
}
