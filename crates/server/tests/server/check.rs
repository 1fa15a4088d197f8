//! `/v1/check`, `/v1/check/batch`, `/v1/limits`, health and the document, on both listeners.

use serde_json::{Value, json};

use crate::support::{Running, get, post, request, send, start};

#[tokio::test]
async fn an_allowed_request() {
    let server = start(crate::support::LIMITS).await;
    let answer = server.check(r#"{"attributes": {"org": "acme", "agent": "a1"}}"#).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    let state = |name: &str, level: &str, quota: u64, remaining: u64| {
        json!({"name": name, "level": level, "unit": "requests", "quota": quota, "remaining": remaining,
               "reset_ms": 60_000, "refused": false, "mode": "enforce"})
    };
    let wanted = json!({
        "allowed": true, "refused_by": null, "level": null, "retry_after_ms": null, "never": false, "degraded": false,
        "limits": [state("agent-minute", "agent", 3, 2), state("org-minute", "org", 10, 9), state("everyone", "global", 100, 99)],
    });
    assert_eq!(answer.json(), wanted);
    assert_eq!(answer.header("x-ratelimit-limit"), Some("3"));
    assert_eq!(answer.header("x-ratelimit-remaining"), Some("2"));
    assert_eq!(answer.header("x-ratelimit-reset"), Some("1700000040"));
    assert_eq!(
        answer.header("ratelimit-policy"),
        Some(r#""agent-minute";q=3;w=60, "org-minute";q=10;w=60, "everyone";q=100;w=60"#)
    );
    assert_eq!(answer.header("retry-after"), None);
}

#[tokio::test]
async fn a_denied_request_takes_nothing() {
    let server = start(crate::support::LIMITS).await;
    let body = r#"{"attributes": {"org": "acme", "agent": "a1"}, "cost": 3}"#;
    assert_eq!(server.check(body).await.status, 200);
    let before = server.counters().await;
    server.clock.advance(tidegate::Span::from_millis(20_500));
    let answer = server.check(body).await;
    assert_eq!(answer.status, 429);
    assert_eq!(answer.header("retry-after"), Some("40"));
    let json = answer.json();
    assert_eq!(json["allowed"], false);
    assert_eq!((&json["refused_by"], &json["level"]), (&json!("agent-minute"), &json!("agent")));
    assert_eq!((&json["retry_after_ms"], &json["never"]), (&json!(39_500), &json!(false)));
    let refused: Vec<&Value> = json["limits"].as_array().unwrap().iter().map(|limit| &limit["refused"]).collect();
    assert_eq!(refused, [true, false, false]);
    let remaining = |counters: &[tidegate::UsageItem]| counters.iter().map(|item| item.remaining).collect::<Vec<_>>();
    assert_eq!(remaining(&server.counters().await), remaining(&before));
}

#[tokio::test]
async fn a_cost_above_the_quota_never_passes() {
    let server = start(crate::support::LIMITS).await;
    let answer = server.check(r#"{"attributes": {"org": "acme", "agent": "a1"}, "cost": 4}"#).await;
    assert_eq!(answer.status, 429);
    assert_eq!((&answer.json()["never"], &answer.json()["retry_after_ms"]), (&json!(true), &Value::Null));
    assert_eq!(answer.header("retry-after"), None);
}

#[tokio::test]
async fn cost_zero_peeks() {
    let server = start("limits: [{name: one, per: [], rate: 1/min}]\nstore: {memory: {names: true}}").await;
    for _ in 0..3 {
        let answer = server.check(r#"{"attributes": {}, "cost": 0}"#).await;
        assert_eq!((answer.status, &answer.json()["limits"][0]["remaining"]), (200, &json!(1)));
    }
    assert_eq!(server.check(r#"{"attributes": {}}"#).await.status, 200);
    let peek = server.check(r#"{"attributes": {}, "cost": 0}"#).await;
    assert_eq!((peek.status, &peek.json()["allowed"]), (429, &json!(false)), "cost 1 would not pass");
}

#[tokio::test]
async fn permissive_limits_are_told_and_do_not_refuse() {
    let server = start("limits: [{name: soft, per: [], rate: 1/min, mode: permissive}]").await;
    let body = r#"{"attributes": {}}"#;
    assert_eq!(server.check(body).await.status, 200);
    let answer = server.check(body).await;
    assert_eq!(answer.status, 200);
    let json = answer.json();
    assert_eq!((&json["allowed"], &json["refused_by"]), (&json!(true), &Value::Null));
    assert_eq!((&json["limits"][0]["refused"], &json["limits"][0]["mode"]), (&json!(true), &json!("permissive")));
    let metrics = server.admin("GET", "/metrics", "").await;
    assert!(metrics.text().contains("tidegate_decisions_total{outcome=\"would_refuse\"} 1"), "{}", metrics.text());
    let wanted = "tidegate_limit_refusals_total{limit=\"soft\",level=\"global\",mode=\"permissive\"} 1";
    assert!(metrics.text().contains(wanted), "{}", metrics.text());
}

#[tokio::test]
async fn a_limit_that_refuses_for_what_is_missing_says_so() {
    let limits = "limits:
      - { name: agent, per: [org, agent], rate: 5/min, missing: deny }
      - { name: switch, per: [], rate: 0/min, when: { tool: off } }
      - { name: soft, per: [user], rate: 5/min, missing: deny, mode: permissive }
      - { name: all, per: [], rate: 5/min }";
    let server = start(limits).await;
    let rows = async |attributes: &str| {
        let answer = server.check(&format!("{{\"attributes\": {attributes}}}")).await;
        let row = |row: &Value| (row["name"].as_str().unwrap().to_owned(), row.get("missing").cloned());
        let json = answer.json();
        let rows: Vec<_> = json["limits"].as_array().unwrap().iter().map(row).collect();
        (answer.status, answer.header("ratelimit").is_some(), json["refused_by"].clone(), rows)
    };
    let row = |name: &str, missing: Option<&str>| (name.to_owned(), missing.map(|name| json!(name)));
    let named = vec![row("agent", Some("agent")), row("soft", Some("user")), row("all", None)];
    assert_eq!(rows(r#"{"org": "acme"}"#).await, (429, true, json!("agent"), named));
    let named = vec![row("agent", Some("org")), row("soft", None), row("all", None)];
    assert_eq!(rows(r#"{"agent": "a1", "user": "u"}"#).await, (429, true, json!("agent"), named));
    let named = vec![row("agent", None), row("soft", Some("user")), row("all", None)];
    assert_eq!(rows(r#"{"org": "acme", "agent": "a1"}"#).await, (200, true, Value::Null, named));
    let named = vec![row("agent", None), row("soft", None), row("switch", None), row("all", None)];
    let switched = r#"{"org": "acme", "agent": "a1", "user": "u", "tool": "off"}"#;
    assert_eq!(rows(switched).await, (429, true, json!("switch"), named));
}

#[tokio::test]
async fn headers_can_be_switched_off() {
    let off = "headers: {x_ratelimit: false, ietf: false, retry_after: false}";
    let server = start(&format!("limits: [{{name: one, per: [], rate: 0/min}}]\n{off}")).await;
    let answer = server.check(r#"{"attributes": {}}"#).await;
    assert_eq!(answer.status, 429);
    let of_limits = |(name, _): &&(String, String)| name.contains("ratelimit") || name.contains("retry");
    assert_eq!(answer.headers.iter().find(of_limits), None);
}

#[tokio::test]
async fn a_plain_curl_works() {
    let server = start(crate::support::LIMITS).await;
    let body = br#"{"attributes": {"org": "acme"}}"#;
    for headers in
        ["", "Content-Type: application/x-www-form-urlencoded\r\n", "content-type: Application/Json; charset=UTF-8\r\n"]
    {
        assert_eq!(send(server.check, &request("POST", "/v1/check", headers, body)).await.status, 200, "{headers}");
    }
    let answer = send(server.check, &request("POST", "/v1/check", "Content-Type: text/xml\r\n", body)).await;
    assert_eq!(answer.status, 415);
    assert!(answer.problem().contains("application/json"));
}

#[tokio::test]
async fn a_batch_where_each_stands_for_itself() {
    let server = start(crate::support::LIMITS).await;
    let check = r#"{"attributes": {"org": "acme", "agent": "a1"}, "cost": 2}"#;
    let answer = send(server.check, &post("/v1/check/batch", &format!(r#"{{"checks": [{check}, {check}]}}"#))).await;
    assert_eq!(answer.status, 200);
    let json = answer.json();
    assert_eq!(json["results"].as_array().unwrap().len(), 2);
    assert_eq!(json["results"][0]["allowed"], true);
    assert_eq!(
        (&json["results"][1]["allowed"], &json["results"][1]["refused_by"]),
        (&json!(false), &json!("agent-minute"))
    );
}

#[tokio::test]
async fn a_batch_that_stands_together() {
    let server = start(crate::support::LIMITS).await;
    let checks = r#"[{"attributes": {"org": "acme", "agent": "a1"}}, {"attributes": {"org": "acme", "agent": "a2"}, "cost": 4}]"#;
    let answer =
        send(server.check, &post("/v1/check/batch", &format!(r#"{{"checks": {checks}, "atomic": true}}"#))).await;
    let json = answer.json();
    assert_eq!((&json["results"][0]["allowed"], &json["results"][1]["allowed"]), (&json!(false), &json!(false)));
    assert_eq!(json["results"][1]["never"], true);
    assert_eq!(server.counters().await.iter().filter(|item| item.remaining < item.quota).count(), 0);
}

#[tokio::test]
async fn batches_are_bounded() {
    let server = start(crate::support::LIMITS).await;
    let batch = |count: usize| {
        let checks = vec![r#"{"attributes":{}}"#; count].join(",");
        post("/v1/check/batch", &format!(r#"{{"checks":[{checks}]}}"#))
    };
    assert_eq!(send(server.check, &batch(0)).await.json()["results"], json!([]));
    assert_eq!(send(server.check, &batch(1_000)).await.json()["results"].as_array().unwrap().len(), 1_000);
    let answer = send(server.check, &batch(1_001)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.problem().contains("a list of more than 1000"));
    let typo = send(server.check, &post("/v1/check/batch", r#"{"checks": [], "atomc": true}"#)).await;
    assert!(typo.problem().contains("unknown key 'atomc'; known are checks, atomic"));
}

#[tokio::test]
async fn a_batch_over_many_limits_has_fewer_checks() {
    let limits: Vec<String> = (0..40).map(|number| format!("{{name: l{number}, per: [], rate: 5000/min}}")).collect();
    let server = start(&format!("limits: [{}]", limits.join(","))).await;
    let batch = |count: usize| {
        let checks = vec![r#"{"attributes":{}}"#; count].join(",");
        post("/v1/check/batch", &format!(r#"{{"checks":[{checks}]}}"#))
    };
    let answer = send(server.check, &batch(501)).await;
    assert_eq!(answer.status, 400);
    assert!(answer.problem().contains("send at most 500 checks"), "{}", answer.problem());
    let results = send(server.check, &batch(500)).await.json();
    assert_eq!(results["results"][499]["limits"][39]["remaining"], 4_500, "those that were too many took nothing");
}

#[tokio::test]
async fn the_limits_in_force() {
    let limits = "limits: [{name: a, per: [org, agent], rate: 5/10s, algorithm: token_bucket, burst: 7}, \
                  {name: m, per: [org], quota: 1000, period: month, mode: permissive}]";
    let server = start(limits).await;
    for addr in [server.check, server.admin] {
        let json = send(addr, &get("/v1/limits")).await.json();
        assert_eq!(json["mode"], "enforce");
        let bucket = json!({"name": "a", "level": "agent", "unit": "requests", "per": ["org", "agent"],
            "algorithm": "token_bucket", "quota": 7, "window_ms": 14_000, "mode": "enforce"});
        assert_eq!(json["limits"][0], bucket);
        assert_eq!(
            (&json["limits"][1]["algorithm"], &json["limits"][1]["mode"]),
            (&json!("calendar"), &json!("permissive"))
        );
    }
}

#[tokio::test]
async fn health_and_the_document_on_both_listeners() {
    let server = start(crate::support::LIMITS).await;
    for addr in [server.check, server.admin] {
        assert_eq!(send(addr, &get("/healthz")).await.text(), "ok\n");
        assert_eq!(send(addr, &get("/readyz")).await.text(), "ready\n");
        assert_eq!(send(addr, &get("/openapi.json")).await.json()["openapi"], "3.1.0");
        let head = send_head(addr).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    }
    let answer = send(server.admin, &post("/v1/check", r#"{"attributes": {}}"#)).await;
    assert_eq!(answer.status, 200, "checks are answered on the admin listener as well");
}

async fn send_head(addr: std::net::SocketAddr) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(addr).await.unwrap();
    stream.write_all(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".as_slice()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

#[tokio::test]
async fn the_document_tells_what_is_served() {
    let server = start(crate::support::LIMITS).await;
    for (addr, other) in [(server.check, server.admin), (server.admin, server.check)] {
        let document = send(addr, &get("/openapi.json")).await.json();
        for (path, operations) in document["paths"].as_object().unwrap() {
            for method in ["get", "post", "delete"].into_iter().filter(|method| operations.get(method).is_some()) {
                let path = path.replace("{limit}", "x").replace("{id}", "1");
                let answer = send(addr, &request(&method.to_uppercase(), &path, "", b"")).await;
                let is_unknown_path = answer.status == 404 && answer.problem().contains("not served here");
                assert!(!is_unknown_path && answer.status != 405, "{method} {path}: {answer:?}");
            }
        }
        let _ = other;
    }
}

#[tokio::test]
async fn the_check_listener_knows_no_admin_path() {
    let server = start(crate::support::LIMITS).await;
    for (method, path) in [
        ("GET", "/v1/usage"),
        ("DELETE", "/v1/usage/org-minute"),
        ("GET", "/v1/blocks"),
        ("POST", "/v1/blocks"),
        ("DELETE", "/v1/blocks/1"),
        ("GET", "/v1/overrides"),
        ("POST", "/v1/overrides"),
        ("POST", "/-/reload"),
        ("GET", "/metrics"),
    ] {
        let answer = send(server.check, &request(method, path, "", b"")).await;
        assert_eq!(answer.status, 404, "{method} {path}");
        assert!(answer.problem().contains("GET /openapi.json lists what is"));
    }
}

#[tokio::test]
async fn other_methods_and_paths() {
    let server = start(crate::support::LIMITS).await;
    let answer = send(server.check, &get("/v1/check")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("POST")));
    assert!(answer.problem().contains("does not take GET"));
    let answer = send(server.admin, &request("DELETE", "/v1/blocks", "", b"")).await;
    assert_eq!((answer.status, answer.header("allow")), (405, Some("GET,HEAD,POST")));
    let answer = send(server.check, &get("/v1/check/%0d%0aX:")).await;
    assert_eq!(answer.status, 404);
}

#[tokio::test]
async fn decisions_are_counted() {
    let server: Running = start(crate::support::LIMITS).await;
    for _ in 0..4 {
        server.check(r#"{"attributes": {"org": "acme", "agent": "a1"}}"#).await;
    }
    server.check(r#"{"attributes": {"org": "acme"}, "cost": 0}"#).await;
    server.check("nonsense").await;
    let answer = server.admin("GET", "/metrics", "").await;
    assert!(answer.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    let text = answer.text();
    for line in [
        "tidegate_decisions_total{outcome=\"allowed\"} 3",
        "tidegate_decisions_total{outcome=\"refused\"} 1",
        "tidegate_decisions_total{outcome=\"peeked\"} 1",
        "tidegate_limit_refusals_total{limit=\"agent-minute\",level=\"agent\",mode=\"enforce\"} 1",
        "tidegate_limit_refusals_total{limit=\"org-minute\",level=\"org\",mode=\"enforce\"} 0",
        "tidegate_limit_missing_attribute_total{limit=\"agent-minute\",level=\"agent\"} 1",
        "tidegate_http_responses_total{class=\"2xx\"} 4",
        "tidegate_http_responses_total{class=\"4xx\"} 2",
        "tidegate_request_seconds_count{route=\"check\"} 6",
        "tidegate_store_keys 3",
        "tidegate_store_keys_max 10000000",
        "tidegate_store_at_cap_total 0",
        "tidegate_limits_file_refused 0",
        "tidegate_limits_loaded_timestamp_seconds 1699999980",
        "tidegate_connections_accepted_total{listener=\"check\"} 6",
        "tidegate_build_info{version=\"",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is not in:\n{text}");
    }
}
