//! What the handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::Engine;
use tokio::sync::Semaphore;

use crate::admin::Door;
use crate::bounds::Bounds;
use crate::metrics::Metrics;
use crate::reload::Reloads;

/// What the handlers of both listeners share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) metrics: Metrics,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) readiness: Readiness,
    /// Places for bodies that are not small.
    pub(crate) large_bodies: Semaphore,
    /// Places for batches whose answers are not small.
    pub(crate) large_batches: Arc<Semaphore>,
    pub(crate) door: Door,
    /// None where the policy did not come from a file.
    pub(crate) reloads: Option<Reloads>,
}

#[cfg(test)]
impl Shared {
    /// For a policy on a clock that stands still, with so many places for large bodies and batches.
    pub(crate) fn with_places(policy: tidegate::Policy, places: usize) -> Arc<Self> {
        let engine = Engine::with_clock(policy, tidegate::Clock::manual(tidegate::Timestamp::EPOCH));
        Arc::new(Self {
            metrics: Metrics::new(&engine),
            engine,
            bounds: Arc::new(Bounds::default()),
            readiness: Readiness::default(),
            large_bodies: Semaphore::new(places),
            large_batches: Arc::new(Semaphore::new(places)),
            door: Door { addr: ([127, 0, 0, 1], 0).into() },
            reloads: None,
        })
    }
}

/// Whether the server should get traffic.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    draining: AtomicBool,
}

impl Readiness {
    /// From now on it should not.
    pub(crate) fn drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }
}
