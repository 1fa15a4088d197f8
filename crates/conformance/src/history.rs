//! Concurrent runs, recorded, and whether one order of their operations explains every outcome:
//! linearizability, checked by the search of Wing and Gong ("Testing and verifying concurrent
//! objects", 1993), against the [`Reference`].
//!
//! An operation may take its place anywhere between its call and its return. The search tries, at
//! each point, every operation that was called before the earliest return among those still open;
//! points with equal open operations and equal counters are visited once.

use std::collections::HashSet;
use std::fmt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_core::{Algorithm, Cost, Mode, Timestamp};
use tidegate_store::{At, Batch, Charge, Key, LimitId, Op, Store};

use crate::limits::{START, block_on};
use crate::reference::Reference;

/// The most operations that a history may have: one bit each.
pub const OPERATIONS_MAX: usize = 64;

/// What was asked.
#[derive(Clone, Debug)]
pub enum Call {
    /// A batch.
    Charge(Vec<Asked>, Timestamp),
    /// A reset.
    Reset(LimitId, String, Timestamp),
}

/// One charge of a batch.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The limit.
    pub limit: LimitId,
    /// Whose counter.
    pub key: String,
    /// The rule.
    pub algorithm: Algorithm,
    /// How much.
    pub units: u64,
    /// Whether a refusal vetoes.
    pub mode: Mode,
    /// Whether it is taken.
    pub op: Op,
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a batch.
    Charged(Box<Batch>),
    /// To a reset.
    Reset(bool),
}

/// One operation: called and returned at these ticks of a clock that all threads share.
#[derive(Clone, Debug)]
pub struct Operation {
    /// What was asked.
    pub call: Call,
    /// What was answered.
    pub answer: Answer,
    /// The tick before the call.
    pub called: u64,
    /// The tick after the return.
    pub returned: u64,
}

/// Operations of several threads.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In no particular order.
    pub operations: Vec<Operation>,
}

/// Records what threads ask of a store.
#[derive(Debug)]
pub struct Recorder<'s, S> {
    store: &'s S,
    clock: AtomicU64,
    operations: Mutex<Vec<Operation>>,
}

impl<'s, S: Store> Recorder<'s, S> {
    /// A recorder with nothing recorded.
    pub const fn new(store: &'s S) -> Self {
        Self { store, clock: AtomicU64::new(0), operations: Mutex::new(Vec::new()) }
    }

    /// Asks the store each of these, one after the other, and records them.
    pub fn run(&self, calls: Vec<Call>) {
        let mut own = Vec::with_capacity(calls.len());
        for call in calls {
            let called = self.clock.fetch_add(1, Ordering::SeqCst);
            let answer = call.ask(self.store);
            let returned = self.clock.fetch_add(1, Ordering::SeqCst);
            own.push(Operation { call, answer, called, returned });
        }
        self.operations.lock().unwrap().extend(own);
    }

    /// What was recorded.
    pub fn into_history(self) -> History {
        History { operations: self.operations.into_inner().unwrap() }
    }
}

impl Call {
    /// Asks a store.
    pub fn ask(&self, store: &impl Store) -> Answer {
        match self {
            Self::Charge(asked, now) => {
                let batch: Vec<Charge<'_>> = asked.iter().map(Asked::charge).collect();
                Answer::Charged(Box::new(block_on(store.charge(&batch, At::Given(*now))).unwrap()))
            }
            Self::Reset(limit, key, now) => {
                Answer::Reset(block_on(store.reset(*limit, &Key::of(&[key]), At::Given(*now))).unwrap())
            }
        }
    }

    /// Asks the reference.
    fn ask_reference(&self, reference: &mut Reference) -> Answer {
        match self {
            Self::Charge(asked, now) => {
                let batch: Vec<Charge<'_>> = asked.iter().map(Asked::charge).collect();
                Answer::Charged(Box::new(reference.charge(&batch, *now).unwrap()))
            }
            Self::Reset(limit, key, now) => Answer::Reset(reference.reset(*limit, &Key::of(&[key]), *now).unwrap()),
        }
    }
}

impl Asked {
    fn charge(&self) -> Charge<'_> {
        Charge {
            limit: self.limit,
            key: Key::of(&[&self.key]),
            algorithm: &self.algorithm,
            cost: Cost::new(self.units),
            mode: self.mode,
            op: self.op,
        }
    }
}

impl Answer {
    /// Whether this is what the reference answers. Of a refusal only that: it is the refusing limit's
    /// word, and the other limits' figures in it are no snapshot.
    fn is_explained_by(&self, reference: &Self) -> bool {
        match (self, reference) {
            (Self::Charged(own), Self::Charged(other)) if !own.admitted => !other.admitted,
            _ => self == reference,
        }
    }
}

impl fmt::Display for History {
    /// A line an operation, in the order of the calls.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all: Vec<&Operation> = self.operations.iter().collect();
        all.sort_by_key(|operation| operation.called);
        for Operation { call, answer, called, returned } in all {
            write!(f, "\n{called:>3}-{returned:<3}")?;
            match call {
                Call::Charge(asked, now) => {
                    write!(f, " at +{}", now.since(START))?;
                    for Asked { limit, key, algorithm, units, mode, op } in asked {
                        let (name, most) = (algorithm.name(), algorithm.capacity());
                        write!(f, "; {op:?} {units} of {name}({most}) {}/{key}, {mode}", limit.0)?;
                    }
                }
                Call::Reset(limit, key, now) => write!(f, " at +{}; reset {}/{key}", now.since(START), limit.0)?,
            }
            match answer {
                Answer::Charged(batch) => {
                    write!(f, " -> {}", if batch.admitted { "admitted" } else { "refused" })?;
                    for row in &batch.rows {
                        write!(
                            f,
                            "; {:?}, {} left, reset {}",
                            row.verdict, row.standing.remaining, row.standing.reset
                        )?;
                    }
                }
                Answer::Reset(was) => write!(f, " -> {was}")?,
            }
        }
        Ok(())
    }
}

impl History {
    /// Whether some order of the operations, each between its call and its return, explains every
    /// answer, from the state `from` on. Returns the order by place in [`operations`](Self::operations).
    pub fn explanation(&self, from: &Reference) -> Option<Vec<usize>> {
        assert!(self.operations.len() <= OPERATIONS_MAX, "a history has at most {OPERATIONS_MAX} operations");
        let open = u64::MAX.checked_shr(64 - self.operations.len() as u32).unwrap_or(0);
        let mut order = Vec::new();
        let mut dead_ends = HashSet::new();
        self.search(open, from, &mut order, &mut dead_ends).then_some(order)
    }

    fn search(
        &self,
        open: u64,
        state: &Reference,
        order: &mut Vec<usize>,
        dead_ends: &mut HashSet<(u64, String)>,
    ) -> bool {
        if open == 0 {
            return true;
        }
        let point = (open, format!("{:?}", state.counters()));
        if dead_ends.contains(&point) {
            return false;
        }
        let is_open = |at: &usize| open & 1 << at != 0;
        let all = 0..self.operations.len();
        let first_return = all.clone().filter(is_open).map(|at| self.operations[at].returned).min();
        for at in all.filter(is_open) {
            let operation = &self.operations[at];
            if first_return.is_some_and(|first| operation.called > first) {
                continue;
            }
            let mut after = state.clone();
            if !operation.answer.is_explained_by(&operation.call.ask_reference(&mut after)) {
                continue;
            }
            order.push(at);
            if self.search(open & !(1 << at), &after, order, dead_ends) {
                return true;
            }
            order.pop();
        }
        dead_ends.insert(point);
        false
    }
}
