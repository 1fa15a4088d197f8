//! Time inside a counter.

use tidegate_core::{Span, Verdict};
use tidegate_store::Store;

use crate::limits::{Kind, Known, LONG, START, charge, install};

/// Time inside a counter never runs backwards: who asks by an earlier clock finds what was taken.
pub async fn a_clock_set_back_gives_nothing(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["k"], kind.rule(3));
        install(store, &[]);
        install(store, &[&limit]);
        let later = START.after(LONG);
        assert!(charge(store, &[limit.take(&["a"], 3)], later).await.admitted);
        for back in [1, 59, 60, 3_599, 3_600, 7_200].map(Span::from_secs) {
            let earlier = charge(store, &[limit.take(&["a"], 1)], later.before(back)).await;
            assert!(!earlier.admitted, "{kind:?}, set back by {back}");
            assert_eq!(earlier.rows[0].standing.remaining, 0, "{kind:?}, set back by {back}");
        }
        let Verdict::Wait(wait) = charge(store, &[limit.take(&["a"], 1)], later).await.rows[0].verdict else {
            panic!("{kind:?} has a wait");
        };
        assert!(
            !charge(store, &[limit.take(&["a"], 1)], later.after(wait).before(Span::from_micros(1))).await.admitted
        );
        assert!(charge(store, &[limit.take(&["a"], 1)], later.after(wait)).await.admitted, "{kind:?} goes on");
    }
}

/// A peek ahead of time moves nothing: what it saw leave is still there for the present.
pub async fn a_peek_ahead_of_time_moves_nothing(store: &impl Store) {
    for kind in Kind::ALL {
        let (limit, other) = (Known::new(0, &["k"], kind.rule(3)), Known::new(1, &[], kind.rule(9)));
        install(store, &[]);
        install(store, &[&limit, &other]);
        assert!(charge(store, &[limit.take(&["a"], 3)], START).await.admitted);
        let before = limit.standing(store, &["a"], START).await;
        let ahead = START.after(LONG);
        assert!(charge(store, &[limit.peek(&["a"], 3)], ahead).await.admitted, "{kind:?}");
        // Twice in one batch, and beside a charge that takes.
        assert!(charge(store, &[limit.peek(&["a"], 3), limit.peek(&["a"], 3)], ahead).await.admitted, "{kind:?}");
        let beside = [limit.peek(&["a"], 3), limit.peek(&["a"], 2), other.take(&[], 1)];
        assert!(charge(store, &beside, ahead).await.admitted, "{kind:?}");
        // Refused, some of it for good.
        assert!(!charge(store, &[limit.take(&["a"], 2), other.take(&[], 10)], ahead).await.admitted, "{kind:?}");
        assert_eq!(limit.standing(store, &["a"], START).await, before, "{kind:?}");
        assert!(!charge(store, &[limit.take(&["a"], 1)], START).await.admitted, "{kind:?}");
    }
}

/// What has expired is as never seen.
pub async fn what_has_expired_is_as_never_seen(store: &impl Store) {
    for kind in Kind::ALL {
        let limit = Known::new(0, &["k"], kind.rule(3));
        install(store, &[]);
        install(store, &[&limit]);
        assert!(charge(store, &[limit.take(&["a"], 3)], START).await.admitted);
        let later = START.after(LONG);
        let fresh = limit.standing(store, &["never seen"], later).await;
        assert_eq!(limit.standing(store, &["a"], later).await, fresh, "{kind:?}");
        let [seen, unseen] = [
            charge(store, &[limit.take(&["a"], 2)], later).await,
            charge(store, &[limit.take(&["never seen"], 2)], later).await,
        ];
        assert_eq!(seen, unseen, "{kind:?}");
    }
}
