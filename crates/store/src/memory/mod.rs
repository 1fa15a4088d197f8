//! The store in this process.
//!
//! # Layout
//! - [`cells`]: the cell protocol: 63 bits of state and a lock bit, read without a lock.
//! - `table`: cells, and what lies beside them: names, states wider than 63 bits.
//! - `bank`: all counters of one limit, in shards that are resized one by one.
//! - `batch`: all or nothing over several counters; [`usual`]: most batches, faster.
//! - `judge`: one charge, judged and taken; `working`: the same on copies, for what is rare.
//!
//! Bytes a key, measured by `make bench`: about 22 for a bucket or a fixed window. A key that shares
//! another's 64-bit seeded hash would share its counter; among a million keys the chance that any
//! two do is 3 in 100 million. Calendar limits keep whole keys and never do.

mod bank;
mod batch;
pub mod cells;
#[doc(hidden)]
pub mod interruption;
mod judge;
mod page;
mod table;
pub mod usual;
mod working;

use std::hash::{BuildHasher, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::quality::RandomState;
use sdd::{AtomicShared, Guard, Shared, Tag};
use tidegate_core::{Limit, Timestamp};

use bank::{Bank, Ledger};
use cells::{Hash, Spin};

use crate::charge::{At, Batch, Charge, Key, LimitId};
use crate::store::{CounterPage, PageQuery, Store, StoreError, StoreStats};

/// Settings of the memory store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    /// The most counters that are kept at a time, over all limits; each takes 16 to 32 bytes for a
    /// bucket or a fixed window.
    pub keys_max: u64,
    /// What happens to a request that would need one more.
    pub at_cap: AtCap,
    /// Whether counters remember whose they are, so that they can be listed. Costs memory.
    pub names: bool,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { keys_max: 10_000_000, at_cap: AtCap::Allow, names: false }
    }
}

/// What happens to a request that would need one counter more than the cap. Live counters are never
/// dropped for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AtCap {
    /// The limit whose counter finds no room does not apply to the request; that is counted.
    #[default]
    Allow,
    /// The limit whose counter finds no room refuses the request; that is counted.
    Deny,
}

/// Counters in this process's memory.
#[derive(Debug)]
pub struct MemoryStore {
    settings: MemorySettings,
    hasher: RandomState,
    banks: AtomicShared<Banks>,
    /// Held by the one who installs, or two at a time would each make banks of their own.
    installing: Mutex<()>,
    ledger: Arc<Ledger>,
}

/// The limits' banks, by the limit's number.
#[derive(Debug, Default)]
struct Banks(Vec<Option<Arc<Bank>>>);

impl MemoryStore {
    /// An empty store.
    pub fn new(settings: MemorySettings) -> Self {
        let ledger = Ledger { keys: AtomicU64::new(0), keys_max: settings.keys_max, at_cap_total: AtomicU64::new(0) };
        Self {
            settings,
            hasher: RandomState::default(),
            banks: AtomicShared::new(Banks::default()),
            installing: Mutex::new(()),
            ledger: Arc::new(ledger),
        }
    }

    /// The settings that it was made with.
    pub const fn settings(&self) -> &MemorySettings {
        &self.settings
    }

    /// [`Store::charge`], at once: nothing here waits for anything but another thread's few
    /// nanoseconds.
    ///
    /// # Errors
    /// [`StoreError::UnknownLimit`] if a limit is not installed; nothing was taken.
    pub fn charge_now(&self, batch: &[Charge<'_>], now: Timestamp) -> Result<Batch, StoreError> {
        let guard = Guard::new();
        batch::charge(self, self.banks(&guard), batch, now, &guard)
    }

    /// Forgets what has expired, and shrinks. Correctness does not need it, memory does: the engine
    /// calls it four times a second. Others wait for it at most the microseconds in which one shard (a
    /// small part of a limit's counters) is replaced.
    pub fn tidy(&self, now: Timestamp) {
        let guard = Guard::new();
        let banks: Vec<Arc<Bank>> = self.banks(&guard).0.iter().flatten().map(Arc::clone).collect();
        drop(guard);
        for bank in banks {
            bank.tidy(now);
        }
        reclaim();
    }

    fn banks<'g>(&self, guard: &'g Guard) -> &'g Banks {
        static NONE: Banks = Banks(Vec::new());
        self.banks.load(Ordering::Acquire, guard).as_ref().unwrap_or(&NONE)
    }

    /// Seeded. Each value is hashed whole and alone, then the hashes together: fed one after the other
    /// into one hasher, short values collide across their borders, as `("", "\0")` does with
    /// `("\0", "")` under most seeds.
    fn hash(&self, key: &Key<'_>) -> Hash {
        if let [value] = key.values[..] {
            return Hash::new(self.hash_value(value));
        }
        let mut hasher = self.hasher.build_hasher();
        for value in &key.values {
            hasher.write_u64(self.hash_value(value));
        }
        Hash::new(hasher.finish())
    }

    #[inline]
    fn hash_value(&self, value: &str) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(value.as_bytes());
        hasher.finish()
    }
}

