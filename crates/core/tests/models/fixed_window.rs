//! A map from window to what was taken in it.

use std::collections::HashMap;

use super::{Model, Quota};

pub(crate) struct FixedWindowModel {
    quota: u128,
    window_us: u64,
    used: HashMap<u64, u128>,
    /// The latest window that was entered: a clock set back does not leave it.
    latest: u64,
}

impl FixedWindowModel {
    pub(crate) fn new(quota: u64, window_us: u64) -> Self {
        Self { quota: u128::from(quota), window_us, used: HashMap::new(), latest: 0 }
    }

    fn used_at(&self, at: u64) -> u128 {
        self.used.get(&(at / self.window_us)).copied().unwrap_or(0)
    }
}

impl Model for FixedWindowModel {
    fn enter(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now / self.window_us);
        now.max(self.latest * self.window_us)
    }

    fn admits(&self, at: u64, cost: u64) -> bool {
        cost == 0 || self.used_at(at) + u128::from(cost) <= self.quota
    }

    fn take(&mut self, at: u64, cost: u64) {
        *self.used.entry(at / self.window_us).or_default() += u128::from(cost);
    }

    fn reset(&self, at: u64) -> u64 {
        self.window_us - at % self.window_us
    }
}

impl Quota for FixedWindowModel {
    fn set_quota(&mut self, quota: u64) {
        self.quota = quota.into();
    }
}
