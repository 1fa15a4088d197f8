//! Time, cost and rate: the numbers that everything else is made of.
//!
//! All of them are integers. Time is in microseconds: fine enough for a million requests a second
//! to be told apart, coarse enough that an instant until the year 2112 fits 52 bits, which a packed
//! cell in memory and a double in Redis both hold exactly.

use std::fmt;
use std::str::FromStr;

/// The largest instant that is told apart: 2^52 − 1 µs after the Unix epoch, in the year 2112.
const TIMESTAMP_MAX_US: u64 = (1 << 52) - 1;

/// An instant: microseconds since the Unix epoch, 0 ≤ µs < 2^52. Later instants are clamped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(u64);

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);
    /// The latest instant, in the year 2112.
    pub const MAX: Self = Self(TIMESTAMP_MAX_US);

    /// The instant `us` microseconds after the Unix epoch, clamped to [`Timestamp::MAX`].
    pub const fn from_micros(us: u64) -> Self {
        Self(if us > TIMESTAMP_MAX_US { TIMESTAMP_MAX_US } else { us })
    }

    /// The instant `ms` milliseconds after the Unix epoch, clamped to [`Timestamp::MAX`].
    pub const fn from_millis(ms: u64) -> Self {
        Self::from_micros(ms.saturating_mul(1_000))
    }

    /// The instant `secs` seconds after the Unix epoch, clamped to [`Timestamp::MAX`].
    pub const fn from_secs(secs: u64) -> Self {
        Self::from_micros(secs.saturating_mul(1_000_000))
    }

    /// Microseconds since the Unix epoch, below 2^52.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Whole seconds since the Unix epoch, rounded up: the first second in which this instant has
    /// passed.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// The time from `earlier` to here; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Self) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// The instant `span` later, clamped to [`Timestamp::MAX`].
    pub const fn after(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_add(span.0))
    }

    /// The instant `span` earlier, clamped to the epoch.
    pub const fn before(self, span: Span) -> Self {
        Self(self.0.saturating_sub(span.0))
    }
}

/// A length of time in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(u64);

impl Span {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `us` microseconds.
    pub const fn from_micros(us: u64) -> Self {
        Self(us)
    }

    /// `ms` milliseconds, saturating.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.saturating_mul(1_000))
    }

    /// `secs` seconds, saturating.
    pub const fn from_secs(secs: u64) -> Self {
        Self(secs.saturating_mul(1_000_000))
    }

    /// Microseconds.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// Milliseconds, rounded up: a wait of this many milliseconds is long enough.
    pub const fn as_millis_ceil(self) -> u64 {
        self.0.div_ceil(1_000)
    }

    /// Seconds, rounded up: a wait of this many seconds is long enough.
    pub const fn as_secs_ceil(self) -> u64 {
        self.0.div_ceil(1_000_000)
    }

    /// Whether this is no time at all.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl fmt::Display for Span {
    /// The largest whole unit: `250us`, `30s`, `2h`, `7d`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [(u64, &str); 5] =
            [(86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "min"), (1_000_000, "s"), (1_000, "ms")];
        for (size, unit) in UNITS {
            if self.0 >= size && self.0.is_multiple_of(size) {
                return write!(f, "{}{unit}", self.0 / size);
            }
        }
        write!(f, "{}us", self.0)
    }
}

/// What a request takes from a limit, in the limit's unit. 0 peeks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cost(u64);

impl Cost {
    /// Takes nothing: asks how a limit stands.
    pub const ZERO: Self = Self(0);
    /// One request.
    pub const ONE: Self = Self(1);

    /// A cost of `units`, any `u64`. A cost above a limit's capacity is refused for good, not an
    /// error.
    pub const fn new(units: u64) -> Self {
        Self(units)
    }

    /// The number of units.
    pub const fn units(self) -> u64 {
        self.0
    }

    /// This cost times a limit's weight, saturating: what does not fit 64 bits is above every
    /// capacity anyway.
    pub const fn times(self, weight: u64) -> Self {
        Self(self.0.saturating_mul(weight))
    }

    /// Whether this cost takes nothing.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

/// So many units in so much time: `60/min`, `10/30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    count: u64,
    period: Span,
}

impl Rate {
    /// The largest count: every integer up to it is exact in a double, which JSON and Lua use.
    pub const COUNT_MAX: u64 = (1 << 53) - 1;
    /// The longest period, in seconds: 366 days.
    pub const PERIOD_MAX_SECS: u64 = 366 * 86_400;

