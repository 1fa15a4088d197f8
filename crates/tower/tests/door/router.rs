//! An axum router behind the layer.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::Extension;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CONTENT_TYPE, HeaderName};
use http::request::Parts;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use tidegate::policy::{Condition, Test};
use tidegate::{Cost, Decision, Effect, Engine, Intervention, Span};
use tidegate_tower::{Attributes, Extractor, RateLimitLayer, extract};
use tower::ServiceExt;

use crate::fixture::{MINUTE_END_SECS, NOW, THREE_LEVELS, engine, limit_headers, policy};

fn who() -> impl Extractor + Send + Sync + 'static {
    extract::header("org", HeaderName::from_static("x-org"))
        .and(extract::header("agent", HeaderName::from_static("x-agent")))
}

/// Answers with what the handler was told of the decision.
async fn show(Extension(decision): Extension<Arc<Decision>>) -> String {
    let remaining: Vec<String> =
        decision.limits().map(|state| format!("{}={}", state.limit.level, state.remaining)).collect();
    remaining.join(" ")
}

fn app(engine: Engine) -> Router {
    Router::new()
        .route("/", get(show))
        .route("/echo", post(|body: String| async { body }))
        .layer(RateLimitLayer::new(engine, who()))
}

async fn send(app: &Router, org: &str, agent: &str) -> Response {
    let request = Request::get("/").header("x-org", org).header("x-agent", agent).body(Body::empty()).unwrap();
    app.clone().oneshot(request).await.unwrap()
}

async fn text(response: Response) -> String {
    String::from_utf8(response.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

#[tokio::test]
async fn an_allowed_request_carries_headers_and_its_decision() {
    let (engine, _) = engine(THREE_LEVELS);
    let response = send(&app(engine), "acme", "a1").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(
        limit_headers(response.headers()),
        [
            "ratelimit: \"agent-minute\";r=2;t=40, \"org-minute\";r=4;t=40, \"everyone\";r=99;t=40",
            "ratelimit-policy: \"agent-minute\";q=3;w=60, \"org-minute\";q=5;w=60, \"everyone\";q=100;w=60",
            "x-ratelimit-limit: 3",
            "x-ratelimit-remaining: 2",
            "x-ratelimit-reset: 1700000040",
        ]
    );
    assert_eq!(text(response).await, "agent=2 org=4 global=99");
}

#[tokio::test]
async fn a_refused_request_gets_a_problem_document() {
    let (engine, _) = engine(THREE_LEVELS);
    let app = app(engine);
    for _ in 0..3 {
        assert_eq!(send(&app, "acme", "a1").await.status(), StatusCode::OK);
    }
    let response = send(&app, "acme", "a1").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    assert_eq!(
        limit_headers(response.headers()),
        [
            "ratelimit: \"agent-minute\";r=0;t=40, \"org-minute\";r=2;t=40, \"everyone\";r=97;t=40",
            "ratelimit-policy: \"agent-minute\";q=3;w=60, \"org-minute\";q=5;w=60, \"everyone\";q=100;w=60",
            "retry-after: 40",
            "x-ratelimit-limit: 3",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1700000040",
        ]
    );
    assert_eq!(
        text(response).await,
        concat!(
            r#"{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","#,
            r#""title":"Request cannot be satisfied as assigned quota has been exceeded","status":429,"#,
            r#""detail":"The limit \"agent-minute\" (level agent) allows 3 requests in 1min. Retry after 40 s.","#,
            r#""violated-policies":["agent-minute"],"level":"agent","retry_after_ms":40000,"never":false}"#,
        )
    );
}

#[tokio::test]
async fn all_limits_that_refuse_are_named_and_the_most_specific_first() {
    let (engine, _) = engine(THREE_LEVELS);
    let app = app(engine);
    for agent in ["a1", "a1", "a1", "a2", "a2"] {
        assert_eq!(send(&app, "acme", agent).await.status(), StatusCode::OK);
    }
    let problem: serde_json::Value = serde_json::from_str(&text(send(&app, "acme", "a1").await).await).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["agent-minute", "org-minute"]));
    assert_eq!(problem["level"], "agent");
    let problem: serde_json::Value = serde_json::from_str(&text(send(&app, "acme", "a2").await).await).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["org-minute"]));
    assert_eq!(problem["level"], "org");
}

#[tokio::test]
async fn a_request_that_can_never_pass_is_told_so() {
    let (engine, _) = engine("limits: [{ name: kill, per: [org], rate: 0/min }]");
    let response = send(&app(engine), "acme", "a1").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!response.headers().contains_key("retry-after"));
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["never"], true);
    assert_eq!(problem["retry_after_ms"], serde_json::Value::Null);
    assert_eq!(problem["detail"], "The limit \"kill\" (level org) is closed. Waiting does not help.");
}

