//! All counters of one limit: shards, each with a table that is replaced by one of another size when
//! it is crowded or mostly expired.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sdd::{AtomicShared, Guard, Shared, Tag};
use tidegate_core::algorithm::{Algorithm, FixedWindowState, SlidingWindow, SlidingWindowState, TokenBucketState};
use tidegate_core::{Counter, Timestamp};

use super::cells::{Cell, Closed, Hash, Place, Spin};
use super::table::{Kind, Table};
use crate::charge::{Key, LimitId};

/// Shards of a limit that has more than one counter. At a million keys each holds about four
/// thousand, which are moved to a new table in some tens of microseconds. More of them would be
/// shorter to move, but slower to find: their heads would no longer fit the caches.
const SHARDS: usize = 256;

/// How many keys a store may keep, and how many it does.
#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) keys: AtomicU64,
    pub(super) keys_max: u64,
    pub(super) at_cap_total: AtomicU64,
}

/// The counters of one limit.
#[derive(Debug)]
pub(super) struct Bank {
    pub(super) id: LimitId,
    pub(super) kind: Kind,
    /// Any rule of the limit's layout: it tells when a state has expired.
    algorithm: Algorithm,
    named: bool,
    shards: Box<[Shard]>,
    ledger: Arc<Ledger>,
    /// Bytes as of the last tidying.
    bytes: AtomicU64,
}

#[derive(Debug)]
struct Shard {
    table: AtomicShared<Table>,
    /// When the table was last replaced, in µs. What had expired then is forgotten, so no charge of
    /// this shard is decided by an earlier clock: a request that read the clock before a window
    /// ended cannot begin that window anew.
    floor_us: AtomicU64,
    /// Held by the one who replaces the table.
    replacing: Mutex<()>,
}

/// A key's place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'g> {
    pub(super) table: &'g Table,
    pub(super) index: usize,
}

/// There is no room for one more counter.
#[derive(Debug)]
pub(super) struct AtCapacity;

impl Bank {
    pub(super) fn new(id: LimitId, algorithm: Algorithm, per: usize, named: bool, ledger: Arc<Ledger>) -> Self {
        let shards = if per == 0 { 1 } else { SHARDS };
        let shard = || Shard { table: AtomicShared::null(), floor_us: AtomicU64::new(0), replacing: Mutex::new(()) };
        // A calendar counter stands for a month of spending: its key is kept, so that no other key's
        // hash can ever be mistaken for it.
        let named = named || matches!(algorithm, Algorithm::Calendar(_));
        Self {
            id,
            kind: Kind::of(&algorithm),
            algorithm,
            named,
            shards: (0..shards).map(|_| shard()).collect(),
            ledger,
            bytes: AtomicU64::new(0),
        }
    }

    /// The key's place, if it has been made.
    pub(super) fn find<'g>(&self, hash: Hash, key: &Key<'_>, guard: &'g Guard) -> Result<Option<Spot<'g>>, Closed> {
        let Some(table) = self.table(hash, guard) else { return Ok(None) };
        match table.find(hash, key)? {
            Place::Found(index) => Ok(Some(Spot { table, index })),
            Place::Free(_) | Place::Full => Ok(None),
        }
    }

