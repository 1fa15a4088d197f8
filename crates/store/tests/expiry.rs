//! What has expired is gone after one upkeep, and what is live is not.

use tidegate_conformance::limits::{Kind, Known, LONG, START, block_on, charge, install};
use tidegate_core::{Span, Timestamp};
use tidegate_store::{MemorySettings, MemoryStore, Store};

/// A limit of each rule, for many counters and for one.
fn limits(capacity: u64) -> Vec<Known> {
    let per: [&[&str]; 2] = [&["k"], &[]];
    (0_u32..)
        .zip(Kind::ALL.into_iter().flat_map(|kind| per.map(|per| (kind, per))))
        .map(|(id, (kind, per))| Known::new(id, per, kind.rule(capacity)))
        .collect()
}

fn fill(store: &MemoryStore, limits: &[Known], keys: impl Iterator<Item = u32>, now: Timestamp) -> u64 {
    let mut made = 0;
    for key in keys {
        let key = format!("agent-{key}");
        let batch: Vec<_> = limits.iter().map(|limit| limit.take(&[&key], 1)).collect();
        assert!(block_on(charge(store, &batch, now)).admitted);
        made += batch.len() as u64;
    }
    made
}

fn store(names: bool) -> MemoryStore {
    MemoryStore::new(MemorySettings { names, ..MemorySettings::default() })
}

/// Bytes of the same limits without counters.
fn empty_bytes(limits: &[Known], names: bool) -> u64 {
    let store = store(names);
    install(&store, &limits.iter().collect::<Vec<_>>());
    store.tidy(START);
    store.stats().bytes
}

#[test]
fn expired_counters_and_their_bytes_are_gone_after_one_upkeep() {
    for names in [false, true] {
        let (store, limits) = (store(names), limits(5));
        install(&store, &limits.iter().collect::<Vec<_>>());
        let made = fill(&store, &limits, 0..2_000, START);
        assert_eq!(store.stats().keys, made);
        store.tidy(START);
        let full = store.stats();
        assert_eq!(full.keys, made, "nothing has expired yet");
        let empty = empty_bytes(&limits, names);
        assert!(full.bytes > empty + made * 16, "{full:?}");
        store.tidy(START.after(LONG));
        let gone = store.stats();
        assert_eq!(gone.keys, 0);
        assert_eq!(gone.bytes, empty, "as if there had never been a counter");
    }
}

/// With time standing still, however often upkeep runs, nothing is dropped; just before the first
/// counter expires neither.
#[test]
fn live_counters_are_never_dropped() {
    let (store, limits) = (store(false), limits(5));
    install(&store, &limits.iter().collect::<Vec<_>>());
    let made = fill(&store, &limits, 0..500, START);
    // The first to be whole again are the buckets: one token of seven a minute.
    let last = START.after(Span::from_micros(60_000_000 / 7));
    for now in [START, START, START.after(Span::from_secs(1)), last, last, last] {
        store.tidy(now);
        assert_eq!(store.stats().keys, made);
        for limit in limits.iter().filter(|limit| !limit.limit.per.is_empty()) {
            let left = block_on(limit.remaining(&store, &["agent-499"], last));
            assert_eq!(left, 4, "{}", limit.limit.algorithm.name());
        }
    }
}

/// Of many counters, those that expired are gone and the others stand.
#[test]
fn what_is_live_stands_while_what_is_beside_it_goes() {
    let (store, limits) = (store(true), limits(100_000));
    let limits: Vec<Known> = limits.into_iter().filter(|limit| limit.limit.algorithm.name() != "calendar").collect();
    install(&store, &limits.iter().collect::<Vec<_>>());
    fill(&store, &limits, 0..1_000, START);
    let later = START.after(LONG);
    let new = fill(&store, &limits, 1_000..1_300, later);
    assert!(store.stats().keys > 2 * new, "most of what has expired is still there");
    store.tidy(later);
    // A crowded table with few expired keys may wait for more of them; these have many.
    assert_eq!(store.stats().keys, new);
    for limit in &limits {
        let (gone, kept) = (limit.take(&["agent-1"], 1), limit.take(&["agent-1001"], 1));
        let answer = block_on(charge(&store, &[gone, kept], later));
        let [gone, kept] = [0, 1].map(|row| answer.rows[row].standing.remaining);
        assert!(gone > kept, "{}: {gone} and {kept}", limit.limit.algorithm.name());
    }
}

/// Entries of a log go as they leave its window, without a request that touches it.
#[test]
fn logs_shrink_as_their_entries_leave() {
    let store = store(false);
    let limit = Known::new(0, &["k"], Kind::SlidingWindow.rule(5_000));
    install(&store, &[&limit]);
    let empty = empty_bytes(std::slice::from_ref(&limit), false);
    for key in ["a", "b", "c", "d"] {
        for nth in 0..5_000 {
            let at = START.after(Span::from_millis(nth * 10));
            assert!(block_on(charge(&store, &[limit.take(&[key], 1)], at)).admitted);
        }
    }
    let bytes_at = |secs| {
        store.tidy(START.after(Span::from_secs(secs)));
        store.stats().bytes - empty
    };
    let full = bytes_at(50);
    assert!(full > 4 * 5_000 * 2, "{full} bytes");
    assert_eq!(block_on(limit.remaining(&store, &["a"], START.after(Span::from_secs(50)))), 0);
    assert!(bytes_at(60 + 40) < full / 2, "four fifths have left");
    assert_eq!(block_on(limit.remaining(&store, &["a"], START.after(Span::from_secs(100)))), 4_001);
    assert!(bytes_at(60 + 49) < full / 10, "nearly all have left");
    assert_eq!(bytes_at(60 + 50), 0);
    assert_eq!(store.stats().keys, 0);
}

/// A limit that is no longer installed leaves nothing behind.
#[test]
fn an_uninstalled_limit_leaves_no_keys() {
    let (store, limits) = (store(false), limits(5));
    install(&store, &limits.iter().collect::<Vec<_>>());
    fill(&store, &limits, 0..300, START);
    install(&store, &[&limits[0]]);
    assert_eq!(store.stats().keys, 300);
    install(&store, &[]);
    assert_eq!(store.stats().keys, 0);
}
