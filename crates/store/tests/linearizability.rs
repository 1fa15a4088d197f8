//! Recorded runs of a few threads on a few counters: some order of the operations, one after the
//! other, explains every answer. Stores that check first and take later, or charge level by level,
//! are found out by the same runs.

mod prepared;

use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use prepared::Prepared;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use tidegate_conformance::history::{Answer, Asked, Call, Operation};
use tidegate_conformance::limits::{Kind, Known, START};
use tidegate_conformance::{History, Recorder, Reference};
use tidegate_core::{Limit, Mode, Span};
use tidegate_store::memory::interruption;
use tidegate_store::{
    At, Batch, Charge, CounterPage, Key, LimitId, MemorySettings, MemoryStore, Op, PageQuery, Store, StoreError,
    StoreStats,
};

/// `TIDEGATE_SOAK` times as many.
fn soak() -> usize {
    std::env::var("TIDEGATE_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

/// The limits of one round: one or two counters each.
#[derive(Clone, Debug)]
struct Round {
    limits: Vec<Known>,
    /// What each thread asks.
    calls: Vec<Vec<Call>>,
    /// Whether time moves, by steps around a window's end. Without upkeep then: a clock held back by
    /// what upkeep forgot is none of the reference's business.
    moves: bool,
}

const THREADS: usize = 3;
const KEYS: [&str; 2] = ["a", "b"];

fn rounds(kinds: &[Kind], count: usize) -> Vec<Round> {
    let mut runner = TestRunner::default();
    let round = round(kinds);
    (0..count).filter_map(|_| round.new_tree(&mut runner).ok()).map(|tree| tree.current()).collect()
}

fn round(kinds: &[Kind]) -> impl Strategy<Value = Round> + use<> {
    let kind = proptest::sample::select(kinds.to_vec());
    let limit = (kind, 1..5_u64);
    (proptest::collection::vec(limit, 2..4), any::<bool>(), any::<bool>()).prop_flat_map(|(kinds, many_keys, moves)| {
        let limits: Vec<Known> =
            (0_u32..).zip(&kinds).map(|(id, (kind, capacity))| Known::new(id, &[], kind.rule(*capacity))).collect();
        let keys = if many_keys { KEYS.len() } else { 1 };
        let call = call(limits.clone(), keys, moves);
        let calls = proptest::collection::vec(proptest::collection::vec(call, 2..6), THREADS);
        calls.prop_map(move |calls| Round { limits: limits.clone(), calls, moves })
    })
}

fn call(limits: Vec<Known>, keys: usize, moves: bool) -> impl Strategy<Value = Call> {
    let count = limits.len();
    let asked = (0..count, 0..keys, 1..3_u64, 0..8, 0..6).prop_map({
        let limits = limits.clone();
        move |(limit, key, units, permissive, peek)| Asked {
            limit: limits[limit].id,
            key: KEYS[key].to_owned(),
            algorithm: limits[limit].limit.algorithm.clone(),
            units,
            mode: if permissive == 0 { Mode::Permissive } else { Mode::Enforce },
            op: if peek == 0 { Op::Peek } else { Op::Take },
        }
    });
    // Mostly one charge of each limit, as a request has them; some batches with twins.
    let hierarchy = (proptest::collection::vec(0..keys, count), 1..3_u64, any::<bool>()).prop_map({
        let limits = limits.clone();
        move |(keys, units, peek)| {
            let asked = limits.iter().zip(keys).map(|(known, key)| Asked {
                limit: known.id,
                key: KEYS[key].to_owned(),
                algorithm: known.limit.algorithm.clone(),
                units,
                mode: Mode::Enforce,
                op: if peek && units == 1 { Op::Peek } else { Op::Take },
            });
            asked.collect::<Vec<_>>()
        }
    });
    let batch = prop_oneof![3 => hierarchy, 2 => proptest::collection::vec(asked, 1..4)];
    let time = move |step: u64| START.after(Span::from_secs(50 + if moves { step * 5 } else { 0 }));
    prop_oneof![
        9 => (batch, 0..4_u64).prop_map(move |(batch, step)| Call::Charge(batch, time(step))),
        1 => (0..count, 0..keys, 0..4_u64).prop_map(move |(limit, key, step)| {
            Call::Reset(limits[limit].id, KEYS[key].to_owned(), time(step))
        }),
    ]
}

/// Runs each round with its threads at once, on the store that `wrap` makes of a memory store.
fn record<S: Store>(rounds: &[Round], wrap: impl Fn(MemoryStore) -> S, upkeep: impl Fn(&S) + Sync) -> Vec<History> {
    let stores: Vec<S> = rounds
        .iter()
        .map(|round| {
            let store = MemoryStore::new(MemorySettings::default());
            store.install(&installed(round));
            wrap(store)
        })
        .collect();
    let recorders: Vec<Recorder<'_, S>> = stores.iter().map(Recorder::new).collect();
    let arrived: Vec<AtomicUsize> = rounds.iter().map(|_| AtomicUsize::new(0)).collect();
    let broken = AtomicBool::new(false);
    thread::scope(|scope| {
        for at in 0..THREADS {
            let (stores, recorders, arrived, upkeep) = (&stores, &recorders, &arrived, &upkeep);
            let broken = &broken;
            scope.spawn(move || {
                let _says = SaysIfItPanics(broken);
                for (nth, round) in rounds.iter().enumerate() {
                    let calls = round.calls[at].clone();
                    meet(&arrived[nth], broken);
                    if at == 0 && !round.moves {
                        upkeep(&stores[nth]);
                    }
                    recorders[nth].run(calls);
                }
            });
        }
    });
    recorders.into_iter().map(Recorder::into_history).collect()
}

/// Tells the other threads not to wait for one that panicked.
struct SaysIfItPanics<'a>(&'a AtomicBool);

impl Drop for SaysIfItPanics<'_> {
    fn drop(&mut self) {
        self.0.fetch_or(thread::panicking(), Ordering::SeqCst);
    }
}

