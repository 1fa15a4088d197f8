//! A bucket whose content is an exact fraction, counted from the last time something was taken.

use super::{Model, Quota};

/// A bucket of `burst` tokens that gains `count` tokens in `period`, bit by bit.
///
/// Content is kept in parts of a token: `period` parts are a token, and a microsecond brings `count`
/// parts, so that nothing is ever rounded. The period may be in any unit of 1/`per_us` µs.
pub(crate) struct TokenBucketModel {
    burst: i128,
    count: i128,
    period: i128,
    per_us: i128,
    /// When something was last taken, and the content right after it; below 0 is a debt.
    last: Option<(u64, i128)>,
}

impl TokenBucketModel {
    /// `count` tokens in `period_us` microseconds.
    pub(crate) fn new(count: u64, period_us: u64, burst: u64) -> Self {
        Self::with_parts(count, u128::from(period_us), 1, burst)
    }

    /// `count` tokens in `period` parts of a microsecond, of which there are `per_us`.
    pub(crate) fn with_parts(count: u64, period: u128, per_us: u64, burst: u64) -> Self {
        let period = i128::try_from(period).unwrap();
        Self { burst: burst.into(), count: count.into(), period, per_us: per_us.into(), last: None }
    }

    fn full(&self) -> i128 {
        self.burst * self.period
    }

    fn per_us(&self) -> i128 {
        self.count * self.per_us
    }

    /// The content at `at`, in parts. Before the last take it is what refilling up to that take
    /// would have started from.
    fn content(&self, at: u64) -> i128 {
        match self.last {
            None => self.full(),
            Some((then, content)) => self.full().min(content + (i128::from(at) - i128::from(then)) * self.per_us()),
        }
    }

    fn time_of(&self, parts: i128) -> u64 {
        u64::try_from(ceiling(parts, self.per_us())).unwrap()
    }

    /// Asserts that every run of admissions kept to burst + elapsed · rate, also where the clock was
    /// set back in between. `admitted` holds instant and units in the order of admission.
    pub(crate) fn bounds(&self, admitted: &[(u64, u64)]) {
        for (first, (start, _)) in admitted.iter().enumerate() {
            let mut sum = 0;
            for (at, units) in &admitted[first..] {
                sum += i128::from(*units) * self.period;
                let refilled = (i128::from(*at) - i128::from(*start)) * self.per_us();
                assert!(sum <= self.full() + refilled, "more than burst + elapsed · rate between {start} and {at}");
            }
        }
    }
}

fn ceiling(parts: i128, by: i128) -> i128 {
    (parts + by - 1).div_euclid(by)
}

impl Model for TokenBucketModel {
    fn enter(&mut self, now: u64) -> u64 {
        now
    }

    fn admits(&self, at: u64, cost: u64) -> bool {
        cost == 0 || i128::from(cost) * self.period <= self.content(at)
    }

    fn take(&mut self, at: u64, cost: u64) {
        if cost > 0 {
            self.last = Some((at, self.content(at) - i128::from(cost) * self.period));
        }
    }

    fn reset(&self, at: u64) -> u64 {
        if self.count == 0 { 0 } else { self.time_of(self.full() - self.content(at)) }
    }
}

impl Quota for TokenBucketModel {
    fn set_quota(&mut self, burst: u64) {
        // What is missing stays missing.
        let more = (i128::from(burst) - self.burst) * self.period;
        self.burst = burst.into();
        self.last = self.last.map(|(then, content)| (then, content + more));
    }
}
