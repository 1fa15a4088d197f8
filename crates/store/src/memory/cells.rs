//! The cell protocol: an open-addressed table of 16-byte cells with a lock bit each.
//!
//! A cell is two words. The *tag* is the key's hash; it goes from 0 (free) to a hash once, and stays
//! for the table's life. The *word* holds 63 bits of state and, on top, the lock bit.
//!
//! - **Reading** takes no lock: writers keep the old state in a locked word until they store the new
//!   one, so the low 63 bits are always the latest committed state.
//! - **Writing** takes the lock bit of every cell of a batch, in one order for all, then
//!   stores each new state together with the cleared bit.
//! - **Wide states** (more than 63 bits) live beside the table; there the word is a version number,
//!   and a reader whose two looks at it agree has seen one state (a seqlock).
//! - **Closing** a table, to replace it by one of another size, locks every cell for good (the word
//!   `CLOSED`) and tags the free ones, so that whoever comes late looks for the new table.
//!
//! Everything here is checked by exhaustive exploration of interleavings: `tests/loom.rs`.

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

use super::interruption::point;

/// The lock bit of a word.
const LOCK: u64 = 1 << 63;
/// The word of a cell whose table has been replaced.
const CLOSED: u64 = u64::MAX;
/// The tag of a cell that was free when its table was replaced.
const CLOSED_TAG: u64 = u64::MAX;
/// The tag of a free cell.
const FREE_TAG: u64 = 0;

/// One key's place.
#[derive(Debug, Default)]
pub struct Cell {
    tag: AtomicU64,
    word: AtomicU64,
}

/// Four cells that share a cache line.
#[derive(Debug, Default)]
#[repr(align(64))]
pub struct Line([Cell; 4]);

/// A fixed number of cells.
#[derive(Debug)]
pub struct Cells {
    lines: Box<[Line]>,
}

/// The table has been replaced: look the new one up and begin again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// What a search ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The key's cell.
    Found(usize),
    /// It has none; in a table with room this is the cell that it would take.
    Free(usize),
    /// It has none, and there is no room.
    Full,
}

impl Cells {
    /// A table of at least `cells_min` free cells.
    pub fn new(cells_min: usize) -> Self {
        let lines = cells_min.div_ceil(4).max(1);
        Self { lines: (0..lines).map(|_| Line::default()).collect() }
    }

    /// How many cells there are.
    pub fn count(&self) -> usize {
        self.lines.len() * 4
    }

    /// The cell at `index`, which is below [`count`](Self::count).
    pub fn cell(&self, index: usize) -> &Cell {
        &self.lines[index / 4].0[index % 4]
    }

