//! Remembers what was refused until a known instant, so that a caller who does not wait costs the server
//! nothing.
//!
//! Only where it is exact: a fixed window that is spent stays so until it ends, and a bucket that lacks
//! tokens for a cost lacks them until they have come back; others can only take more. Time runs from the
//! moment that the question was sent, which is no later than the server's answer to it. What is reset is
//! asked again: here at once, elsewhere within a second.

use std::collections::HashMap;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use foldhash::fast::RandomState;
use tidegate_core::{Algorithm, Mode, Span, Verdict};
use tokio::time::Instant;

use crate::charge::{Batch, Charge, Op, Row};

/// Refusals remembered at a time, at most 16 times this.
const SHARD_REFUSALS_MAX: usize = 1_024;
const SHARDS: usize = 16;
/// Waits shorter than this are not worth it.
const WAIT_LEAST: Duration = Duration::from_millis(1);

/// Refusals, by what was asked.
#[derive(Debug)]
pub(super) struct Denied {
    shards: [Mutex<HashMap<Vec<u8>, Refusal>>; SHARDS],
    hasher: RandomState,
    /// What was remembered in another epoch is forgotten.
    epoch: AtomicU64,
    hits: AtomicU64,
}

#[derive(Clone, Debug)]
struct Refusal {
    batch: Batch,
    sent: Instant,
    until: Instant,
    epoch: u64,
}

impl Denied {
    pub(super) fn new() -> Self {
        Self {
            shards: Default::default(),
            hasher: RandomState::default(),
            epoch: AtomicU64::new(0),
            hits: AtomicU64::new(0),
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        self.epoch.fetch_add(1, Ordering::AcqRel);
    }

    /// The present epoch: to be read before the question is sent.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Refusals answered from memory.
    pub(super) fn hits(&self) -> u64 {
        self.hits.load(Ordering::Relaxed)
    }

    /// The refusal of the same question, if it still holds.
    pub(super) fn refusal(&self, question: &[u8], now: Instant) -> Option<Batch> {
        let shard = self.shard(question);
        let refusal = shard.get(question).filter(|one| now < one.until && one.epoch == self.epoch())?;
        self.hits.fetch_add(1, Ordering::Relaxed);
        let elapsed = now.saturating_duration_since(refusal.sent);
        Some(later(&refusal.batch, Span::from_micros(u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX))))
    }

