//! The store in memory behind batches that are prepared, where they can be, as the engine has them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::SmallVec;
use tidegate_core::{Cost, Limit, Timestamp};
use tidegate_store::memory::usual::{Usual, UsualPart};
use tidegate_store::{
    At, Batch, Charge, CounterPage, Key, LimitId, MemoryStore, Op, PageQuery, Store, StoreError, StoreStats,
};

/// A memory store whose usual batches are decided the prepared way.
#[derive(Debug)]
pub(crate) struct Prepared {
    /// The store behind.
    pub(crate) store: MemoryStore,
    /// How many batches were decided the prepared way.
    pub(crate) decided: AtomicU64,
}

impl Prepared {
    pub(crate) const fn new(store: MemoryStore) -> Self {
        Self { store, decided: AtomicU64::new(0) }
    }

    fn charge_usual(&self, batch: &[Charge<'_>], now: Timestamp) -> Option<Batch> {
        let cost = batch.first()?.cost;
        if cost == Cost::ZERO || batch.iter().any(|charge| charge.cost != cost || charge.op != Op::Take) {
            return None;
        }
        let values: Vec<&str> = batch.iter().flat_map(|charge| charge.key.values.iter().copied()).collect();
        let mut places: Vec<Vec<usize>> = Vec::new();
        let mut first = 0;
        for charge in batch {
            places.push((first..first + charge.key.values.len()).collect());
            first += charge.key.values.len();
        }
        let parts: Vec<UsualPart<'_>> = batch
            .iter()
            .zip(&places)
            .map(|(charge, per)| UsualPart { limit: charge.limit, algorithm: charge.algorithm, mode: charge.mode, per })
            .collect();
        let mut rows = SmallVec::new();
        let usual = Usual::new(&self.store, &parts)?;
        let admitted = usual.charge(&self.store, values.into_iter().map(Some), cost, now, &mut rows)?;
        self.decided.fetch_add(1, Ordering::Relaxed);
        Some(Batch { admitted, rows, at: now })
    }
}

impl Store for Prepared {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        self.store.install(limits);
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        self.charge_usual(batch, at.local()).map_or_else(|| self.store.charge_now(batch, at.local()), Ok)
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        self.store.reset(limit, key, at).await
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        self.store.page(query, at).await
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}
