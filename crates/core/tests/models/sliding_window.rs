//! A list of everything that was ever admitted.

use super::{Model, Quota};

pub(crate) struct SlidingWindowModel {
    quota: u128,
    window_us: u64,
    /// Instant and units, in the order of admission; never pruned.
    admitted: Vec<(u64, u64)>,
    /// When something last left the view: it does not come back.
    left: u64,
}

impl SlidingWindowModel {
    pub(crate) fn new(quota: u64, window_us: u64) -> Self {
        Self { quota: u128::from(quota), window_us, admitted: Vec::new(), left: 0 }
    }

    /// What lies in (at − W, at].
    pub(crate) fn in_view(&self, at: u64) -> impl Iterator<Item = (u64, u64)> {
        let window_us = self.window_us;
        self.admitted.iter().copied().filter(move |(then, _)| *then <= at && *then + window_us > at)
    }
}

impl Model for SlidingWindowModel {
    fn enter(&mut self, now: u64) -> u64 {
        let made = self.admitted.iter().map(|(then, _)| *then);
        let at = made.clone().fold(now.max(self.left), u64::max);
        self.left = made.map(|then| then + self.window_us).filter(|left| *left <= at).fold(self.left, u64::max);
        at
    }

    fn admits(&self, at: u64, cost: u64) -> bool {
        let used: u128 = self.in_view(at).map(|(_, units)| u128::from(units)).sum();
        cost == 0 || used + u128::from(cost) <= self.quota
    }

    fn take(&mut self, at: u64, cost: u64) {
        if cost > 0 {
            self.admitted.push((at, cost));
        }
    }

    fn reset(&self, at: u64) -> u64 {
        self.in_view(at).map(|(then, _)| then + self.window_us - at).min().unwrap_or(0)
    }
}

impl Quota for SlidingWindowModel {
    fn set_quota(&mut self, quota: u64) {
        self.quota = quota.into();
    }
}
