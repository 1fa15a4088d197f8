//! Token bucket: a bucket of B tokens that refills with L tokens every P; a request takes c.
//!
//! Kept as GCRA, the Generic Cell Rate Algorithm (ITU-T I.371, virtual scheduling): one instant,
//! the *theoretical arrival time* TAT, at which the bucket would be full.
//!
//! ```text
//! T = P / L (a token's time)      τ = B·T (an empty bucket's)
//! base = max(TAT, now)            admit ⇔ c ≤ B and base + c·T − now ≤ τ; then TAT = base + c·T
//! remaining = ⌊(τ − max(TAT − now, 0)) / T⌋
//! retry = base + c·T − now − τ    reset = max(TAT − now, 0)
//! ```
//!
//! Example, 60/min with burst 10: ten pass at once, then one a second.
//!
//! **The tick.** P/L is rarely a whole number of microseconds, so TAT is kept as whole microseconds
//! and a numerator over q, with q = L / gcd(L, P): then T is a whole number of ticks of 1/q µs and
//! the arithmetic is exact. Where q would pass 1,024, q is 1,024 and T is rounded up: never more
//! than L in P, slow by at most one part in 1024·T. The numerator's unit belongs to the rate, so a
//! state is read only under the rate that wrote it; the burst may change.
//!
//! A TAT in the past is taken as `now`, never as `now − τ` (which would admit nearly 2 B). A TAT more
//! than τ ahead is a debt, left by a clock set back or a burst lowered: nothing passes until it is
//! paid off, which takes as long as the clock went back, and `retry` says how long.
//! State: 62 bits (µs 52, numerator 10). Work: two divisions.

use super::{AlgorithmError, Counter};
use crate::decision::{Standing, Verdict};
use crate::units::{Cost, Rate, Span, Timestamp};

/// A steady rate with a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TokenBucket {
    burst: u64,
    /// Ticks in a microsecond, 1 to 1024.
    ticks_per_us: u64,
    /// T, in ticks.
    token_ticks: u64,
    /// τ, in ticks, at most 2^61.
    full_ticks: u64,
}

/// The theoretical arrival time: when the bucket would be full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucketState {
    /// Whole microseconds since the Unix epoch.
    pub full_at: Timestamp,
    /// The rest of a microsecond, in ticks: below the rule's ticks a microsecond.
    pub ticks: u16,
}

const TICKS_PER_US_MAX: u64 = 1024;
/// 2^51 µs, 71 years: leaves a TAT of any instant below 2^53 µs, 2^63 ticks.
const FULL_MAX_US: u64 = 1 << 51;

impl TokenBucket {
    /// A bucket of `burst` tokens (the rate's count if none is given) that refills at `rate`.
    /// A rate of 0 refuses everything.
    ///
    /// # Errors
    /// [`AlgorithmError`] if burst is 0, the rate is above 1,024 a microsecond, or the bucket takes
    /// more than 71 years to fill.
    pub fn new(rate: Rate, burst: Option<u64>) -> Result<Self, AlgorithmError> {
        let (count, period_us) = (rate.count(), rate.period().as_micros());
        let burst = burst.unwrap_or(count);
        if count == 0 {
            return Ok(Self { burst: 0, ticks_per_us: 1, token_ticks: 0, full_ticks: 0 });
        }
        if burst == 0 {
            return Err(AlgorithmError::BurstZero);
        }
        let ticks_per_us = (count / greatest_common_divisor(count, period_us)).min(TICKS_PER_US_MAX);
        let period_ticks = u128::from(period_us) * u128::from(ticks_per_us);
        if u128::from(count) > period_ticks {
            return Err(AlgorithmError::RateTooFine);
        }
        let token_ticks = period_ticks.div_ceil(u128::from(count));
        let full_ticks = token_ticks * u128::from(burst);
        if full_ticks > u128::from(FULL_MAX_US * ticks_per_us) {
            return Err(AlgorithmError::BurstTooLarge { burst });
        }
        let narrow = |ticks: u128| u64::try_from(ticks).map_err(|_| AlgorithmError::BurstTooLarge { burst });
        Ok(Self { burst, ticks_per_us, token_ticks: narrow(token_ticks)?, full_ticks: narrow(full_ticks)? })
    }