#[tokio::test]
async fn a_refusal_takes_nothing_at_any_level() {
    let (engine, _) = engine(THREE_LEVELS);
    let app = app(engine);
    for _ in 0..20 {
        send(&app, "acme", "a1").await;
    }
    assert_eq!(text(send(&app, "acme", "a2").await).await, "agent=2 org=1 global=96");
}

#[tokio::test]
async fn a_permissive_limit_lets_pass_and_shows_its_headers() {
    let (engine, _) = engine("{ mode: permissive, limits: [{ name: org-minute, per: [org], rate: 1/min }] }");
    let app = app(engine);
    let first = send(&app, "acme", "a1").await;
    let over = send(&app, "acme", "a1").await;
    assert_eq!((first.status(), over.status()), (StatusCode::OK, StatusCode::OK));
    let expected = [
        "ratelimit: \"org-minute\";r=0;t=40",
        "ratelimit-policy: \"org-minute\";q=1;w=60",
        "x-ratelimit-limit: 1",
        "x-ratelimit-remaining: 0",
        "x-ratelimit-reset: 1700000040",
    ];
    assert_eq!(limit_headers(first.headers()), expected);
    assert_eq!(limit_headers(over.headers()), expected);
}

#[tokio::test]
async fn a_permissive_limit_is_not_named_among_the_violated() {
    let (engine, _) = engine(
        "
        limits:
          - { name: watched, per: [org, agent], rate: 1/min, mode: permissive }
          - { name: org-minute, per: [org], rate: 1/min }
        ",
    );
    let app = app(engine);
    send(&app, "acme", "a1").await;
    let problem: serde_json::Value = serde_json::from_str(&text(send(&app, "acme", "a1").await).await).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["org-minute"]));
    assert_eq!(problem["level"], "org");
}

#[tokio::test]
async fn a_disabled_limit_leaves_no_trace() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 0/min, mode: disabled }]");
    let response = send(&app(engine), "acme", "a1").await;
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(limit_headers(response.headers()), [""; 0]);
    assert_eq!(text(response).await, "");
}

#[tokio::test]
async fn keys_have_counters_of_their_own() {
    let (engine, _) = engine(THREE_LEVELS);
    let app = app(engine);
    for _ in 0..4 {
        send(&app, "acme", "a1").await;
    }
    assert_eq!(send(&app, "acme", "a1").await.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(text(send(&app, "other", "a1").await).await, "agent=2 org=4 global=96");
    // Values that only look alike when they are glued together.
    assert_eq!(text(send(&app, "acme:a", "1").await).await, "agent=2 org=4 global=95");
    assert_eq!(text(send(&app, "acme", "a:1").await).await, "agent=2 org=1 global=94");
}

#[tokio::test]
async fn the_next_window_starts_anew() {
    let (engine, clock) = engine(THREE_LEVELS);
    let app = app(engine);
    for _ in 0..3 {
        send(&app, "acme", "a1").await;
    }
    clock.advance(Span::from_micros(39_999_999));
    assert_eq!(send(&app, "acme", "a1").await.status(), StatusCode::TOO_MANY_REQUESTS);
    clock.advance(Span::from_micros(1));
    let response = send(&app, "acme", "a1").await;
    assert_eq!(response.headers()["x-ratelimit-reset"], (MINUTE_END_SECS + 60).to_string());
    assert_eq!(text(response).await, "agent=2 org=4 global=99");
}

#[tokio::test]
async fn the_body_goes_through_untouched() {
    let (engine, _) = engine(THREE_LEVELS);
    let payload = "x".repeat(300_000);
    let request = Request::post("/echo").header("x-org", "acme").body(Body::from(payload.clone())).unwrap();
    let response = app(engine).oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(text(response).await, payload);
}

#[tokio::test]
async fn errors_of_the_service_carry_headers_too() {
    let (engine, _) = engine("limits: [{ name: everyone, per: [], rate: 5/min }]");
    let response = app(engine).oneshot(Request::get("/nowhere").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::NOT_FOUND);
    assert_eq!(response.headers()["x-ratelimit-remaining"], "4");
}

#[tokio::test]
async fn a_cost_is_read_from_the_request() {
    let (engine, _) = engine(THREE_LEVELS);
    let layer = RateLimitLayer::new(engine, who()).cost(|parts: &Parts| match parts.uri.path() {
        "/search" => Cost::new(3),
        "/look" => Cost::ZERO,
        _ => Cost::ONE,
    });
    let app = Router::new().route("/{path}", get(show)).layer(layer);
    let send = async |path: &str| {
        let request = Request::get(path).header("x-org", "acme").header("x-agent", "a1").body(Body::empty()).unwrap();
        app.clone().oneshot(request).await.unwrap()
    };
    assert_eq!(text(send("/look").await).await, "agent=3 org=5 global=100");
    assert_eq!(text(send("/search").await).await, "agent=0 org=2 global=97");
    // Looking says whether one more would pass.
    assert_eq!(send("/look").await.status(), StatusCode::TOO_MANY_REQUESTS);
}

#[tokio::test]
async fn a_closure_can_extract_and_a_closure_can_refuse() {
    let (engine, _) = engine("limits: [{ name: path-minute, per: [path], rate: 1/min }]");
    let layer =
        RateLimitLayer::new(engine, |parts: &Parts| Attributes::new().with("path", parts.uri.path().to_owned()))
            .refusal(|decision, parts| {
                let wait_secs = decision.retry_after().map_or(0, Span::as_secs_ceil);
                http::Response::builder()
                    .status(StatusCode::SERVICE_UNAVAILABLE)
                    .header("x-mine", "yes")
                    .body(format!("{} has to wait {wait_secs} s", parts.uri.path()))
                    .unwrap()
            });
    let app = Router::new().route("/{path}", get(|| async { "passed" })).layer(layer);
    let send = async |path: &str| app.clone().oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(text(send("/a").await).await, "passed");
    assert_eq!(text(send("/b").await).await, "passed");
    let refused = send("/a").await;
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(refused.headers()["x-mine"], "yes");
    assert_eq!(refused.headers()["retry-after"], "40");
    assert_eq!(refused.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(text(refused).await, "/a has to wait 40 s");
}

#[tokio::test]
async fn a_reload_takes_effect_with_the_next_request() {
    let (engine, _) = engine(THREE_LEVELS);
    let app = app(engine.clone());
    assert_eq!(limit_headers(send(&app, "acme", "a1").await.headers()).len(), 5);
    engine.reload(policy(&format!("headers: {{ ietf: false, x_ratelimit: false }}\n{THREE_LEVELS}")));
    let response = send(&app, "acme", "a1").await;
    assert_eq!(limit_headers(response.headers()), [""; 0]);
    assert_eq!(text(response).await, "agent=1 org=3 global=98");
}

#[tokio::test]
async fn a_request_without_an_attribute_that_a_limit_insists_on_is_refused() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 5/min, missing: deny }]");
    let app = app(engine);
    let response = app.clone().oneshot(Request::get("/").body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(!response.headers().contains_key("retry-after"));
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["violated-policies"], serde_json::json!(["org-minute"]));
    assert_eq!(problem["never"], true);
    assert_eq!(send(&app, "acme", "a1").await.status(), StatusCode::OK);
}

