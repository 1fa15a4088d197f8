//! A table of cells and what lies beside it: the names of keys, and states wider than 63 bits.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use tidegate_core::Timestamp;
use tidegate_core::algorithm::{
    Algorithm, CalendarState, SlidingCounterState, SlidingWindowState, SlidingWindowSummary,
};

use super::cells::{Cells, Closed, Hash, Place};
use super::interruption::point;
use crate::charge::Key;

/// The values of a key, kept where counters are to be listed or must never be mistaken.
pub(super) type Name = Box<[Box<str>]>;

/// Cells of one shard of one limit.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) cells: Cells,
    /// Cells with a key.
    pub(super) used: AtomicUsize,
    names: Option<Box<[OnceLock<Name>]>>,
    wide: Wide,
}

/// How the states of a limit are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// In the cell's word.
    Packed,
    /// In three numbers beside it.
    Wide,
    /// In a log beside it.
    Log,
}

impl Kind {
    pub(super) const fn of(algorithm: &Algorithm) -> Self {
        match algorithm {
            Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_) => Self::Packed,
            Algorithm::SlidingCounter(_) | Algorithm::Calendar(_) => Self::Wide,
            Algorithm::SlidingWindow(_) => Self::Log,
        }
    }
}

#[derive(Debug)]
enum Wide {
    None,
    Numbers(Box<[Numbers<3>]>),
    Logs(Box<[Log]>),
}

/// Numbers that are written under their cell's lock and read against its version.
#[derive(Debug)]
struct Numbers<const N: usize>([AtomicU64; N]);

#[derive(Debug)]
struct Log {
    summary: Numbers<4>,
    state: Mutex<SlidingWindowState>,
}

impl Table {
    pub(super) fn new(cells_min: usize, kind: Kind, named: bool) -> Self {
        let cells = Cells::new(cells_min);
        let len = cells.count();
        let wide = match kind {
            Kind::Packed => Wide::None,
            Kind::Wide => Wide::Numbers((0..len).map(|_| Numbers::default()).collect()),
            Kind::Log => {
                Wide::Logs((0..len).map(|_| Log { summary: Numbers::default(), state: Mutex::default() }).collect())
            }
        };
        let names = named.then(|| (0..len).map(|_| OnceLock::new()).collect());
        Self { cells, used: AtomicUsize::new(0), names, wide }
    }

    /// Finds a key's cell.
    pub(super) fn find(&self, hash: Hash, key: &Key<'_>) -> Result<Place, Closed> {
        self.cells.find(hash, |index| self.is_named(index, key))
    }