    /// `count` units in `period_secs` seconds.
    ///
    /// # Errors
    /// [`RateError`] if the count is above 2^53 − 1, or the period is 0 or longer than 366 days.
    pub fn new(count: u64, period_secs: u64) -> Result<Self, RateError> {
        if count > Self::COUNT_MAX {
            return Err(RateError { column: 1, fault: RateFault::CountTooLarge });
        }
        if period_secs == 0 || period_secs > Self::PERIOD_MAX_SECS {
            return Err(RateError { column: 1, fault: RateFault::PeriodOutOfRange });
        }
        Ok(Self { count, period: Span::from_secs(period_secs) })
    }

    /// Units a period.
    pub const fn count(self) -> u64 {
        self.count
    }

    /// The period: whole seconds, 1 s to 366 days.
    pub const fn period(self) -> Span {
        self.period
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let period = self.period.to_string();
        match period.strip_prefix('1') {
            Some(unit) if unit.starts_with(|c: char| c.is_alphabetic()) => write!(f, "{}/{unit}", self.count),
            _ => write!(f, "{}/{period}", self.count),
        }
    }
}

/// Why a text is not a rate, and where: it reads as a sentence that says what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} (at character {column}; a rate is <count>/<unit>, for example 60/min or 10/30s)")]
pub struct RateError {
    /// Which character of the text is wrong, counted from 1.
    pub column: usize,
    /// What is wrong with it.
    pub fault: RateFault,
}

/// What is wrong with a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateFault {
    /// Nothing there.
    #[error("the rate is empty")]
    Empty,
    /// No `/`.
    #[error("there is no '/' between count and unit")]
    NoSlash,
    /// The part before `/` is not a whole number.
    #[error("the count '{0}' is not a whole number")]
    Count(String),
    /// The count is above 2^53 − 1.
    #[error("the count is above 9007199254740991")]
    CountTooLarge,
    /// The part behind `/` is not a known unit.
    #[error("the unit '{0}' is not one of s, sec, second, m, min, minute, h, hr, hour, d, day")]
    Unit(String),
    /// The period is 0 or longer than 366 days.
    #[error("the period is not between 1 second and 366 days")]
    PeriodOutOfRange,
}

impl FromStr for Rate {
    type Err = RateError;

    /// Reads `<count>/<unit>` or `<count>/<n><unit>`; the unit is s, sec, second, m, min, minute,
    /// h, hr, hour, d or day, in any case, singular or plural. Blanks around the parts are ignored.
    fn from_str(text: &str) -> Result<Self, RateError> {
        let fail = |column: usize, fault: RateFault| Err(RateError { column, fault });
        if text.trim().is_empty() {
            return fail(1, RateFault::Empty);
        }
        let column_of = |part: &str| {
            let bytes_before = part.as_ptr().addr() - text.as_ptr().addr();
            text.get(..bytes_before).map_or(1, |before| before.chars().count() + 1)
        };
        let Some((count_text, period_text)) = text.split_once('/') else {
            return fail(text.trim_end().chars().count() + 1, RateFault::NoSlash);
        };
        let (count_text, period_text) = (count_text.trim(), period_text.trim());
        let column = column_of(count_text);
        if count_text.is_empty() || !count_text.bytes().all(|b| b.is_ascii_digit()) {
            return fail(column, RateFault::Count(clip(count_text)));
        }
        let Some(count) = count_text.parse::<u64>().ok().filter(|count| *count <= Self::COUNT_MAX) else {
            return fail(column, RateFault::CountTooLarge);
        };
        let digits = period_text.bytes().take_while(u8::is_ascii_digit).count();
        let (multiple_text, unit_text) = period_text.split_at(digits);
        let unit_text = unit_text.trim_start();
        let Some(unit_secs) = unit_secs(unit_text) else {
            return fail(column_of(unit_text), RateFault::Unit(clip(unit_text)));
        };
        let multiple = if multiple_text.is_empty() { Ok(1) } else { multiple_text.parse::<u64>() };
        let period_secs = multiple.ok().and_then(|multiple| multiple.checked_mul(unit_secs)).unwrap_or(0);
        Self::new(count, period_secs).or_else(|error| fail(column_of(period_text), error.fault))
    }
}

fn unit_secs(text: &str) -> Option<u64> {
    match text.to_ascii_lowercase().as_str() {
        "s" | "sec" | "secs" | "second" | "seconds" => Some(1),
        "m" | "min" | "mins" | "minute" | "minutes" => Some(60),
        "h" | "hr" | "hrs" | "hour" | "hours" => Some(3_600),
        "d" | "day" | "days" => Some(86_400),
        _ => None,
    }
}

/// At most 24 characters of what was written, so that a message stays a line.
fn clip(text: &str) -> String {
    let mut short: String = text.chars().take(24).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests;
