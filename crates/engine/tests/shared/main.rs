//! The engine on a shared store: real servers, and their end.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops, and says where")]

mod cluster;
mod deny_memory;
mod exactness;
mod faults;
mod outage;
mod topology;

use std::time::Duration;

use tidegate::{Engine, Request, config};
use tidegate_testkit::servers::Server;
use tokio::time::Instant;

/// An engine of these limits on `server`.
fn engine(server: &Server, limits: &str) -> Engine {
    engine_at(&server.url(), limits)
}

/// An engine of these limits on whatever is at `url`.
fn engine_at(url: &str, limits: &str) -> Engine {
    engine_with(url, "timeout_ms: 50", limits)
}

/// The same with these words under `store.redis`.
fn engine_with(url: &str, redis: &str, limits: &str) -> Engine {
    let text = format!("store: {{backend: redis, redis: {{url: \"{url}\", {redis}}}}}\nlimits:\n{limits}");
    let loaded = config::parse(&text, &config::Source::named("limits.yaml")).unwrap();
    Engine::new(loaded.policy)
}

const HIERARCHY: &str = "
  - {name: agent-minute, per: [org, agent], rate: 3/day}
  - {name: org-minute, per: [org], rate: 5/day}
  - {name: everyone, per: [], rate: 100/day}
";

fn of<'a>(org: &'a str, agent: &'a str) -> [(&'a str, &'a str); 2] {
    [("org", org), ("agent", agent)]
}

/// Waits until `done` says so.
async fn until(what: &str, mut done: impl AsyncFnMut() -> bool) -> Duration {
    let began = Instant::now();
    while !done().await {
        assert!(began.elapsed() < Duration::from_secs(10), "{what}: not within ten seconds");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    began.elapsed()
}

async fn admits(engine: &Engine, org: &str, agent: &str) -> bool {
    engine.decide(&Request::new(&of(org, agent))).await.allowed()
}
