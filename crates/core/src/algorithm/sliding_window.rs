//! Sliding window: an exact log. At most L units in every (now − W, now].
//!
//! ```text
//! Σ = units admitted in (now − W, now]    admit ⇔ Σ + c ≤ L
//! retry = until enough of the oldest entries have left      reset = oldest + W − now
//! ```
//!
//! Example, 3/min with entries at :05, :20 and :40: at :50 the next waits 15 s, until :05 leaves.
//!
//! Exact; refused requests leave no entry. The log is packed: each entry is the time since the entry
//! before it, and its weight where that is not 1, in base-128 digits; entries of one instant are
//! merged. 30 requests spread over a minute take four bytes each, against 16 for a pair of numbers.
//! State: 72 bytes and the log. Work: amortised O(1) an entry, O(entries) for a wait of several.

use std::collections::VecDeque;

use super::{AlgorithmError, Counter};
use crate::decision::{Standing, Verdict};
use crate::units::{Cost, Rate, Span, Timestamp};

/// At most `quota` units in every stretch of one window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    quota: u64,
    window: Span,
}

/// The log of what was admitted and has not left the window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowState {
    /// The instant of the oldest entry, if there is one.
    oldest: Timestamp,
    /// The instant of the newest entry ever made.
    newest: Timestamp,
    /// When the last entry was made or left the window, whichever was later: time inside the cell
    /// does not go back behind it, or what has left would have to come back.
    not_before: Timestamp,
    /// The sum of the entries' units.
    used: u64,
    /// Entries from the oldest to the newest, as `log` describes; the first one's time is `oldest`.
    log: VecDeque<u8>,
    /// Units of the newest entry, which is kept out of the log while it can still grow.
    newest_units: u64,
}

impl SlidingWindow {
    /// The largest quota: an entry for each unit has to be affordable in time and memory.
    pub const QUOTA_MAX: u64 = 100_000;

    /// The rule for `rate`; a rate of 0 refuses everything.
    ///
    /// # Errors
    /// [`AlgorithmError::QuotaTooLarge`] above 100,000.
    pub const fn new(rate: Rate) -> Result<Self, AlgorithmError> {
        if rate.count() > Self::QUOTA_MAX {
            return Err(AlgorithmError::QuotaTooLarge {
                algorithm: "sliding_window",
                quota: rate.count(),
                most: Self::QUOTA_MAX,
                instead: "sliding_counter",
            });
        }
        Ok(Self { quota: rate.count(), window: rate.period() })
    }

    /// The same window with a smaller quota.
    pub(super) const fn with_quota(self, quota: u64) -> Self {
        Self { quota, ..self }
    }

    /// The wait until `cost`, which is refused now and not above the quota, is admitted.
    fn wait(&self, state: &SlidingWindowState, cost: u64, now: Timestamp) -> Span {
        // There are entries enough to free it; the quota may have been lowered since they were made,
        // hence no subtraction from it.
        let mut to_free = state.used + cost - self.quota;
        let mut wait = Span::ZERO;
        for (at, units) in state.entries() {
            wait = at.after(self.window).since(now);
            if units >= to_free {
                break;
            }
            to_free -= units;
        }
        wait
    }
}

impl SlidingWindow {
    /// What [`advance`](Counter::advance), [`check`](Counter::check) and
    /// [`standing`](Counter::standing) say, from a summary of the state; none where the summary
    /// does not tell: the oldest entry has left, a wait reaches beyond it, or more is in the window
    /// than a lowered quota admits.
    pub fn judge(&self, summary: &SlidingWindowSummary, cost: Cost, now: Timestamp) -> Option<(Verdict, Standing)> {
        let now = now.max(summary.not_before);
        let oldest_leaves = summary.oldest.after(self.window);
        if summary.used > self.quota || (summary.used > 0 && oldest_leaves <= now) {
            return None;
        }
        let remaining = self.quota.saturating_sub(summary.used);
        let reset = if summary.used == 0 { Span::ZERO } else { oldest_leaves.since(now) };
        let standing = Standing { remaining, reset, next: reset };
        if cost.units() <= remaining || cost.is_zero() {
            Some((Verdict::Admit, standing))
        } else if cost.units() > self.quota {
            Some((Verdict::Never, standing))
        } else {
            let to_free = summary.used + cost.units() - self.quota;
            (to_free <= summary.oldest_units).then_some((Verdict::Wait(reset), standing))
        }
    }
}

/// Enough of a log to judge most charges.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlidingWindowSummary {
    /// The instant of the oldest entry.
    pub oldest: Timestamp,
    /// Time inside the cell does not go back behind this instant.
    pub not_before: Timestamp,
    /// The sum of the entries' units.
    pub used: u64,
    /// Units of the oldest entry.
    pub oldest_units: u64,
}

