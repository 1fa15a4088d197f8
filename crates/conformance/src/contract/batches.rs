//! What a batch does, and what it leaves alone.

use tidegate_core::{Cost, Standing, Verdict};
use tidegate_store::Store;

use crate::limits::{Kind, Known, LONG, START, charge, install, permissive};

/// Every rule as the one that refuses, among every other rule, in every place of the batch.
pub async fn a_batch_is_charged_whole_or_not_at_all(store: &impl Store) {
    // A shared store remembers what was charged before an install: each round is long after the last.
    let mut now = START;
    for refuser in Kind::ALL {
        for other in Kind::ALL {
            for place in 0..3 {
                let full = Known::new(0, &["agent"], refuser.rule(3));
                let one = Known::new(1, &["org"], other.rule(10));
                let two = Known::new(2, &[], other.rule(10));
                now = now.after(LONG);
                install(store, &[]);
                install(store, &[&full, &one, &two]);
                assert!(charge(store, &[full.take(&["a"], 3)], now).await.admitted);

                let mut batch = vec![one.take(&["o"], 1), two.take(&[], 1)];
                batch.insert(place, full.take(&["a"], 1));
                let refused = charge(store, &batch, now).await;
                assert!(!refused.admitted, "{refuser:?} is full");
                let verdicts: Vec<bool> = refused.rows.iter().map(|row| row.verdict.admits()).collect();
                assert_eq!(verdicts, (0..3).map(|row| row != place).collect::<Vec<_>>());
                assert_eq!(one.remaining(store, &["o"], now).await, 10, "{other:?} beside {refuser:?}");
                assert_eq!(two.remaining(store, &[], now).await, 10, "{other:?} beside {refuser:?}");
                assert_eq!(full.remaining(store, &["a"], now).await, 0);

                batch.remove(place);
                assert!(charge(store, &batch, now).await.admitted);
                assert_eq!(one.remaining(store, &["o"], now).await, 9);
                assert_eq!(two.remaining(store, &[], now).await, 9);
            }
        }
    }
}

/// Of more requests than fit, as many pass as fit.
pub async fn a_capacity_is_admitted_exactly(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["agent"], kind.rule(7));
        install(store, &[]);
        install(store, &[&limit]);
        for nth in 1..=12 {
            let answer = charge(store, &[limit.take(&["a"], 1)], START).await;
            assert_eq!(answer.admitted, nth <= 7, "{kind:?}, request {nth}");
            assert_eq!(answer.rows[0].standing.remaining, 7_u64.saturating_sub(nth), "{kind:?}, request {nth}");
            assert_eq!(answer.at, START);
        }
    }
}

/// An enforced refusal of one limit, read back by peeks: the others stand as before, to the
/// microsecond.
pub async fn a_refusal_leaves_every_counter(store: &impl Store) {
    let levels: Vec<Known> = (0_u32..).zip(Kind::ALL).map(|(id, kind)| Known::new(id, &["k"], kind.rule(10))).collect();
    let full = Known::new(9, &[], Kind::FixedWindow.rule(0));
    install(store, &levels.iter().chain([&full]).collect::<Vec<_>>());
    let now = START.after(tidegate_core::Span::from_micros(1_234_567));
    for level in &levels {
        assert!(charge(store, &[level.take(&["seen"], 4)], START).await.admitted);
    }
    let before = standings(store, &levels, now).await;
    for units in [1, 2, 6] {
        for key in ["seen", "unseen"] {
            let mut batch: Vec<_> = levels.iter().map(|level| level.take(&[key], units)).collect();
            batch.push(full.take(&[], 1));
            let refused = charge(store, &batch, now).await;
            assert!(!refused.admitted);
            assert_eq!(standings(store, &levels, now).await, before, "after a refusal of {units} for {key}");
        }
    }
}

async fn standings(store: &impl Store, levels: &[Known], now: tidegate_core::Timestamp) -> Vec<Standing> {
    let mut all = Vec::new();
    for level in levels {
        for key in ["seen", "unseen"] {
            all.push(level.standing(store, &[key], now).await);
        }
    }
    all
}

