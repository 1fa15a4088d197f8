//! Whose counter is whose.

use std::iter::once;

use tidegate_store::{At, Key, Store};

use crate::limits::{Kind, Known, START, charge, install};

/// Values that have undone keys elsewhere: what separates, quotes, ends or escapes.
pub(super) const TRICKY: [&str; 28] = [
    "",
    " ",
    "a",
    "a ",
    "A",
    ":",
    "::",
    "a:b",
    "b",
    "{",
    "}",
    "{}",
    "{a}",
    "a\nb",
    "\n",
    "\r\n",
    "\0",
    "a\0b",
    "a\0",
    "*",
    "?",
    "[a]",
    "%3A",
    "\\",
    "\u{e9}",
    "e\u{301}",
    "\u{1f980}",
    "\u{10ffff}",
];

/// No value reaches another's counter, whatever stands in it.
pub async fn keys_do_not_touch(store: &impl Store) {
    for kind in Kind::ALL {
        let single = Known::new(0, &["one"], kind.rule(1));
        let double = Known::new(1, &["one", "two"], kind.rule(1));
        install(store, &[]);
        install(store, &[&single, &double]);
        let mut pairs: Vec<[&str; 2]> = Vec::new();
        for one in TRICKY {
            pairs.extend(TRICKY.map(|two| [one, two]));
        }
        pairs.extend([["a:b", "c"], ["a", "b:c"], ["a\0b", "c"], ["a", "b\0c"]]);
        pairs.extend([["acme}:agent:a1", "minute"], ["acme", "agent:a1:minute"]]);
        pairs.sort_unstable();
        pairs.dedup();

        let megabyte = "x".repeat(1 << 20);
        let longer = format!("{megabyte}y");
        let other_end = format!("y{megabyte}");
        let long = [megabyte.as_str(), &longer, &other_end];
        for value in TRICKY.into_iter().chain(long) {
            assert!(charge(store, &[single.take(&[value], 1)], START).await.admitted, "{kind:?}: {}", shown(value));
        }
        for pair in pairs.iter().chain(once(&[long[0], long[1]])).chain(once(&[long[1], long[0]])) {
            assert!(charge(store, &[double.take(pair, 1)], START).await.admitted, "{kind:?}: {}", shown(pair[0]));
        }
        for value in TRICKY.into_iter().chain(long) {
            assert!(!charge(store, &[single.take(&[value], 1)], START).await.admitted, "{kind:?}: {}", shown(value));
        }
        for pair in &pairs {
            assert!(!charge(store, &[double.take(pair, 1)], START).await.admitted, "{kind:?}: {pair:?}");
        }
    }
}

fn shown(value: &str) -> String {
    value.chars().take(20).collect()
}

/// Two limits of equal rule and key have counters of their own.
pub async fn limits_do_not_touch(store: &impl Store) {
    for kind in Kind::ALL {
        let limits = [Known::new(0, &["k"], kind.rule(2)), Known::new(7, &["k"], kind.rule(2))];
        install(store, &[]);
        install(store, &[&limits[0], &limits[1]]);
        assert!(charge(store, &[limits[0].take(&["a"], 2)], START).await.admitted);
        assert_eq!(limits[1].remaining(store, &["a"], START).await, 2, "{kind:?}");
        assert!(charge(store, &[limits[1].take(&["a"], 1)], START).await.admitted);
        assert_eq!(limits[0].remaining(store, &["a"], START).await, 0, "{kind:?}");
    }
}

/// A reset counter is as never seen, and no other is.
pub async fn reset_forgets_one_counter(store: &impl Store) {
    for kind in Kind::ALL {
        let limits = [Known::new(0, &["k"], kind.rule(2)), Known::new(1, &["k"], kind.rule(2))];
        install(store, &[]);
        install(store, &[&limits[0], &limits[1]]);
        let fresh = limits[0].standing(store, &["never seen"], START).await;
        for limit in &limits {
            for key in TRICKY {
                assert!(charge(store, &[limit.take(&[key], 2)], START).await.admitted);
            }
        }
        let reset = async |key| store.reset(limits[0].id, &Key::of(&[key]), At::Given(START)).await.unwrap();
        assert!(!reset("never seen").await, "{kind:?}");
        assert!(reset("a\0b").await, "{kind:?}");
        assert!(!reset("a\0b").await, "{kind:?}: it is gone");
        assert_eq!(limits[0].standing(store, &["a\0b"], START).await, fresh, "{kind:?}");
        for key in TRICKY {
            let left = limits[0].remaining(store, &[key], START).await;
            assert_eq!(left, if key == "a\0b" { 2 } else { 0 }, "{kind:?}: {key:?}");
            assert_eq!(limits[1].remaining(store, &[key], START).await, 0, "{kind:?}: {key:?} of the other limit");
        }
        assert!(charge(store, &[limits[0].take(&["a\0b"], 2)], START).await.admitted);
        assert!(reset("a\0b").await, "{kind:?}: it was there again");
    }
}
