//! What the failure policies do when the server goes, and when it comes back.

use std::time::Duration;

use tidegate::{Degraded, Fault, Request};
use tidegate_testkit::servers::{Flavor, Server};
use tokio::time::Instant;

use super::{HIERARCHY, admits, engine, of, until};

#[tokio::test(flavor = "multi_thread")]
async fn two_engines_share_every_level() {
    let server = Server::start(Flavor::Redis70);
    let (one, two) = (engine(&server, HIERARCHY), engine(&server, HIERARCHY));
    assert!(admits(&one, "acme", "a1").await && admits(&two, "acme", "a1").await && admits(&one, "acme", "a1").await);
    let refused = two.decide(&Request::new(&of("acme", "a1"))).await;
    assert_eq!(refused.refused_by().map(|state| state.limit.name.to_string()).as_deref(), Some("agent-minute"));
    assert_eq!(refused.degraded(), None);
    assert!(admits(&one, "acme", "a2").await && admits(&two, "acme", "a2").await);
    let refused = one.decide(&Request::new(&of("acme", "a2"))).await;
    assert_eq!(refused.refused_by().map(|state| state.limit.name.to_string()).as_deref(), Some("org-minute"));
    let left: Vec<u64> = refused.limits().map(|state| state.remaining).collect();
    assert_eq!(left, [1, 0, 95], "what was refused moved nothing");
    assert!(admits(&one, "other", "a1").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_refuses_nobody_and_stops_a_runaway_all_the_same() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, HIERARCHY);
    assert!(admits(&engine, "acme", "a1").await);
    server.kill();
    for nth in 1..=5 {
        let decision = engine.decide(&Request::new(&of("acme", "a1"))).await;
        assert_eq!(decision.allowed(), nth <= 3, "the whole limit, counted here: request {nth}");
        assert_eq!(decision.degraded(), Some(Degraded::Local));
    }
    let health = engine.shared_store().unwrap();
    assert!(matches!(health.fault, Some(Fault::Disconnected | Fault::Refused)), "{health:?}");
    server.restart();
    let took = until("back", async || engine.decide(&Request::new(&of("b", "b"))).await.degraded().is_none()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert_eq!(engine.shared_store().unwrap().fault, None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_server_costs_the_deadline_once() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, HIERARCHY);
    assert!(admits(&engine, "acme", "a1").await);
    server.pause();
    let began = Instant::now();
    assert!(admits(&engine, "acme", "a1").await);
    assert!(began.elapsed() >= Duration::from_millis(45), "it was waited for");
    until("known to be away", async || engine.shared_store().unwrap().fault == Some(Fault::TimedOut)).await;
    let began = Instant::now();
    for _ in 0..100 {
        admits(&engine, "acme", "a2").await;
    }
    // The deadline a hundred times would be five seconds.
    assert!(began.elapsed() < Duration::from_secs(1), "nobody waits for it any more: {:?}", began.elapsed());
    server.resume();
    let took = until("back", async || engine.decide(&Request::new(&of("b", "b"))).await.degraded().is_none()).await;
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_limit_has_its_own_failure_policy() {
    let limits = "
  - {name: local, per: [user], rate: 2/day}
  - {name: open, per: [team], rate: 2/day, on_failure: open}
  - {name: month, per: [org], quota: 2, period: month}
  - {name: closed, per: [vault], rate: 2/day, on_failure: closed}
";
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, limits);
    assert!(engine.decide(&Request::new(&[("user", "u")])).await.allowed());
    server.kill();
    for nth in 1..=4 {
        let ask = async |name| engine.decide(&Request::new(&[(name, "x")])).await;
        let [local, open, month, closed] = [ask("user").await, ask("team").await, ask("org").await, ask("vault").await];
        assert_eq!((local.allowed(), local.degraded()), (nth <= 2, Some(Degraded::Local)), "{nth}");
        assert_eq!((open.allowed(), open.degraded()), (true, Some(Degraded::Open)), "{nth}");
        assert_eq!((month.allowed(), month.degraded()), (true, Some(Degraded::Open)), "{nth}");
        assert_eq!((closed.allowed(), closed.degraded()), (false, Some(Degraded::Closed)), "{nth}");
        assert!(closed.retry_after().is_some());
    }
    // What the closed limit refuses takes nothing from the local one.
    for _ in 0..3 {
        assert!(!engine.decide(&Request::new(&[("user", "y"), ("vault", "x")])).await.allowed());
    }
    assert!(engine.decide(&Request::new(&[("user", "y")])).await.allowed());
    assert!(engine.decide(&Request::new(&[("user", "y")])).await.allowed());
    assert!(!engine.decide(&Request::new(&[("user", "y")])).await.allowed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_forgets_its_scripts_is_told_them_again() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, HIERARCHY);
    assert!(admits(&engine, "acme", "a1").await);
    server.cli(&["SCRIPT", "FLUSH"]);
    let decision = engine.decide(&Request::new(&of("acme", "a1"))).await;
    assert_eq!((decision.allowed(), decision.degraded()), (true, None), "{:?}", engine.shared_store());
    let left: Vec<u64> = decision.limits().map(|state| state.remaining).collect();
    assert_eq!(left, [1, 3, 98]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fair_share_keeps_a_fleet_within_the_limit_and_a_full_one_refuses_nobody() {
    let limits = "
  - {name: fair, per: [org], rate: 30/day, share: fair}
  - {name: bucket, per: [team], rate: 30/day, algorithm: token_bucket, share: fair}
  - {name: full, per: [user], rate: 30/day}
";
    let server = Server::start(Flavor::Redis70);
    let fleet = [engine(&server, limits), engine(&server, limits), engine(&server, limits)];
    for engine in &fleet {
        engine.connect().await.unwrap();
    }
    until("each knows of three", async || fleet.iter().all(|engine| engine.shared_store().unwrap().instances == 3))
        .await;
    server.kill();
    for (attribute, expected) in [("org", 30), ("team", 30), ("user", 90)] {
        let mut admitted = 0;
        for engine in &fleet {
            for _ in 0..60 {
                let decision = engine.decide(&Request::new(&[(attribute, "x")])).await;
                admitted += u64::from(decision.allowed());
            }
        }
        assert_eq!(admitted, expected, "{attribute}");
    }
    server.restart();
    for engine in &fleet {
        until("back", async || engine.decide(&Request::new(&[("org", "y")])).await.degraded().is_none()).await;
    }
    // What was counted here stays here: the server begins with what it knows, which is nothing.
    assert!(fleet[0].decide(&Request::new(&[("org", "x")])).await.allowed());
}