/// Frees what this thread has replaced, as soon as nobody can be reading it any more: usually at
/// once, as others read for less than a microsecond at a time. A thread frees only what it replaced
/// itself, so one that may not be back for long does it before it leaves.
fn reclaim() {
    const TURNS_MAX: usize = 1_024;
    let mut spin = Spin::default();
    for _ in 0..TURNS_MAX {
        let guard = Guard::new();
        if !guard.has_garbage() {
            return;
        }
        guard.accelerate();
        drop(guard);
        spin.turn();
    }
}

impl Banks {
    fn bank(&self, limit: LimitId) -> Result<&Arc<Bank>, StoreError> {
        self.0.get(limit.0 as usize).and_then(Option::as_ref).ok_or(StoreError::UnknownLimit(limit))
    }
}

impl Store for MemoryStore {
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        let _installing = self.installing.lock().unwrap_or_else(PoisonError::into_inner);
        let guard = Guard::new();
        let old = self.banks(&guard);
        let old_banks: Vec<Arc<Bank>> = old.0.iter().flatten().map(Arc::clone).collect();
        let len = limits.iter().map(|(id, _)| id.0 as usize + 1).max().unwrap_or(0);
        let mut banks: Vec<Option<Arc<Bank>>> = vec![None; len];
        for (id, limit) in limits {
            let kept = old.bank(*id).ok().filter(|bank| bank.is_layout_of(&limit.algorithm)).map(Arc::clone);
            banks[id.0 as usize] = Some(kept.unwrap_or_else(|| {
                let (algorithm, ledger) = (limit.algorithm.clone(), Arc::clone(&self.ledger));
                Arc::new(Bank::new(*id, algorithm, limit.per.len(), self.settings.names, ledger))
            }));
        }
        let is_kept = |bank: &Arc<Bank>| {
            banks.get(bank.id.0 as usize).is_some_and(|new| new.as_ref().is_some_and(|new| Arc::ptr_eq(new, bank)))
        };
        let (_, forgotten): (Vec<_>, Vec<_>) = old_banks.into_iter().partition(is_kept);
        drop(self.banks.swap((Some(Shared::new(Banks(banks))), Tag::None), Ordering::AcqRel));
        drop(guard);
        // At once, as a batch under way may hold on to a bank for longer.
        for bank in forgotten {
            bank.clear();
        }
        reclaim();
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        self.charge_now(batch, at.local())
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        let guard = Guard::new();
        let bank = self.banks(&guard).bank(limit)?;
        Ok(batch::reset(bank, self.hash(key), key, at.local(), &guard))
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        let guard = Guard::new();
        page::page(self.banks(&guard).bank(query.limit)?, query, at.local(), &guard)
    }

    fn stats(&self) -> StoreStats {
        let guard = Guard::new();
        StoreStats {
            keys: self.ledger.keys.load(Ordering::Relaxed),
            keys_max: self.ledger.keys_max,
            bytes: self.banks(&guard).0.iter().flatten().map(|bank| bank.bytes()).sum(),
            at_cap_total: self.ledger.at_cap_total.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::{Key, MemorySettings, MemoryStore};

    /// Short values of bytes that hashes treat alike, in every pair, under several seeds.
    #[test]
    fn short_values_do_not_collide_across_their_borders() {
        let parts = ["\0", "\u{1}", ":", "a", "b", " ", "{", "}", "0", "1"];
        let mut words = vec![String::new()];
        for one in parts {
            words.push(one.to_owned());
            words.extend(parts.map(|two| format!("{one}{two}")));
        }
        for _ in 0..8 {
            let store = MemoryStore::new(MemorySettings::default());
            let mut seen = HashMap::new();
            for one in &words {
                assert_eq!(seen.insert(store.hash(&Key::of(&[one])), (one, None)), None);
                for two in &words {
                    let other = seen.insert(store.hash(&Key::of(&[one, two])), (one, Some(two)));
                    assert_eq!(other, None, "collides with {one:?}, {two:?}");
                }
            }
        }
    }
}
