//! Which limits a store knows.

use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, CivilPeriod, PeriodKind, Rate};
use tidegate_store::{At, Charge, Key, LimitId, PageQuery, Store, StoreError};

use crate::limits::{Kind, Known, START, charge, install};

/// An unknown limit is an error that says which, and nothing is taken.
pub async fn an_unknown_limit_is_an_error(store: &impl Store) {
    let at = At::Given(START);
    let (known, unknown) =
        (Known::new(3, &["k"], Kind::FixedWindow.rule(5)), Known::new(4, &["k"], Kind::Calendar.rule(5)));
    let error = StoreError::UnknownLimit(LimitId(4));
    assert_eq!(store.charge(&[unknown.take(&["a"], 1)], at).await, Err(error.clone()), "nothing is installed yet");
    install(store, &[&known]);
    for batch in [[known.take(&["a"], 1), unknown.take(&["a"], 1)], [unknown.peek(&["a"], 0), known.take(&["a"], 1)]] {
        assert_eq!(store.charge(&batch, at).await, Err(error.clone()));
    }
    assert_eq!(known.remaining(store, &["a"], START).await, 5);
    assert_eq!(store.reset(unknown.id, &Key::of(&["a"]), at).await, Err(error.clone()));
    let query = PageQuery { limit: unknown.id, algorithm: &unknown.limit.algorithm, after: None, items_max: 5 };
    assert_eq!(store.page(&query, at).await, Err(error));
    let gap = StoreError::UnknownLimit(LimitId(1));
    assert_eq!(store.reset(LimitId(1), &Key::of(&["a"]), at).await, Err(gap), "below the highest that is known");
    assert_eq!(store.charge(&[], at).await.map(|batch| batch.admitted), Ok(true), "nothing is asked");
}

/// A rule that would misread its limit's counters is an error that says which, and nothing is taken.
pub async fn a_rule_of_another_layout_is_an_error(store: &impl Store) {
    let limits: Vec<Known> = (0_u32..).zip(Kind::ALL).map(|(id, kind)| Known::new(id, &["k"], kind.rule(5))).collect();
    install(store, &limits.iter().collect::<Vec<_>>());
    let other = Rate::new(5, 30).unwrap();
    let others = [
        Algorithm::FixedWindow(FixedWindow::new(other).unwrap()),
        Algorithm::SlidingWindow(SlidingWindow::new(other).unwrap()),
        Algorithm::SlidingCounter(SlidingCounter::new(other).unwrap()),
        Algorithm::TokenBucket(TokenBucket::new(other, None).unwrap()),
        Algorithm::Calendar(Calendar::new(5, CivilPeriod::new(PeriodKind::Day, "UTC", None).unwrap())),
    ];
    for (limit, own) in limits.iter().zip(&others) {
        let foreign = limits.iter().filter(|one| one.id != limit.id).map(|one| &one.limit.algorithm);
        for algorithm in foreign.chain([own]) {
            let wrong = Charge { algorithm, ..limit.take(&["a"], 1) };
            let first = &limits[(limit.id.0 as usize + 1) % limits.len()];
            let answer = store.charge(&[first.take(&["a"], 1), wrong], At::Given(START)).await;
            assert_eq!(answer, Err(StoreError::WrongLayout(limit.id)), "{algorithm:?} on {:?}", limit.limit.algorithm);
        }
    }
    for limit in &limits {
        assert_eq!(limit.remaining(store, &["a"], START).await, 5);
    }
}

/// Counters outlive an install that names their limit, with other numbers or beside other limits.
pub async fn install_keeps_what_it_names(store: &impl Store) {
    for kind in Kind::ALL {
        let (kept, other) = (Known::new(0, &["k"], kind.rule(5)), Known::new(1, &["j"], kind.rule(5)));
        let raised = Known::new(0, &["k"], kind.rule(7));
        install(store, &[]);
        install(store, &[&kept]);
        assert!(charge(store, &[kept.take(&["a"], 5)], START).await.admitted);
        install(store, &[&other, &kept]);
        assert_eq!(kept.remaining(store, &["a"], START).await, 0, "{kind:?}");
        install(store, &[&raised, &other]);
        assert_eq!(kept.remaining(store, &["a"], START).await, 0, "{kind:?}");
        assert_eq!(raised.remaining(store, &["a"], START).await, 2, "{kind:?}: a raised limit keeps its count");
        install(store, &[&raised]);
        assert!(charge(store, &[raised.take(&["a"], 2)], START).await.admitted);
        assert!(!charge(store, &[raised.take(&["a"], 1)], START).await.admitted);
    }
}

/// An install forgets the counters of limits that it does not name.
pub async fn install_forgets_what_it_does_not_name(store: &impl Store) {
    for kind in Kind::ALL {
        let (kept, gone) = (Known::new(0, &["k"], kind.rule(5)), Known::new(1, &["k"], kind.rule(5)));
        install(store, &[&kept, &gone]);
        assert!(charge(store, &[gone.take(&["a"], 5)], START).await.admitted);
        install(store, &[&kept]);
        let asked = store.charge(&[gone.peek(&["a"], 1)], At::Given(START)).await;
        assert_eq!(asked, Err(StoreError::UnknownLimit(gone.id)));
        install(store, &[&kept, &gone]);
        assert_eq!(gone.remaining(store, &["a"], START).await, 5, "{kind:?}");
        install(store, &[]);
    }
}

/// An install of another layout under a number forgets the counters that the new rule would misread.
pub async fn install_forgets_what_another_layout_left(store: &impl Store) {
    for (nth, kind) in Kind::ALL.into_iter().enumerate() {
        let (first, then) =
            (Known::new(0, &["k"], kind.rule(5)), Known::new(0, &["k"], Kind::ALL[(nth + 1) % 5].rule(5)));
        install(store, &[]);
        install(store, &[&first]);
        assert!(charge(store, &[first.take(&["a"], 5)], START).await.admitted);
        install(store, &[&then]);
        assert_eq!(then.remaining(store, &["a"], START).await, 5, "{kind:?}");
        assert!(store.charge(&[first.take(&["a"], 1)], At::Given(START)).await.is_err(), "{kind:?}");
    }
}
