//! Exactly what a limit allows passes, at every level, however many ask at once from however many places.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate::{Engine, Request, UsageOrder, UsageQuery};
use tidegate_testkit::servers::{Flavor, Reply, Server};

use super::engine_with;

const ALGORITHMS: [&str; 4] = ["fixed_window", "sliding_window", "sliding_counter", "token_bucket"];
const IN_FLIGHT: u64 = 128;
/// What a worker is told in its environment: the server, the algorithm, and how many requests.
const WORKER: &str = "TIDEGATE_TEST_WORKER";

fn limits(algorithm: &str) -> String {
    let limit = |name: &str, per: &str, count: u64| {
        // So long that no window ends meanwhile, and no token comes back.
        format!("  - {{name: {name}, per: {per}, rate: {count}/366d, algorithm: {algorithm}}}\n")
    };
    limit("agent", "[org, agent]", 300) + &limit("org", "[org]", 1_000) + &limit("everyone", "[]", 1_500)
}

/// 2 orgs of 6 agents: each may take 300, each org 1,000, all 1,500.
fn names(nth: u64) -> (String, String) {
    (format!("org-{}", nth % 2), format!("agent-{}", nth / 2 % 6))
}

/// Asks `requests` times, 128 at a time; how many passed.
async fn ask(engine: &Engine, requests: u64) -> u64 {
    let (next, admitted) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (engine, next, admitted) = (engine.clone(), Arc::clone(&next), Arc::clone(&admitted));
            tokio::spawn(async move {
                loop {
                    let nth = next.fetch_add(1, Ordering::Relaxed);
                    if nth >= requests {
                        return;
                    }
                    let (org, agent) = names(nth);
                    let decision = engine.decide(&Request::new(&[("org", &org), ("agent", &agent)])).await;
                    assert_eq!(decision.degraded(), None, "{:?}", engine.shared_store());
                    admitted.fetch_add(u64::from(decision.allowed()), Ordering::Relaxed);
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    admitted.load(Ordering::Relaxed)
}

/// What was taken from each counter, by limit.
async fn taken(engine: &Engine) -> BTreeMap<String, Vec<u64>> {
    let query =
        UsageQuery { limit: None, attributes: Vec::new(), cursor: None, items_max: 1_000, order: UsageOrder::Key };
    let mut taken = BTreeMap::<String, Vec<u64>>::new();
    for item in engine.usage(&query).await.unwrap().items {
        taken.entry(item.limit.to_string()).or_default().push(item.quota - item.remaining);
    }
    taken
}

fn check(algorithm: &str, admitted: u64, taken: &BTreeMap<String, Vec<u64>>) {
    assert_eq!(admitted, 1_500, "{algorithm}");
    for (limit, most) in [("agent", 300), ("org", 1_000), ("everyone", 1_500)] {
        let counters = &taken[limit];
        assert_eq!(counters.iter().sum::<u64>(), 1_500, "{algorithm}: what was refused was taken from {limit}");
        assert!(counters.iter().all(|taken| *taken <= most), "{algorithm}: {limit} {counters:?}");
    }
}

/// Refusals are not remembered here, so that each asks the server.
fn engine(server: &str, algorithm: &str) -> Engine {
    engine_with(server, "timeout_ms: 10000, deny_memory: false", &limits(algorithm))
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_engines_with_128_in_flight_each() {
    for algorithm in ALGORITHMS {
        let server = Server::start(Flavor::Redis70);
        let (one, two) = (engine(&server.url(), algorithm), engine(&server.url(), algorithm));
        let (first, second) = tokio::join!(ask(&one, 3_000), ask(&two, 3_000));
        check(algorithm, first + second, &taken(&one).await);
        let counts = one.shared_store().unwrap().counts;
        assert!(counts.requests > 4 * counts.calls, "many shared a call: {counts:?}");
    }
}

/// Four processes; with `TIDEGATE_SOAK` a million requests for each algorithm.
#[tokio::test(flavor = "multi_thread")]
async fn of_four_processes() {
    let is_soak = std::env::var("TIDEGATE_SOAK").is_ok_and(|times| times.parse::<u32>().is_ok_and(|times| times >= 10));
    let requests = if is_soak { 250_000 } else { 1_500 };
    for algorithm in ALGORITHMS {
        let server = Server::start(Flavor::Redis70);
        let workers: Vec<_> = (0..4)
            .map(|_| {
                Command::new(std::env::current_exe().unwrap())
                    .args(["--exact", "exactness::worker", "--nocapture", "--test-threads=1"])
                    .env(WORKER, format!("{} {algorithm} {requests}", server.url()))
                    .stdout(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        let mut admitted = 0;
        for worker in workers {
            let output = worker.wait_with_output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}");
            let line = text.lines().find_map(|line| line.split("admitted ").nth(1));
            admitted += line.and_then(|count| count.trim().parse::<u64>().ok()).unwrap_or_else(|| panic!("{text}"));
        }
        check(algorithm, admitted, &taken(&engine(&server.url(), algorithm)).await);
    }
}

/// What each of the four processes does. By itself it does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn worker() {
    let Ok(told) = std::env::var(WORKER) else { return };
    let [server, algorithm, requests] = told.split(' ').collect::<Vec<_>>()[..] else { panic!("{told}") };
    let admitted = ask(&engine(server, algorithm), requests.parse().unwrap()).await;
    println!("admitted {admitted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tripping_one_level_leaves_the_others_alone() {
    let limits = "
  - {name: agent, per: [org, agent], rate: 3/day}
  - {name: org, per: [org], rate: 5/day}
  - {name: everyone, per: [], rate: 8/day}
";
    let server = Server::start(Flavor::Redis70);
    let engine = engine_with(&server.url(), "timeout_ms: 10000", limits);
    let used = |key: &str| {
        let Reply::Bulk(value) = server.call(&["GET", key]) else { return 0 };
        u32::from_be_bytes(*value.last_chunk().unwrap())
    };
    let all = |org: &str, agent: &str| {
        let agent = format!("ratelimit:{{{org}}}:agent:{agent}:day");
        [used(&agent), used(&format!("ratelimit:{{{org}}}:day")), used("ratelimit:global:day")]
    };
    let refused_by = async |org: &str, agent: &str| {
        let decision = engine.decide(&Request::new(&[("org", org), ("agent", agent)])).await;
        decision.refused_by().map(|state| state.limit.name.to_string())
    };
    for _ in 0..3 {
        assert_eq!(refused_by("acme", "a1").await, None);
    }
    assert_eq!(refused_by("acme", "a1").await.as_deref(), Some("agent"));
    assert_eq!(all("acme", "a1"), [3, 3, 3]);
    for _ in 0..2 {
        assert_eq!(refused_by("acme", "a2").await, None);
    }
    assert_eq!(refused_by("acme", "a2").await.as_deref(), Some("org"));
    assert_eq!(all("acme", "a2"), [2, 5, 5]);
    for _ in 0..3 {
        assert_eq!(refused_by("b", "b1").await, None);
    }
    assert_eq!(refused_by("c", "c1").await.as_deref(), Some("everyone"));
    assert_eq!((all("c", "c1"), all("b", "b1")), ([0, 0, 8], [3, 3, 8]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_hostile_names_move_only_their_own_counters() {
    let limits = "
  - {name: agent, per: [org, agent], rate: 3/day}
  - {name: org, per: [org], rate: 5/day}
  - {name: bursts, per: [agent], rate: 3/day, algorithm: token_bucket}
";
    let server = Server::start(Flavor::Valkey81);
    let engine = engine_with(&server.url(), "timeout_ms: 10000", limits);
    let parts =
        [":", "{", "}", "{}", "", "acme", "agent", ":agent:", "minute", "%3A", "%", "*", "\n", "\0", "é", "#", "~"];
    let mut names: Vec<String> = Vec::new();
    for one in parts {
        for two in parts {
            for three in ["", "x", ":day", "}"] {
                names.push(format!("{one}{two}{three}"));
            }
        }
    }
    names.sort_unstable();
    names.dedup();
    names.truncate(1_000);
    assert!(names.len() >= 900, "{}", names.len());
    // Each is an org and an agent; all are fresh, so each passes once and makes three counters of its own.
    for name in &names {
        let decision = engine.decide(&Request::new(&[("org", name), ("agent", name)])).await;
        assert_eq!(decision.degraded(), None);
        let left: Vec<u64> = decision.limits().map(|state| state.remaining).collect();
        assert_eq!(left, [2, 4, 2], "{name:?} found what another took");
    }
    // Beside them there is who is there.
    let count = "return redis.call('DBSIZE') - redis.call('EXISTS', KEYS[1])";
    assert_eq!(server.cli(&["EVAL", count, "1", "ratelimit:instances"]), (names.len() * 3).to_string());
}
