//! Batches of many charges: they end, however their counters are spread.

mod crowd;

use crowd::in_time;
use tidegate_conformance::limits::{Kind, Known, START, block_on, charge, install};
use tidegate_core::Verdict;
use tidegate_store::{MemorySettings, MemoryStore, Store};

/// More new counters than a first table holds, in one batch: all in one shard, and spread.
#[test]
fn a_batch_of_many_new_counters_ends() {
    in_time(|| {
        for kind in Kind::ALL {
            for (per, count) in [(&[][..], 5), (&[], 64), (&["k"], 1_500)] {
                let store = MemoryStore::new(MemorySettings::default());
                let limit = Known::new(0, per, kind.rule(2));
                install(&store, &[&limit]);
                let keys: Vec<String> = (0..count).map(|key| key.to_string()).collect();
                let batch: Vec<_> = keys.iter().map(|key| limit.take(&[key], 1)).collect();
                assert!(block_on(charge(&store, &batch, START)).admitted);
                assert_eq!(store.stats().keys, count);
                assert!(block_on(charge(&store, &batch, START)).admitted);
                assert!(!block_on(charge(&store, &batch, START)).admitted);
                for key in &keys {
                    assert_eq!(block_on(limit.remaining(&store, &[key], START)), 0, "{kind:?}");
                }
            }
        }
    });
}

/// Many charges of one counter add up; one more than fits refuses all, and makes no counter.
#[test]
fn a_batch_of_many_twins_is_all_or_nothing() {
    in_time(|| {
        for kind in Kind::ALL {
            let store = MemoryStore::new(MemorySettings::default());
            let (limit, other) = (Known::new(0, &["k"], kind.rule(500)), Known::new(1, &[], kind.rule(9)));
            install(&store, &[&limit, &other]);
            let twins = |count| {
                let mut batch: Vec<_> = (0..count).map(|_| limit.take(&["a"], 1)).collect();
                batch.insert(count / 2, other.take(&[], 1));
                batch
            };
            let refused = block_on(charge(&store, &twins(501), START));
            assert_eq!((refused.admitted, refused.rows[501].verdict), (false, Verdict::Never), "{kind:?}");
            assert_eq!(store.stats().keys, 0, "{kind:?}: a refusal makes no counter");
            assert!(block_on(charge(&store, &twins(500), START)).admitted, "{kind:?}");
            assert_eq!(block_on(limit.remaining(&store, &["a"], START)), 0);
            assert_eq!(block_on(other.remaining(&store, &[], START)), 8);
        }
    });
}
