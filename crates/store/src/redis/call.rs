//! The numbers that cross to the script and back; `lua/charge.lua` says what they mean.

use std::collections::HashMap;

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Counter, Mode, Timestamp};

use crate::charge::{Charge, Op};

/// Every integer up to it is exact in a double.
const NUMBER_MAX: u64 = (1 << 53) - 1;

const COUNTER_BYTES: usize = 25;
const CHARGE_BYTES: usize = 23;

/// Requests that one call decides at most: one bit each in a double, and a bound on how long the
/// server is busy with one script.
pub(super) const REQUESTS_MAX: usize = 32;

const TAKE: u8 = 1;
const ENFORCE: u8 = 2;
const LAST: u8 = 4;

/// One request, on its way to the script.
#[derive(Clone, Debug, Default)]
pub(super) struct Ask {
    /// The counters, each once.
    pub(super) names: SmallVec<[String; 4]>,
    counters: SmallVec<[[u8; COUNTER_BYTES]; 4]>,
    charges: SmallVec<[[u8; CHARGE_BYTES]; 4]>,
    /// How many numbers come back for it.
    pub(super) numbers: usize,
}

impl Ask {
    /// Adds a charge of the counter `name`. `now` is what the server's clock is thought to show.
    pub(super) fn push(&mut self, charge: &Charge<'_>, name: String, now: Timestamp) {
        let at = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.counters.push(counter(charge.algorithm, now));
            self.names.len() - 1
        });
        let mut flags = 0;
        if charge.op == Op::Take {
            flags |= TAKE;
        }
        if charge.mode == Mode::Enforce {
            flags |= ENFORCE;
        }
        let (a, b, c, d) = numbers(charge);
        let mut bytes = [0; CHARGE_BYTES];
        bytes[0] = flags;
        bytes[1..3].copy_from_slice(&(at as u16 + 1).to_be_bytes());
        bytes[3..11].copy_from_slice(&(a as f64).to_be_bytes());
        bytes[11..19].copy_from_slice(&(b as f64).to_be_bytes());
        bytes[19..21].copy_from_slice(&c.to_be_bytes());
        bytes[21..23].copy_from_slice(&d.to_be_bytes());
        self.charges.push(bytes);
        self.numbers += numbers_found(charge.algorithm);
    }
}

/// Several requests in one call of the script.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) names: Vec<String>,
    places: HashMap<String, u16>,
    pub(super) counters: Vec<u8>,
    pub(super) charges: Vec<u8>,
}

impl Call {
    /// Adds a request behind those that are there.
    pub(super) fn push(&mut self, ask: &Ask) {
        let mut places = SmallVec::<[u16; 4]>::new();
        for (name, counter) in ask.names.iter().zip(&ask.counters) {
            let next = self.names.len() as u16 + 1;
            let place = *self.places.entry(name.clone()).or_insert(next);
            if place == next {
                self.names.push(name.clone());
                self.counters.extend_from_slice(counter);
            }
            places.push(place);
        }
        for (nth, charge) in ask.charges.iter().enumerate() {
            let began = self.charges.len();
            self.charges.extend_from_slice(charge);
            if nth + 1 == ask.charges.len() {
                self.charges[began] |= LAST;
            }
            let own = u16::from_be_bytes([charge[1], charge[2]]);
            let place = places.get(usize::from(own) - 1).copied().unwrap_or(own);
            self.charges[began + 1..began + 3].copy_from_slice(&place.to_be_bytes());
        }
    }
}

/// What the script says of a call.
#[derive(Debug)]
pub(super) struct Reply {
    /// The instant by which it was decided.
    pub(super) now: Timestamp,
    /// Broken counters that were mended.
    pub(super) mended: u64,
    admitted: u64,
    found: Vec<u64>,
}

impl Reply {
    /// From the script's numbers; none if they are not what it returns.
    pub(super) fn new(numbers: &[i64]) -> Option<Self> {
        let mut numbers = numbers.iter().map(|number| u64::try_from(*number).ok());
        let [now, mended, admitted] = [numbers.next()??, numbers.next()??, numbers.next()??];
        let found = numbers.collect::<Option<_>>()?;
        Some(Self { now: Timestamp::from_micros(now), mended, admitted, found })
    }

