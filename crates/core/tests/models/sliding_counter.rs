//! The formula itself: prev·(W − e) + (cur + c)·W ≤ L·W.

use std::collections::HashMap;

use super::{Model, Quota};

pub(crate) struct SlidingCounterModel {
    quota: u128,
    window_us: u64,
    used: HashMap<u64, u128>,
    /// The latest window that was entered: a clock set back does not leave it.
    latest: u64,
}

impl SlidingCounterModel {
    pub(crate) fn new(quota: u64, window_us: u64) -> Self {
        Self { quota: u128::from(quota), window_us, used: HashMap::new(), latest: 0 }
    }

    fn used_in(&self, window: u64) -> u128 {
        self.used.get(&window).copied().unwrap_or(0)
    }

    /// What was taken in the window before and in the current one.
    pub(crate) fn previous_and_current(&self, at: u64) -> (u128, u128) {
        let window = at / self.window_us;
        (window.checked_sub(1).map_or(0, |before| self.used_in(before)), self.used_in(window))
    }
}

impl Model for SlidingCounterModel {
    fn enter(&mut self, now: u64) -> u64 {
        self.latest = self.latest.max(now / self.window_us);
        now.max(self.latest * self.window_us)
    }

    fn admits(&self, at: u64, cost: u64) -> bool {
        let (window_us, elapsed_us) = (u128::from(self.window_us), u128::from(at % self.window_us));
        let (previous, current) = self.previous_and_current(at);
        let sum = previous * (window_us - elapsed_us) + (current + u128::from(cost)) * window_us;
        cost == 0 || sum <= self.quota * window_us
    }

    fn take(&mut self, at: u64, cost: u64) {
        *self.used.entry(at / self.window_us).or_default() += u128::from(cost);
    }

    fn reset(&self, at: u64) -> u64 {
        let to_end_us = self.window_us - at % self.window_us;
        match self.previous_and_current(at) {
            (0, 0) => 0,
            (_, 0) => to_end_us,
            _ => to_end_us + self.window_us,
        }
    }
}

impl Quota for SlidingCounterModel {
    fn set_quota(&mut self, quota: u64) {
        self.quota = quota.into();
    }
}
