//! A cluster under load: what is admitted, what is given back, and what happens when slots and servers move.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Engine, Request, config};
use tidegate_testkit::servers::{Cluster, Flavor};
use tokio::time::Instant;

use super::{HIERARCHY, admits, until};

fn engine_on(cluster: &Cluster, redis: &str, limits: &str) -> Engine {
    let urls: Vec<String> = cluster.urls().iter().map(|url| format!("\"{url}\"")).collect();
    let urls = urls.join(", ");
    let text = format!("store: {{backend: redis, redis: {{cluster: [{urls}], {redis}}}}}\nlimits:\n{limits}");
    Engine::new(config::parse(&text, &config::Source::named("limits.yaml")).unwrap().policy)
}

/// Units in a fixed window's counter, read from the cluster itself.
fn used(cluster: &Cluster, key: &str) -> u32 {
    let slot = cluster.slot_of(key);
    let read = "local v = redis.call('GET', KEYS[1]); return v and struct.unpack('>I4', v, 5) or 0";
    cluster.master_of(slot).cli(&["EVAL", read, "1", key]).trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_level_alone_leaves_the_others() {
    let cluster = Cluster::start(Flavor::Redis70);
    for (prefix, slot) in [("a", "org"), ("b", "single")] {
        let limits = "
  - {name: agent, per: [org, agent], rate: 3/day}
  - {name: org, per: [org], rate: 5/day}
  - {name: everyone, per: [], rate: 7/day}
  - {name: user, per: [user], rate: 100/day}
";
        let engine = engine_on(&cluster, &format!("timeout_ms: 2000, slot: {slot}, prefix: {prefix}"), limits);
        engine.connect().await.unwrap();
        let ask = async |org: &str, agent: &str| {
            let request = [("org", org), ("agent", agent), ("user", "u")];
            engine.decide(&Request::new(&request)).await.allowed()
        };
        let mut admitted = 0;
        for (org, agent) in [("acme", "a1"), ("acme", "a2"), ("b", "a1"), ("c", "a1")] {
            for _ in 0..5 {
                admitted += u32::from(ask(org, agent).await);
            }
        }
        assert_eq!(admitted, 7, "three, then two until the org's is spent, then two of everyone's");
        let health = engine.shared_store().unwrap();
        assert!(health.degraded.iter().all(|(_, count)| *count == 0), "{health:?}");
        let key = |rest: &str| {
            if slot == "org" {
                format!("{prefix}:{rest}")
            } else {
                format!("{{{prefix}}}:{}", rest.replace(['{', '}'], ""))
            }
        };
        if slot == "org" {
            for (name, wanted) in [
                ("{acme}:agent:a1:day", 3),
                ("{acme}:agent:a2:day", 2),
                ("{acme}:day", 5),
                ("{b}:day", 2),
                ("{c}:day", 0),
                ("{c}:agent:a1:day", 0),
            ] {
                assert_eq!(used(&cluster, &key(name)), wanted, "{name}");
            }
            assert_eq!(
                health.counts.refunds,
                2 * (3 + 5),
                "the org's and the user's, of what everyone's limit refused b and c"
            );
        } else {
            assert_eq!(health.counts.refunds, 0);
        }
        for name in ["global:day", "user:u:day"] {
            assert_eq!(used(&cluster, &key(name)), 7, "{name}");
        }
    }
}

/// Two engines, several orgs and agents, and a limit for everyone that refuses many: never too much, and in
/// the end each counter has what was admitted.
#[tokio::test(flavor = "multi_thread")]
async fn never_too_much_and_nothing_lost() {
    let cluster = Cluster::start(Flavor::Valkey91);
    let limits = "
  - {name: agent, per: [org, agent], rate: 40/day}
  - {name: org, per: [org], rate: 100/day}
  - {name: everyone, per: [], rate: 250/day}
";
    let engines = [0, 1].map(|_| engine_on(&cluster, "timeout_ms: 5000", limits));
    let admitted: Arc<[AtomicU64; 12]> = Arc::default();
    let mut tasks = Vec::new();
    for task in 0..48_usize {
        let (engine, admitted) = (engines[task % 2].clone(), Arc::clone(&admitted));
        tasks.push(tokio::spawn(async move {
            let who = task % 12;
            let (org, agent) = (format!("o{}", who / 3), format!("a{}", who % 3));
            for _ in 0..40 {
                let passed = admits(&engine, &org, &agent).await;
                admitted[who].fetch_add(u64::from(passed), Ordering::Relaxed);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let per_agent: Vec<u32> = admitted.iter().map(|count| count.load(Ordering::Relaxed) as u32).collect();
    let total: u32 = per_agent.iter().sum();
    let mut refunds = 0;
    for engine in &engines {
        let health = engine.shared_store().unwrap();
        assert!(health.degraded.iter().all(|(_, count)| *count == 0), "{health:?}");
        assert_eq!(health.counts.refunds_lost, 0);
        refunds += health.counts.refunds;
    }
    assert!(refunds > 100, "it refused what had been taken elsewhere: {refunds}");
    assert_eq!(used(&cluster, "ratelimit:global:day"), total);
    assert_eq!(total, 250, "all that there is, in the end");
    for org in 0..4 {
        let own: u32 = per_agent[org * 3..org * 3 + 3].iter().sum();
        assert!(own <= 100);
        assert_eq!(used(&cluster, &format!("ratelimit:{{o{org}}}:day")), own);
        for agent in 0..3 {
            let count = per_agent[org * 3 + agent];
            assert!(count <= 40);
            assert_eq!(used(&cluster, &format!("ratelimit:{{o{org}}}:agent:a{agent}:day")), count);
        }
    }
}

const WIDE: &str = "
  - {name: agent, per: [org, agent], rate: 100000/day}
  - {name: org, per: [org], rate: 1000000/day}
  - {name: everyone, per: [], rate: 10000000/day}
";

/// Loads an engine while `change` happens: how many were answered, and how many were answered late. Nobody
/// is refused.
async fn under_load(engine: &Engine, change: impl AsyncFnOnce(&AtomicU64)) -> Duration {
    let (stop, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let tasks: Vec<_> = (0..12)
        .map(|task| {
            let (engine, stop, answered) = (engine.clone(), Arc::clone(&stop), Arc::clone(&answered));
            tokio::spawn(async move {
                let mut longest = Duration::ZERO;
                while !stop.load(Ordering::Relaxed) {
                    let began = Instant::now();
                    assert!(admits(&engine, &format!("o{}", task % 4), &format!("a{task}")).await);
                    longest = longest.max(began.elapsed());
                    answered.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_millis(2)).await;
                }
                longest
            })
        })
        .collect();
    until("answers", async || answered.load(Ordering::Relaxed) >= 200).await;
    change(&answered).await;
    stop.store(true, Ordering::Relaxed);
    let mut longest = Duration::ZERO;
    for task in tasks {
        longest = longest.max(task.await.unwrap());
    }
    longest
}

fn degraded(engine: &Engine) -> u64 {
    engine.shared_store().unwrap().degraded.iter().map(|(_, count)| count).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slot_moves_under_load() {
    let cluster = Cluster::start(Flavor::Redis70);
    let engine = engine_on(&cluster, "timeout_ms: 500", WIDE);
    engine.connect().await.unwrap();
    let slot = cluster.slot_of("ratelimit:{o1}:day");
    let old = cluster.master_of(slot).port();
    let to = cluster.nodes().iter().find(|node| node.port() != old).unwrap();
    let longest = under_load(&engine, async |answered| {
        cluster.migrate_slot(slot, to);
        let wanted = answered.load(Ordering::Relaxed) + 300;
        until("answers after it", async || answered.load(Ordering::Relaxed) >= wanted).await;
        let before = degraded(&engine);
        until("more", async || answered.load(Ordering::Relaxed) >= wanted + 300).await;
        assert_eq!(degraded(&engine), before, "the cluster decides again");
    })
    .await;
    assert!(longest < Duration::from_millis(1_500), "{longest:?}");
    assert_eq!(cluster.master_of(slot).port(), to.port());
    assert!(used(&cluster, "ratelimit:{o1}:day") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_master_is_killed_and_its_replica_promoted() {
    let cluster = Cluster::start_with_replicas(Flavor::Redis70);
    let engine = engine_on(&cluster, "timeout_ms: 50", WIDE);
    engine.connect().await.unwrap();
    let slot = cluster.slot_of("ratelimit:{o1}:day");
    under_load(&engine, async |answered| {
        let old = cluster.kill_master(slot);
        cluster.wait_for_failover(slot, old);
        let took = until("healed", async || engine.shared_store().unwrap().fault.is_none()).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        let wanted = answered.load(Ordering::Relaxed) + 300;
        until("answers after it", async || answered.load(Ordering::Relaxed) >= wanted).await;
        let request = [("org", "o1"), ("agent", "a1")];
        let decision = engine.decide(&Request::new(&request)).await;
        assert!(decision.allowed() && decision.degraded().is_none(), "{:?}", engine.shared_store());
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_cluster_it_starts_and_the_policies_decide() {
    let cluster = Cluster::start(Flavor::Redis70);
    for node in cluster.nodes() {
        node.kill();
    }
    let engine = engine_on(&cluster, "timeout_ms: 50", HIERARCHY);
    assert!(engine.connect().await.is_err());
    assert!(admits(&engine, "acme", "a1").await, "by the failure policy");
}
