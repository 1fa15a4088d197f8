//! Servers that share a Redis, and what they say when it is gone.

use tidegate::{Engine, Policy};
use tidegate_testkit::servers::{Flavor, Server as Redis};

use crate::support::{Running, start_engine};

const BODY: &str = r#"{"attributes": {"org": "acme", "agent": "a1"}}"#;

fn policy(redis: &Redis, limits: &str) -> Policy {
    let text = format!("store: {{backend: redis, redis: {{url: \"{}\"}}}}\nlimits:\n{limits}", redis.url());
    tidegate::config::parse(&text, &tidegate::config::Source::named("limits.yaml")).unwrap().policy
}

async fn serving(redis: &Redis, limits: &str) -> Running {
    let engine = Engine::new(policy(redis, limits));
    engine.connect().await.unwrap();
    start_engine(engine).await
}

#[tokio::test(flavor = "multi_thread")]
async fn two_servers_share_limits_and_reset_and_list_them() {
    let redis = Redis::start(Flavor::Redis70);
    let limits = "  - {name: agent-day, per: [org, agent], rate: 3/day}";
    let (one, two) = (serving(&redis, limits).await, serving(&redis, limits).await);
    let mut statuses = Vec::new();
    for server in [&one, &two, &one, &two] {
        statuses.push(server.check(BODY).await.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429]);
    let usage = two.admin("GET", "/v1/usage?limit=agent-day", "").await.json();
    assert_eq!(usage["items"][0]["attributes"], serde_json::json!({"org": "acme", "agent": "a1"}));
    assert_eq!(usage["items"][0]["remaining"], 0);
    let reset = two.admin("DELETE", "/v1/usage/agent-day?attr.org=acme&attr.agent=a1", "").await;
    assert_eq!(reset.status, 200, "{reset:?}");
    assert_eq!(two.check(BODY).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_it_answers_say_so() {
    let redis = Redis::start(Flavor::Redis70);
    let server = serving(&redis, "  - {name: agent-day, per: [org, agent], rate: 3/day}").await;
    assert_eq!(server.check(BODY).await.header("x-ratelimit-degraded"), None);
    redis.kill();
    for nth in 1..=4 {
        let answer = server.check(BODY).await;
        assert_eq!(answer.status, if nth <= 3 { 200 } else { 429 });
        assert_eq!(answer.header("x-ratelimit-degraded"), Some("local"));
        assert_eq!(answer.json()["degraded"], true);
    }
    let metrics = server.admin("GET", "/metrics", "").await;
    for line in ["tidegate_shared_store_up 0", "tidegate_degraded_decisions_total{how=\"local\"} 4"] {
        assert!(metrics.text().lines().any(|own| own == line), "{line} in {}", metrics.text());
    }
    let ready = server.admin("GET", "/readyz", "").await;
    assert_eq!(ready.status, 200, "a server without its store still serves");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_limit_is_unavailable_and_not_exceeded() {
    let redis = Redis::start(Flavor::Redis70);
    let server = serving(&redis, "  - {name: vault, per: [org], rate: 3/day, on_failure: closed}").await;
    assert_eq!(server.check(BODY).await.status, 200);
    redis.kill();
    let answer = server.check(BODY).await;
    assert_eq!((answer.status, answer.header("x-ratelimit-degraded")), (503, Some("closed")));
    assert_eq!(answer.header("retry-after"), Some("1"));
    assert_eq!(answer.json()["refused_by"], "vault");
}