/// A permissive charge takes what its limit admits, if the batch is admitted.
pub async fn a_permissive_charge_takes_what_is_admitted(store: &impl Store) {
    for kind in Kind::ALL {
        let (soft, hard) = (Known::new(0, &["agent"], kind.rule(3)), Known::new(1, &["org"], kind.rule(2)));
        install(store, &[]);
        install(store, &[&soft, &hard]);
        let ask = [permissive(soft.take(&["a"], 1)), hard.take(&["o"], 1)];
        assert!(charge(store, &ask, START).await.admitted);
        assert!(charge(store, &ask, START).await.admitted);
        assert_eq!(soft.remaining(store, &["a"], START).await, 1, "{kind:?} counts what it admits");
        assert!(!charge(store, &ask, START).await.admitted);
        assert_eq!(soft.remaining(store, &["a"], START).await, 1, "{kind:?} counts nothing of a refused batch");
    }
}

/// A permissive charge that its limit refuses is said to be, is not counted, and stops nothing.
pub async fn a_permissive_charge_vetoes_nothing(store: &impl Store) {
    for kind in Kind::ALL {
        let (soft, hard) = (Known::new(0, &["agent"], kind.rule(3)), Known::new(1, &["org"], kind.rule(9)));
        install(store, &[]);
        install(store, &[&soft, &hard]);
        assert!(charge(store, &[soft.take(&["a"], 2)], START).await.admitted);
        let answer = charge(store, &[permissive(soft.take(&["a"], 2)), hard.take(&["o"], 2)], START).await;
        assert!(answer.admitted);
        assert!(matches!(answer.rows[0].verdict, Verdict::Wait(_)), "{kind:?} says what it would have refused");
        assert_eq!(answer.rows[0].standing.remaining, 1);
        assert_eq!(soft.remaining(store, &["a"], START).await, 1, "{kind:?} does not count what it would have refused");
        assert_eq!(hard.remaining(store, &["o"], START).await, 7, "the other limit counts");
    }
}

/// Charges of one batch with the same limit and key add up, in their order.
pub async fn charges_of_one_counter_add_up_in_order(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["agent"], kind.rule(5));
        let wider = Known::new(0, &["agent"], kind.rule(6));
        install(store, &[]);
        install(store, &[&limit]);
        for (nth, seen) in [false, true].into_iter().enumerate() {
            // On a key never seen, and on one whose counter is there and empty.
            let key = format!("{kind:?}-{nth}");
            let key = [key.as_str()];
            if seen {
                charge(store, &[limit.take(&key, 1)], START).await;
                store.reset(limit.id, &tidegate_store::Key::of(&key), tidegate_store::At::Given(START)).await.unwrap();
            }
            let two = || limit.take(&key, 2);

            let refused = charge(store, &[two(), two(), two()], START).await;
            assert!(!refused.admitted);
            let verdicts: Vec<bool> = refused.rows.iter().map(|row| row.verdict.admits()).collect();
            assert_eq!(verdicts, [true, true, false], "{kind:?}: the third finds 1 left");
            assert_eq!(refused.rows[2].verdict, Verdict::Never, "{kind:?}: 6 of 5 never fit");
            assert_eq!(limit.remaining(store, &key, START).await, 5, "{kind:?}: none was taken");

            let refused = charge(store, &[limit.take(&key, 5), limit.peek(&key, 1)], START).await;
            assert!(!refused.admitted, "{kind:?}: the peek finds what is taken before it");
            assert_eq!(limit.remaining(store, &key, START).await, 5);
            assert!(charge(store, &[limit.peek(&key, 5), limit.peek(&key, 5)], START).await.admitted);

            let batch = [two(), permissive(limit.take(&key, 4)), two(), limit.peek(&key, 1)];
            let admitted = charge(store, &batch, START).await;
            assert!(admitted.admitted);
            let remaining: Vec<u64> = admitted.rows.iter().map(|row| row.standing.remaining).collect();
            assert_eq!(remaining, [3, 3, 1, 1], "{kind:?}: what the permissive one would have taken is not counted");

            let by_another_rule = charge(store, &[limit.take(&key, 1), wider.take(&key, 1)], START).await;
            assert!(by_another_rule.admitted, "{kind:?}: a rule that admits 6 has 1 left behind one that has none");
            assert_eq!(wider.remaining(store, &key, START).await, 0);
        }
    }
}

