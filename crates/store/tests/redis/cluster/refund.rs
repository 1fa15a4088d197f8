//! What a request gives back after another server refused it.

use tidegate_conformance::limits::{Kind, Known, START, charge, install};
use tidegate_core::Timestamp;
use tidegate_store::{At, RedisStore, Store};

use super::{CLUSTER, by_org, store_on};
use crate::place::block_on;

/// An org's limit of each kind, and one for everyone that can be spent.
fn limits(kind: Kind, everyone: u64) -> (Known, Known) {
    (Known::new(1, &["org"], kind.rule(10)), Known::new(2, &[], Kind::FixedWindow.rule(everyone)))
}

async fn remaining(store: &RedisStore, org: &Known, now: Timestamp) -> u64 {
    org.remaining(store, &["acme"], now).await
}

#[test]
fn a_refusal_elsewhere_gives_back_all() {
    for kind in Kind::ALL {
        let store = store_on(&CLUSTER, by_org());
        block_on(async {
            let (org, everyone) = limits(kind, 2);
            install(&store, &[&org, &everyone]);
            // Two of the org's pass, with one of everyone's each.
            for _ in 0..2 {
                let batch = [org.take(&["acme"], 3), everyone.take(&[], 1)];
                assert!(charge(&store, &batch, START).await.admitted, "{kind:?}");
            }
            assert_eq!(remaining(&store, &org, START).await, 4, "{kind:?}");
            for _ in 0..5 {
                let answer = charge(&store, &[org.take(&["acme"], 3), everyone.take(&[], 1)], START).await;
                assert!(!answer.admitted, "{kind:?}");
                assert!(answer.rows[0].verdict.admits() && !answer.rows[1].verdict.admits(), "{kind:?}");
                assert_eq!(answer.rows[0].standing.remaining, 4, "{kind:?}: as before");
                assert_eq!(remaining(&store, &org, START).await, 4, "{kind:?}: nothing taken");
            }
            let counts = store.counts();
            assert_eq!((counts.refunds, counts.refunds_lost, counts.mended), (5, 0, 0), "{kind:?}");
            // What is left is as good as before.
            assert!(charge(&store, &[org.take(&["acme"], 4)], START).await.admitted, "{kind:?}");
            assert!(!charge(&store, &[org.take(&["acme"], 1)], START).await.admitted, "{kind:?}");
        });
    }
}

#[test]
fn the_first_of_a_counter_gives_back_all() {
    for kind in Kind::ALL {
        let store = store_on(&CLUSTER, by_org());
        block_on(async {
            let (org, everyone) = limits(kind, 0);
            install(&store, &[&org, &everyone]);
            let answer = charge(&store, &[org.take(&["acme"], 10), everyone.take(&[], 1)], START).await;
            assert!(!answer.admitted);
            assert_eq!(remaining(&store, &org, START).await, 10, "{kind:?}");
            assert!(charge(&store, &[org.take(&["acme"], 10)], START).await.admitted, "{kind:?}");
            assert_eq!(store.counts().mended, 0, "{kind:?}");
        });
    }
}

#[test]
fn an_org_that_refuses_touches_nothing_else() {
    let store = store_on(&CLUSTER, by_org());
    block_on(async {
        let (org, everyone) = limits(Kind::FixedWindow, 5);
        install(&store, &[&org, &everyone]);
        // Whatever the order in the batch.
        let answer = charge(&store, &[everyone.take(&[], 1), org.take(&["acme"], 11)], START).await;
        assert!(!answer.admitted && answer.rows[0].verdict.admits() && !answer.rows[1].verdict.admits());
        assert_eq!(everyone.remaining(&store, &[], START).await, 5);
        assert_eq!(store.counts().refunds, 0, "nothing was taken that would be given back");
    });
}

#[test]
fn several_requests_are_charged_whole_or_not_at_all() {
    let store = store_on(&CLUSTER, by_org());
    block_on(async {
        let (org, everyone) = limits(Kind::TokenBucket, 3);
        let user = Known::new(3, &["user"], Kind::SlidingWindow.rule(1));
        install(&store, &[&org, &everyone, &user]);
        let batch = [
            org.take(&["acme"], 1),
            everyone.take(&[], 1),
            user.take(&["u"], 1),
            org.take(&["other"], 1),
            everyone.take(&[], 1),
            user.take(&["u"], 1),
        ];
        assert!(!charge(&store, &batch, START).await.admitted, "the user may once");
        for (known, values, whole) in [(&org, &["acme"][..], 10), (&org, &["other"], 10), (&everyone, &[], 3)] {
            assert_eq!(known.remaining(&store, values, START).await, whole);
        }
        assert_eq!(user.remaining(&store, &["u"], START).await, 1);
        assert_eq!(store.counts().refunds, 3);
        assert!(charge(&store, &batch[..3], START).await.admitted);
    });
}

#[test]
fn by_the_servers_clock() {
    let store = store_on(&CLUSTER, by_org());
    block_on(async {
        let (org, everyone) = limits(Kind::SlidingWindow, 0);
        install(&store, &[&org, &everyone]);
        let at = At::Backend { local: START };
        assert!(store.charge(&[org.take(&["acme"], 3)], at).await.unwrap().admitted);
        for _ in 0..20 {
            let answer = store.charge(&[org.take(&["acme"], 7), everyone.take(&[], 1)], at).await.unwrap();
            assert!(!answer.admitted && answer.rows[0].verdict.admits());
        }
        assert!(store.charge(&[org.take(&["acme"], 7)], at).await.unwrap().admitted);
        assert_eq!(store.counts().refunds_lost, 0);
    });
}
