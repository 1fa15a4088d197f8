//! The batch that crosses from the engine to a store: every limit of a request, or none.

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Cost, Mode, Standing, Timestamp, Verdict};

/// Names the counters of a limit within a store. The engine gives each [`Limit::identity`] its own
/// number and never gives it to another; an override whose layout the limit's own rule cannot read
/// has a number of its own.
///
/// [`Limit::identity`]: tidegate_core::Limit::identity
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LimitId(pub u32);

/// Whose counter: the values of the limit's `per` attributes, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Key<'a> {
    /// The values.
    pub values: SmallVec<[&'a str; 3]>,
}

impl<'a> Key<'a> {
    /// The key of these values.
    pub fn of(values: &[&'a str]) -> Self {
        Self { values: SmallVec::from_slice(values) }
    }
}

/// What one limit is asked for one request.
#[derive(Clone, Debug)]
pub struct Charge<'a> {
    /// The limit.
    pub limit: LimitId,
    /// Whose counter.
    pub key: Key<'a>,
    /// The counting rule, after overrides: of the layout that the limit was installed with.
    pub algorithm: &'a Algorithm,
    /// What is taken, or would be.
    pub cost: Cost,
    /// Whether a refusal vetoes the batch. Never [`Mode::Disabled`]: such limits are not charged.
    pub mode: Mode,
    /// Whether it is taken.
    pub op: Op,
}

/// Whether a charge moves its counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Takes the cost if the whole batch is admitted.
    Take,
    /// Asks only.
    Peek,
}

/// Which clock a batch is decided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// This instant.
    Given(Timestamp),
    /// The store's own clock where it has one (a shared store is the fleet's clock); else `local`.
    Backend {
        /// The caller's clock.
        local: Timestamp,
    },
}

impl At {
    /// The caller's clock.
    pub const fn local(self) -> Timestamp {
        match self {
            Self::Given(now) | Self::Backend { local: now } => now,
        }
    }
}

/// What a store says of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Whether every enforced charge was admitted; if not, nothing was taken.
    pub admitted: bool,
    /// One row a charge, in the charges' order.
    pub rows: SmallVec<[Row; 4]>,
    /// The instant that it was decided at.
    pub at: Timestamp,
}

/// What one limit says of its charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Whether the charge was, or would be, admitted.
    pub verdict: Verdict,
    /// How the limit stands afterwards.
    pub standing: Standing,
    /// Whether there was no room for a counter, so that the limit did not count.
    pub at_cap: bool,
}