    /// [`find`](Self::find) in a bank that keeps no names: the hash is the key.
    #[inline]
    pub(super) fn find_unnamed<'g>(&self, hash: Hash, guard: &'g Guard) -> Result<Option<&'g Cell>, Closed> {
        let Some(table) = self.table(hash, guard) else { return Ok(None) };
        match table.cells.at_home(hash) {
            None => table.cells.find_far(hash),
            found => Ok(found),
        }
    }

    /// The earliest clock that a charge of this key is decided by. Read after the key was searched.
    pub(super) fn floor(&self, hash: Hash) -> Timestamp {
        Timestamp::from_micros(self.shard(hash).floor_us.load(Ordering::Relaxed))
    }

    /// The key's place, made if need be.
    pub(super) fn find_or_make<'g>(
        &self,
        hash: Hash,
        key: &Key<'_>,
        now: Timestamp,
        guard: &'g Guard,
    ) -> Result<Spot<'g>, AtCapacity> {
        let mut spin = Spin::default();
        let mut tidied = false;
        loop {
            let table = self.table(hash, guard);
            match table.map(|table| (table, table.find(hash, key))) {
                Some((table, Ok(Place::Found(index)))) => return Ok(Spot { table, index }),
                Some((table, Ok(Place::Free(index)))) if !table.is_crowded() => {
                    if !self.ledger.reserve() {
                        // What has expired may still take room; look once, and not again for a while.
                        if tidied || !self.replace_if_due(hash, now, guard) {
                            return Err(AtCapacity);
                        }
                        tidied = true;
                    } else if table.claim(index, hash, key) {
                        return Ok(Spot { table, index });
                    } else {
                        self.ledger.give_back(1);
                    }
                }
                Some((_, Err(Closed))) => spin.turn(),
                crowded_or_none => {
                    self.shard(hash).replace(self, crowded_or_none.map(|(table, _)| table), Why::Crowded, now, guard);
                }
            }
        }
    }

    /// Replaces what tables hold mostly expired keys, and drops expired log entries. Takes a lock
    /// only on what it changes.
    pub(super) fn tidy(&self, now: Timestamp) {
        let mut bytes = std::mem::size_of_val(&*self.shards);
        for shard in &self.shards {
            let guard = Guard::new();
            let Some(table) = shard.table.load(Ordering::Acquire, &guard).as_ref() else { continue };
            let (live, heap_bytes) = self.census(table, now);
            let used = table.used.load(Ordering::Relaxed);
            // A large table with a few expired keys is left alone: replacing it would cost more than
            // they do.
            if used > live && (used <= 64 || (used - live) * 16 >= used) {
                shard.replace(self, Some(table), Why::Expired, now, &guard);
            }
            bytes += shard.table.load(Ordering::Acquire, &guard).as_ref().map_or(0, Table::bytes) + heap_bytes;
        }
        self.bytes.store(bytes as u64, Ordering::Relaxed);
    }

    /// Forgets every counter: those of a limit that is no longer known.
    pub(super) fn clear(&self) {
        let guard = Guard::new();
        for shard in &self.shards {
            if let Some(table) = shard.table.load(Ordering::Acquire, &guard).as_ref() {
                shard.replace(self, Some(table), Why::Forgotten, Timestamp::EPOCH, &guard);
            }
        }
    }

    /// Whether keys are kept whole.
    pub(super) const fn is_named(&self) -> bool {
        self.named
    }

    /// A rule of the limit's layout.
    pub(super) const fn algorithm(&self) -> &Algorithm {
        &self.algorithm
    }

    /// Bytes as of the last tidying.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// How many shards there are.
    pub(super) fn shard_count(&self) -> usize {
        self.shards.len()
    }

    /// The table of a shard, by the shard's number.
    pub(super) fn table_of<'g>(&self, shard: usize, guard: &'g Guard) -> Option<&'g Table> {
        self.shards.get(shard)?.table.load(Ordering::Acquire, guard).as_ref()
    }

    /// Whether `algorithm` reads the states of this bank.
    pub(super) fn is_layout_of(&self, algorithm: &Algorithm) -> bool {
        self.algorithm.has_layout_of(algorithm)
    }

    fn table<'g>(&self, hash: Hash, guard: &'g Guard) -> Option<&'g Table> {
        self.shard(hash).table.load(Ordering::Acquire, guard).as_ref()
    }

    fn shard(&self, hash: Hash) -> &Shard {
        // The low bits pick the shard; the high ones pick the line within it.
        // There are 1 or 256 of them: a power of two, so this is the remainder without a division.
        &self.shards[hash.get() as usize & (self.shards.len() - 1)]
    }

    /// Replaces a shard's table unless that was done in the last 100 ms; whether it was done now.
    fn replace_if_due(&self, hash: Hash, now: Timestamp, guard: &Guard) -> bool {
        let shard = self.shard(hash);
        let due = now.since(self.floor(hash)).as_micros() >= 100_000;
        if due {
            shard.replace(self, self.table(hash, guard), Why::Expired, now, guard);
        }
        due
    }

    /// How many keys have not expired, and how much their logs and names take on the heap.
    fn census(&self, table: &Table, now: Timestamp) -> (usize, usize) {
        let mut live = 0;
        let mut heap_bytes = 0;
        for (index, _) in table.cells.keys() {
            if let Algorithm::SlidingWindow(rule) = &self.algorithm {
                trim(rule, table, index, now);
            }
            let word = table.cells.cell(index).read();
            if !word.is_ok_and(|word| self.expires_at(table, index, word) > now) {
                continue;
            }
            live += 1;
            heap_bytes += table.log(index).map_or(0, |log| log.heap_bytes());
            if self.named
                && let Some(name) = table.name(index)
            {
                heap_bytes += name.iter().map(|value| value.len() + 16).sum::<usize>();
            }
        }
        (live, heap_bytes)
    }

    /// By the state in a cell that is closed, or roughly by what can be read without a lock.
    fn expires_at(&self, table: &Table, index: usize, word: u64) -> Timestamp {
        match &self.algorithm {
            Algorithm::FixedWindow(rule) => rule.expires_at(&FixedWindowState::unpack(word)),
            Algorithm::TokenBucket(rule) => rule.expires_at(&TokenBucketState::unpack(word)),
            Algorithm::SlidingCounter(rule) => rule.expires_at(&table.counter(index)),
            Algorithm::Calendar(rule) => rule.expires_at(&table.calendar(index)),
            Algorithm::SlidingWindow(rule) => table.log(index).map_or(Timestamp::EPOCH, |log| rule.expires_at(&log)),
        }
    }
}

