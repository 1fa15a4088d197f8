//! The only place that reads a clock.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::UNIX_EPOCH;

use tidegate_core::{Span, Timestamp};

/// Where an engine takes the time from: read once a request.
#[derive(Clone, Debug)]
pub struct Clock(Source);

#[derive(Clone, Debug)]
enum Source {
    System(quanta::Clock),
    Manual(Arc<AtomicU64>),
}

/// When a thread last read the system's clock, by the processor's ticks and by that clock.
#[derive(Clone, Copy, Debug)]
struct Reading {
    ticks: u64,
    /// Nanoseconds since the Unix epoch, which 64 bits count until the year 2554. 0: never read.
    epoch_ns: u64,
}

/// So long ticks are counted, then the system's clock is read again: so long a step of that clock,
/// or ticks that do not keep step with it, can go unnoticed.
const COUNTED_NS_MAX: u64 = 1_000_000;
/// A reading that took longer was interrupted, and tells no longer which ticks belong to which time.
const READING_NS_MAX: u64 = 5_000;

thread_local! {
    static READING: Cell<Reading> = const { Cell::new(Reading { ticks: 0, epoch_ns: 0 }) };
}

impl Clock {
    /// The system's clock, read at least once a millisecond by each thread that asks; in between, the
    /// processor's ticks are counted on from there, which takes a third of the time. It follows each
    /// step of the system's clock within that millisecond. The first in a process takes half a
    /// millisecond, to measure the ticks.
    pub fn system() -> Self {
        Self(Source::System(quanta::Clock::new()))
    }

    /// A clock that stands still until it is set; its clones move with it. For tests and
    /// simulations.
    pub fn manual(now: Timestamp) -> Self {
        Self(Source::Manual(Arc::new(AtomicU64::new(now.as_micros()))))
    }

    /// The time.
    #[inline]
    pub fn now(&self) -> Timestamp {
        match &self.0 {
            Source::System(counter) => system_now(counter),
            Source::Manual(now_us) => Timestamp::from_micros(now_us.load(Ordering::SeqCst)),
        }
    }

    /// Sets a manual clock, forwards or back; the system's is left alone.
    pub fn set(&self, now: Timestamp) {
        if let Source::Manual(now_us) = &self.0 {
            now_us.store(now.as_micros(), Ordering::SeqCst);
        }
    }

    /// Moves a manual clock forwards; the system's is left alone.
    pub fn advance(&self, span: Span) {
        if let Source::Manual(now_us) = &self.0 {
            now_us.fetch_add(span.as_micros(), Ordering::SeqCst);
        }
    }

    /// Whether time passes by itself.
    pub const fn is_system(&self) -> bool {
        matches!(self.0, Source::System(_))
    }
}

#[inline]
fn system_now(counter: &quanta::Clock) -> Timestamp {
    let ticks = counter.raw();
    let since = READING.with(Cell::get);
    let epoch_ns = match counted_on(since, ticks, counter.delta_as_nanos(since.ticks, ticks)) {
        Some(epoch_ns) => epoch_ns,
        None => read_system(counter, ticks),
    };
    Timestamp::from_micros(epoch_ns / 1_000)
}

/// The time at `ticks`, `counted_ns` after a reading; none if the clock has to be read again.
#[inline]
const fn counted_on(since: Reading, ticks: u64, counted_ns: u64) -> Option<u64> {
    // Ticks that run backwards are those of another processor.
    if since.epoch_ns > 0 && ticks >= since.ticks && counted_ns < COUNTED_NS_MAX {
        Some(since.epoch_ns + counted_ns)
    } else {
        None
    }
}

#[cold]
#[expect(clippy::disallowed_methods, reason = "the one place where the clock is read")]
fn read_system(counter: &quanta::Clock, before: u64) -> u64 {
    let since_epoch = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch_ns = u64::try_from(since_epoch.as_nanos()).unwrap_or(u64::MAX - COUNTED_NS_MAX);
    let ticks = counter.raw();
    let was_interrupted = ticks < before || counter.delta_as_nanos(before, ticks) > READING_NS_MAX;
    READING.set(Reading { ticks, epoch_ns: if was_interrupted { 0 } else { epoch_ns } });
    epoch_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_NS: u64 = 1_800_000_000_000_000_000;

    #[test]
    fn ticks_are_counted_on_for_a_millisecond_and_no_longer() {
        let since = Reading { ticks: 500, epoch_ns: NOW_NS };
        assert_eq!(counted_on(since, 500, 0), Some(NOW_NS));
        assert_eq!(counted_on(since, 9_999, COUNTED_NS_MAX - 1), Some(NOW_NS + COUNTED_NS_MAX - 1));
        assert_eq!(counted_on(since, 9_999, COUNTED_NS_MAX), None);
        assert_eq!(counted_on(since, 499, 0), None, "ticks of another processor, or of a machine set back");
    }

    #[test]
    fn nothing_is_counted_on_from_no_reading() {
        assert_eq!(counted_on(Reading { ticks: 0, epoch_ns: 0 }, 10, 10), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "compared with")]
    fn the_time_is_the_systems() {
        let clock = Clock::system();
        let system_us = || std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros() as u64;
        let mut counted = 0;
        for _ in 0..200_000 {
            let (before, now, after) = (system_us(), clock.now().as_micros(), system_us());
            // A reading is off by the time that it took, and the ticks by a few in a million.
            assert!(before.saturating_sub(now) <= 10 && now.saturating_sub(after) <= 10, "{before} {now} {after}");
            counted += u32::from(READING.get().epoch_ns / 1_000 < before);
        }
        assert!(counted > 0, "most are counted, not read");
    }
}
