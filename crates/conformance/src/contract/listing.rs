//! Listing a limit's counters.

use std::collections::BTreeMap;

use tidegate_core::{Standing, Timestamp};
use tidegate_store::{At, Key, PageQuery, Store, StoreError};

use super::keys::TRICKY;
use crate::limits::{Kind, Known, LONG, START, charge, install};

/// A listing has every live counter once, whatever the pages' size.
pub async fn listing_is_complete(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["one", "two"], kind.rule(5));
        let other = Known::new(1, &["one", "two"], kind.rule(5));
        install(store, &[]);
        install(store, &[&limit, &other]);
        assert_eq!(list(store, &limit, 10, START).await, BTreeMap::new(), "{kind:?}");
        let many: Vec<String> = (0..40).map(|number| number.to_string()).collect();
        let mut expected = BTreeMap::new();
        for (nth, one) in TRICKY.into_iter().chain(many.iter().map(String::as_str)).enumerate() {
            for two in ["", "a", "\0", "{}"] {
                let answer = charge(store, &[limit.take(&[one, two], nth as u64 % 5 + 1)], START).await;
                assert!(answer.admitted);
                expected.insert(vec![one.to_owned(), two.to_owned()], answer.rows[0].standing);
            }
        }
        assert!(charge(store, &[other.take(&["only", "there"], 1)], START).await.admitted);
        for items_max in [1, 2, 7, 100, 10_000, usize::MAX] {
            assert_eq!(list(store, &limit, items_max, START).await, expected, "{kind:?}, {items_max} a page");
        }
        assert_eq!(list(store, &other, 3, START).await.len(), 1, "{kind:?}");
    }
}

/// A listing under way bears inserts: what was there is listed once.
pub async fn listing_bears_inserts(store: &impl Store) {
    list_under_inserts(store, true).await;
}

/// The same where what was there may be listed twice, as by SCAN while the server's table grows.
pub async fn listing_misses_nothing(store: &impl Store) {
    list_under_inserts(store, false).await;
}

async fn list_under_inserts(store: &impl Store, once: bool) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["k"], kind.rule(5));
        install(store, &[]);
        install(store, &[&limit]);
        for number in 0..200 {
            assert!(charge(store, &[limit.take(&[&format!("old-{number}")], 1)], START).await.admitted);
        }
        let mut seen = BTreeMap::new();
        let mut after: Option<String> = None;
        for round in 0.. {
            let query =
                PageQuery { limit: limit.id, algorithm: &limit.limit.algorithm, after: after.as_deref(), items_max: 9 };
            let page = store.page(&query, At::Given(START)).await.unwrap();
            for counted in page.counters {
                let before = seen.insert(counted.values.clone(), counted.standing);
                assert!(!once || before.is_none(), "{:?} twice", counted.values);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
            // Grows every table several times over, for as many pages as the old ones fill.
            for number in 0..if round < 25 { 200 } else { 0 } {
                let key = format!("new-{round}-{number}");
                assert!(charge(store, &[limit.take(&[&key], 1)], START).await.admitted);
            }
        }
        for number in 0..200 {
            assert!(seen.contains_key(&vec![format!("old-{number}")]), "{kind:?}: old-{number} is missing");
        }
    }
}

/// A listing leaves out what has expired or was reset.
pub async fn listing_leaves_out_what_has_gone(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["k"], kind.rule(5));
        install(store, &[]);
        install(store, &[&limit]);
        for key in ["a", "b", "c"] {
            assert!(charge(store, &[limit.take(&[key], 2)], START).await.admitted);
        }
        assert!(store.reset(limit.id, &Key::of(&["b"]), At::Given(START)).await.unwrap());
        let listed: Vec<_> = list(store, &limit, 10, START).await.into_keys().flatten().collect();
        assert_eq!(listed, ["a", "c"], "{kind:?}");
        let later = START.after(LONG);
        assert!(charge(store, &[limit.take(&["c"], 2)], later).await.admitted);
        let listed: Vec<_> = list(store, &limit, 10, later).await.into_keys().flatten().collect();
        assert_eq!(listed, ["c"], "{kind:?}");
    }
}

/// A cursor that no listing has returned is an error.
pub async fn a_bad_cursor_is_an_error(store: &impl Store) {
    let limit = Known::new(0, &["k"], Kind::Calendar.rule(5));
    install(store, &[&limit]);
    assert!(charge(store, &[limit.take(&["a"], 2)], START).await.admitted);
    for after in ["", "nonsense", "-", "0", "\0", "-1--1", "+1-+1", "99999999-0", "0-99999999999999999999", "é-1"] {
        let query = PageQuery { limit: limit.id, algorithm: &limit.limit.algorithm, after: Some(after), items_max: 5 };
        assert_eq!(store.page(&query, At::Given(START)).await, Err(StoreError::BadCursor), "{after:?}");
    }
}

/// All counters of a limit, by pages of `items_max`.
async fn list(store: &impl Store, limit: &Known, items_max: usize, now: Timestamp) -> BTreeMap<Vec<String>, Standing> {
    let mut all = BTreeMap::new();
    let mut after: Option<String> = None;
    loop {
        let query =
            PageQuery { limit: limit.id, algorithm: &limit.limit.algorithm, after: after.as_deref(), items_max };
        let page = store.page(&query, At::Given(now)).await.unwrap();
        assert!(page.counters.len() <= items_max);
        for counted in page.counters {
            assert_eq!(all.insert(counted.values.clone(), counted.standing), None, "{:?} twice", counted.values);
        }
        after = page.next;
        if after.is_none() {
            return all;
        }
    }
}