#[tokio::test]
async fn an_operators_block_says_when_it_ends() {
    let (engine, clock) = engine(THREE_LEVELS);
    let app = app(engine.clone());
    let condition = Condition { attribute: "agent".into(), test: Test::Equals("a1".into()) };
    let block = Intervention {
        when: vec![condition],
        effect: Effect::Block,
        expires_at: NOW.after(Span::from_secs(3_600)),
        reason: "runs away".into(),
        by: "an operator".into(),
    };
    engine.intervene(block).unwrap();
    let response = send(&app, "acme", "a1").await;
    assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(response.headers()["retry-after"], "3600");
    let problem: serde_json::Value = serde_json::from_str(&text(response).await).unwrap();
    assert_eq!(problem["level"], "block");
    assert_eq!(problem["retry_after_ms"], 3_600_000);
    assert_eq!(send(&app, "acme", "a2").await.status(), StatusCode::OK);
    clock.advance(Span::from_secs(3_600));
    assert_eq!(send(&app, "acme", "a1").await.status(), StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn exactly_as_many_as_allowed_pass_at_once() {
    let limits = "
        limits:
          - { name: agent-minute, per: [org, agent], rate: 40/min }
          - { name: org-minute, per: [org], rate: 100/min }
          - { name: everyone, per: [], rate: 1000/min }
    ";
    let (engine, _) = engine(limits);
    let reached = Arc::new(AtomicUsize::new(0));
    let handler = {
        let reached = Arc::clone(&reached);
        move || {
            reached.fetch_add(1, Ordering::SeqCst);
            async { "passed" }
        }
    };
    let app = Router::new().route("/", get(handler)).layer(RateLimitLayer::new(engine.clone(), who()));
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..800 {
        let app = app.clone();
        // Four agents of 40 each want 160 of the org's 100.
        tasks.spawn(async move { send(&app, "acme", &format!("a{}", number % 4)).await.status() });
    }
    let statuses = tasks.join_all().await;
    let passed = statuses.iter().filter(|status| **status == StatusCode::OK).count();
    let refused = statuses.iter().filter(|status| **status == StatusCode::TOO_MANY_REQUESTS).count();
    assert_eq!((passed, refused), (100, 700));
    assert_eq!(reached.load(Ordering::SeqCst), 100);
    // The 700 left the counters above and below where they were.
    let now = crate::fixture::take(&engine, &[("org", "other"), ("agent", "a0")], 1);
    let global = now.limits().last().map(|state| state.remaining);
    assert_eq!(global, Some(1_000 - 100 - 1));
}