impl SlidingWindowState {
    /// Its summary.
    pub fn summary(&self) -> SlidingWindowSummary {
        let oldest_units = self.entries().next().map_or(0, |(_, units)| units);
        SlidingWindowSummary { oldest: self.oldest, not_before: self.not_before, used: self.used, oldest_units }
    }

    /// The entries, oldest first: instant and units.
    pub fn entries(&self) -> impl Iterator<Item = (Timestamp, u64)> {
        let mut bytes = self.log.iter().copied();
        let mut at = self.oldest;
        let packed = std::iter::from_fn(move || {
            let (units, gap) = read_entry(&mut bytes)?;
            let entry = (at, units);
            at = at.after(gap);
            Some(entry)
        });
        let newest = (self.newest_units > 0).then_some((self.newest, self.newest_units));
        packed.chain(newest)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.log.capacity()
    }

    fn push(&mut self, now: Timestamp, units: u64) {
        self.used += units;
        if self.newest_units == 0 {
            self.oldest = now;
        } else if now > self.newest {
            write_entry(&mut self.log, self.newest_units, now.since(self.newest));
            self.newest_units = 0;
        }
        self.newest = now;
        self.not_before = now;
        self.newest_units += units;
    }

    /// Drops the entries that are a `window` old or older.
    fn drop_older(&mut self, window: Span, now: Timestamp) {
        while self.newest_units > 0 && self.oldest.after(window) <= now {
            self.not_before = self.not_before.max(self.oldest.after(window));
            let mut bytes = self.log.iter().copied();
            let before = bytes.len();
            let Some((units, gap)) = read_entry(&mut bytes) else {
                // The newest entry is the only one left.
                self.used = 0;
                self.newest_units = 0;
                break;
            };
            let read = before - bytes.len();
            self.log.drain(..read);
            self.used -= units;
            self.oldest = self.oldest.after(gap);
        }
        if self.log.capacity() > 64 && self.log.len() * 4 < self.log.capacity() {
            self.log.shrink_to(self.log.len() * 2);
        }
    }
}

/// Writes an entry: gap·2 + (1 if units follow), then the units unless they are 1.
fn write_entry(log: &mut VecDeque<u8>, units: u64, gap: Span) {
    write_number(log, gap.as_micros() << 1 | u64::from(units != 1));
    if units != 1 {
        write_number(log, units);
    }
}

/// Reads an entry: its units, and the time from it to the next.
fn read_entry(bytes: &mut impl Iterator<Item = u8>) -> Option<(u64, Span)> {
    let head = read_number(bytes)?;
    let units = if head & 1 == 1 { read_number(bytes)? } else { 1 };
    Some((units, Span::from_micros(head >> 1)))
}

fn write_number(log: &mut VecDeque<u8>, mut number: u64) {
    while number >= 0x80 {
        log.push_back((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    log.push_back(number as u8);
}

fn read_number(bytes: &mut impl Iterator<Item = u8>) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = bytes.next()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
    }
    Some(number)
}

impl Counter for SlidingWindow {
    type State = SlidingWindowState;

    fn capacity(&self) -> u64 {
        self.quota
    }

    fn window(&self) -> Span {
        self.window
    }

    fn advance(&self, state: &mut SlidingWindowState, now: Timestamp) -> Timestamp {
        let now = now.max(state.not_before);
        state.drop_older(self.window, now);
        now
    }

    fn check(&self, state: &SlidingWindowState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.units() <= self.quota.saturating_sub(state.used) {
            return Verdict::Admit;
        }
        if cost.units() > self.quota {
            return Verdict::Never;
        }
        Verdict::Wait(self.wait(state, cost.units(), now))
    }

    fn take(&self, state: &mut SlidingWindowState, cost: Cost, now: Timestamp) {
        if !cost.is_zero() {
            assert!(state.used + cost.units() <= self.quota, "take follows a check that admitted");
            state.push(now, cost.units());
        }
    }

    fn standing(&self, state: &SlidingWindowState, now: Timestamp) -> Standing {
        let reset = if state.used == 0 { Span::ZERO } else { state.oldest.after(self.window).since(now) };
        let next = match self.quota {
            0 => Span::ZERO,
            quota if state.used > quota => self.wait(state, 1, now),
            _ => reset,
        };
        Standing { remaining: self.quota.saturating_sub(state.used), reset, next }
    }

    fn expires_at(&self, state: &SlidingWindowState) -> Timestamp {
        // An empty log still holds back a clock that is set back behind what has left it.
        if state.used == 0 { state.not_before } else { state.newest.after(self.window) }
    }
}

#[cfg(test)]
mod tests;
