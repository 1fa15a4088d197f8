//! The shared store, step by step the same as the counting rules over a plain map: the script itself,
//! driven by given instants, on every kind of server.

use proptest::test_runner::{Config, TestRunner};
use tidegate_conformance::walk::{Ground, steps, walk};
use tidegate_testkit::servers::Flavor;

use crate::place::{Place, entered};

/// `TIDEGATE_SOAK` times as many.
fn soak() -> u32 {
    std::env::var("TIDEGATE_SOAK").ok().and_then(|times| times.parse().ok()).unwrap_or(1)
}

fn walks_on(flavor: Flavor) {
    let place = Place::new(flavor);
    let _entered = entered();
    let config = Config { max_shrink_iters: 500, failure_persistence: None, ..Config::with_cases(40 * soak()) };
    // Time goes both ways.
    TestRunner::new(config)
        .run(&steps(4, true, 60), |steps| {
            place.server.cli(&["FLUSHALL"]);
            walk(&place, &Ground::default(), &steps, |_| ())
        })
        .unwrap();
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
