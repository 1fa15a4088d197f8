//! The plainest store there can be: the counting rules of core over one map, one batch at a time.
//! It keeps everything for ever, so it shows what a store must answer that forgets and shares.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_core::algorithm::{
    CalendarState, FixedWindowState, SlidingCounterState, SlidingWindowState, TokenBucketState,
};
use tidegate_core::{Algorithm, Cost, Counter, Limit, Mode, Standing, Timestamp, Verdict};
use tidegate_store::{
    At, Batch, Charge, Counted, CounterPage, Key, LimitId, Op, PageQuery, Row, Store, StoreError, StoreStats,
};

/// Counters in a map.
#[derive(Clone, Debug, Default)]
pub struct Reference {
    limits: BTreeMap<LimitId, Algorithm>,
    counters: BTreeMap<Name, State>,
}

/// A counter's limit and key.
pub type Name = (LimitId, Vec<String>);

/// The state of one counter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// `fixed_window`.
    Fixed(FixedWindowState),
    /// `token_bucket`.
    Bucket(TokenBucketState),
    /// `sliding_counter`.
    Counter(SlidingCounterState),
    /// A civil period.
    Calendar(CalendarState),
    /// `sliding_window`.
    Log(SlidingWindowState),
}

impl Reference {
    /// Makes these limits known, and forgets the counters of all others.
    pub fn install(&mut self, limits: &[(LimitId, Arc<Limit>)]) {
        let old = std::mem::take(&mut self.limits);
        self.limits = limits.iter().map(|(id, limit)| (*id, limit.algorithm.clone())).collect();
        let is_kept = |id: &LimitId| self.limits.get(id).map(Algorithm::layout) == old.get(id).map(Algorithm::layout);
        self.counters.retain(|(id, _), _| is_kept(id));
    }

    /// Applies every charge or none.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`] and [`StoreError::WrongLayout`].
    pub fn charge(&mut self, batch: &[Charge<'_>], now: Timestamp) -> Result<Batch, StoreError> {
        for charge in batch {
            let own = self.limits.get(&charge.limit).ok_or(StoreError::UnknownLimit(charge.limit))?;
            if own.layout() != charge.algorithm.layout() {
                return Err(StoreError::WrongLayout(charge.limit));
            }
        }
        let mut after = BTreeMap::new();
        let mut taken = BTreeMap::new();
        let mut wanted = BTreeMap::<Name, u64>::new();
        let mut rows = Vec::new();
        for charge in batch {
            let name = name_of(charge.limit, &charge.key);
            let state = after.entry(name.clone()).or_insert_with(|| self.state(&name, charge.algorithm));
            let now = state.advance(charge.algorithm, now);
            let mut verdict = state.check(charge.algorithm, charge.cost, now);
            if charge.op == Op::Take && charge.mode == Mode::Enforce {
                let wanted = wanted.entry(name.clone()).or_default();
                *wanted = wanted.saturating_add(charge.cost.units());
                if matches!(verdict, Verdict::Wait(_)) && *wanted > charge.algorithm.capacity() {
                    verdict = Verdict::Never;
                }
            }
            if charge.op == Op::Take && charge.cost > Cost::ZERO && verdict.admits() {
                state.take(charge.algorithm, charge.cost, now);
                taken.insert(name, state.clone());
            }
            rows.push(Row { verdict, standing: state.standing(charge.algorithm, now), at_cap: false });
        }
        let admitted =
            batch.iter().zip(&rows).all(|(charge, row)| charge.mode != Mode::Enforce || row.verdict.admits());
        if admitted {
            self.counters.extend(taken);
        } else {
            for (charge, row) in batch.iter().zip(&mut rows) {
                let mut state = self.state(&name_of(charge.limit, &charge.key), charge.algorithm);
                let now = state.advance(charge.algorithm, now);
                row.standing = state.standing(charge.algorithm, now);
            }
        }
        Ok(Batch { admitted, rows: rows.into(), at: now })
    }

    /// Forgets one counter; whether there was one.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`].
    pub fn reset(&mut self, limit: LimitId, key: &Key<'_>, now: Timestamp) -> Result<bool, StoreError> {
        let algorithm = self.limits.get(&limit).ok_or(StoreError::UnknownLimit(limit))?;
        let state = self.counters.remove(&name_of(limit, key));
        Ok(state.is_some_and(|state| state.expires_at(algorithm) > now))
    }

    /// The live counters of one limit.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`].
    pub fn list(&self, limit: LimitId, algorithm: &Algorithm, now: Timestamp) -> Result<Vec<Counted>, StoreError> {
        if !self.limits.contains_key(&limit) {
            return Err(StoreError::UnknownLimit(limit));
        }
        let own = self.counters.iter().filter(|((id, _), state)| *id == limit && state.expires_at(algorithm) > now);
        Ok(own
            .map(|((_, values), state)| {
                let mut state = state.clone();
                let now = state.advance(algorithm, now);
                Counted { values: values.clone(), standing: state.standing(algorithm, now) }
            })
            .collect())
    }

    /// The state of a counter, fresh if it was never taken from.
    pub fn state(&self, name: &Name, algorithm: &Algorithm) -> State {
        self.counters.get(name).cloned().unwrap_or_else(|| State::fresh(algorithm))
    }

    /// Every counter that was ever taken from.
    pub const fn counters(&self) -> &BTreeMap<Name, State> {
        &self.counters
    }
}

/// The name of a counter.
pub fn name_of(limit: LimitId, key: &Key<'_>) -> Name {
    (limit, key.values.iter().map(|value| (*value).to_owned()).collect())
}

impl State {
    /// Of a key never seen.
    pub fn fresh(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(_) => Self::Fixed(FixedWindowState::default()),
            Algorithm::TokenBucket(_) => Self::Bucket(TokenBucketState::default()),
            Algorithm::SlidingCounter(_) => Self::Counter(SlidingCounterState::default()),
            Algorithm::Calendar(_) => Self::Calendar(CalendarState::default()),
            Algorithm::SlidingWindow(_) => Self::Log(SlidingWindowState::default()),
        }
    }

