//! The refund itself, on a server, later or after others: against what there would be without the taking.

use std::sync::LazyLock;

use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, CivilPeriod, Cost, Limit, Mode, PeriodKind, Rate, Span, Unit};
use tidegate_testkit::servers::{Flavor, Server};

use super::*;
use crate::RedisSettings;
use crate::charge::{Key, LimitId};
use crate::store::Store;

static SERVER: LazyLock<Server> = LazyLock::new(|| Server::start(Flavor::Redis70));

/// The first instant of an hour.
const START: Timestamp = Timestamp::from_secs(1_800_000_000);

fn kinds() -> [Algorithm; 5] {
    let rate = Rate::new(10, 60).unwrap();
    [
        Algorithm::FixedWindow(FixedWindow::new(rate).unwrap()),
        Algorithm::SlidingWindow(SlidingWindow::new(rate).unwrap()),
        Algorithm::SlidingCounter(SlidingCounter::new(rate).unwrap()),
        // A token takes 60/7 s: not a whole number of microseconds.
        Algorithm::TokenBucket(TokenBucket::new(Rate::new(7, 60).unwrap(), Some(10)).unwrap()),
        Algorithm::Calendar(Calendar::new(10, CivilPeriod::new(PeriodKind::Hour, "UTC", None).unwrap())),
    ]
}

/// A store whose one limit has this rule.
fn store(prefix: &str, algorithm: &Algorithm) -> RedisStore {
    let mut settings = RedisSettings::new(&SERVER.url()).unwrap().with_prefix(prefix).unwrap();
    settings.timeout = Duration::from_secs(10);
    let store = RedisStore::new(settings);
    let per: Vec<Arc<str>> = vec!["org".into()];
    let limit = Limit {
        name: "limit".into(),
        level: Limit::level_of(&per, algorithm),
        per,
        unit: Unit::Requests,
        mode: Mode::Enforce,
        algorithm: algorithm.clone(),
    };
    store.install(&[(LimitId(0), Arc::new(limit))]);
    store
}

fn take(algorithm: &Algorithm, units: u64) -> Charge<'_> {
    let (limit, key, cost) = (LimitId(0), Key::of(&["acme"]), Cost::new(units));
    Charge { limit, key, algorithm, cost, mode: Mode::Enforce, op: Op::Take }
}

async fn takes(store: &RedisStore, algorithm: &Algorithm, units: u64, now: Timestamp) -> bool {
    store.charge(&[take(algorithm, units)], At::Given(now)).await.unwrap().admitted
}

async fn remaining(store: &RedisStore, algorithm: &Algorithm, now: Timestamp) -> u64 {
    let look = Charge { op: Op::Peek, ..take(algorithm, 0) };
    store.charge(&[look], At::Given(now)).await.unwrap().rows[0].standing.remaining
}

/// Takes so much, and keeps what gives it back.
async fn refundable(store: &RedisStore, algorithm: &Algorithm, units: &[u64], now: Timestamp) -> Refund {
    let batch: Vec<_> = units.iter().map(|units| take(algorithm, *units)).collect();
    let part = Part::of(&batch, (0..batch.len()).collect());
    let installed = store.installed();
    let deadline = Instant::now() + store.settings.timeout;
    let answer = part.ask(store, &installed, At::Given(now), true, deadline).await.unwrap();
    assert!(answer.admitted);
    part.refund(&installed, &answer, At::Given(now)).unwrap()
}

async fn give_back(store: &RedisStore, refund: Refund, now: Timestamp) {
    let deadline = Instant::now() + store.settings.timeout;
    refund.given(Some(now)).send(Arc::clone(&store.link), deadline).await;
    assert_eq!((store.counts().refunds_lost, store.counts().mended), (0, 0));
}

/// One takes and gives back, the other never took; both take `others` before, and 3 a moment after. What each
/// has left in the end.
async fn compare(algorithm: &Algorithm, others: u64, units: &[u64], after: Span) -> (u64, u64) {
    SERVER.cli(&["FLUSHALL"]);
    let (one, other) = (store("one", algorithm), store("other", algorithm));
    let (then, moment, now) = (Span::from_micros(500), Span::from_micros(1_000), START.after(after));
    for store in [&one, &other] {
        assert!(takes(store, algorithm, others, START).await);
    }
    let refund = refundable(&one, algorithm, units, START.after(then)).await;
    for store in [&one, &other] {
        assert!(takes(store, algorithm, 3, START.after(moment)).await);
    }
    give_back(&one, refund, now).await;
    (remaining(&one, algorithm, now).await, remaining(&other, algorithm, now).await)
}

