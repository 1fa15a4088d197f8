//! throttlecrab: one limiter behind a mutex, as its documentation has it for threads, and three separate checks.
//!
//! One lock and one clock reading serve the three checks, the cheapest arrangement it allows. The names of agents and
//! organisations cannot be confused here, so they are keys as they stand. The store is `PeriodicStore`, its default
//! and the fastest of the three at a million keys: the probabilistic one scans all keys every thousand operations, and
//! the adaptive one scans them again and again while they grow.

use super::Contender;
use crate::limits::{Limits, Rate};
use crate::workload::Call;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use throttlecrab::{PeriodicStore, RateLimiter};

/// One limiter for all levels.
pub(crate) struct Throttlecrab {
    limits: Limits,
    limiter: Mutex<RateLimiter<PeriodicStore>>,
}

impl Throttlecrab {
    /// An empty limiter with the default capacity.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, limiter: Mutex::new(RateLimiter::new(PeriodicStore::new())) }
    }
}

impl Contender for Throttlecrab {
    type Scratch = ();

    fn decide(&self, (): &mut (), call: Call<'_>) -> bool {
        let now = wall_clock();
        let mut limiter = self.limiter.lock().unwrap_or_else(PoisonError::into_inner);
        let levels = [(call.agent, self.limits.agent), (call.org, self.limits.org), ("global", self.limits.global)];
        levels.into_iter().all(|(key, rate)| check(&mut limiter, key, rate, now))
    }
}

fn check(limiter: &mut RateLimiter<PeriodicStore>, key: &str, rate: Rate, now: SystemTime) -> bool {
    limiter
        .rate_limit(key, i64::from(rate.count), 1, rate.token.as_secs() as i64, 1, now)
        .is_ok_and(|(allowed, _)| allowed)
}

#[expect(clippy::disallowed_methods, reason = "throttlecrab's interface asks its caller for the system time")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}
