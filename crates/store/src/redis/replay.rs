//! What a request's charges come to, from what the script found: by the counting rules themselves, so
//! that waits, resets and remainders are the same in every store.

use std::collections::HashMap;

use smallvec::SmallVec;
use tidegate_core::algorithm::{CalendarState, FixedWindowState, SlidingCounterState, SlidingWindow, TokenBucketState};
use tidegate_core::{Algorithm, Cost, Counter, Mode, Span, Standing, Timestamp, Verdict};

use super::call::numbers_found;
use crate::charge::{Batch, Charge, LimitId, Op, Row};
use crate::working::Working;

/// The rows of a request of which the script says that it was `admitted`; none if the numbers do not
/// bear it out.
pub(super) fn replay(batch: &[Charge<'_>], found: &[u64], now: Timestamp, admitted: bool) -> Option<Batch> {
    let (mut rows, seen, vetoed) = rows(batch, found, now, admitted)?;
    if vetoed == admitted {
        return None;
    }
    if !admitted {
        as_before(batch, &seen, &mut rows, now);
    }
    Some(Batch { admitted, rows, at: now })
}

/// The rows of charges that took nothing in the end, whatever each of them found.
pub(super) fn untaken(batch: &[Charge<'_>], found: &[u64], now: Timestamp) -> Option<SmallVec<[Row; 4]>> {
    let (mut rows, seen, _) = rows(batch, found, now, false)?;
    as_before(batch, &seen, &mut rows, now);
    Some(rows)
}

/// Where a taking is found again: the window, the begin of the period, the entry's instant, or when the
/// bucket was to be full again after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Made {
    pub(super) at: u64,
    pub(super) ticks: u16,
}

/// What each of these admitted charges took, if anything.
pub(super) fn taken(batch: &[Charge<'_>], found: &[u64], now: Timestamp) -> Option<Vec<Option<Made>>> {
    let (rows, seen, _) = rows(batch, found, now, true)?;
    let made = batch.iter().zip(rows.iter().zip(&seen)).map(|(charge, (row, seen))| {
        let took = charge.op == Op::Take && row.verdict.admits() && !charge.cost.is_zero();
        took.then(|| seen.made())
    });
    Some(made.collect())
}

type Rows<'a> = (SmallVec<[Row; 4]>, SmallVec<[Seen<'a>; 4]>, bool);

/// The rows, each counter after its charge, and whether one of them refuses.
fn rows<'a>(batch: &[Charge<'a>], found: &[u64], now: Timestamp, takes: bool) -> Option<Rows<'a>> {
    let mut wanted = HashMap::<(LimitId, &[&str]), u64>::new();
    let mut firsts: SmallVec<[Seen<'a>; 4]> = SmallVec::new();
    let mut rows = SmallVec::new();
    let mut vetoed = false;
    let mut rest = found;
    for charge in batch {
        let (own, after) = rest.split_at_checked(numbers_found(charge.algorithm))?;
        rest = after;
        let mut seen = Seen::new(charge.algorithm, own)?;
        let now = seen.advance(now);
        let mut verdict = seen.check(charge.cost, now);
        if charge.op == Op::Take && charge.mode == Mode::Enforce {
            let wanted = wanted.entry((charge.limit, &charge.key.values)).or_default();
            *wanted = wanted.saturating_add(charge.cost.units());
            if matches!(verdict, Verdict::Wait(_)) && *wanted > charge.algorithm.capacity() {
                verdict = Verdict::Never;
            }
        }
        vetoed |= charge.mode == Mode::Enforce && !verdict.admits();
        if takes && charge.op == Op::Take && verdict.admits() && !charge.cost.is_zero() {
            seen.take(charge.cost, now);
        }
        rows.push(Row { verdict, standing: seen.standing(now), at_cap: false });
        firsts.push(seen);
    }
    Some((rows, firsts, vetoed))
}

/// How a counter stands, from what the script found; none if it has expired.
pub(super) fn live(algorithm: &Algorithm, found: &[u64], now: Timestamp) -> Option<Standing> {
    let mut seen = Seen::new(algorithm, found)?;
    let now = seen.advance(now);
    let is_live = match &seen {
        Seen::Whole(working) => working.expires_at() > now,
        Seen::Log(_, seen) => seen.used > 0,
    };
    is_live.then(|| seen.standing(now))
}

/// From when on a stored state equals that of a key never seen.
pub(super) fn expires_at(algorithm: &Algorithm, numbers: &[u64]) -> Option<Timestamp> {
    match Seen::new(algorithm, numbers)? {
        Seen::Whole(working) => Some(working.expires_at()),
        Seen::Log(..) => None,
    }
}

/// After a refusal a counter stands as before its first charge.
fn as_before<'a>(batch: &[Charge<'a>], seen: &[Seen<'a>], rows: &mut [Row], now: Timestamp) {
    for (nth, charge) in batch.iter().enumerate().skip(1) {
        let earlier = &batch[..nth];
        let same = earlier.iter().position(|other| other.limit == charge.limit && other.key == charge.key);
        let Some(first) = same else { continue };
        if let Some(mut seen) = seen[first].read_by(charge.algorithm, &seen[nth]) {
            let now = seen.advance(now);
            rows[nth].standing = seen.standing(now);
        }
    }
}