    /// Finds the key with this hash; `same` tells whether the cell at an index with the same hash
    /// is really the key's.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    pub fn find(&self, hash: Hash, same: impl Fn(usize) -> bool) -> Result<Place, Closed> {
        point();
        let home = self.home(hash);
        for step in 0..self.lines.len() {
            let line = if home + step < self.lines.len() { home + step } else { home + step - self.lines.len() };
            for (slot, cell) in self.lines[line].0.iter().enumerate() {
                let index = line * 4 + slot;
                match cell.tag.load(Ordering::Acquire) {
                    FREE_TAG => return Ok(Place::Free(index)),
                    CLOSED_TAG => return Err(Closed),
                    tag if tag == hash.0 && same(index) => return Ok(Place::Found(index)),
                    _ => {}
                }
            }
        }
        Ok(Place::Full)
    }

    /// The key's cell, if it is in its home line, as it mostly is. Which of the four it is no branch
    /// depends on: it would be foretold wrongly every other time, and a line that is not in the caches
    /// waited for before anything else could begin.
    #[inline]
    pub fn at_home(&self, hash: Hash) -> Option<&Cell> {
        let mut found = None;
        for cell in &self.lines[self.home(hash)].0 {
            if cell.tag.load(Ordering::Acquire) == hash.0 {
                found = Some(cell);
            }
        }
        found
    }

    /// The key's cell, wherever it is.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    #[cold]
    pub fn find_far(&self, hash: Hash) -> Result<Option<&Cell>, Closed> {
        match self.find(hash, |_| true)? {
            Place::Found(index) => Ok(Some(self.cell(index))),
            Place::Free(_) | Place::Full => Ok(None),
        }
    }

    /// Takes the free cell at `index` for the key; false if another key, or this one in another
    /// thread, was faster: search again.
    pub fn claim(&self, index: usize, hash: Hash) -> bool {
        point();
        let tag = &self.cell(index).tag;
        tag.compare_exchange(FREE_TAG, hash.0, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Closes every cell, in index order, waiting for those who hold one; calls `moved` with each
    /// index, hash and last word of a cell that has a key.
    pub fn close(&self, mut moved: impl FnMut(usize, Hash, u64)) {
        for index in 0..self.count() {
            point();
            let cell = self.cell(index);
            let free = cell.tag.compare_exchange(FREE_TAG, CLOSED_TAG, Ordering::AcqRel, Ordering::Acquire);
            if let Err(tag) = free
                && let Ok(held) = cell.lock()
            {
                moved(index, Hash(tag), held.close());
            }
        }
    }

    /// The hashes and indices of all cells that have a key.
    pub fn keys(&self) -> impl Iterator<Item = (usize, Hash)> {
        (0..self.count()).filter_map(|index| {
            let tag = self.cell(index).tag.load(Ordering::Acquire);
            (tag != FREE_TAG && tag != CLOSED_TAG).then_some((index, Hash(tag)))
        })
    }

    /// Writes a key into a table that nobody else can see yet.
    pub fn place(&self, hash: Hash, word: u64) -> Option<usize> {
        let Ok(Place::Free(index)) = self.find(hash, |_| false) else { return None };
        let cell = self.cell(index);
        cell.tag.store(hash.0, Ordering::Relaxed);
        cell.word.store(word, Ordering::Relaxed);
        Some(index)
    }

    fn home(&self, hash: Hash) -> usize {
        // The high bits pick the line (the low ones picked the shard), without a division.
        ((u128::from(hash.0) * self.lines.len() as u128) >> 64) as usize
    }
}

/// A key's hash: any number but the two that mark free and closed cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Hash(u64);

impl Hash {
    /// From a 64-bit hash, moving the two reserved values aside.
    pub const fn new(hash: u64) -> Self {
        match hash {
            FREE_TAG => Self(1),
            CLOSED_TAG => Self(CLOSED_TAG - 1),
            other => Self(other),
        }
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Cell {
    /// The latest committed 63 bits, without a lock.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    #[inline]
    pub fn read(&self) -> Result<u64, Closed> {
        self.look().map(|(word, _)| word)
    }

    /// The latest committed 63 bits, without a lock, and whether somebody holds it. Who does may have
    /// committed to other cells already: what is refused by such a state may have to be admitted after
    /// a batch that others have seen.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    #[inline]
    pub fn look(&self) -> Result<(u64, bool), Closed> {
        point();
        match self.word.load(Ordering::Acquire) {
            CLOSED => Err(Closed),
            word => Ok((word & !LOCK, word & LOCK != 0)),
        }
    }

    /// Whether the word still is what a look found, and no writer is at it: then nothing was
    /// committed since.
    pub fn is_still(&self, word: u64) -> bool {
        point();
        self.word.load(Ordering::Acquire) == word
    }

    /// Reads something wide that the word is the version of, and that version: `look` is repeated
    /// until no writer was at it meanwhile.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    pub fn read_wide<T>(&self, look: impl Fn() -> T) -> Result<(u64, T), Closed> {
        let mut spin = Spin::default();
        loop {
            let before = self.word.load(Ordering::Acquire);
            if before == CLOSED {
                return Err(Closed);
            }
            if before & LOCK == 0 {
                let seen = look();
                point();
                // What was looked at is loaded before the word is loaded again.
                fence(Ordering::Acquire);
                if self.word.load(Ordering::Relaxed) == before {
                    return Ok((before, seen));
                }
            }
            spin.turn();
        }
    }

    /// Takes the lock bit at once, if the word still is what a look found and nobody holds it.
    pub fn lock_if(&self, word: u64) -> Option<Held<'_>> {
        point();
        self.word.compare_exchange(word, word | LOCK, Ordering::Acquire, Ordering::Relaxed).ok()?;
        // As in `lock`.
        fence(Ordering::Release);
        Some(Held { cell: self, word })
    }

    /// Sets the 63 bits at once, if they still are what a look found and nobody holds the cell: the
    /// same as locking it and letting it go, in one step.
    pub fn set_if(&self, word: u64, next: u64) -> bool {
        point();
        assert!(next < CLOSED & !LOCK, "a state fits 63 bits and is not all ones");
        self.word.compare_exchange(word, next, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Waits for the lock bit and takes it.
    ///
    /// # Errors
    /// [`Closed`] if the table has been replaced.
    pub fn lock(&self) -> Result<Held<'_>, Closed> {
        point();
        let mut spin = Spin::default();
        loop {
            let word = self.word.load(Ordering::Relaxed);
            if word == CLOSED {
                return Err(Closed);
            }
            if word & LOCK == 0
                && self.word.compare_exchange_weak(word, word | LOCK, Ordering::Acquire, Ordering::Relaxed).is_ok()
            {
                // Whoever sees a wide state written under this lock also sees the lock bit.
                fence(Ordering::Release);
                return Ok(Held { cell: self, word });
            }
            spin.turn();
        }
    }
}

/// A locked cell. Dropped, it is unlocked with the state that it had.
#[derive(Debug)]
pub struct Held<'a> {
    cell: &'a Cell,
    word: u64,
}

impl Held<'_> {
    /// The 63 bits.
    pub const fn word(&self) -> u64 {
        self.word
    }

    /// Sets the 63 bits that the cell has once it is unlocked.
    pub fn set(&mut self, word: u64) {
        assert!(word < CLOSED & !LOCK, "a state fits 63 bits and is not all ones");
        self.word = word;
    }

    fn close(self) -> u64 {
        let word = self.word;
        self.cell.word.store(CLOSED, Ordering::Release);
        std::mem::forget(self);
        word
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        point();
        self.cell.word.store(self.word, Ordering::Release);
    }
}

/// Waiting for a lock that is held for nanoseconds, unless its holder lost the processor.
#[derive(Debug, Default)]
pub struct Spin {
    turns: u32,
}

impl Spin {
    /// One turn: at first a processor hint, later the rest of the time slice.
    pub fn turn(&mut self) {
        self.turns = self.turns.saturating_add(1);
        #[cfg(loom)]
        loom::thread::yield_now();
        #[cfg(not(loom))]
        if self.turns < 64 {
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}
