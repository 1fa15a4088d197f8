//! The admin listener: usage, resets, blocks, overrides, and who may use it.

use serde_json::{Value, json};
use tidegate::Span;
use tidegate::config::{Source, parse};
use tidegate_server::{Server, Settings, StartError};

use crate::support::{LIMITS, Running, get, request, send, start};

const ACME: &str = r#"{"attributes": {"org": "acme", "agent": "a1"}}"#;

#[tokio::test]
async fn usage_lists_counters_page_by_page() {
    let server = start(LIMITS).await;
    for agent in 0..5 {
        server.check(&format!(r#"{{"attributes": {{"org": "acme", "agent": "a{agent}"}}}}"#)).await;
    }
    let page = server.admin("GET", "/v1/usage?limit=org-minute", "").await.json();
    let item = json!({"limit": "org-minute", "level": "org", "unit": "requests", "attributes": {"org": "acme"},
        "quota": 10, "remaining": 5, "reset_ms": 60_000});
    assert_eq!(page, json!({"items": [item], "next": null}));

    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = server.admin("GET", &format!("/v1/usage?items_max=2&cursor={cursor}"), "").await.json();
        let items = page["items"].as_array().unwrap();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| format!("{} {}", item["limit"], item["attributes"])));
        match page["next"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 7, "five agents, one org, everyone: {seen:?}");

    let nearest = server.admin("GET", "/v1/usage?order=nearest_first&items_max=1", "").await.json();
    assert_eq!(nearest["items"][0]["limit"], "org-minute");
    let one = server.admin("GET", "/v1/usage?limit=agent-minute&attr.org=acme&attr.agent=a3", "").await.json();
    assert_eq!((one["items"].as_array().unwrap().len(), &one["items"][0]["remaining"]), (1, &json!(2)));
}

#[tokio::test]
async fn usage_says_what_is_wrong_with_a_query() {
    let server = start(LIMITS).await;
    for (query, status, detail) in [
        ("limit=nobody", 404, "there is no limit 'nobody'"),
        ("limit=org-minute&attr.agent=a", 404, "not counted per 'agent'"),
        ("limits=x", 400, "the parameter 'limits' is not known; known are limit, cursor"),
        ("limit=a&limit=b", 400, "the parameter 'limit' stands twice"),
        ("items_max=0", 400, "from 1 to 1000"),
        ("items_max=1001", 400, "from 1 to 1000"),
        ("items_max=", 400, "from 1 to 1000"),
        ("order=", 400, "it is key or nearest_first"),
        ("order=best", 400, "it is key or nearest_first"),
        ("cursor=nonsense", 404, "begin without a cursor"),
        ("attr.org=%ff", 400, "not UTF-8"),
    ] {
        let answer = server.admin("GET", &format!("/v1/usage?{query}"), "").await;
        assert_eq!(answer.status, status, "{query}");
        assert!(answer.problem().contains(detail), "{query}: {}", answer.problem());
    }
    let nameless = start("limits: [{name: a, per: [org], rate: 5/min}]").await;
    let answer = nameless.admin("GET", "/v1/usage", "").await;
    assert_eq!(answer.status, 409);
    assert!(answer.problem().contains("store.memory.names"));
    let one = nameless.admin("GET", "/v1/usage?limit=a&attr.org=acme", "").await.json();
    assert_eq!(one["items"][0]["remaining"], 5, "one counter can be shown without names");
}

