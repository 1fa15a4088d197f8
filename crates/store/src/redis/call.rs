//! The numbers that cross to the script and back; `lua/charge.lua` says what they mean.

use std::collections::HashMap;

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Counter, Mode, Timestamp};

use super::keys::hash_tag;
use crate::charge::{Charge, Op};

/// Every integer up to it is exact in a double.
const NUMBER_MAX: u64 = (1 << 53) - 1;

const CHARGE_BYTES: usize = 5;

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
    charges: SmallVec<[AskedCharge; 4]>,
    /// How many numbers come back for it.
    pub(super) numbers: usize,
}

#[derive(Clone, Debug)]
struct AskedCharge {
    flags: u8,
    rule: RuleBytes,
    name: u16,
}

/// A kind and its numbers, as the script reads them.
type RuleBytes = SmallVec<[u8; 32]>;

impl Ask {
    /// Adds a charge of the counter `name`. `now` is what the server's clock is thought to show.
    pub(super) fn push(&mut self, charge: &Charge<'_>, name: String, now: Timestamp) {
        let at = self.names.iter().position(|known| *known == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        let mut flags = 0;
        if charge.op == Op::Take {
            flags |= TAKE;
        }
        if charge.mode == Mode::Enforce {
            flags |= ENFORCE;
        }
        self.charges.push(AskedCharge { flags, rule: rule(charge, now), name: at as u16 });
        self.numbers += numbers_found(charge.algorithm);
    }
}

impl Ask {
    /// What names its slot in a cluster, where all its counters have the same.
    pub(super) fn slot(&self) -> Option<&str> {
        self.names.first().map(|name| hash_tag(name).unwrap_or(name))
    }

    /// What is asked, as bytes: equal for equal questions only.
    pub(super) fn question(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(256);
        for AskedCharge { flags, rule, name } in &self.charges {
            bytes.extend_from_slice(&[*flags, rule.len() as u8]);
            bytes.extend_from_slice(rule);
            // Names hold no zero byte.
            bytes.extend_from_slice(self.names[usize::from(*name)].as_bytes());
            bytes.push(0);
        }
        bytes
    }
}

/// Several requests in one call of the script.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub(super) names: Vec<String>,
    places: HashMap<String, u16>,
    rules: HashMap<RuleBytes, u16>,
    rule_bytes: Vec<u8>,
    charges: Vec<u8>,
    requests: u8,
}

impl Call {
    /// Adds a request behind those that are there.
    pub(super) fn push(&mut self, ask: &Ask) {
        let mut places = SmallVec::<[u16; 4]>::new();
        for name in &ask.names {
            let next = self.names.len() as u16 + 1;
            let place = *self.places.entry(name.clone()).or_insert(next);
            if place == next {
                self.names.push(name.clone());
            }
            places.push(place);
        }
        for (nth, charge) in ask.charges.iter().enumerate() {
            let next = self.rules.len() as u16 + 1;
            let rule = *self.rules.entry(charge.rule.clone()).or_insert(next);
            if rule == next {
                self.rule_bytes.extend_from_slice(&charge.rule);
            }
            let last = if nth + 1 == ask.charges.len() { LAST } else { 0 };
            let ([r1, r2], [k1, k2]) = (rule.to_be_bytes(), places[usize::from(charge.name)].to_be_bytes());
            let bytes: [u8; CHARGE_BYTES] = [charge.flags | last, r1, r2, k1, k2];
            self.charges.extend_from_slice(&bytes);
        }
        self.requests += 1;
    }

    /// How many requests it has.
    pub(super) fn requests(&self) -> u64 {
        u64::from(self.requests)
    }

    /// What the script reads: the rules, then the charges.
    pub(super) fn blob(&self) -> Vec<u8> {
        let [high, low] = (self.rules.len() as u16).to_be_bytes();
        [&[high, low, self.requests], self.rule_bytes.as_slice(), &self.charges].concat()
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
        (Algorithm::TokenBucket(_), 18) => {
            // Behind the instant until which it is kept.
            let (full_at, ticks) = bytes[8..].split_at(8);
            let ticks = u16::from_be_bytes(ticks.try_into().ok()?);
            Some(SmallVec::from_slice(&[double(full_at)?, u64::from(ticks)]))
        }
        (Algorithm::SlidingCounter(_) | Algorithm::Calendar(_), 24) => bytes.chunks(8).map(double).collect(),
        _ => None,
    }
}

/// A charge's rule: its kind, what its counter is read by, what is asked for and the most there may be.
fn rule(charge: &Charge<'_>, now: Timestamp) -> RuleBytes {
    let mut bytes = RuleBytes::new();
    let mut write = |kind: u8, numbers: &[u64]| {
        bytes.push(kind);
        for number in numbers {
            bytes.extend_from_slice(&(*number as f64).to_be_bytes());
        }
    };
    let (units, capacity) = (charge.cost.units(), charge.algorithm.capacity().min(NUMBER_MAX));
    let asked = units.min(capacity + 1);
    let window_us = charge.algorithm.window().as_micros();
    match charge.algorithm {
        Algorithm::FixedWindow(_) => write(1, &[window_us, asked, capacity]),
        Algorithm::SlidingCounter(_) => write(3, &[window_us, asked, capacity]),
        Algorithm::SlidingWindow(_) => write(5, &[window_us, asked, capacity]),
        Algorithm::Calendar(rule) => {
            let (starts, ends) = rule.civil().around(now);
            let (_, next_ends) = rule.civil().around(ends);
            write(4, &[starts.as_micros(), ends.as_micros(), next_ends.as_micros(), asked, capacity]);
        }
        Algorithm::TokenBucket(rule) => {
            let (token_ticks, ticks_per_us) = rule.unit();
            let split = |tokens: u64| {
                let ticks = tokens.saturating_mul(token_ticks);
                (ticks / ticks_per_us, (ticks % ticks_per_us) as u16)
            };
            let (full_us, full_ticks) = split(rule.capacity());
            let (us, ticks) = if units > rule.capacity() { (NUMBER_MAX, 0) } else { split(units) };
            write(2, &[ticks_per_us, us, full_us]);
            bytes.extend_from_slice(&ticks.to_be_bytes());
            bytes.extend_from_slice(&full_ticks.to_be_bytes());
        }
    }
    bytes
}