    /// The same refill with another burst; a rate of 0 goes on refusing everything.
    ///
    /// # Errors
    /// [`AlgorithmError`] if burst is 0, or the bucket takes more than 71 years to fill.
    pub fn with_burst(&self, burst: u64) -> Result<Self, AlgorithmError> {
        if self.token_ticks == 0 {
            return Ok(*self);
        }
        if burst == 0 {
            return Err(AlgorithmError::BurstZero);
        }
        let full_ticks = self.token_ticks.checked_mul(burst).filter(|ticks| *ticks <= FULL_MAX_US * self.ticks_per_us);
        let full_ticks = full_ticks.ok_or(AlgorithmError::BurstTooLarge { burst })?;
        Ok(Self { burst, full_ticks, ..*self })
    }

    /// One of `parts` equal parts: each token takes so many times as long. What would take longer than 71
    /// years to fill holds less.
    pub(super) fn part_of(self, parts: u64) -> Self {
        if self.token_ticks == 0 {
            return self;
        }
        let full_max = FULL_MAX_US * self.ticks_per_us;
        let token_ticks = self.token_ticks.saturating_mul(parts).min(full_max);
        let burst = (self.burst / parts).clamp(1, full_max / token_ticks);
        Self { burst, token_ticks, full_ticks: token_ticks * burst, ..self }
    }

    /// TAT − now in ticks, 0 if it has passed.
    #[inline]
    fn missing_ticks(&self, state: &TokenBucketState, now: Timestamp) -> u64 {
        let full_at_ticks = state.full_at.as_micros() * self.ticks_per_us + u64::from(state.ticks);
        full_at_ticks.saturating_sub(now.as_micros() * self.ticks_per_us)
    }

    /// Ticks a token, and ticks a microsecond. What a state's numbers mean: equal for rules that can
    /// read each other's states. The first over the second is the time in which a token comes back,
    /// in microseconds; (0, 1) for a rate of 0.
    pub const fn unit(&self) -> (u64, u64) {
        (self.token_ticks, self.ticks_per_us)
    }

    /// Rounded up. Most rates have ticks of a whole microsecond, and need no division.
    #[inline]
    const fn span(&self, ticks: u64) -> Span {
        Span::from_micros(if self.ticks_per_us == 1 { ticks } else { ticks.div_ceil(self.ticks_per_us) })
    }
}

impl TokenBucketState {
    /// The 62 bits that a cell keeps.
    #[inline]
    pub const fn pack(self) -> u64 {
        self.full_at.as_micros() << 10 | self.ticks as u64
    }

    /// Back from [`pack`](Self::pack).
    #[inline]
    pub const fn unpack(word: u64) -> Self {
        Self { full_at: Timestamp::from_micros(word >> 10), ticks: (word & 0x3ff) as u16 }
    }
}

impl Counter for TokenBucket {
    type State = TokenBucketState;

    fn capacity(&self) -> u64 {
        self.burst
    }

    fn window(&self) -> Span {
        self.span(self.full_ticks)
    }

    #[inline]
    fn advance(&self, _state: &mut TokenBucketState, now: Timestamp) -> Timestamp {
        now
    }

    #[inline]
    fn check(&self, state: &TokenBucketState, cost: Cost, now: Timestamp) -> Verdict {
        if cost.is_zero() {
            return Verdict::Admit;
        }
        if cost.units() > self.burst {
            return Verdict::Never;
        }
        let wanted = self.missing_ticks(state, now) + cost.units() * self.token_ticks;
        if wanted <= self.full_ticks { Verdict::Admit } else { Verdict::Wait(self.span(wanted - self.full_ticks)) }
    }

    #[inline]
    fn take(&self, state: &mut TokenBucketState, cost: Cost, now: Timestamp) {
        if cost.is_zero() {
            return;
        }
        let wanted = self.missing_ticks(state, now) + cost.units() * self.token_ticks;
        assert!(wanted <= self.full_ticks, "take follows a check that admitted");
        let full_ticks = now.as_micros() * self.ticks_per_us + wanted;
        state.full_at = Timestamp::from_micros(full_ticks / self.ticks_per_us);
        state.ticks = (full_ticks % self.ticks_per_us) as u16;
    }

    #[inline]
    fn standing(&self, state: &TokenBucketState, now: Timestamp) -> Standing {
        if self.token_ticks == 0 {
            return Standing::default();
        }
        let missing = self.missing_ticks(state, now);
        let remaining = self.full_ticks.saturating_sub(missing) / self.token_ticks;
        let full_but_for_next = self.full_ticks.saturating_sub((remaining + 1).saturating_mul(self.token_ticks));
        let next = if missing == 0 { 0 } else { missing - full_but_for_next };
        Standing { remaining, reset: self.span(missing), next: self.span(next) }
    }

    #[inline]
    fn expires_at(&self, state: &TokenBucketState) -> Timestamp {
        state.full_at.after(Span::from_micros(u64::from(state.ticks > 0)))
    }
}

const fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests;