/// A cost above the capacity is refused for good, whatever it is; a limit of 0 refuses everything
/// but a cost of 0.
pub async fn costs_beyond_every_capacity_are_refused_for_good(store: &impl Store) {
    for kind in Kind::ALL {
        let (limit, none) = (Known::new(0, &["agent"], kind.rule(5)), Known::new(1, &[], kind.rule(0)));
        install(store, &[]);
        install(store, &[&limit, &none]);
        for units in [6, u64::from(u32::MAX), i64::MAX as u64, u64::MAX - 1, u64::MAX] {
            let answer = charge(store, &[limit.take(&["a"], units)], START).await;
            assert_eq!((answer.admitted, answer.rows[0].verdict), (false, Verdict::Never), "{kind:?}, {units}");
        }
        assert_eq!(charge(store, &[none.take(&[], 1)], START).await.rows[0].verdict, Verdict::Never);
        assert!(charge(store, &[none.take(&[], Cost::ZERO.units()), limit.take(&["a"], 5)], START).await.admitted);
        assert!(charge(store, &[limit.take(&["a"], 0)], START).await.admitted, "a cost of 0 peeks");
        assert_eq!(limit.remaining(store, &["a"], START).await, 0);
    }
}

/// A peek moves nothing, whatever it asks for.
pub async fn peeks_move_nothing(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["agent"], kind.rule(5));
        install(store, &[]);
        install(store, &[&limit]);
        assert!(charge(store, &[limit.take(&["a"], 2)], START).await.admitted);
        let before = limit.standing(store, &["a"], START).await;
        for units in [0, 1, 3, 4, 5, 6] {
            let answer = charge(store, &[limit.peek(&["a"], units)], START).await;
            assert_eq!(answer.admitted, units <= 3, "{kind:?}, {units}");
            assert_eq!(answer.rows[0].standing, before, "{kind:?}, {units}");
        }
        assert!(charge(store, &[limit.take(&["a"], 3)], START).await.admitted);
    }
}

/// A peek makes no counter.
pub async fn peeks_make_no_counter(store: &impl Store) {
    let limits: Vec<Known> = (0_u32..).zip(Kind::ALL).map(|(id, kind)| Known::new(id, &["k"], kind.rule(5))).collect();
    install(store, &limits.iter().collect::<Vec<_>>());
    for limit in &limits {
        for units in [0, 1, 5, 6] {
            charge(store, &[limit.peek(&["a"], units), limit.peek(&["b"], units)], START).await;
        }
        charge(store, &[limit.take(&["a"], 0)], START).await;
    }
    assert_eq!(store.stats().keys, 0);
    charge(store, &[limits[0].take(&["a"], 1), limits[1].peek(&["a"], 1)], START).await;
    assert_eq!(store.stats().keys, 1);
}

/// An enforced peek that is refused refuses its batch.
pub async fn peeks_veto(store: &impl Store) {
    for kind in Kind::ALL {
        let (asked, taken) = (Known::new(0, &["agent"], kind.rule(2)), Known::new(1, &["org"], kind.rule(9)));
        install(store, &[]);
        install(store, &[&asked, &taken]);
        assert!(charge(store, &[asked.take(&["a"], 1)], START).await.admitted);
        let ask = |units| [asked.peek(&["a"], units), taken.take(&["o"], 1)];
        assert!(!charge(store, &ask(2), START).await.admitted);
        assert_eq!(taken.remaining(store, &["o"], START).await, 9, "{kind:?}");
        assert!(charge(store, &ask(1), START).await.admitted);
        assert_eq!(taken.remaining(store, &["o"], START).await, 8, "{kind:?}");
        let soft = [permissive(asked.peek(&["a"], 2)), taken.take(&["o"], 1)];
        assert!(charge(store, &soft, START).await.admitted);
    }
}