/// Waits, without sleeping, until all threads are here or one is broken.
fn meet(arrived: &AtomicUsize, broken: &AtomicBool) {
    arrived.fetch_add(1, Ordering::SeqCst);
    let mut turns = 0_u32;
    while arrived.load(Ordering::SeqCst) < THREADS && !broken.load(Ordering::SeqCst) {
        turns += 1;
        if turns.is_multiple_of(64) { thread::yield_now() } else { spin_loop() }
    }
}

fn installed(round: &Round) -> Vec<(LimitId, Arc<Limit>)> {
    round.limits.iter().map(|known| (known.id, Arc::clone(&known.limit))).collect()
}

fn before(round: &Round) -> Reference {
    let mut reference = Reference::default();
    reference.install(&installed(round));
    reference
}

#[test]
fn the_memory_store_is_linearizable() {
    is_linearizable(&Kind::ALL, |store| store, |store, now| store.tidy(now));
}

#[test]
fn prepared_batches_are_linearizable() {
    let kinds = [Kind::FixedWindow, Kind::TokenBucket];
    is_linearizable(&kinds, Prepared::new, |store, now| store.store.tidy(now));
}

fn is_linearizable<S: Store>(
    kinds: &[Kind],
    wrap: impl Fn(MemoryStore) -> S,
    tidy: impl Fn(&S, tidegate_core::Timestamp) + Sync,
) {
    interruption::often(4);
    let now = START.after(Span::from_secs(50));
    // Until there were histories enough in which operations overlap: others say little.
    let enough = 2_000 * soak();
    let mut overlapping = 0;
    for _ in 0..400 * soak() {
        if overlapping >= enough {
            break;
        }
        let rounds = rounds(kinds, 50);
        let histories = record(&rounds, &wrap, |store| tidy(store, now));
        for (round, history) in rounds.iter().zip(&histories) {
            assert!(history.explanation(&before(round)).is_some(), "no order explains:{history}");
            overlapping += usize::from(has_overlap(history));
        }
    }
    assert!(overlapping >= enough, "only {overlapping} histories in which operations overlap");
}

fn has_overlap(history: &History) -> bool {
    let operations = &history.operations;
    operations.iter().any(|one| operations.iter().any(|two| one.called < two.called && two.called < one.returned))
}

/// A test of the test: a store that checks first and takes later.
#[test]
fn a_store_that_checks_then_takes_is_found_out() {
    assert!(is_found_out(|store| Broken { store, fault: Fault::ChecksThenTakes }));
}

