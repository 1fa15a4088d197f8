//! Who calls, and in which order: prepared before anything is timed.
//!
//! Names have a fixed width and lie in memory in the order in which they will be used, so reading the next one costs
//! a contender what a freshly decoded request would: its bytes are in the cache. Only the contender's own state is
//! spread over memory.

use std::fmt::Write;

/// Organisations among which all agents are spread.
pub(crate) const ORGS: u32 = 1_000;
/// The seed of every random order.
pub(crate) const SEED: u64 = 20_261_130;
/// The Zipf exponent: the agent of rank k calls in proportion to 1 / k^s.
pub(crate) const ZIPF_EXPONENT: f64 = 1.0;

const AGENT_WIDTH: usize = "agent-0000000".len();
const CALL_WIDTH: usize = AGENT_WIDTH + "org-0000".len();

/// One request's attributes, as text that someone else owns.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<'t> {
    /// The caller, unique over all organisations.
    pub(crate) agent: &'t str,
    /// The organisation the caller belongs to.
    pub(crate) org: &'t str,
}

/// The names of a series of calls, end to end.
#[derive(Debug, Default)]
pub(crate) struct Names {
    text: String,
}

impl Names {
    /// The names for a series of agents, given by number (below ten million).
    pub(crate) fn of(agents: impl IntoIterator<Item = u32>) -> Self {
        let mut names = Self::default();
        names.extend(agents);
        names
    }

    /// Forgets all names and writes others in the same memory.
    pub(crate) fn refill(&mut self, agents: impl IntoIterator<Item = u32>) {
        self.text.clear();
        self.extend(agents);
    }

    /// The calls, in order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = Call<'_>> {
        (0..self.text.len() / CALL_WIDTH).map(|index| {
            let (agent, org) = self.text[index * CALL_WIDTH..][..CALL_WIDTH].split_at(AGENT_WIDTH);
            Call { agent, org }
        })
    }

    fn extend(&mut self, agents: impl IntoIterator<Item = u32>) {
        for agent in agents {
            let org = agent % ORGS;
            // Writing to a String cannot fail.
            let _ = write!(self.text, "agent-{agent:07}org-{org:04}");
        }
    }
}

/// `length` agents out of `population`, drawn with Zipf's law, seeded: the same each time.
pub(crate) fn zipf(population: u32, length: usize) -> Vec<u32> {
    let mut cumulative = Vec::with_capacity(population as usize);
    let mut total = 0.0;
    for rank in 1..=population {
        total += f64::from(rank).powf(-ZIPF_EXPONENT);
        cumulative.push(total);
    }
    let mut random = SplitMix64(SEED);
    (0..length)
        .map(|_| {
            let point = random.unit() * total;
            let rank = cumulative.partition_point(|&sum| sum <= point).min(population as usize - 1);
            scatter(rank as u64, u64::from(population)) as u32
        })
        .collect()
}

/// A one-to-one map of ranks to agents, so that the busiest agents are neither neighbours nor in one organisation.
/// The factor is a prime that divides no population used here.
fn scatter(rank: u64, population: u64) -> u64 {
    (rank * 7_368_787 + 13) % population
}

/// A small random generator (SplitMix64, Steele, Lea and Flood 2014): plenty for choosing who calls next.
struct SplitMix64(u64);

impl SplitMix64 {
    /// A number in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::{Names, zipf};
    use std::collections::{HashMap, HashSet};

    #[test]
    fn names_come_back_in_order() {
        let names = Names::of([7, 1_234_567]);
        let calls: Vec<_> = names.calls().map(|call| (call.agent, call.org)).collect();
        assert_eq!(calls, [("agent-0000007", "org-0007"), ("agent-1234567", "org-0567")]);
    }

    #[test]
    fn the_busiest_agent_calls_as_often_as_the_law_says() {
        let (population, length) = (1_000, 200_000);
        let mut counts = HashMap::new();
        for agent in zipf(population, length) {
            *counts.entry(agent).or_insert(0_u32) += 1;
        }
        let mut counts: Vec<_> = counts.into_values().collect();
        counts.sort_unstable_by(|a, b| b.cmp(a));
        let harmonic: f64 = (1..=population).map(|rank| 1.0 / f64::from(rank)).sum();
        for rank in [1, 2, 10] {
            let expected = length as f64 / harmonic / rank as f64;
            let found = f64::from(counts[rank - 1]);
            assert!((found / expected - 1.0).abs() < 0.1, "rank {rank}: {found} calls, expected {expected}");
        }
    }

    #[test]
    fn every_rank_has_an_agent_of_its_own() {
        for population in [10_000, 1_000_000] {
            let agents: HashSet<_> = (0..population).map(|rank| super::scatter(rank, population)).collect();
            assert_eq!(agents.len() as u64, population);
        }
    }

    #[test]
    fn the_order_is_the_same_each_time() {
        assert_eq!(zipf(100, 50), zipf(100, 50));
    }
}
