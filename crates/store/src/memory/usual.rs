//! The usual batch, prepared: a few rates, each of another limit, whose states fit their cells, all of
//! which apply to every request that has their attributes.
//!
//! It is judged once, by what can be read without a lock, and the cells are then locked by comparing
//! them with what was judged. Whatever is not usual (a missing cell, one that changed meanwhile, a
//! table being replaced) is left to `batch`, which knows every case; nothing has been taken then.
//! This takes a quarter of the instructions that the general way takes for the same three limits.

use std::hash::{BuildHasher, Hasher};

use sdd::Guard;
use smallvec::SmallVec;
use tidegate_core::algorithm::{Algorithm, FixedWindow, FixedWindowState, TokenBucket, TokenBucketState};
use tidegate_core::{Cost, Counter, Mode, Standing, Timestamp, Verdict};

use super::bank::Bank;
use super::cells::{Cell, Hash};
use super::{Banks, MemoryStore};
use crate::charge::{Key, LimitId, Row};

/// More limits are not usual.
const LIMITS_MAX: usize = 4;
/// More attributes are not usual.
pub const ATTRIBUTES_MAX: usize = 8;

/// A usual batch, made ready for one store. Holds none of its counters.
#[derive(Debug)]
pub struct Usual {
    limits: SmallVec<[UsualLimit; LIMITS_MAX]>,
}

/// What a limit of a usual batch is made of.
#[derive(Clone, Copy, Debug)]
pub struct UsualPart<'a> {
    /// Its number.
    pub limit: LimitId,
    /// Its counting rule.
    pub algorithm: &'a Algorithm,
    /// Its mode.
    pub mode: Mode,
    /// Its attributes, as places in the values of a request.
    pub per: &'a [usize],
}

#[derive(Debug)]
struct UsualLimit {
    id: LimitId,
    rule: Packed,
    is_enforced: bool,
    key: UsualKey,
}

/// How a key's hash comes from those of a request's values.
#[derive(Debug)]
enum UsualKey {
    /// All requests have one counter.
    Shared(Hash),
    /// It is the hash of this value.
    Value(usize),
    /// Of these values together.
    Values(SmallVec<[usize; 4]>),
}

#[derive(Clone, Copy, Debug)]
enum Packed {
    Fixed(FixedWindow),
    Bucket(TokenBucket),
}

/// Where a limit's counter is.
#[derive(Clone, Copy)]
struct Found<'g> {
    bank: &'g Bank,
    hash: Hash,
    cell: Option<&'g Cell>,
}

/// What a limit's counter goes from and to.
#[derive(Clone, Copy)]
struct Step<'g> {
    cell: Option<&'g Cell>,
    /// The word that it was judged by.
    word: u64,
    /// The word that it has once the cost is taken.
    next: u64,
    now: Timestamp,
}

impl Usual {
    /// Prepares a batch of these limits, in this order; none if it is not a usual one.
    pub fn new(store: &MemoryStore, parts: &[UsualPart<'_>]) -> Option<Self> {
        // Strictly ascending limits are different counters, in the order of locks.
        let is_usual = (1..=LIMITS_MAX).contains(&parts.len())
            && parts.is_sorted_by(|a, b| a.limit < b.limit)
            && parts.iter().all(|part| part.per.iter().all(|place| *place < ATTRIBUTES_MAX));
        if !is_usual {
            return None;
        }
        let guard = Guard::new();
        let banks = store.banks(&guard);
        let limit = |part: &UsualPart<'_>| {
            let bank = banks.bank(part.limit).ok()?;
            let rule = match part.algorithm {
                Algorithm::FixedWindow(rule) => Packed::Fixed(*rule),
                Algorithm::TokenBucket(rule) => Packed::Bucket(*rule),
                _ => return None,
            };
            let key = match part.per {
                [] => UsualKey::Shared(store.hash(&Key::default())),
                [place] => UsualKey::Value(*place),
                places => UsualKey::Values(SmallVec::from_slice(places)),
            };
            let is_usual = !bank.is_named() && bank.is_layout_of(part.algorithm);
            is_usual.then(|| UsualLimit { id: part.limit, rule, is_enforced: part.mode == Mode::Enforce, key })
        };
        Some(Self { limits: parts.iter().map(limit).collect::<Option<_>>()? })
    }

