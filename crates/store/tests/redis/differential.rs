//! The shared store, step by step the same as the counting rules over a plain map: the script itself,
//! driven by given instants, on every kind of server; and what it stores, read back byte by byte.

use proptest::test_runner::{Config, TestCaseError, TestRunner};
use tidegate_conformance::Reference;
use tidegate_conformance::reference::{Name, State};
use tidegate_conformance::walk::{Ground, steps, walk_and_look};
use tidegate_core::Algorithm;
use tidegate_store::Key;
use tidegate_testkit::servers::{Flavor, Reply};

use crate::place::{Place, entered};

/// `TIDEGATE_SOAK` times as many.
fn soak() -> u32 {
    std::env::var("TIDEGATE_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn walks_on(flavor: Flavor) {
    let place = Place::new(flavor);
    let ground = Ground::default();
    let _entered = entered();
    let config = Config { max_shrink_iters: 500, failure_persistence: None, ..Config::with_cases(25 * soak()) };
    // Time goes both ways.
    TestRunner::new(config)
        .run(&steps(4, true, 60), |steps| {
            place.server.cli(&["FLUSHALL"]);
            walk_and_look(&place, &ground, &steps, |_| (), |reference| is_stored(&place, &ground, reference))
        })
        .unwrap();
}

/// Whether the server has what the reference has, no more and no less, and all of it with an expiry.
fn is_stored(place: &Place, ground: &Ground, reference: &Reference) -> Result<(), TestCaseError> {
    for (name, state) in reference.counters() {
        let known = ground.limits().iter().find(|known| known.id == name.0).unwrap();
        let key = key_of(place, name);
        let found = match &known.limit.algorithm {
            Algorithm::SlidingWindow(_) => place.server.call(&["LRANGE", &key, "0", "-1"]),
            _ => place.server.call(&["GET", &key]),
        };
        is_state(state, &found).map_err(|why| TestCaseError::fail(format!("{key}: {why} for {state:?}")))?;
        let Reply::Integer(left_ms) = place.server.call(&["PTTL", &key]) else {
            return Err(TestCaseError::fail("PTTL"));
        };
        proptest::prop_assert!(left_ms > 0, "{} has no expiry: {}", key, left_ms);
    }
    // Beside the counters there is the number of resets, and who is there; both may come at any moment.
    let count = "return redis.call('DBSIZE') - redis.call('EXISTS', KEYS[1], KEYS[2])";
    let keys = place.server.cli(&["EVAL", count, "2", "ratelimit:resets", "ratelimit:instances"]);
    proptest::prop_assert_eq!(keys, reference.counters().len().to_string());
    Ok(())
}

fn key_of(place: &Place, (limit, values): &Name) -> String {
    let values: Vec<&str> = values.iter().map(String::as_str).collect();
    place.store.counter_name(*limit, &Key::of(&values)).unwrap()
}

/// Whether this is how a state is stored.
fn is_state(state: &State, found: &Reply) -> Result<(), String> {
    let double = |number: u64| (number as f64).to_be_bytes();
    let expected = match state {
        State::Fixed(state) => [state.window.to_be_bytes(), state.used.to_be_bytes()].concat(),
        State::Counter(state) => [state.window, state.previous, state.current].map(double).concat(),
        State::Calendar(state) => [state.start.as_micros(), state.end.as_micros(), state.used].map(double).concat(),
        State::Bucket(state) => [&double(state.full_at.as_micros())[..], &state.ticks.to_be_bytes()].concat(),
        State::Log(log) => {
            let expected: Vec<_> = log.entries().map(|(at, units)| (at.as_micros(), units)).collect();
            let found = entries(found.elements())?;
            return if found == expected { Ok(()) } else { Err(format!("{found:?} instead of {expected:?}")) };
        }
    };
    let Reply::Bulk(bytes) = found else { return Err(format!("{found:?}")) };
    // In front of a bucket stands until when it is kept.
    let kept = if matches!(state, State::Bucket(_)) { 8 } else { 0 };
    match bytes.get(kept..) {
        Some(bytes) if bytes == expected => Ok(()),
        _ => Err(format!("{bytes:?} instead of {expected:?}")),
    }
}

/// The entries of a log, behind one that has left: instant and units.
fn entries(found: &[Reply]) -> Result<Vec<(u64, u64)>, String> {
    let number = |bytes: &[u8]| bytes.iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    let entry = |entry: &Reply| match entry {
        Reply::Bulk(bytes) if bytes.len() == 13 => Ok((number(&bytes[..7]), number(&bytes[7..]))),
        other => Err(format!("the entry {other:?}")),
    };
    let sums = found.iter().map(entry).collect::<Result<Vec<_>, _>>()?;
    Ok(sums.windows(2).map(|pair| (pair[1].0, pair[1].1 - pair[0].1)).collect())
}

#[test]
fn on_redis_7_0() {
    walks_on(Flavor::Redis70);
}

#[test]
fn on_redis_8_2() {
    walks_on(Flavor::Redis82);
}

#[test]
fn on_valkey_8_1() {
    walks_on(Flavor::Valkey81);
}

#[test]
fn on_valkey_9_1() {
    walks_on(Flavor::Valkey91);
}
