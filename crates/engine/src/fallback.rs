//! The shared store, and what stands in for it while it does not answer: each limit's failure policy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Limit, Mode, Span, Standing, Timestamp, Verdict};
use tidegate_store::{At, Batch, Charge, Fault, Key, LimitId, MemoryStore, Op, RedisStore, Row, Store, StoreError};

use crate::any_store::Charged;
use crate::decision::Degraded;
use crate::policy::{OnFailure, Share, SharedSettings};

/// When to ask again whom `on_failure: closed` refused: by then the server has been looked for.
const CLOSED_WAIT: Span = Span::from_secs(1);

/// The shared store and its stand-in.
#[derive(Debug)]
pub struct Fallback {
    shared: RedisStore,
    /// Counts for limits with `on_failure: local`, from the first outage on. It is never emptied: what it
    /// admitted in a window was admitted, whatever the shared store has heard of it.
    local: MemoryStore,
    stand_in: RwLock<Arc<StandIn>>,
    degraded: [AtomicU64; Degraded::ALL.len()],
}

/// What stands in by: the limits, what each does, and among how many a fair share is divided.
#[derive(Clone, Debug, Default)]
struct StandIn {
    limits: Vec<(LimitId, Arc<Limit>)>,
    policies: HashMap<LimitId, (OnFailure, Share)>,
    instances: u64,
}

/// How the shared store is, for operators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStoreHealth {
    /// What is wrong with it, if that is known.
    pub fault: Option<Fault>,
    /// What happened at it since the start.
    pub counts: tidegate_store::RedisCounts,
    /// Instances that shared it when it last answered, at least 1.
    pub instances: u64,
    /// Decisions made without it since the start, by how.
    pub degraded: Vec<(Degraded, u64)>,
}

impl Fallback {
    pub(crate) fn new(settings: &SharedSettings) -> Self {
        Self {
            shared: RedisStore::new(settings.redis.clone()),
            local: MemoryStore::new(settings.local),
            stand_in: RwLock::default(),
            degraded: Default::default(),
        }
    }

    /// The shared store itself.
    pub const fn shared(&self) -> &RedisStore {
        &self.shared
    }

    pub(crate) const fn local(&self) -> &MemoryStore {
        &self.local
    }

