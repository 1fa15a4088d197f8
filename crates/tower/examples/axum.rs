//! An axum service whose callers are limited on three levels: each agent, its org, and all together.
//!
//! Run it with `cargo run -p tidegate-tower --example axum`, then call it a few times:
//!
//! ```text
//! curl -i -H 'x-org: acme' -H 'x-agent: a1' http://127.0.0.1:3000/
//! ```
//!
//! The fourth call within a minute is refused, and says when to come back.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Extension};
use axum::routing::get;
use http::HeaderName;
use http::request::Parts;
use tidegate::config::{self, Source};
use tidegate::{Cost, Decision, Engine};
use tidegate_tower::{Extractor, RateLimitLayer, extract};

/// What would stand in a file of its own, to be read with `config::load`.
const LIMITS: &str = "
limits:
  - { name: agent-minute, per: [org, agent], rate: 3/min }
  - { name: org-minute, per: [org], rate: 10/min, algorithm: token_bucket }
  - { name: address-minute, per: [ip], rate: 60/min }
";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let loaded = config::parse(LIMITS, &Source::named("limits.yaml"))?;
    let app = app(Engine::new(loaded.policy)).into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:3000").await?;
    axum::serve(listener, app).await?;
    Ok(())
}

fn app(engine: Engine) -> Router {
    // Headers name the caller here, so something in front of this service has to set them: a client
    // that could choose them could choose its counter.
    let who = extract::header("org", HeaderName::from_static("x-org"))
        .and(extract::header("agent", HeaderName::from_static("x-agent")))
        .and(extract::peer_address("ip", |peer: &ConnectInfo<SocketAddr>| Some(peer.0.ip())));
    let limits = RateLimitLayer::new(engine, who).cost(|parts: &Parts| match parts.uri.path() {
        "/search" => Cost::new(3),
        _ => Cost::ONE,
    });
    // The layer covers the routes that were added before it: `/health` stays free.
    Router::new()
        .route("/", get(standing))
        .route("/search", get(|| async { "found\n" }))
        .layer(limits)
        .route("/health", get(|| async { "ok\n" }))
}

/// A handler can read the decision that let its request pass.
async fn standing(Extension(decision): Extension<Arc<Decision>>) -> String {
    decision
        .limits()
        .map(|state| format!("{}: {} of {} left\n", state.limit.name, state.remaining, state.quota))
        .collect()
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::{Request, StatusCode};
    use http_body_util::BodyExt;
    use tidegate::{Clock, Timestamp};
    use tower::ServiceExt;

    use super::*;

    async fn get(app: &Router, path: &str) -> (StatusCode, String) {
        let peer: SocketAddr = "192.0.2.7:4711".parse().unwrap();
        let request = Request::get(path)
            .header("x-org", "acme")
            .header("x-agent", "a1")
            .extension(ConnectInfo(peer))
            .body(Body::empty())
            .unwrap();
        let response = app.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    fn app_at_a_fixed_time() -> Router {
        let policy = config::parse(LIMITS, &Source::named("limits.yaml")).unwrap().policy;
        app(Engine::with_clock(policy, Clock::manual(Timestamp::from_secs(1_700_000_000))))
    }

    #[tokio::test]
    async fn the_fourth_call_of_a_minute_is_refused() {
        let app = app_at_a_fixed_time();
        let first = "agent-minute: 2 of 3 left\norg-minute: 9 of 10 left\naddress-minute: 59 of 60 left\n";
        assert_eq!(get(&app, "/").await, (StatusCode::OK, first.to_owned()));
        assert_eq!(get(&app, "/").await.0, StatusCode::OK);
        assert_eq!(get(&app, "/").await.0, StatusCode::OK);
        let (status, problem) = get(&app, "/").await;
        assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
        assert!(problem.contains("The limit \\\"agent-minute\\\""), "{problem}");
        assert!(problem.contains("Retry after 40 s."), "{problem}");
    }

    #[tokio::test]
    async fn a_search_costs_three_and_health_nothing() {
        let app = app_at_a_fixed_time();
        assert_eq!(get(&app, "/search").await, (StatusCode::OK, "found\n".to_owned()));
        assert_eq!(get(&app, "/").await.0, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(get(&app, "/health").await, (StatusCode::OK, "ok\n".to_owned()));
    }
}
