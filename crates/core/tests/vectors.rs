//! Vectors measured on other limiters (`testdata/vectors/`), step by step through the rule that each
//! names. Every vector is run, every field of it is read, and every figure that it gives is compared.

// Lints that are milder in tests are milder in all of this file.
#![cfg(test)]

use serde::Deserialize;
use tidegate_core::algorithm::{FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Cost, Counter, Rate, Timestamp, Verdict};

const EXACT: &str = include_str!("../../../testdata/vectors/exact.json");

/// When a vector may begin: the epoch, and a later multiple of a day, hence of every window here.
const ORIGINS_MS: [u64; 2] = [0, 20_500 * 86_400_000];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(rename = "fields")]
    _fields: String,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    id: String,
    source: String,
    /// The peer's word for its rule.
    #[serde(rename = "algorithm")]
    _algorithm: String,
    our_algorithm: String,
    limit: u64,
    window_ms: u64,
    burst: Option<u64>,
    #[serde(default)]
    epoch_offset_ms: u64,
    steps: Vec<Step>,
    #[serde(rename = "note")]
    _note: String,
    #[serde(rename = "measured")]
    _measured: bool,
    #[serde(rename = "quirk", default)]
    _quirk: bool,
    #[serde(rename = "time_origin")]
    _time_origin: String,
    exact_model: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    at_ms: u64,
    cost: u64,
    allowed: bool,
    #[serde(default)]
    never: bool,
    capacity: Option<u64>,
    remaining: Option<u64>,
    reset_ms: Option<f64>,
    retry_after_ms: Option<f64>,
}

#[test]
fn every_vector_is_met() {
    let file: File = serde_json::from_str(EXACT).unwrap();
    let texts = EXACT.matches("\"our_algorithm\"").count();
    assert_eq!(file.vectors.len(), texts, "each vector that the file names is read");
    assert!(texts >= 14, "the file has lost vectors: {texts}");
    let mut compared = 0;
    for origin_ms in ORIGINS_MS {
        for vector in &file.vectors {
            compared += run(vector, origin_ms);
        }
    }
    let steps: usize = file.vectors.iter().map(|vector| vector.steps.len()).sum();
    assert_eq!(compared, steps * ORIGINS_MS.len(), "each step is compared");
}

/// Runs a vector and returns how many steps were compared.
fn run(vector: &Vector, origin_ms: u64) -> usize {
    assert_eq!(vector.exact_model, "match", "{}: not a vector to be met", vector.id);
    assert!(vector.window_ms.is_multiple_of(1_000) && origin_ms.is_multiple_of(vector.window_ms), "{}", vector.id);
    let rate = Rate::new(vector.limit, vector.window_ms / 1_000).unwrap();
    match vector.our_algorithm.as_str() {
        "fixed_window" => steps(&FixedWindow::new(rate).unwrap(), vector, origin_ms),
        "sliding_window" => steps(&SlidingWindow::new(rate).unwrap(), vector, origin_ms),
        "sliding_counter" => steps(&SlidingCounter::new(rate).unwrap(), vector, origin_ms),
        "token_bucket" => steps(&TokenBucket::new(rate, vector.burst).unwrap(), vector, origin_ms),
        unknown => panic!("{}: no rule is called {unknown}", vector.id),
    }
}

fn steps<C: Counter>(rule: &C, vector: &Vector, origin_ms: u64) -> usize {
    let mut state = C::State::default();
    for (number, step) in vector.steps.iter().enumerate() {
        let place = format!("{} ({}) step {number}, begun at {origin_ms} ms", vector.id, vector.source);
        let now = Timestamp::from_millis(origin_ms + vector.epoch_offset_ms + step.at_ms);
        let now = rule.advance(&mut state, now);
        let verdict = rule.check(&state, Cost::new(step.cost), now);
        assert_eq!(verdict.admits(), step.allowed, "allowed: {place}");
        if step.allowed {
            rule.take(&mut state, Cost::new(step.cost), now);
        }
        if step.never {
            assert_eq!(verdict, Verdict::Never, "never: {place}");
        }
        let standing = rule.standing(&state, now);
        if let Some(capacity) = step.capacity {
            assert_eq!(rule.capacity(), capacity, "capacity: {place}");
        }
        if let Some(remaining) = step.remaining {
            assert_eq!(standing.remaining, remaining, "remaining: {place}");
        }
        if let Some(reset_ms) = step.reset_ms {
            assert_eq!(standing.reset.as_micros(), micros(reset_ms), "reset: {place}");
        }
        if let Some(retry_after_ms) = step.retry_after_ms {
            let retry_after_us = match verdict {
                Verdict::Admit => 0,
                Verdict::Wait(wait) => wait.as_micros(),
                Verdict::Never => panic!("a wait for what never passes: {place}"),
            };
            assert_eq!(retry_after_us, micros(retry_after_ms), "retry_after: {place}");
        }
    }
    vector.steps.len()
}

/// Whole microseconds: the finest figure in the file.
fn micros(ms: f64) -> u64 {
    let us = ms * 1_000.0;
    assert!((us - us.round()).abs() < 1e-6, "finer than a microsecond: {ms} ms");
    us.round() as u64
}
