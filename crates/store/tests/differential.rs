//! The store in memory, step by step the same as the counting rules over a plain map.

mod prepared;

use std::sync::atomic::Ordering;

use proptest::prelude::*;
use tidegate_conformance::limits::{Kind, Known, START, block_on, charge, install};
use tidegate_conformance::walk::{Ground, requests, steps, walk};
use tidegate_store::{MemorySettings, MemoryStore};

use prepared::Prepared;

fn walks(cases: u32) -> ProptestConfig {
    ProptestConfig { max_shrink_iters: 20_000, ..ProptestConfig::with_cases(cases * soak()) }
}

/// `TIDEGATE_SOAK` times as many.
fn soak() -> u32 {
    std::env::var("TIDEGATE_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn store(names: bool) -> MemoryStore {
    MemoryStore::new(MemorySettings { names, ..MemorySettings::default() })
}

proptest! {
    #![proptest_config(walks(400))]

    /// Time goes both ways. Few keys and no upkeep, so nothing is forgotten and no clock is held back.
    #[test]
    fn with_a_clock_that_is_set_back(steps in steps(4, true, 60), names: bool) {
        walk(&store(names), &Ground::default(), &steps, |_| ())?;
    }

    /// Many keys in few shards, and upkeep: tables are replaced all the time, and nothing live is lost.
    #[test]
    fn with_upkeep_and_growing_tables(steps in steps(40, false, 120), names: bool) {
        let store = store(names);
        walk(&store, &Ground::default(), &steps, |now| store.tidy(now))?;
    }

    /// The same for batches that are prepared.
    #[test]
    fn prepared_with_a_clock_that_is_set_back(steps in requests(4, 3, true, 60)) {
        let store = Prepared::new(store(false));
        walk(&store, &Ground::of(&[Kind::FixedWindow, Kind::TokenBucket]), &steps, |_| ())?;
    }

    #[test]
    fn prepared_with_upkeep_and_growing_tables(steps in requests(4, 30, false, 120)) {
        let store = Prepared::new(store(false));
        walk(&store, &Ground::of(&[Kind::TokenBucket, Kind::FixedWindow]), &steps, |now| store.store.tidy(now))?;
    }
}

/// The prepared walks go the prepared way.
#[test]
fn a_prepared_batch_is_decided_the_prepared_way() {
    let store = Prepared::new(store(false));
    let limit = Known::new(0, &["k"], Kind::TokenBucket.rule(3));
    install(&store, &[&limit]);
    for nth in 0..5 {
        block_on(charge(&store, &[limit.take(&["a"], 1)], START));
        // The first makes the counter, the general way.
        assert_eq!(store.decided.load(Ordering::Relaxed), nth);
    }
}