/// Drops what has left a log's window.
fn trim(rule: &SlidingWindow, table: &Table, index: usize, now: Timestamp) {
    let has_left =
        |log: &SlidingWindowState| log.entries().next().is_some_and(|(oldest, _)| oldest.after(rule.window()) <= now);
    let due = table.log(index).is_some_and(|log| has_left(&log));
    if due
        && let Ok(mut held) = table.cells.cell(index).lock()
        && let Some(mut log) = table.log(index)
    {
        rule.advance(&mut log, now);
        table.set_summary(index, log.summary());
        held.set(held.word() + 1);
    }
}

impl Drop for Bank {
    fn drop(&mut self) {
        let guard = Guard::new();
        let tables = (0..self.shards.len()).filter_map(|shard| self.table_of(shard, &guard));
        let keys: usize = tables.map(|table| table.cells.keys().count()).sum();
        self.ledger.give_back(keys);
    }
}

/// Why a table is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Why {
    /// It has no room for one key more.
    Crowded,
    /// Some of its keys have expired.
    Expired,
    /// Its limit is no longer known.
    Forgotten,
}

impl Shard {
    /// Puts a table with room in the place of `old`, with what has not expired; nothing if another
    /// has done so already. For the microseconds that it takes, those who want a key of this shard
    /// wait.
    fn replace(&self, bank: &Bank, old: Option<&Table>, why: Why, now: Timestamp, guard: &Guard) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let current = self.table.load(Ordering::Acquire, guard).as_ref();
        if !same_table(current, old) {
            return;
        }
        let Some(old) = old else {
            let first = Table::new(4, bank.kind, bank.named);
            drop(self.table.swap((Some(Shared::new(first)), Tag::None), Ordering::AcqRel));
            return;
        };
        let mut moved = Vec::with_capacity(old.cells.count());
        let mut keys = 0;
        old.cells.close(|index, hash, word| {
            keys += 1;
            // A cell never written to is about to be: some batch has just made it. A batch that makes
            // many in one shard would never find them all if each new table began without them.
            let is_new = word == 0 && why == Why::Crowded;
            if is_new || (why != Why::Forgotten && bank.expires_at(old, index, word) > now) {
                moved.push((index, hash, word));
            }
        });
        let dropped = keys - moved.len();
        self.floor_us.fetch_max(now.as_micros(), Ordering::Relaxed);
        let fresh = (!moved.is_empty()).then(|| {
            // Room for 8/5 of the keys; it is crowded at 7/8 of that, when they are 1.4 times as many.
            let fresh = Table::new(moved.len() * 8 / 5 + 1, bank.kind, bank.named);
            for (index, hash, word) in &moved {
                fresh.adopt(old, *index, *hash, *word);
            }
            Shared::new(fresh)
        });
        drop(self.table.swap((fresh, Tag::None), Ordering::AcqRel));
        bank.ledger.give_back(dropped);
    }
}

fn same_table(a: Option<&Table>, b: Option<&Table>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => std::ptr::eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

impl Ledger {
    fn reserve(&self) -> bool {
        let one_more = |keys| (keys < self.keys_max).then_some(keys + 1);
        self.keys.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok()
    }

    fn give_back(&self, keys: usize) {
        self.keys.fetch_sub(keys as u64, Ordering::Relaxed);
    }
}
