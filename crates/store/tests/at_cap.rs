//! A store that is full: nothing live is dropped for a newcomer, and each that finds no room is
//! counted.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tidegate_conformance::limits::{Kind, Known, LONG, START, block_on, charge, install, permissive};
use tidegate_core::{Span, Verdict};
use tidegate_store::memory::AtCap;
use tidegate_store::{MemorySettings, MemoryStore, Store};

fn store(keys_max: u64, at_cap: AtCap) -> MemoryStore {
    MemoryStore::new(MemorySettings { keys_max, at_cap, names: false })
}

#[test]
fn a_limit_without_room_does_not_apply_or_refuses_as_set() {
    for kind in Kind::ALL {
        for at_cap in [AtCap::Allow, AtCap::Deny] {
            let store = store(10, at_cap);
            let (limit, other) = (Known::new(0, &["k"], kind.rule(3)), Known::new(1, &[], kind.rule(9)));
            install(&store, &[&limit, &other]);
            for key in 0..9 {
                assert!(block_on(charge(&store, &[limit.take(&[&key.to_string()], 2)], START)).admitted);
            }
            assert!(block_on(charge(&store, &[other.take(&[], 1)], START)).admitted);

            let answer = block_on(charge(&store, &[limit.take(&["new"], 2), other.take(&[], 1)], START));
            assert_eq!(answer.admitted, at_cap == AtCap::Allow, "{kind:?}");
            assert!(answer.rows[0].at_cap && !answer.rows[1].at_cap);
            let refusal = Verdict::Wait(Span::from_secs(1));
            assert_eq!(answer.rows[0].verdict, if at_cap == AtCap::Allow { Verdict::Admit } else { refusal });
            let soft = [permissive(limit.take(&["new"], 2)), other.take(&[], 1)];
            assert!(block_on(charge(&store, &soft, START)).admitted, "{kind:?}: permissive, so not stopped by it");

            let counted = if at_cap == AtCap::Allow { 3 } else { 2 };
            assert_eq!(block_on(other.remaining(&store, &[], START)), 9 - counted, "{kind:?}, {at_cap:?}");
            assert_eq!((store.stats().keys, store.stats().at_cap_total), (10, 2), "{kind:?}");
            assert_eq!(store.stats().keys_max, 10);
            // What can never pass is refused as ever, and a peek needs no room.
            assert_eq!(block_on(charge(&store, &[limit.take(&["new"], 4)], START)).rows[0].verdict, Verdict::Never);
            assert!(block_on(charge(&store, &[limit.peek(&["new"], 3)], START)).admitted);
            assert_eq!(store.stats().at_cap_total, 2);

            for key in 0..9 {
                let left = block_on(limit.remaining(&store, &[&key.to_string()], START));
                assert_eq!(left, 1, "{kind:?}: a live counter is never dropped");
            }
            store.tidy(START.after(LONG));
            assert_eq!(store.stats().keys, 0);
            let later = block_on(charge(&store, &[limit.take(&["new"], 2)], START.after(LONG)));
            assert!(later.admitted && !later.rows[0].at_cap, "{kind:?}: there is room again");
        }
    }
}

/// A newcomer finds the room of what has expired in its own part of the store, without upkeep.
#[test]
fn a_newcomer_takes_the_room_of_the_expired() {
    for kind in Kind::ALL {
        let store = store(3, AtCap::Deny);
        // Without `per` a limit's counters are all in one part.
        let limit = Known::new(0, &[], kind.rule(3));
        install(&store, &[&limit]);
        for key in ["a", "b", "c"] {
            assert!(block_on(charge(&store, &[limit.take(&[key], 1)], START)).admitted);
        }
        assert!(!block_on(charge(&store, &[limit.take(&["d"], 1)], START)).admitted);
        assert!(block_on(charge(&store, &[limit.take(&["d"], 1)], START.after(LONG))).admitted, "{kind:?}");
        assert_eq!(store.stats().keys, 1);
    }
}

#[test]
fn a_store_without_any_room_counts_nothing() {
    for at_cap in [AtCap::Allow, AtCap::Deny] {
        let store = store(0, at_cap);
        let limit = Known::new(0, &["k"], Kind::TokenBucket.rule(3));
        install(&store, &[&limit]);
        for nth in 1..=9 {
            let answer = block_on(charge(&store, &[limit.take(&["a"], 1)], START));
            assert_eq!(answer.admitted, at_cap == AtCap::Allow);
            assert_eq!((store.stats().keys, store.stats().at_cap_total), (0, nth));
        }
    }
}

/// Eight threads make counters at once: as many as there may be, never one more, and each of them
/// counts from then on.
#[test]
fn threads_at_the_cap_make_exactly_as_many_as_fit() {
    for kind in Kind::ALL {
        let store = store(100, AtCap::Deny);
        let limit = Known::new(0, &["k"], kind.rule(1));
        install(&store, &[&limit]);
        let admitted = AtomicU64::new(0);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            let watch = scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    assert!(store.stats().keys <= 100);
                    store.tidy(START);
                    thread::yield_now();
                }
            });
            let makers: Vec<_> = (0..8)
                .map(|thread| {
                    let (store, limit, admitted) = (&store, &limit, &admitted);
                    scope.spawn(move || {
                        for nth in 0..100 {
                            let key = format!("{thread}-{nth}");
                            let answer = block_on(charge(store, &[limit.take(&[&key], 1)], START));
                            assert!(answer.admitted || answer.rows[0].at_cap, "only the cap refuses");
                            admitted.fetch_add(u64::from(answer.admitted), Ordering::Relaxed);
                        }
                    })
                })
                .collect();
            for maker in makers {
                maker.join().unwrap();
            }
            done.store(true, Ordering::Relaxed);
            watch.join().unwrap();
        });
        assert_eq!(admitted.into_inner(), 100, "{kind:?}");
        assert_eq!((store.stats().keys, store.stats().at_cap_total), (100, 700), "{kind:?}");
    }
}
