//! Keys by the server's own clock: each ends when it must, and what is broken is mended and counted.

use tidegate_conformance::limits::{Kind, Known, install};
use tidegate_core::algorithm::{FixedWindow, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, Rate, Timestamp};
use tidegate_store::{At, Batch, Charge, Key, Store};
use tidegate_testkit::servers::{AppendFsync, Flavor, Reply, Server};

use crate::place::{Place, block_on, connect};

/// The caller's clock is an hour late, and nobody minds.
fn charge(store: &impl Store, batch: &[Charge<'_>]) -> Batch {
    let local = Timestamp::from_secs(1_700_000_000);
    block_on(store.charge(batch, At::Backend { local })).unwrap()
}

fn key(place: &Place, known: &Known) -> String {
    place.store.counter_name(known.id, &Key::of(&["a"])).unwrap()
}

fn ends_at_ms(place: &Place, known: &Known) -> i64 {
    match place.server.call(&["PEXPIRETIME", &key(place, known)]) {
        Reply::Integer(ms) => ms,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_key_ends_with_its_state_and_no_refusal_moves_that() {
    let place = Place::new(Flavor::Valkey91);
    for (id, kind) in (0..).zip(Kind::ALL) {
        let known = Known::new(id, &["k"], kind.rule(3));
        install(&place, &[&known]);
        let taken = charge(&place, &[known.take(&["a"], 2)]);
        let at_ms = (taken.at.as_micros() / 1_000) as i64;
        let reset_ms = (taken.rows[0].standing.reset.as_micros() / 1_000) as i64;
        let ends = ends_at_ms(&place, &known);
        // A bucket is kept for a refill longer, a sliding counter until its windows are empty, a log until
        // its newest entry leaves, which here is its oldest.
        let slack_ms = if kind == Kind::TokenBucket { 60_000 } else { 2 };
        assert!(
            (at_ms + reset_ms..=at_ms + reset_ms + slack_ms).contains(&ends),
            "{kind:?}: {ends} {at_ms} {reset_ms}"
        );
        for _ in 0..5 {
            assert!(!charge(&place, &[known.take(&["a"], 3)]).admitted);
            charge(&place, &[known.peek(&["a"], 1)]);
        }
        assert_eq!(ends_at_ms(&place, &known), ends, "{kind:?}");
        charge(&place, &[known.take(&["a"], 1)]);
        if kind != Kind::SlidingWindow {
            assert_eq!(ends_at_ms(&place, &known), ends, "{kind:?}: in its window the expiry stands");
        }
    }
}

#[test]
fn what_is_no_counter_is_made_one_and_counted() {
    let place = Place::new(Flavor::Redis70);
    let broken: [&[&str]; 6] = [
        &["HSET", "KEY", "a", "b"],
        &["RPUSH", "KEY", "a"],
        &["RPUSH", "KEY", "a", "b", "c"],
        &["SADD", "KEY", "a"],
        &["SET", "KEY", "garbage"],
        &["SET", "KEY", ""],
    ];
    for (id, kind) in (0..).zip(Kind::ALL) {
        let known = Known::new(id, &["k"], kind.rule(3));
        install(&place, &[&known]);
        let key = key(&place, &known);
        for command in broken {
            let before = place.store.counts().mended;
            place.server.cli(&["DEL", &key]);
            let command: Vec<&str> = command.iter().map(|word| if *word == "KEY" { &key } else { *word }).collect();
            place.server.cli(&command);
            assert!(charge(&place, &[known.take(&["a"], 2)]).admitted, "{kind:?} over {command:?}");
            assert!(place.store.counts().mended > before, "{kind:?} over {command:?}");
            assert!(!charge(&place, &[known.take(&["a"], 2)]).admitted, "{kind:?} over {command:?}: it counts again");
            assert!(ends_at_ms(&place, &known) > 0, "{kind:?} over {command:?}");
        }
    }
}

#[test]
fn a_key_without_an_expiry_gets_one_in_its_next_window() {
    let place = Place::new(Flavor::Redis82);
    let per_second = Rate::new(1_000, 1).unwrap();
    let rules = [
        Algorithm::FixedWindow(FixedWindow::new(per_second).unwrap()),
        Algorithm::TokenBucket(TokenBucket::new(per_second, Some(10)).unwrap()),
        Algorithm::SlidingWindow(SlidingWindow::new(per_second).unwrap()),
    ];
    let limits: Vec<Known> = (0..).zip(rules).map(|(id, rule)| Known::new(id, &["k"], rule)).collect();
    install(&place, &limits.iter().collect::<Vec<_>>());
    for known in &limits {
        charge(&place, &[known.take(&["a"], 1)]);
        place.server.cli(&["PERSIST", &key(&place, known)]);
    }
    // It is the server's own clock, which only real time moves: past the windows, and a second more.
    std::thread::sleep(std::time::Duration::from_millis(2_200));
    for known in &limits {
        let before = place.store.counts().mended;
        charge(&place, &[known.peek(&["a"], 1)]);
        assert_eq!(place.store.counts().mended, before, "a look mends nothing");
        charge(&place, &[known.take(&["a"], 1)]);
        let name = known.limit.algorithm.name();
        assert_eq!(place.store.counts().mended, before + 1, "{name}");
        assert!(ends_at_ms(&place, known) > 0, "{name}");
    }
}

#[test]
fn nothing_that_was_answered_is_lost_with_an_append_only_file() {
    let server = Server::builder(Flavor::Redis70).appendonly(AppendFsync::Always).start();
    let mut settings = tidegate_store::RedisSettings::new(&server.url()).unwrap();
    settings.timeout = std::time::Duration::from_secs(10);
    let limits: Vec<Known> = (0..).zip(Kind::ALL).map(|(id, kind)| Known::new(id, &["k"], kind.rule(1_000))).collect();
    let all: Vec<&Known> = limits.iter().collect();
    let store = connect(settings.clone());
    install(&store, &all);
    for _ in 0..100 {
        let batch: Vec<Charge<'_>> = limits.iter().map(|known| known.take(&["a"], 1)).collect();
        assert!(charge(&store, &batch).admitted);
    }
    server.kill();
    server.restart();
    let store = connect(settings);
    install(&store, &all);
    for known in &limits {
        let remaining = charge(&store, &[known.peek(&["a"], 0)]).rows[0].standing.remaining;
        // A bucket of 7 a minute may have won one back; a window may have ended.
        let kind = known.limit.algorithm.name();
        assert!(remaining <= 902 || kind == "fixed_window", "{kind}: {remaining} left");
    }
}

/// Values of the right length that no counter has: whoever asks is answered, nobody else is touched, and
/// the next take mends it.
#[test]
fn garbage_of_the_right_length_costs_nobody_an_answer() {
    let place = Place::new(Flavor::Redis70);
    let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, 0.5, 1e300, 9e15];
    let bytes = |numbers: &[f64]| numbers.iter().flat_map(|number| number.to_be_bytes()).collect::<Vec<u8>>();
    for (id, kind) in (0..).zip(Kind::ALL) {
        let (known, other) = (Known::new(id, &["k"], kind.rule(3)), Known::new(50, &["other"], kind.rule(50_000)));
        install(&place, &[&known, &other]);
        let key = key(&place, &known);
        for one in numbers {
            for two in numbers {
                place.server.cli(&["DEL", &key]);
                match kind {
                    Kind::FixedWindow => drop(place.server.call(&[b"SET", key.as_bytes(), &[0xff; 8]])),
                    Kind::TokenBucket => {
                        let value = [&bytes(&[one, two])[..], &[0, 0]].concat();
                        drop(place.server.call(&[b"SET", key.as_bytes(), &value]));
                    }
                    Kind::SlidingCounter | Kind::Calendar => {
                        drop(place.server.call(&[b"SET", key.as_bytes(), &bytes(&[one, two, one])]));
                    }
                    Kind::SlidingWindow => {
                        let now = Timestamp::from_secs(1_900_000_000).as_micros().to_be_bytes();
                        let entry = |sum: u8| [&now[1..], &[0, 0, 0, 0, 0, sum]].concat();
                        let (first, last) = (entry(one as u8), entry(two as u8));
                        drop(place.server.call(&[b"RPUSH", key.as_bytes(), &first, b"x", &last]));
                    }
                }
                for units in [0, 1, 2, 3] {
                    charge(&place, &[known.peek(&["a"], units), other.take(&["b"], 1)]);
                }
                charge(&place, &[known.take(&["a"], 2), other.take(&["b"], 1)]);
                assert!(charge(&place, &[other.take(&["b"], 1)]).admitted);
            }
        }
        assert_eq!(place.store.fault(), None, "{kind:?}");
    }
    assert_eq!(place.store.counts().connections, 1, "nobody had to connect again");
}
