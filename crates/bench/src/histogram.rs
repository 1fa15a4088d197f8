//! Durations in logarithmic buckets: fixed memory, and no allocation that would disturb what is timed.

use std::time::Duration;

/// Buckets for each doubling: a quantile is at most 1/16 too high.
const STEPS: usize = 16;
const DOUBLINGS: usize = 40;

/// Counts of durations up to about 18 minutes.
#[derive(Clone, Debug)]
pub(crate) struct Histogram {
    counts: Box<[u64; STEPS * DOUBLINGS]>,
    total: u64,
    max_ns: u64,
}

impl Histogram {
    /// No durations yet.
    pub(crate) fn new() -> Self {
        Self { counts: Box::new([0; STEPS * DOUBLINGS]), total: 0, max_ns: 0 }
    }

    /// Counts one duration.
    pub(crate) fn record(&mut self, duration: Duration) {
        let ns = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(ns)] += 1;
        self.total += 1;
        self.max_ns = self.max_ns.max(ns);
    }

    /// Adds another histogram's counts.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (count, others) in self.counts.iter_mut().zip(other.counts.iter()) {
            *count += others;
        }
        self.total += other.total;
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    /// Durations counted.
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The longest duration, exact, in nanoseconds.
    pub(crate) fn max_ns(&self) -> u64 {
        self.max_ns
    }

    /// The duration, in nanoseconds, that a share of all durations does not exceed: the upper edge of its bucket.
    pub(crate) fn quantile_ns(&self, share: f64) -> u64 {
        let wanted = (share * self.total as f64).ceil() as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted.max(1) {
                return upper_edge(index).min(self.max_ns);
            }
        }
        self.max_ns
    }
}

/// The first `STEPS` buckets hold one nanosecond each; after them each doubling is cut into `STEPS` equal parts.
fn bucket(ns: u64) -> usize {
    let steps = STEPS as u64;
    if ns < steps {
        return ns as usize;
    }
    let shift = ns.ilog2() - STEPS.ilog2();
    let index = (u64::from(shift) * steps + (ns >> shift)) as usize;
    index.min(STEPS * DOUBLINGS - 1)
}

fn upper_edge(index: usize) -> u64 {
    if index < STEPS {
        return index as u64;
    }
    let shift = index / STEPS - 1;
    let first = (index - shift * STEPS) as u64;
    ((first + 1) << shift) - 1
}

#[cfg(test)]
mod tests {
    use super::{Histogram, bucket, upper_edge};
    use std::time::Duration;

    #[test]
    fn each_duration_is_at_most_a_sixteenth_below_the_edge_of_its_bucket() {
        for ns in (0..100_000).chain((0..39).map(|power| (1_u64 << power) + 1)) {
            let edge = upper_edge(bucket(ns));
            assert!(edge >= ns && edge <= ns + ns / 16, "{ns} ns is counted as {edge} ns");
        }
    }

    #[test]
    fn quantiles_find_the_rare_long_one() {
        let mut histogram = Histogram::new();
        for _ in 0..9_999 {
            histogram.record(Duration::from_nanos(10));
        }
        histogram.record(Duration::from_millis(3));
        assert_eq!(histogram.quantile_ns(0.5), 10);
        assert_eq!(histogram.quantile_ns(0.9999), 10);
        assert_eq!(histogram.quantile_ns(1.0), 3_000_000);
        assert_eq!(histogram.max_ns(), 3_000_000);
    }
}