    /// Remembers the answer, if it is a refusal that holds for a known time. `epoch` is that of the time
    /// when the question was sent.
    pub(super) fn remember(&self, question: Vec<u8>, charges: &[Charge<'_>], batch: &Batch, sent: Instant, epoch: u64) {
        let Some(wait) = holds_for(charges, batch).filter(|wait| *wait >= WAIT_LEAST) else { return };
        let until = sent + wait;
        let mut shard = self.shard(&question);
        if shard.len() >= SHARD_REFUSALS_MAX {
            let present = self.epoch();
            shard.retain(|_, one| sent < one.until && one.epoch == present);
        }
        if shard.len() < SHARD_REFUSALS_MAX {
            shard.insert(question, Refusal { batch: batch.clone(), sent, until, epoch });
        }
    }

    fn shard(&self, question: &[u8]) -> MutexGuard<'_, HashMap<Vec<u8>, Refusal>> {
        let at = self.hasher.hash_one(question) as usize % SHARDS;
        self.shards[at].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long a refusal holds: until the first of the refusing limits admits, if at least one of them is of
/// a kind that cannot admit earlier than it said.
fn holds_for(charges: &[Charge<'_>], batch: &Batch) -> Option<Duration> {
    if batch.admitted || charges.iter().any(|charge| charge.op != Op::Take) {
        return None;
    }
    let mut shortest: Option<Span> = None;
    let mut is_exact = false;
    for (charge, row) in charges.iter().zip(&batch.rows).filter(|(charge, _)| charge.mode == Mode::Enforce) {
        if let Verdict::Wait(wait) = row.verdict {
            shortest = Some(shortest.map_or(wait, |other| other.min(wait)));
            is_exact |= matches!(charge.algorithm, Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_));
        }
    }
    shortest.filter(|_| is_exact).map(|wait| Duration::from_micros(wait.as_micros()))
}

/// The same refusal, so much later.
fn later(batch: &Batch, elapsed: Span) -> Batch {
    let less = |span: Span| Span::from_micros(span.as_micros().saturating_sub(elapsed.as_micros()));
    let row = |row: &Row| {
        let mut row = *row;
        if let Verdict::Wait(wait) = row.verdict {
            row.verdict = Verdict::Wait(less(wait));
        }
        row.standing.reset = less(row.standing.reset);
        row.standing.next = less(row.standing.next);
        row
    };
    Batch { admitted: false, rows: batch.rows.iter().map(row).collect(), at: batch.at.after(elapsed) }
}

#[cfg(test)]
mod tests {
    use tidegate_core::algorithm::{FixedWindow, SlidingWindow};
    use tidegate_core::{Cost, Rate, Standing, Timestamp};

    use super::*;
    use crate::charge::{Key, LimitId};

    const SECOND: Span = Span::from_secs(1);

    fn charge(algorithm: &Algorithm) -> Charge<'_> {
        let (limit, cost) = (LimitId(0), Cost::ONE);
        Charge { limit, key: Key::default(), algorithm, cost, mode: Mode::Enforce, op: Op::Take }
    }

    fn refused(waits: &[Verdict]) -> Batch {
        let standing = Standing { remaining: 0, reset: SECOND, next: SECOND };
        let rows = waits.iter().map(|verdict| Row { verdict: *verdict, standing, at_cap: false });
        Batch { admitted: false, rows: rows.collect(), at: Timestamp::from_secs(1_800_000_000) }
    }

    fn fixed() -> Algorithm {
        Algorithm::FixedWindow(FixedWindow::new(Rate::new(1, 60).unwrap()).unwrap())
    }

    fn log() -> Algorithm {
        Algorithm::SlidingWindow(SlidingWindow::new(Rate::new(1, 60).unwrap()).unwrap())
    }

    #[test]
    fn a_refusal_holds_until_its_wait_is_over_and_counts_down() {
        let (denied, fixed, sent) = (Denied::new(), fixed(), Instant::now());
        denied.remember(b"q".to_vec(), &[charge(&fixed)], &refused(&[Verdict::Wait(SECOND)]), sent, denied.epoch());
        let half = denied.refusal(b"q", sent + Duration::from_millis(400)).unwrap();
        assert_eq!(half.rows[0].verdict, Verdict::Wait(Span::from_micros(600_000)));
        assert_eq!(half.rows[0].standing.reset, Span::from_micros(600_000));
        assert_eq!(half.at, Timestamp::from_micros(1_800_000_000_400_000));
        assert!(denied.refusal(b"q", sent + Duration::from_micros(999_999)).is_some());
        assert!(denied.refusal(b"q", sent + Duration::from_secs(1)).is_none());
        assert!(denied.refusal(b"p", sent).is_none());
        assert_eq!(denied.hits(), 2);
    }

    #[test]
    fn only_what_is_exact_is_remembered() {
        let (fixed, log) = (fixed(), log());
        let half = Span::from_micros(500_000);
        let wait = |charges: &[Charge<'_>], waits: &[Verdict]| holds_for(charges, &refused(waits));
        assert_eq!(wait(&[charge(&log)], &[Verdict::Wait(SECOND)]), None);
        assert_eq!(wait(&[charge(&fixed)], &[Verdict::Never]), None, "a rule may change");
        let both = [charge(&log), charge(&fixed)];
        assert_eq!(wait(&both, &[Verdict::Wait(half), Verdict::Wait(SECOND)]), Some(Duration::from_millis(500)));
        assert_eq!(wait(&both, &[Verdict::Wait(half), Verdict::Admit]), None);
        let permissive = Charge { mode: Mode::Permissive, ..charge(&fixed) };
        assert_eq!(wait(&[permissive], &[Verdict::Wait(SECOND)]), None);
        let peek = Charge { op: Op::Peek, ..charge(&fixed) };
        assert_eq!(wait(&[peek], &[Verdict::Wait(SECOND)]), None);
        let admitted = Batch { admitted: true, ..refused(&[Verdict::Admit]) };
        assert_eq!(holds_for(&[charge(&fixed)], &admitted), None);
    }

    #[test]
    fn what_is_cleared_is_forgotten_even_if_it_was_on_its_way() {
        let (denied, fixed, sent) = (Denied::new(), fixed(), Instant::now());
        let epoch = denied.epoch();
        denied.remember(b"q".to_vec(), &[charge(&fixed)], &refused(&[Verdict::Wait(SECOND)]), sent, epoch);
        denied.clear();
        assert!(denied.refusal(b"q", sent).is_none());
        denied.remember(b"q".to_vec(), &[charge(&fixed)], &refused(&[Verdict::Wait(SECOND)]), sent, epoch);
        assert!(denied.refusal(b"q", sent).is_none());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let (denied, fixed, sent) = (Denied::new(), fixed(), Instant::now());
        for nth in 0..40_000_u32 {
            let question = nth.to_be_bytes().to_vec();
            denied.remember(question, &[charge(&fixed)], &refused(&[Verdict::Wait(SECOND)]), sent, denied.epoch());
        }
        let kept: usize = denied.shards.iter().map(|shard| shard.lock().unwrap().len()).sum();
        assert_eq!(kept, SHARDS * SHARD_REFUSALS_MAX);
    }
}