    pub(crate) fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        self.shared.install(limits);
        self.change(|stand_in| stand_in.limits = limits.to_vec());
    }

    /// What each limit does when the shared store does not answer.
    pub(crate) fn set_policies(&self, policies: HashMap<LimitId, (OnFailure, Share)>) {
        self.change(|stand_in| stand_in.policies = policies);
    }

    /// Changes what stands in, and tells the store in this process.
    fn change(&self, change: impl FnOnce(&mut StandIn)) -> Arc<StandIn> {
        let mut present = self.stand_in.write().unwrap_or_else(PoisonError::into_inner);
        let mut next = StandIn::clone(&present);
        change(&mut next);
        self.local.install(&next.parts());
        *present = Arc::new(next);
        Arc::clone(&present)
    }

    /// What stands in now, with as many instances as there were when the shared store last answered.
    fn stand_in_now(&self) -> Arc<StandIn> {
        let present = Arc::clone(&self.stand_in.read().unwrap_or_else(PoisonError::into_inner));
        let instances = self.shared.instances();
        if present.instances == instances {
            return present;
        }
        self.change(|stand_in| stand_in.instances = instances)
    }

    pub(crate) fn health(&self) -> SharedStoreHealth {
        let counts = self.degraded.iter().map(|count| count.load(Ordering::Relaxed));
        SharedStoreHealth {
            fault: self.shared.fault(),
            counts: self.shared.counts(),
            instances: self.shared.instances(),
            degraded: Degraded::ALL.into_iter().zip(counts).collect(),
        }
    }

    /// Asks the shared store; if it does not answer, the failure policies decide.
    ///
    /// # Errors
    /// Those that are about the plan.
    pub(crate) async fn charge(&self, batch: &[Charge<'_>], local: Timestamp) -> Result<Charged, StoreError> {
        match self.shared.charge(batch, At::Backend { local }).await {
            Ok(batch) => Ok(Charged { batch, degraded: None }),
            Err(StoreError::Unavailable(_)) => {
                let charged = self.stand_in(batch, local)?;
                if let Some(at) = Degraded::ALL.iter().position(|kind| Some(*kind) == charged.degraded) {
                    self.degraded[at].fetch_add(1, Ordering::Relaxed);
                }
                Ok(charged)
            }
            Err(error) => Err(error),
        }
    }

    /// Decides without the shared store. If a closed limit refuses, nothing is taken from the others.
    fn stand_in(&self, batch: &[Charge<'_>], now: Timestamp) -> Result<Charged, StoreError> {
        let stand_in = self.stand_in_now();
        let policy = |charge: &Charge<'_>| stand_in.policy(charge.limit).0;
        let is_closed = |charge: &Charge<'_>| policy(charge) == OnFailure::Closed && charge.mode == Mode::Enforce;
        let refused = batch.iter().any(is_closed);
        let locals = || batch.iter().filter(|charge| policy(charge) == OnFailure::Local);
        let rules: SmallVec<[Algorithm; 4]> =
            locals().map(|charge| stand_in.part(charge.limit, charge.algorithm)).collect();
        let counted: SmallVec<[Charge<'_>; 4]> = locals()
            .zip(&rules)
            .map(|(charge, algorithm)| Charge {
                limit: charge.limit,
                key: Key::of(&charge.key.values),
                algorithm,
                cost: charge.cost,
                mode: charge.mode,
                op: if refused { Op::Peek } else { charge.op },
            })
            .collect();
        let counts_locally = !counted.is_empty();
        let Batch { admitted, rows, .. } = self.local.charge_now(&counted, now)?;
        let mut counted = rows.into_iter();
        let rows = batch.iter().map(|charge| match policy(charge) {
            OnFailure::Local => counted.next().unwrap_or_else(|| open(charge)),
            OnFailure::Open => open(charge),
            OnFailure::Closed => closed(),
        });
        let degraded = if refused {
            Degraded::Closed
        } else if counts_locally {
            Degraded::Local
        } else {
            Degraded::Open
        };
        let rows: SmallVec<[Row; 4]> = rows.collect();
        let batch = Batch { admitted: admitted && !refused, rows, at: now };
        Ok(Charged { batch, degraded: Some(degraded) })
    }
}

impl StandIn {
    /// What a limit does, and with how much of it.
    fn policy(&self, limit: LimitId) -> (OnFailure, Share) {
        self.policies.get(&limit).copied().unwrap_or_default()
    }

    /// The rule that this process counts by.
    fn part(&self, limit: LimitId, algorithm: &Algorithm) -> Algorithm {
        match self.policy(limit).1 {
            Share::Full => algorithm.clone(),
            Share::Fair => algorithm.part_of(self.instances),
        }
    }

    /// The limits with the rules that this process counts by.
    fn parts(&self) -> Vec<(LimitId, Arc<Limit>)> {
        let part = |(id, limit): &(LimitId, Arc<Limit>)| match self.policy(*id).1 {
            Share::Full => (*id, Arc::clone(limit)),
            Share::Fair => {
                let algorithm = limit.algorithm.part_of(self.instances);
                (*id, Arc::new(Limit { algorithm, ..Limit::clone(limit) }))
            }
        };
        self.limits.iter().map(part).collect()
    }
}

/// A limit that lets pass what it cannot count.
fn open(charge: &Charge<'_>) -> Row {
    let standing = Standing { remaining: charge.algorithm.capacity(), ..Standing::default() };
    Row { verdict: Verdict::Admit, standing, at_cap: false }
}

fn closed() -> Row {
    let standing = Standing { remaining: 0, reset: CLOSED_WAIT, next: CLOSED_WAIT };
    Row { verdict: Verdict::Wait(CLOSED_WAIT), standing, at_cap: false }
}