/// A counter as a charge found it.
#[derive(Clone, Debug)]
enum Seen<'a> {
    /// A rule and its state.
    Whole(Working<'a>),
    /// What is told of a log.
    Log(&'a SlidingWindow, LogSeen),
}

#[derive(Clone, Copy, Debug)]
struct LogSeen {
    used: u64,
    oldest: Timestamp,
    now: Timestamp,
    wait: Span,
    next: Span,
    /// The wait for one unit, as it was before the request.
    next_before: Span,
}

impl<'a> Seen<'a> {
    fn new(algorithm: &'a Algorithm, numbers: &[u64]) -> Option<Self> {
        let time = Timestamp::from_micros;
        Some(match (algorithm, numbers) {
            (Algorithm::FixedWindow(rule), &[window, used]) => {
                let state = FixedWindowState { window: u32::try_from(window).ok()?, used: u32::try_from(used).ok()? };
                Self::Whole(Working::Fixed(rule, state))
            }
            (Algorithm::TokenBucket(rule), &[full_at, ticks]) => {
                let state = TokenBucketState { full_at: time(full_at), ticks: u16::try_from(ticks).ok()? };
                Self::Whole(Working::Bucket(rule, state))
            }
            (Algorithm::SlidingCounter(rule), &[window, previous, current]) => {
                Self::Whole(Working::Counter(rule, SlidingCounterState { window, previous, current }))
            }
            (Algorithm::Calendar(rule), &[start, end, used]) => {
                Self::Whole(Working::Calendar(rule, CalendarState { start: time(start), end: time(end), used }))
            }
            (Algorithm::SlidingWindow(rule), &[used, oldest, now, wait, next, next_before]) => {
                let [wait, next, next_before] = [wait, next, next_before].map(Span::from_micros);
                Self::Log(rule, LogSeen { used, oldest: time(oldest), now: time(now), wait, next, next_before })
            }
            _ => return None,
        })
    }

    /// The same counter under the rule of a `later` charge of it.
    fn read_by<'b>(&self, algorithm: &'b Algorithm, later: &Self) -> Option<Seen<'b>> {
        match (self, algorithm, later) {
            (Self::Whole(working), _, _) => Some(Seen::Whole(working.clone().read_by(algorithm))),
            (Self::Log(_, seen), Algorithm::SlidingWindow(rule), Self::Log(_, later)) => {
                Some(Seen::Log(rule, LogSeen { next: later.next_before, ..*seen }))
            }
            _ => None,
        }
    }

    fn advance(&mut self, now: Timestamp) -> Timestamp {
        match self {
            Self::Whole(working) => working.advance(now),
            Self::Log(_, seen) => seen.now,
        }
    }

    fn check(&self, cost: Cost, now: Timestamp) -> Verdict {
        match self {
            Self::Whole(working) => working.check(cost, now),
            Self::Log(rule, seen) => {
                if cost.units() <= rule.capacity().saturating_sub(seen.used) {
                    Verdict::Admit
                } else if cost.units() > rule.capacity() {
                    Verdict::Never
                } else {
                    Verdict::Wait(seen.wait)
                }
            }
        }
    }

    fn take(&mut self, cost: Cost, now: Timestamp) {
        match self {
            Self::Whole(working) => working.take(cost, now),
            Self::Log(_, seen) => {
                if seen.used == 0 {
                    seen.oldest = seen.now;
                }
                seen.used += cost.units();
            }
        }
    }

    /// Where its last taking is found again.
    fn made(&self) -> Made {
        let (at, ticks) = match self {
            Self::Whole(Working::Fixed(_, state)) => (u64::from(state.window), 0),
            Self::Whole(Working::Bucket(_, state)) => (state.full_at.as_micros(), state.ticks),
            Self::Whole(Working::Counter(_, state)) => (state.window, 0),
            Self::Whole(Working::Calendar(_, state)) => (state.start.as_micros(), 0),
            // The script says what it found, never a log itself.
            Self::Whole(Working::Log(..)) => (0, 0),
            Self::Log(_, seen) => (seen.now.as_micros(), 0),
        };
        Made { at, ticks }
    }

    fn standing(&self, now: Timestamp) -> Standing {
        match self {
            Self::Whole(working) => working.standing(now),
            Self::Log(rule, seen) => {
                let reset = if seen.used == 0 { Span::ZERO } else { seen.oldest.after(rule.window()).since(now) };
                let next = match rule.capacity() {
                    0 => Span::ZERO,
                    quota if seen.used > quota => seen.next,
                    _ => reset,
                };
                Standing { remaining: rule.capacity().saturating_sub(seen.used), reset, next }
            }
        }
    }
}