    /// Decides a request with these values of the attributes (none if it lacks one), and a cost above
    /// 0. Adds a row for each limit and returns whether the request is admitted; none if it has to be
    /// decided the general way.
    pub fn charge<'v>(
        &self,
        store: &MemoryStore,
        values: impl Iterator<Item = Option<&'v str>>,
        cost: Cost,
        now: Timestamp,
        rows: &mut SmallVec<[Row; LIMITS_MAX]>,
    ) -> Option<bool> {
        let mut hashes = [0; ATTRIBUTES_MAX];
        for (hash, value) in hashes.iter_mut().zip(values) {
            *hash = store.hash_value(value?);
        }
        let guard = Guard::new();
        let banks = store.banks(&guard);
        // All are searched before the first is looked into: what is not in the caches comes meanwhile.
        let mut found = [const { None }; LIMITS_MAX];
        for (limit, found) in self.limits.iter().zip(&mut found) {
            *found = Some(limit.find(store, banks, &hashes, &guard)?);
        }
        let mut steps = [const { None }; LIMITS_MAX];
        let mut is_refused = false;
        for ((limit, found), step) in self.limits.iter().zip(&found).zip(&mut steps) {
            let (judged, row) = limit.judge(found.as_ref()?, cost, now)?;
            *step = Some(judged);
            is_refused |= limit.is_enforced && !row.verdict.admits();
            rows.push(row);
        }
        let steps = &steps[..self.limits.len()];
        if is_refused {
            // Nothing is taken from those that admit it.
            for ((limit, step), row) in self.limits.iter().zip(steps).zip(rows) {
                if let (Some(step), Verdict::Admit) = (step, row.verdict) {
                    row.standing = limit.rule.standing(step.word, step.now);
                }
            }
            return Some(false);
        }
        take_all(steps).then_some(true)
    }
}

/// Takes every step, or none if a counter has changed since it was judged: all but the last are locked
/// one after the other, and let go once the last has changed.
fn take_all(steps: &[Option<Step<'_>>]) -> bool {
    let [Some(Step { cell: Some(cell), word, next, .. }), rest @ ..] = steps else { return false };
    if rest.is_empty() {
        return cell.set_if(*word, *next);
    }
    let Some(mut held) = cell.lock_if(*word) else { return false };
    let taken = take_all(rest);
    if taken {
        held.set(*next);
    }
    taken
}

impl UsualLimit {
    #[inline]
    fn find<'g>(
        &self,
        store: &MemoryStore,
        banks: &'g Banks,
        hashes: &[u64; ATTRIBUTES_MAX],
        guard: &'g Guard,
    ) -> Option<Found<'g>> {
        let bank = banks.bank(self.id).ok()?;
        let hash = self.hash(store, hashes);
        Some(Found { bank, hash, cell: bank.find_unnamed(hash, guard).ok()? })
    }

    /// The same as [`MemoryStore::hash`] of the key.
    #[inline]
    fn hash(&self, store: &MemoryStore, hashes: &[u64; ATTRIBUTES_MAX]) -> Hash {
        match &self.key {
            UsualKey::Shared(hash) => *hash,
            UsualKey::Value(place) => Hash::new(hashes[*place]),
            UsualKey::Values(places) => {
                let mut hasher = store.hasher.build_hasher();
                for place in places {
                    hasher.write_u64(hashes[*place]);
                }
                Hash::new(hasher.finish())
            }
        }
    }

    #[inline]
    fn judge<'g>(&self, found: &Found<'g>, cost: Cost, now: Timestamp) -> Option<(Step<'g>, Row)> {
        let Found { bank, hash, cell } = *found;
        let (word, is_held) = match cell {
            Some(cell) => cell.look().ok()?,
            None => (0, false),
        };
        let now = now.max(bank.floor(hash));
        let (verdict, next, standing) = self.rule.take(word, cost, now);
        if is_held && !verdict.admits() {
            // A state that somebody is about to replace refuses nobody: see `Cell::look`.
            return None;
        }
        Some((Step { cell, word, next, now }, Row { verdict, standing, at_cap: false }))
    }
}

impl Packed {
    /// Takes a cost if it is admitted: the verdict, the word then, and how the limit stands.
    #[inline]
    fn take(&self, word: u64, cost: Cost, now: Timestamp) -> (Verdict, u64, Standing) {
        let (verdict, taken, standing) = match self {
            Self::Fixed(rule) => {
                let (verdict, state, standing) = take(rule, FixedWindowState::unpack(word), cost, now);
                (verdict, state.pack(), standing)
            }
            Self::Bucket(rule) => {
                let (verdict, state, standing) = take(rule, TokenBucketState::unpack(word), cost, now);
                (verdict, state.pack(), standing)
            }
        };
        (verdict, if verdict.admits() { taken } else { word }, standing)
    }

    /// How the limit stands by a word.
    fn standing(&self, word: u64, now: Timestamp) -> Standing {
        match self {
            Self::Fixed(rule) => standing(rule, FixedWindowState::unpack(word), now),
            Self::Bucket(rule) => standing(rule, TokenBucketState::unpack(word), now),
        }
    }
}

#[inline]
fn take<A: Counter>(rule: &A, mut state: A::State, cost: Cost, now: Timestamp) -> (Verdict, A::State, Standing) {
    let now = rule.advance(&mut state, now);
    let verdict = rule.check(&state, cost, now);
    if verdict.admits() {
        rule.take(&mut state, cost, now);
    }
    let standing = rule.standing(&state, now);
    (verdict, state, standing)
}

#[inline]
fn standing<A: Counter>(rule: &A, mut state: A::State, now: Timestamp) -> Standing {
    let now = rule.advance(&mut state, now);
    rule.standing(&state, now)
}