    /// [`Counter::advance`].
    pub fn advance(&mut self, algorithm: &Algorithm, now: Timestamp) -> Timestamp {
        match (self, algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(rule)) => rule.advance(state, now),
            (Self::Bucket(state), Algorithm::TokenBucket(rule)) => rule.advance(state, now),
            (Self::Counter(state), Algorithm::SlidingCounter(rule)) => rule.advance(state, now),
            (Self::Calendar(state), Algorithm::Calendar(rule)) => rule.advance(state, now),
            (Self::Log(state), Algorithm::SlidingWindow(rule)) => rule.advance(state, now),
            (state, rule) => panic!("{rule:?} does not read {state:?}"),
        }
    }

    /// [`Counter::check`].
    pub fn check(&self, algorithm: &Algorithm, cost: Cost, now: Timestamp) -> Verdict {
        match (self, algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(rule)) => rule.check(state, cost, now),
            (Self::Bucket(state), Algorithm::TokenBucket(rule)) => rule.check(state, cost, now),
            (Self::Counter(state), Algorithm::SlidingCounter(rule)) => rule.check(state, cost, now),
            (Self::Calendar(state), Algorithm::Calendar(rule)) => rule.check(state, cost, now),
            (Self::Log(state), Algorithm::SlidingWindow(rule)) => rule.check(state, cost, now),
            (state, rule) => panic!("{rule:?} does not read {state:?}"),
        }
    }

    /// [`Counter::take`].
    pub fn take(&mut self, algorithm: &Algorithm, cost: Cost, now: Timestamp) {
        match (self, algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(rule)) => rule.take(state, cost, now),
            (Self::Bucket(state), Algorithm::TokenBucket(rule)) => rule.take(state, cost, now),
            (Self::Counter(state), Algorithm::SlidingCounter(rule)) => rule.take(state, cost, now),
            (Self::Calendar(state), Algorithm::Calendar(rule)) => rule.take(state, cost, now),
            (Self::Log(state), Algorithm::SlidingWindow(rule)) => rule.take(state, cost, now),
            (state, rule) => panic!("{rule:?} does not read {state:?}"),
        }
    }

    /// [`Counter::standing`].
    pub fn standing(&self, algorithm: &Algorithm, now: Timestamp) -> Standing {
        match (self, algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(rule)) => rule.standing(state, now),
            (Self::Bucket(state), Algorithm::TokenBucket(rule)) => rule.standing(state, now),
            (Self::Counter(state), Algorithm::SlidingCounter(rule)) => rule.standing(state, now),
            (Self::Calendar(state), Algorithm::Calendar(rule)) => rule.standing(state, now),
            (Self::Log(state), Algorithm::SlidingWindow(rule)) => rule.standing(state, now),
            (state, rule) => panic!("{rule:?} does not read {state:?}"),
        }
    }

    /// [`Counter::expires_at`].
    pub fn expires_at(&self, algorithm: &Algorithm) -> Timestamp {
        match (self, algorithm) {
            (Self::Fixed(state), Algorithm::FixedWindow(rule)) => rule.expires_at(state),
            (Self::Bucket(state), Algorithm::TokenBucket(rule)) => rule.expires_at(state),
            (Self::Counter(state), Algorithm::SlidingCounter(rule)) => rule.expires_at(state),
            (Self::Calendar(state), Algorithm::Calendar(rule)) => rule.expires_at(state),
            (Self::Log(state), Algorithm::SlidingWindow(rule)) => rule.expires_at(state),
            (state, rule) => panic!("{rule:?} does not read {state:?}"),
        }
    }
}

/// The reference behind one lock, as a store.
#[derive(Debug, Default)]
pub struct ReferenceStore(Mutex<Reference>);

impl ReferenceStore {
    fn lock(&self) -> MutexGuard<'_, Reference> {
        self.0.lock().unwrap()
    }
}

impl Store for ReferenceStore {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        self.lock().install(limits);
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        self.lock().charge(batch, at.local())
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        self.lock().reset(limit, key, at.local())
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        let all = self.lock().list(query.limit, query.algorithm, at.local())?;
        // The cursor is the last key, so what is inserted before it is not listed and shifts nothing.
        let is_behind = |counted: &Counted| query.after.is_none_or(|after| cursor(&counted.values).as_str() > after);
        let mut rest = all.into_iter().filter(is_behind).collect::<Vec<_>>();
        rest.sort_by_key(|counted| cursor(&counted.values));
        let more = rest.len() > query.items_max;
        rest.truncate(query.items_max);
        let next = rest.last().filter(|_| more).map(|last| cursor(&last.values));
        Ok(CounterPage { counters: rest, next })
    }

    fn stats(&self) -> StoreStats {
        StoreStats { keys: self.lock().counters.len() as u64, ..StoreStats::default() }
    }
}

fn cursor(values: &[String]) -> String {
    format!("{values:?}")
}