    /// Whether the `nth` request was admitted.
    pub(super) const fn admits(&self, nth: usize) -> bool {
        self.admitted >> nth & 1 == 1
    }

    /// `count` numbers from the place `from` on: what a request's charges found.
    pub(super) fn found(&self, from: usize, count: usize) -> Option<&[u64]> {
        self.found.get(from..from.checked_add(count)?)
    }
}

/// How many numbers the script says for a charge: what its counter had in it.
pub(super) const fn numbers_found(algorithm: &Algorithm) -> usize {
    match algorithm {
        Algorithm::FixedWindow(_) | Algorithm::TokenBucket(_) => 2,
        Algorithm::SlidingCounter(_) | Algorithm::Calendar(_) => 3,
        Algorithm::SlidingWindow(_) => 6,
    }
}

/// The numbers in a stored value; none if it is not of this rule's format.
pub(super) fn stored_numbers(algorithm: &Algorithm, bytes: &[u8]) -> Option<SmallVec<[u64; 3]>> {
    let double = |bytes: &[u8]| Some(f64::from_be_bytes(bytes.try_into().ok()?) as u64);
    match (algorithm, bytes.len()) {
        (Algorithm::FixedWindow(_), 8) => {
            let (window, used) = bytes.split_at(4);
            let number = |bytes: &[u8]| Some(u64::from(u32::from_be_bytes(bytes.try_into().ok()?)));
            Some(SmallVec::from_slice(&[number(window)?, number(used)?]))
        }
        (Algorithm::TokenBucket(_), 10) => {
            let (full_at, ticks) = bytes.split_at(8);
            let ticks = u16::from_be_bytes(ticks.try_into().ok()?);
            Some(SmallVec::from_slice(&[double(full_at)?, u64::from(ticks)]))
        }
        (Algorithm::SlidingCounter(_) | Algorithm::Calendar(_), 24) => bytes.chunks(8).map(double).collect(),
        _ => None,
    }
}

fn counter(algorithm: &Algorithm, now: Timestamp) -> [u8; COUNTER_BYTES] {
    let window_us = algorithm.window().as_micros();
    let (kind, numbers) = match algorithm {
        Algorithm::FixedWindow(_) => (1, [window_us, 0, 0]),
        Algorithm::SlidingCounter(_) => (2, [window_us, 0, 0]),
        Algorithm::Calendar(rule) => {
            let (starts, ends) = rule.civil().around(now);
            let (_, next_ends) = rule.civil().around(ends);
            (3, [starts.as_micros(), ends.as_micros(), next_ends.as_micros()])
        }
        Algorithm::TokenBucket(rule) => (4, [rule.unit().1, 0, 0]),
        Algorithm::SlidingWindow(_) => (5, [window_us, 0, 0]),
    };
    let mut bytes = [0; COUNTER_BYTES];
    bytes[0] = kind;
    for (nth, number) in numbers.into_iter().enumerate() {
        bytes[1 + nth * 8..9 + nth * 8].copy_from_slice(&(number as f64).to_be_bytes());
    }
    bytes
}

/// What a charge asks for: units and quota of a window; of a bucket, both in µs and ticks.
fn numbers(charge: &Charge<'_>) -> (u64, u64, u16, u16) {
    let (units, capacity) = (charge.cost.units(), charge.algorithm.capacity());
    let Algorithm::TokenBucket(rule) = charge.algorithm else {
        let capacity = capacity.min(NUMBER_MAX);
        return (units.min(capacity + 1), capacity, 0, 0);
    };
    let (token_ticks, ticks_per_us) = rule.unit();
    let split = |tokens: u64| {
        let ticks = tokens.saturating_mul(token_ticks);
        (ticks / ticks_per_us, (ticks % ticks_per_us) as u16)
    };
    let (full_us, full_ticks) = split(rule.capacity());
    let (us, ticks) = if units > capacity { (NUMBER_MAX, 0) } else { split(units) };
    (us, full_us, ticks, full_ticks)
}