/// A test of the test: a store that charges one limit after the other and stops at a refusal.
#[test]
fn a_store_that_charges_level_by_level_is_found_out() {
    assert!(is_found_out(|store| Broken { store, fault: Fault::LevelByLevel }));
}

/// Whether some history of such a store has no explanation.
fn is_found_out<S: Store>(wrap: impl Fn(MemoryStore) -> S) -> bool {
    (0..20).any(|_| {
        let rounds = rounds(&Kind::ALL, 100);
        let histories = record(&rounds, &wrap, |_| ());
        rounds.iter().zip(&histories).any(|(round, history)| history.explanation(&before(round)).is_none())
    })
}

/// Charges as other limiters do.
struct Broken {
    store: MemoryStore,
    fault: Fault,
}

#[derive(Clone, Copy)]
enum Fault {
    ChecksThenTakes,
    LevelByLevel,
}

impl Store for Broken {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        self.store.install(limits);
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        let now = at.local();
        match self.fault {
            Fault::ChecksThenTakes => {
                let peeks: Vec<_> = batch.iter().map(|charge| Charge { op: Op::Peek, ..charge.clone() }).collect();
                let checked = self.store.charge_now(&peeks, now)?;
                if checked.admitted {
                    thread::yield_now();
                    for charge in batch {
                        self.store.charge_now(std::slice::from_ref(charge), now)?;
                    }
                }
                Ok(checked)
            }
            Fault::LevelByLevel => {
                let mut whole = Batch { admitted: true, rows: Default::default(), at: now };
                for charge in batch {
                    let one = self.store.charge_now(std::slice::from_ref(charge), now)?;
                    whole.admitted &= one.admitted;
                    whole.rows.extend(one.rows);
                    if !one.admitted {
                        break;
                    }
                }
                Ok(whole)
            }
        }
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        self.store.reset(limit, key, at).await
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        self.store.page(query, at).await
    }

    fn stats(&self) -> StoreStats {
        self.store.stats()
    }
}

/// The checker itself, on histories made by hand: a counter with room for one.
#[test]
fn the_checker_tells_right_from_wrong() {
    let limit = Known::new(0, &[], Kind::FixedWindow.rule(1));
    let mut fresh = Reference::default();
    fresh.install(&[(limit.id, Arc::clone(&limit.limit))]);
    let asked = |op| {
        let algorithm = limit.limit.algorithm.clone();
        vec![Asked { limit: limit.id, key: "a".to_owned(), algorithm, units: 1, mode: Mode::Enforce, op }]
    };
    // What a store answers that has already taken `taken`.
    let operation = |op, taken: bool, called, returned| {
        let mut reference = fresh.clone();
        let charge = |reference: &mut Reference, op| {
            let charge = Charge { op, ..limit.take(&["a"], 1) };
            reference.charge(&[charge], START).unwrap()
        };
        if taken {
            charge(&mut reference, Op::Take);
        }
        let answer = Answer::Charged(Box::new(charge(&mut reference, op)));
        Operation { call: Call::Charge(asked(op), START), answer, called, returned }
    };
    let explained = |operations: Vec<Operation>| History { operations }.explanation(&fresh);

    let [first, second] = [operation(Op::Take, false, 0, 1), operation(Op::Take, true, 2, 3)];
    assert_eq!(explained(vec![second, first.clone()]), Some(vec![1, 0]));
    assert_eq!(explained(vec![first.clone(), operation(Op::Take, false, 2, 3)]), None, "two passed");
    assert_eq!(explained(vec![operation(Op::Take, true, 0, 1), operation(Op::Take, false, 2, 3)]), None);
    let early = operation(Op::Take, true, 0, 4);
    assert_eq!(explained(vec![early, operation(Op::Take, false, 2, 3)]), Some(vec![1, 0]), "they overlap");
    let stale = operation(Op::Peek, false, 2, 3);
    assert_eq!(explained(vec![first, stale]), None, "a peek after the take saw nothing of it");
    let during = operation(Op::Peek, false, 1, 3);
    let slow = operation(Op::Take, false, 0, 2);
    assert_eq!(explained(vec![slow, during]), Some(vec![1, 0]));
    assert_eq!(explained(Vec::new()), Some(Vec::new()));
}
