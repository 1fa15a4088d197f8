//! The contract of a store, which every implementation's tests run against.

use std::future::Future;
use std::sync::Arc;

use tidegate_core::{Algorithm, Limit, Standing};

use crate::charge::{At, Batch, Charge, Key, LimitId};

/// A place where counters live.
///
/// Contract:
/// - **All or nothing.** A batch in which an enforced charge is refused moves no counter. At every
///   instant each other caller sees either all of a batch's charges or none that could change its
///   own outcome: outcomes are those of some order of the batches, one after the other.
/// - A permissive charge takes what its limit admits, if the batch is admitted, and vetoes nothing.
/// - Charges of one batch with the same limit and key add up, in their order; enforced ones that
///   together want more than the capacity are refused for good.
/// - [`Op::Peek`](crate::Op::Peek) moves nothing and makes no counter.
/// - Time inside a counter never runs backwards.
pub trait Store: Send + Sync {
    /// Makes these limits known, and forgets the counters of all others; a shared store leaves those to
    /// their expiry, since others may go on with them.
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]);

    /// Applies every charge or none: one round trip to one atomic place.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`] if a limit is not installed; nothing was taken.
    fn charge(&self, batch: &[Charge<'_>], at: At) -> impl Future<Output = Result<Batch, StoreError>> + Send;

    /// Forgets one counter; whether there was one.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`] if the limit is not installed.
    fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// The live counters of one limit, a page at a time.
    ///
    /// # Errors
    /// [`StoreError::NamesOff`] if the store does not keep whose counters they are,
    /// [`StoreError::UnknownLimit`], [`StoreError::BadCursor`].
    fn page(&self, query: &PageQuery<'_>, at: At) -> impl Future<Output = Result<CounterPage, StoreError>> + Send;

    /// How full the store is.
    fn stats(&self) -> StoreStats;
}

/// Which counters to list.
#[derive(Clone, Debug)]
pub struct PageQuery<'a> {
    /// Of this limit.
    pub limit: LimitId,
    /// Read by this rule: of the layout that the limit was installed with.
    pub algorithm: &'a Algorithm,
    /// Go on behind this place; `None` begins.
    pub after: Option<&'a str>,
    /// At most this many counters, at least 1.
    pub items_max: usize,
}

/// One page of a listing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CounterPage {
    /// The counters, in no particular order but each once.
    pub counters: Vec<Counted>,
    /// Where the next page begins; none if this was the last.
    pub next: Option<String>,
}

/// One counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    /// The values of the limit's `per` attributes.
    pub values: Vec<String>,
    /// How it stands.
    pub standing: Standing,
}

/// How full a store is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Counters kept, those of spent windows included until they are tidied away.
    pub keys: u64,
    /// The most that are kept.
    pub keys_max: u64,
    /// Bytes of memory that the counters take.
    pub bytes: u64,
    /// Charges that found no room for their counter, since the start.
    pub at_cap_total: u64,
}

/// Why a store did not answer. Nothing was taken, unless it says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// The limit is not installed: the caller's plan is older than the store's.
    #[error("limit {0:?} is not installed in the store")]
    UnknownLimit(LimitId),
    /// The charge's rule is not of the layout that its limit was installed with.
    #[error("limit {0:?} was installed with another layout than the charge's rule has")]
    WrongLayout(LimitId),
    /// The store keeps hashes of keys only.
    #[error("counters cannot be listed: set store.memory.names to true (it costs memory)")]
    NamesOff,
    /// A cursor that no listing has returned.
    #[error("the cursor is not one that a listing returned; begin without a cursor")]
    BadCursor,
    /// The shared store has no answer. Where the fault is that it did not answer in time, or that the
    /// connection broke, it may have taken the charges.
    #[cfg(feature = "redis")]
    #[error("the shared store does not answer: {}", .0.name())]
    Unavailable(crate::redis::Fault),
}