    /// Takes the free cell at `index`; false if another was faster.
    pub(super) fn claim(&self, index: usize, hash: Hash, key: &Key<'_>) -> bool {
        if !self.cells.claim(index, hash) {
            return false;
        }
        if let Some(name) = self.names.as_ref().and_then(|names| names.get(index)) {
            // Set once, right after the claim, by the one who claimed.
            let _ = name.set(key.values.iter().map(|value| Box::from(*value)).collect());
        }
        self.used.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Whether so many cells are taken that searches would grow long.
    pub(super) fn is_crowded(&self) -> bool {
        self.used.load(Ordering::Relaxed) * 8 >= self.cells.count() * 7
    }

    /// The name in the cell at `index`, if names are kept.
    pub(super) fn name(&self, index: usize) -> Option<&Name> {
        let name = self.names.as_ref()?.get(index)?;
        // Claimed, so its name is set at once by the one who claimed it.
        Some(name.wait())
    }

    fn is_named(&self, index: usize, key: &Key<'_>) -> bool {
        self.name(index).is_none_or(|name| name.iter().map(AsRef::as_ref).eq(key.values.iter().copied()))
    }

    /// Copies the cell at `index` of `from` to a table that nobody else can see yet.
    pub(super) fn adopt(&self, from: &Self, index: usize, hash: Hash, word: u64) {
        let Some(place) = self.cells.place(hash, word) else { return };
        self.used.fetch_add(1, Ordering::Relaxed);
        if let (Some(to), Some(name)) = (self.names.as_ref().and_then(|names| names.get(place)), from.name(index)) {
            let _ = to.set(name.clone());
        }
        match (&self.wide, &from.wide) {
            (Wide::Numbers(to), Wide::Numbers(from)) => to[place].write(from[index].read()),
            (Wide::Logs(to), Wide::Logs(from)) => {
                to[place].summary.write(from[index].summary.read());
                std::mem::swap(&mut *to[place].lock(), &mut *from[index].lock());
            }
            _ => {}
        }
    }

    pub(super) fn counter(&self, index: usize) -> SlidingCounterState {
        let [window, previous, current] = self.numbers(index);
        SlidingCounterState { window, previous, current }
    }

    pub(super) fn set_counter(&self, index: usize, state: SlidingCounterState) {
        self.set_numbers(index, [state.window, state.previous, state.current]);
    }

    pub(super) fn calendar(&self, index: usize) -> CalendarState {
        let [start, end, used] = self.numbers(index);
        CalendarState { start: Timestamp::from_micros(start), end: Timestamp::from_micros(end), used }
    }

    pub(super) fn set_calendar(&self, index: usize, state: CalendarState) {
        self.set_numbers(index, [state.start.as_micros(), state.end.as_micros(), state.used]);
    }

    pub(super) fn summary(&self, index: usize) -> SlidingWindowSummary {
        let Wide::Logs(logs) = &self.wide else { return SlidingWindowSummary::default() };
        let [oldest, not_before, used, oldest_units] = logs[index].summary.read();
        SlidingWindowSummary {
            oldest: Timestamp::from_micros(oldest),
            not_before: Timestamp::from_micros(not_before),
            used,
            oldest_units,
        }
    }

    /// The log of a cell. Whoever changes it holds the cell's lock too, or has closed the cell.
    pub(super) fn log(&self, index: usize) -> Option<MutexGuard<'_, SlidingWindowState>> {
        let Wide::Logs(logs) = &self.wide else { return None };
        Some(logs[index].lock())
    }

    /// Publishes a log's summary, under the cell's lock.
    pub(super) fn set_summary(&self, index: usize, summary: SlidingWindowSummary) {
        if let Wide::Logs(logs) = &self.wide {
            let SlidingWindowSummary { oldest, not_before, used, oldest_units } = summary;
            logs[index].summary.write([oldest.as_micros(), not_before.as_micros(), used, oldest_units]);
        }
    }

    /// Bytes of the table itself, without what logs and names hold on the heap.
    pub(super) fn bytes(&self) -> usize {
        let beside = match &self.wide {
            Wide::None => 0,
            Wide::Numbers(numbers) => std::mem::size_of_val(&**numbers),
            Wide::Logs(logs) => std::mem::size_of_val(&**logs),
        };
        let names = self.names.as_ref().map_or(0, |names| std::mem::size_of_val(&**names));
        self.cells.count() * 16 + beside + names
    }

    fn numbers(&self, index: usize) -> [u64; 3] {
        let Wide::Numbers(numbers) = &self.wide else { return [0; 3] };
        numbers[index].read()
    }

    fn set_numbers(&self, index: usize, state: [u64; 3]) {
        if let Wide::Numbers(numbers) = &self.wide {
            numbers[index].write(state);
        }
    }
}

impl<const N: usize> Default for Numbers<N> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| AtomicU64::new(0)))
    }
}

impl<const N: usize> Numbers<N> {
    fn read(&self) -> [u64; N] {
        std::array::from_fn(|at| self.0[at].load(Ordering::Relaxed))
    }

    fn write(&self, numbers: [u64; N]) {
        for (to, number) in self.0.iter().zip(numbers) {
            point();
            to.store(number, Ordering::Relaxed);
        }
    }
}

impl Log {
    fn lock(&self) -> MutexGuard<'_, SlidingWindowState> {
        // A log is whole between any two steps of those who hold it, so a panic elsewhere does not
        // spoil it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