#[tokio::test]
async fn a_reset_starts_one_counter_afresh() {
    let server = start(LIMITS).await;
    for org in ["acme", "other"] {
        server.check(&format!(r#"{{"attributes": {{"org": "{org}", "agent": "a1"}}, "cost": 3}}"#)).await;
    }
    assert_eq!(server.check(ACME).await.status, 429);
    let answer = server.admin("DELETE", "/v1/usage/agent-minute?attr.org=acme&attr.agent=a1", "").await;
    assert_eq!((answer.status, answer.json()), (200, json!({"reset": 1})));
    assert_eq!(server.check(ACME).await.status, 200);
    let left = server.admin("GET", "/v1/usage?limit=agent-minute&attr.org=other&attr.agent=a1", "").await.json();
    assert_eq!(left["items"][0]["remaining"], 0, "others keep theirs");
    let usage = "/v1/usage/agent-minute";
    for (query, lacking) in [("", "give attr.org and attr.agent"), ("?attr.org=acme&all=false", "give attr.agent")] {
        let refused = server.admin("DELETE", &format!("{usage}{query}"), "").await;
        assert_eq!(refused.status, 400, "{query}");
        let told = refused.problem();
        assert!(told.contains("counted per org, agent") && told.contains(lacking), "{told}");
        assert!(told.contains("all=true"), "{told}");
    }
    let left = server.admin("GET", "/v1/usage?limit=agent-minute", "").await.json();
    assert_eq!(left["items"].as_array().unwrap().len(), 2, "what was refused moved nothing");
    assert_eq!(
        server.admin("DELETE", &format!("{usage}?attr.org=acme&all=true"), "").await.json(),
        json!({"reset": 1})
    );
    assert_eq!(server.admin("DELETE", &format!("{usage}?all=true"), "").await.json(), json!({"reset": 1}));
    assert_eq!(server.admin("DELETE", &format!("{usage}?all=yes"), "").await.status, 400);
    assert_eq!(server.admin("DELETE", "/v1/usage/everyone", "").await.json(), json!({"reset": 1}), "there is one only");
    assert_eq!(server.admin("DELETE", "/v1/usage/nobody", "").await.status, 404);
    assert_eq!(server.admin("DELETE", "/v1/usage/org-minute?attr.agent=a1", "").await.status, 404);
    assert_eq!(server.admin("DELETE", "/v1/usage/org-minute?limit=x", "").await.status, 400);
}

#[tokio::test]
async fn a_block_stops_an_agent_for_an_hour() {
    let server = start(LIMITS).await;
    let body = r#"{"when": {"agent": "a1"}, "for": "1h", "reason": "runs in a loop", "by": "ops"}"#;
    let answer = server.admin("POST", "/v1/blocks", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let block = answer.json();
    let id = block["id"].as_u64().unwrap();
    assert_eq!(answer.header("location"), Some(format!("/v1/blocks/{id}").as_str()));
    let wanted = json!({"id": id, "when": {"agent": "a1"}, "reason": "runs in a loop", "by": "ops",
        "since": "2023-11-14T22:13:00Z", "expires_at": "2023-11-14T23:13:00Z", "left_ms": 3_600_000});
    assert_eq!(block, wanted);
    assert_eq!(server.admin("GET", "/v1/blocks", "").await.json(), json!({"items": [wanted]}));

    let denied = server.check(ACME).await;
    assert_eq!((denied.status, &denied.json()["level"]), (429, &json!("block")));
    assert_eq!(denied.header("retry-after"), Some("3600"));
    let other = r#"{"attributes": {"org": "acme", "agent": "a2"}}"#;
    assert_eq!(server.check(other).await.status, 200);
    assert!(server.admin("GET", "/metrics", "").await.text().contains("tidegate_interventions{effect=\"block\"} 1"));

    server.clock.advance(Span::from_secs(3_601));
    assert_eq!(server.check(ACME).await.status, 200, "it ends by itself");
    assert_eq!(server.admin("GET", "/v1/blocks", "").await.json(), json!({"items": []}));
}

#[tokio::test]
async fn a_block_can_be_ended() {
    let server = start(LIMITS).await;
    let block = server.admin("POST", "/v1/blocks", r#"{"when": {"org": ["acme", "b"]}, "for": "7d"}"#).await.json();
    assert_eq!(server.check(ACME).await.status, 429);
    let path = format!("/v1/blocks/{}", block["id"]);
    assert_eq!(server.admin("DELETE", &path.replace("blocks", "overrides"), "").await.status, 404, "it is no override");
    let ended = server.admin("DELETE", &path, "").await;
    assert_eq!((ended.status, ended.body.len()), (204, 0));
    assert_eq!(server.check(ACME).await.status, 200);
    let again = server.admin("DELETE", &path, "").await;
    assert_eq!(again.status, 404);
    assert!(again.problem().contains("there is no block"));
    assert_eq!(server.admin("DELETE", "/v1/blocks/x", "").await.status, 404);
}

#[tokio::test]
async fn an_override_gives_other_numbers_for_a_time() {
    let server = start(LIMITS).await;
    let body = r#"{"limit": "agent-minute", "when": {"org": "acme"}, "rate": "5/min", "for": "15min", "by": "ops"}"#;
    let answer = server.admin("POST", "/v1/overrides", body).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let told = answer.json();
    assert_eq!(
        (&told["limit"], &told["quota"], &told["window_ms"]),
        (&json!("agent-minute"), &json!(5), &json!(60_000))
    );
    assert_eq!(server.admin("GET", "/v1/overrides", "").await.json()["items"][0], told);
    assert_eq!(server.admin("GET", "/v1/blocks", "").await.json(), json!({"items": []}));
    let quota = |answer: Value| answer["limits"][0]["quota"].clone();
    assert_eq!(quota(server.check(ACME).await.json()), 5);
    assert_eq!(quota(server.check(r#"{"attributes": {"org": "b", "agent": "a1"}}"#).await.json()), 3);
    assert_eq!(server.admin("DELETE", &format!("/v1/overrides/{}", told["id"]), "").await.status, 204);
    assert_eq!(quota(server.check(ACME).await.json()), 3);
}

#[tokio::test]
async fn an_override_is_of_the_limits_own_kind() {
    let limits = "limits:
      - { name: window, per: [org], rate: 5/min }
      - { name: log, per: [org], rate: 5/min, algorithm: sliding_window }
      - { name: counter, per: [org], rate: 5/min, algorithm: sliding_counter }
      - { name: bucket, per: [org], rate: 60/min, algorithm: token_bucket, burst: 10 }
      - { name: month, per: [org], quota: 1000, period: month }";
    let server = start(limits).await;
    for (limit, numbers, outcome) in [
        ("window", r#""rate": "7/min""#, Ok((7, 60_000))),
        ("window", r#""rate": "7/h""#, Ok((7, 3_600_000))),
        ("log", r#""rate": "8/min""#, Ok((8, 60_000))),
        ("counter", r#""rate": "9/min""#, Ok((9, 60_000))),
        ("bucket", r#""rate": "120/min""#, Ok((120, 60_000))),
        ("bucket", r#""rate": "120/min", "burst": 20"#, Ok((20, 10_000))),
        ("bucket", r#""burst": 30"#, Ok((30, 30_000))),
        ("bucket", r#""burst": 0"#, Err("burst is 0")),
        ("bucket", r#""quota": 5"#, Err("give rate, burst or both")),
        ("month", r#""quota": 5000"#, Ok((5_000, 31 * 86_400_000_u64))),
        ("month", r#""rate": "5/min""#, Err("give quota, and no rate or burst")),
        ("month", r#""quota": 9007199254740992"#, Err("is above 9007199254740991")),
        ("window", r#""quota": 5"#, Err("give rate, and no quota or burst")),
        ("window", r#""rate": "5/min", "burst": 5"#, Err("give rate, and no quota or burst")),
        ("window", r#""reason": "nothing""#, Err("give rate, and no quota or burst")),
        ("window", r#""rate": "5/fortnight""#, Err("rate cannot be read: the unit 'fortnight'")),
        ("window", r#""rate": 5"#, Err("rate has to be a string, not a number")),
    ] {
        let body = format!(r#"{{"limit": "{limit}", "when": {{"org": "acme"}}, "for": "1h", {numbers}}}"#);
        let answer = server.admin("POST", "/v1/overrides", &body).await;
        match outcome {
            Ok((quota, window_ms)) => {
                assert_eq!(answer.status, 201, "{body}: {}", answer.text());
                let told = answer.json();
                assert_eq!((&told["quota"], &told["window_ms"]), (&json!(quota), &json!(window_ms)), "{body}");
            }
            Err(detail) => {
                let well_formed = !detail.starts_with("rate ") && !detail.starts_with("is above");
                assert_eq!(answer.status, if well_formed { 422 } else { 400 }, "{body}");
                assert!(answer.problem().contains(detail), "{body}: {}", answer.problem());
            }
        }
    }
    let unknown = r#"{"limit": "nobody", "when": {"org": "acme"}, "for": "1h", "rate": "5/min"}"#;
    assert_eq!(server.admin("POST", "/v1/overrides", unknown).await.status, 404);
}

#[tokio::test]
async fn interventions_are_read_strictly() {
    let server = start(LIMITS).await;
    for (body, detail) in [
        ("{}", "when is missing"),
        (r#"{"when": {}, "for": "1h"}"#, "when is empty"),
        (r#"{"when": {"agent": 5}, "for": "1h"}"#, "when.agent has to be a string, not a number"),
        (r#"{"when": {"agent": "x"}}"#, "for is missing"),
        (r#"{"when": {"agent": "x"}, "for": "soon"}"#, "for is 'soon'; write a time from 1s to 366d"),
        (r#"{"when": {"agent": "x"}, "for": "0s"}"#, "from 1s to 366d"),
        (r#"{"when": {"agent": "x"}, "for": "367d"}"#, "from 1s to 366d"),
        (r#"{"when": {"agent": "x"}, "for": "/1h"}"#, "from 1s to 366d"),
        (r#"{"when": {"agent": "x"}, "for": 3600}"#, "for has to be a string"),
        (
            r#"{"when": {"agent": "x"}, "for": "1h", "until": "x"}"#,
            "unknown key 'until'; known are when, for, reason, by",
        ),
    ] {
        let answer = server.admin("POST", "/v1/blocks", body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.problem().contains(detail), "{body}: {}", answer.problem());
    }
    let long = format!(r#"{{"when": {{"agent": "x"}}, "for": "1h", "reason": "{}"}}"#, "r".repeat(501));
    assert!(server.admin("POST", "/v1/blocks", &long).await.problem().contains("at most 500 characters"));
    assert_eq!(server.engine.interventions(), []);
}

#[tokio::test]
async fn interventions_are_bounded_in_size() {
    let server = start(LIMITS).await;
    let block =
        async |when: Value| server.admin("POST", "/v1/blocks", &json!({ "when": when, "for": "1h" }).to_string()).await;
    let conditions =
        |count: usize| Value::Object((0..count).map(|number| (format!("a{number}"), json!("x"))).collect());
    let lists = |values: usize| {
        let list: Vec<String> = (0..values / 4).map(|number| number.to_string()).collect();
        json!({ "a": list, "b": list, "c": list, "d": list })
    };
    let long = |bytes: usize| json!({ "a": vec!["v".repeat(1_000); bytes / 1_000] });
    for (right, wrong, told) in [
        (conditions(32), conditions(33), "'when' has 33 conditions, 32 are the most"),
        (lists(1_000), lists(1_004), "'when' has 1004 values, 1000 are the most"),
        (long(16_000), long(17_000), "'when' has 17001 bytes of names and values, 16384 are the most"),
    ] {
        assert_eq!(block(right).await.status, 201, "{told}");
        let refused = block(wrong.clone()).await;
        assert_eq!(refused.status, 422, "{told}");
        assert!(refused.problem().contains(told), "{}", refused.problem());
        let numbers = json!({ "limit": "org-minute", "rate": "5/min", "when": wrong, "for": "1h" });
        assert_eq!(server.admin("POST", "/v1/overrides", &numbers.to_string()).await.status, 422);
    }
    assert_eq!(server.engine.interventions().len(), 3);
}

#[tokio::test]
async fn attributes_that_no_limit_uses_are_told() {
    let server = start(LIMITS).await;
    let warnings = async |method: &str, path: &str, body: &str| {
        let answer = server.admin(method, path, body).await;
        assert!(answer.status < 300, "{}", answer.text());
        answer.json().get("warnings").cloned()
    };
    let told = |text: &str| Some(json!([text]));
    let block = |name: &str| format!(r#"{{"when": {{"{name}": "a1"}}, "for": "1h"}}"#);
    let typo = "no limit uses the attribute 'agnet'; did you mean 'agent'?";
    assert_eq!(warnings("POST", "/v1/blocks", &block("agnet")).await, told(typo));
    assert_eq!(warnings("POST", "/v1/blocks", &block("agent")).await, None);
    let other = "no limit uses the attribute 'address'; is it spelled right?";
    assert_eq!(warnings("POST", "/v1/blocks", &block("address")).await, told(other));
    let numbers = r#"{"limit": "org-minute", "rate": "5/min", "when": {"agnet": "a1"}, "for": "1h"}"#;
    assert_eq!(warnings("POST", "/v1/overrides", numbers).await, told(typo));
    let counted = format!("nothing is counted so: {typo}");
    assert_eq!(warnings("GET", "/v1/usage?attr.agnet=a1", "").await, told(&counted));
    assert_eq!(warnings("GET", "/v1/usage?attr.agent=a1", "").await, None);
    let listed = server.admin("GET", "/v1/blocks", "").await.json();
    assert!(listed["items"].as_array().unwrap().iter().all(|block| block.get("warnings").is_none()));
}

fn with_token(server: &mut Running, token: &'static str) {
    server.token = Some(token);
}

#[tokio::test]
async fn a_token_guards_all_but_health() {
    let mut server = start(&format!("{LIMITS}\nadmin: {{ token: s3cret }}")).await;
    let paths = [
        ("GET", "/v1/limits"),
        ("GET", "/v1/usage"),
        ("GET", "/v1/blocks"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("POST", "/v1/check"),
        ("POST", "/-/reload"),
        ("DELETE", "/v1/usage/everyone"),
    ];
    for (method, path) in paths {
        let answer = server.admin(method, path, "").await;
        assert_eq!(answer.status, 401, "{method} {path}");
        assert!(answer.problem().contains("Authorization: Bearer"));
        assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"));
    }
    with_token(&mut server, "s3cre");
    assert_eq!(server.admin("GET", "/v1/blocks", "").await.status, 401);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(send(server.admin, &get(path)).await.status, 200);
    }
    with_token(&mut server, "s3cret");
    for (method, path) in paths {
        let answer = server.admin(method, path, r#"{"attributes": {}}"#).await;
        assert!(answer.status != 401 && answer.status != 403, "{method} {path}: {answer:?}");
    }
    assert_eq!(send(server.check, &get("/v1/limits")).await.status, 200, "the check listener needs none");
}

#[tokio::test]
async fn without_a_token_web_pages_are_refused() {
    let server = start(LIMITS).await;
    let block = br#"{"when": {"agent": "x"}, "for": "1h"}"#;
    let from_page = request("POST", "/v1/blocks", "Origin: https://example.com\r\n", block);
    assert_eq!(send(server.admin, &from_page).await.status, 403);
    let rebound = b"GET /metrics HTTP/1.1\r\nHost: example.com:9090\r\n\r\n";
    let answer = send(server.admin, rebound).await;
    assert_eq!(answer.status, 403);
    assert!(answer.problem().contains("admin.token"));
    assert_eq!(server.engine.interventions(), []);
}

#[tokio::test]
async fn beyond_loopback_nothing_starts_without_a_token() {
    let bind = async |text: &str| {
        let policy = parse(text, &Source::named("limits.yaml")).unwrap().policy;
        let (listen, admin) = (Some("127.0.0.1:0".into()), Some("0.0.0.0:0".into()));
        Server::bind(policy, Settings { listen, admin, ..Settings::new() }).await
    };
    let Err(StartError::OpenToAll(error)) = bind(LIMITS).await else { panic!("it is open to all") };
    assert!(error.to_string().contains("set admin.token in the limits file"), "{error}");
    assert!(bind(&format!("{LIMITS}\nadmin: {{ token: s3cret }}")).await.is_ok());
}

#[tokio::test]
async fn without_a_file_there_is_nothing_to_reload() {
    let server = start(LIMITS).await;
    let answer = server.admin("POST", "/-/reload", "").await;
    assert_eq!(answer.status, 409);
    assert!(answer.problem().contains("did not come from a file"));
}