#[tokio::test]
async fn the_refund() {
    // One test, since the server is shared.
    for algorithm in &kinds() {
        what_others_took_stays(algorithm).await;
        what_time_gave_back_is_not_given_back_again(algorithm).await;
        after_a_reset_it_finds_nothing(algorithm).await;
        gives_back_whole_what_is_alone(algorithm).await;
    }
    a_bucket_that_refilled_in_part().await;
    another_types_value_is_left().await;
}

async fn what_others_took_stays(algorithm: &Algorithm) {
    for (others, units) in [(2, &[4][..]), (1, &[2, 3]), (0, &[7])] {
        let (left, wanted) = compare(algorithm, others, units, Span::from_micros(2_000)).await;
        assert_eq!((left, wanted), (7 - others, 7 - others), "{} {units:?}", algorithm.name());
    }
}

async fn what_time_gave_back_is_not_given_back_again(algorithm: &Algorithm) {
    let is_bucket = matches!(algorithm, Algorithm::TokenBucket(_));
    for secs in [1, 9, 20, 50, 59, 60, 61, 90, 119, 120, 121, 3_599, 3_600, 7_300] {
        let (left, wanted) = compare(algorithm, 2, &[4], Span::from_secs(secs)).await;
        // A bucket gives back all until only what came before is left, and then less, never more.
        let is_exact = !is_bucket || secs <= 17 || secs >= 120;
        let fits = if is_exact { left == wanted } else { left <= wanted };
        assert!(fits, "{} after {secs} s: {left}, not {wanted}", algorithm.name());
    }
}

async fn after_a_reset_it_finds_nothing(algorithm: &Algorithm) {
    SERVER.cli(&["FLUSHALL"]);
    let store = store("reset", algorithm);
    let refund = refundable(&store, algorithm, &[4], START).await;
    store.reset(LimitId(0), &Key::of(&["acme"]), At::Given(START)).await.unwrap();
    give_back(&store, refund, START).await;
    let name = store.counter_name(LimitId(0), &Key::of(&["acme"])).unwrap();
    assert_eq!(SERVER.cli(&["EXISTS", &name]).trim(), "0", "{}: no counter is made", algorithm.name());
}

async fn gives_back_whole_what_is_alone(algorithm: &Algorithm) {
    SERVER.cli(&["FLUSHALL"]);
    let store = store("alone", algorithm);
    let refund = refundable(&store, algorithm, &[10], START).await;
    let before = SERVER.cli(&["PTTL", &store.counter_name(LimitId(0), &Key::of(&["acme"])).unwrap()]);
    give_back(&store, refund, START).await;
    let after = SERVER.cli(&["PTTL", &store.counter_name(LimitId(0), &Key::of(&["acme"])).unwrap()]);
    let ms = |text: &str| text.trim().parse::<i64>().unwrap();
    assert!(ms(&after) <= ms(&before) && ms(&after) != -1, "{}: {before} {after}", algorithm.name());
    assert_eq!(remaining(&store, algorithm, START).await, 10, "{}", algorithm.name());
    assert!(takes(&store, algorithm, 10, START).await && !takes(&store, algorithm, 1, START).await);
}

/// 4 tokens take 34.3 s. Half of that later, time has given half of them back.
async fn a_bucket_that_refilled_in_part() {
    let [.., algorithm, _] = kinds();
    SERVER.cli(&["FLUSHALL"]);
    let store = store("part", &algorithm);
    let refund = refundable(&store, &algorithm, &[4], START).await;
    let half = START.after(Span::from_micros(17_142_858));
    assert_eq!(remaining(&store, &algorithm, half).await, 8);
    give_back(&store, refund, half).await;
    assert_eq!(remaining(&store, &algorithm, half).await, 10, "full, not more");
    assert!(takes(&store, &algorithm, 10, half).await && !takes(&store, &algorithm, 1, half).await);
}

async fn another_types_value_is_left() {
    for algorithm in &kinds() {
        for make in [&["SET", "k", "text"][..], &["HSET", "k", "a", "b"], &["RPUSH", "k", "x"]] {
            SERVER.cli(&["FLUSHALL"]);
            let store = store("type", algorithm);
            let refund = refundable(&store, algorithm, &[4], START).await;
            let name = store.counter_name(LimitId(0), &Key::of(&["acme"])).unwrap();
            SERVER.cli(&["DEL", &name]);
            let make: Vec<&str> = make.iter().map(|word| if *word == "k" { name.as_str() } else { word }).collect();
            SERVER.cli(&make);
            let before = SERVER.cli(&["DUMP", &name]);
            give_back(&store, refund, START).await;
            assert_eq!(SERVER.cli(&["DUMP", &name]), before, "{} {make:?}", algorithm.name());
        }
    }
}
