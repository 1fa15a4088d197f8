//! The stores that a limits file can choose among, as one type.

use std::sync::Arc;

use tidegate_core::{Limit, Timestamp};
use tidegate_store::{
    At, Batch, Charge, CounterPage, Key, LimitId, MemoryStore, PageQuery, Store, StoreError, StoreStats,
};

use crate::plan::Plan;
use crate::policy::StoreSettings;

/// The store that the limits file chose.
#[derive(Debug)]
pub enum AnyStore {
    /// `backend: memory`.
    Memory(MemoryStore),
}

impl AnyStore {
    /// The store for these settings.
    pub fn new(settings: &StoreSettings) -> Self {
        match settings {
            StoreSettings::Memory(memory) => Self::Memory(MemoryStore::new(*memory)),
        }
    }

    /// The store in this process, if that is what was chosen.
    pub const fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(memory) => Some(memory),
        }
    }

    /// Prepares what the store can decide faster if it knows the plan.
    pub(crate) fn prepare(&self, plan: &mut Plan) {
        match self {
            Self::Memory(memory) => plan.prepare(memory),
        }
    }

    /// Regular upkeep.
    pub fn tidy(&self, now: Timestamp) {
        match self {
            Self::Memory(memory) => memory.tidy(now),
        }
    }
}

impl Store for AnyStore {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        match self {
            Self::Memory(memory) => memory.install(limits),
        }
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        match self {
            Self::Memory(memory) => memory.charge(batch, at).await,
        }
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        match self {
            Self::Memory(memory) => memory.reset(limit, key, at).await,
        }
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        match self {
            Self::Memory(memory) => memory.page(query, at).await,
        }
    }

    fn stats(&self) -> StoreStats {
        match self {
            Self::Memory(memory) => memory.stats(),
        }
    }
}
