//! The usual batch, prepared: a few rates, each of another limit, whose states fit their cells, all of
//! which apply to every request that has their attributes.
//!
//! It is judged once, by what can be read without a lock, and the cells are then locked by comparing
//! them with what was judged. Whatever is not usual (a missing cell, one that changed meanwhile, a
//! table being replaced) is left to `batch`, which knows every case; nothing has been taken then.
//! This takes a quarter of the instructions that the general way takes for the same three limits.

use std::hash::{BuildHasher, Hasher};
use std::sync::Arc;

use sdd::Guard;
use smallvec::SmallVec;
use tidegate_core::algorithm::{Algorithm, FixedWindow, FixedWindowState, TokenBucket, TokenBucketState};
use tidegate_core::{Cost, Counter, Mode, Standing, Timestamp, Verdict};

use super::MemoryStore;
use super::bank::{Bank, Spot};
use super::cells::{Cell, Hash};
use crate::charge::{Batch, LimitId, Row};

/// More limits are not usual.
const LIMITS_MAX: usize = 4;
/// More attributes are not usual.
pub const ATTRIBUTES_MAX: usize = 8;

/// A usual batch, made ready for one store.
#[derive(Debug)]
pub struct Usual {
    limits: Vec<UsualLimit>,
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
    bank: Arc<Bank>,
    rule: Packed,
    is_enforced: bool,
    per: SmallVec<[usize; 4]>,
}

#[derive(Clone, Copy, Debug)]
enum Packed {
    Fixed(FixedWindow),
    Bucket(TokenBucket),
}

/// One limit, judged.
#[derive(Clone, Copy)]
struct Look<'g> {
    cell: Option<&'g Cell>,
    verdict: Verdict,
    /// The cell's word that it was judged by.
    word: u64,
    /// The word that the cell has once the cost is taken.
    next: u64,
    now: Timestamp,
}

impl Look<'_> {
    const NONE: Self = Self { cell: None, verdict: Verdict::Admit, word: 0, next: 0, now: Timestamp::EPOCH };
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
            let bank = Arc::clone(banks.bank(part.limit).ok()?);
            let rule = match part.algorithm {
                Algorithm::FixedWindow(rule) => Packed::Fixed(*rule),
                Algorithm::TokenBucket(rule) => Packed::Bucket(*rule),
                _ => return None,
            };
            let is_usual = !bank.is_named() && bank.is_layout_of(part.algorithm);
            let is_enforced = part.mode == Mode::Enforce;
            is_usual.then(|| UsualLimit { bank, rule, is_enforced, per: SmallVec::from_slice(part.per) })
        };
        Some(Self { limits: parts.iter().map(limit).collect::<Option<_>>()? })
    }

    /// Decides a request with these values of the attributes, and a cost above 0; none if it has to
    /// be decided the general way.
    pub fn charge(&self, store: &MemoryStore, values: &[&str], cost: Cost, now: Timestamp) -> Option<Batch> {
        let guard = Guard::new();
        let hashes = store.hashes(values);
        let mut rows = SmallVec::<[Row; LIMITS_MAX]>::new();
        let mut looks = [Look::NONE; LIMITS_MAX];
        let mut is_refused = false;
        for (limit, look) in self.limits.iter().zip(&mut looks) {
            *look = limit.look(limit.hash(store, &hashes), cost, now, &guard)?;
            is_refused |= limit.is_enforced && !look.verdict.admits();
        }
        for (limit, look) in self.limits.iter().zip(&looks) {
            let word = if is_refused { look.word } else { look.next };
            let standing = limit.rule.standing(word, look.now);
            rows.push(Row { verdict: look.verdict, standing, at_cap: false });
        }
        if is_refused {
            return Some(Batch { admitted: false, rows, at: now });
        }
        let mut held = [const { None }; LIMITS_MAX];
        for (held, look) in held.iter_mut().zip(&looks).take(self.limits.len()) {
            *held = Some(look.cell?.lock_if(look.word)?);
        }
        for (held, look) in held.iter_mut().flatten().zip(&looks) {
            held.set(look.next);
        }
        Some(Batch { admitted: true, rows, at: now })
    }
}

impl MemoryStore {
    /// The values' own hashes; see [`MemoryStore::hash`].
    #[inline]
    fn hashes(&self, values: &[&str]) -> [u64; ATTRIBUTES_MAX] {
        let mut hashes = [0; ATTRIBUTES_MAX];
        for (hash, value) in hashes.iter_mut().zip(values) {
            *hash = self.hash_value(value);
        }
        hashes
    }
}

impl UsualLimit {
    /// The same as [`MemoryStore::hash`] of the key.
    #[inline]
    fn hash(&self, store: &MemoryStore, hashes: &[u64; ATTRIBUTES_MAX]) -> Hash {
        if let [place] = self.per[..] {
            return Hash::new(hashes[place]);
        }
        let mut hasher = store.hasher.build_hasher();
        for place in &self.per {
            hasher.write_u64(hashes[*place]);
        }
        Hash::new(hasher.finish())
    }

    #[inline]
    fn look<'g>(&'g self, hash: Hash, cost: Cost, now: Timestamp, guard: &'g Guard) -> Option<Look<'g>> {
        let spot = self.bank.find_unnamed(hash, guard).ok()?;
        let cell = spot.map(|Spot { table, index }| table.cells.cell(index));
        let (word, is_held) = match cell {
            Some(cell) => cell.look().ok()?,
            None => (0, false),
        };
        let now = now.max(self.bank.floor(hash));
        let (verdict, next) = self.rule.take(word, cost, now);
        if is_held && !verdict.admits() {
            // A state that somebody is about to replace refuses nobody: see `Cell::look`.
            return None;
        }
        Some(Look { cell, verdict, word, next, now })
    }
}

impl Packed {
    /// Takes a cost if it is admitted: the verdict, and the word then.
    #[inline]
    fn take(&self, word: u64, cost: Cost, now: Timestamp) -> (Verdict, u64) {
        let (verdict, taken) = match self {
            Self::Fixed(rule) => {
                let (verdict, state) = take(rule, FixedWindowState::unpack(word), cost, now);
                (verdict, state.pack())
            }
            Self::Bucket(rule) => {
                let (verdict, state) = take(rule, TokenBucketState::unpack(word), cost, now);
                (verdict, state.pack())
            }
        };
        (verdict, if verdict.admits() { taken } else { word })
    }

    /// How the limit stands by a word.
    #[inline]
    fn standing(&self, word: u64, now: Timestamp) -> Standing {
        match self {
            Self::Fixed(rule) => standing(rule, FixedWindowState::unpack(word), now),
            Self::Bucket(rule) => standing(rule, TokenBucketState::unpack(word), now),
        }
    }
}

#[inline]
fn take<A: Counter>(rule: &A, mut state: A::State, cost: Cost, now: Timestamp) -> (Verdict, A::State) {
    let now = rule.advance(&mut state, now);
    let verdict = rule.check(&state, cost, now);
    if verdict.admits() {
        rule.take(&mut state, cost, now);
    }
    (verdict, state)
}

#[inline]
fn standing<A: Counter>(rule: &A, mut state: A::State, now: Timestamp) -> Standing {
    let now = rule.advance(&mut state, now);
    rule.standing(&state, now)
}
