//! The stores that a limits file can choose among, as one type.

use std::sync::Arc;

use tidegate_core::{Limit, Timestamp};
use tidegate_store::{
    At, Batch, Charge, CounterPage, Key, LimitId, MemoryStore, PageQuery, Store, StoreError, StoreStats,
};

use crate::decision::Degraded;
use crate::fallback::Fallback;
use crate::plan::Plan;
use crate::policy::StoreSettings;

/// A batch's answer, and whether it was given by what stands in for the store.
#[derive(Debug)]
pub(crate) struct Charged {
    pub(crate) batch: Batch,
    pub(crate) degraded: Option<Degraded>,
}

/// The store that the limits file chose.
#[derive(Debug)]
pub enum AnyStore {
    /// `backend: memory`.
    Memory(MemoryStore),
    /// `backend: redis`, and what stands in for it.
    Shared(Box<Fallback>),
}

impl AnyStore {
    /// The store for these settings.
    pub fn new(settings: &StoreSettings) -> Self {
        match settings {
            StoreSettings::Memory(memory) => Self::Memory(MemoryStore::new(*memory)),
            StoreSettings::Shared(shared) => Self::Shared(Box::new(Fallback::new(shared))),
        }
    }

    /// The store in this process, if that is what was chosen.
    pub const fn memory(&self) -> Option<&MemoryStore> {
        match self {
            Self::Memory(memory) => Some(memory),
            Self::Shared(_) => None,
        }
    }

    /// Prepares what the store can decide faster if it knows the plan.
    pub(crate) fn prepare(&self, plan: &mut Plan) {
        match self {
            Self::Memory(memory) => plan.prepare(memory),
            Self::Shared(shared) => shared.set_policies(plan.failure_policies()),
        }
    }

    /// What a shared store calls the counter of this limit and key.
    pub(crate) fn counter_name(&self, limit: LimitId, key: &Key<'_>) -> Option<String> {
        match self {
            Self::Memory(_) => None,
            Self::Shared(shared) => shared.shared().counter_name(limit, key),
        }
    }

    /// Regular upkeep.
    pub fn tidy(&self, now: Timestamp) {
        match self {
            Self::Memory(memory) => memory.tidy(now),
            Self::Shared(shared) => shared.local().tidy(now),
        }
    }

    /// Charges a batch, by each limit's failure policy if the store does not answer.
    ///
    /// # Errors
    /// Those that are about the plan.
    pub(crate) async fn decide(&self, batch: &[Charge<'_>], local: Timestamp) -> Result<Charged, StoreError> {
        match self {
            Self::Memory(memory) => {
                memory.charge(batch, At::Given(local)).await.map(|batch| Charged { batch, degraded: None })
            }
            Self::Shared(shared) => shared.charge(batch, local).await,
        }
    }
}

/// The store itself: nothing stands in for it.
impl Store for AnyStore {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        match self {
            Self::Memory(memory) => memory.install(limits),
            Self::Shared(shared) => shared.install(limits),
        }
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        match self {
            Self::Memory(memory) => memory.charge(batch, at).await,
            Self::Shared(shared) => shared.shared().charge(batch, at).await,
        }
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        match self {
            Self::Memory(memory) => memory.reset(limit, key, at).await,
            Self::Shared(shared) => {
                shared.local().reset(limit, key, at).await?;
                shared.shared().reset(limit, key, at).await
            }
        }
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        match self {
            Self::Memory(memory) => memory.page(query, at).await,
            Self::Shared(shared) => shared.shared().page(query, at).await,
        }
    }

    fn stats(&self) -> StoreStats {
        match self {
            Self::Memory(memory) => memory.stats(),
            Self::Shared(shared) => shared.local().stats(),
        }
    }
}
