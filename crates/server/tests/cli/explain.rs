//! `tidegate explain`.

use serde_json::json;

use crate::process::{example, repository, tidegate, tidegate_reading};

#[test]
fn the_limits_in_their_order_and_why_not_the_others() {
    let file = example("hierarchy.yaml");
    let ended = tidegate(&["explain", &file, "--attr", "org=acme", "--attr", "agent=a1", "--attr", "tier=gold"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn a_cost_that_never_passes_since_the_tool_multiplies_it() {
    let file = example("tools.yaml");
    let attributes = ["--attr", "tenant=acme", "--attr", "user=alice", "--attr", "tool=run_code"];
    let ended = tidegate(&[&["explain", &file, "--cost", "7"][..], &attributes].concat());
    assert_eq!(ended.code, 0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn a_tenant_that_is_missing_is_refused_or_stood_in_for() {
    let file = example("tools.yaml");
    let ended = tidegate(&["explain", &file, "--attr", "user=alice", "--attr", "tool=search"]);
    assert_eq!(ended.code, 0);
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn as_json() {
    let file = example("quickstart.yaml");
    let ended = tidegate(&["explain", &file, "--attr", "org=acme", "--attr", "agent=a1", "--json"]);
    let report = ended.json();
    assert_eq!(report["attributes"], json!({"agent": "a1", "org": "acme"}));
    let names: Vec<_> = report["meets"].as_array().unwrap().iter().map(|met| met["name"].clone()).collect();
    assert_eq!(names, ["agent-minute", "org-minute", "everyone"]);
    assert_eq!(
        report["meets"][0],
        json!({
            "name": "agent-minute", "level": "agent", "unit": "requests", "counter": {"agent": "a1", "org": "acme"},
            "cost": 1, "quota": 5, "window_ms": 60_000, "algorithm": "fixed_window", "mode": "enforce",
            "override": null, "refuses": false, "missing": null, "notes": []
        })
    );
    assert_eq!(
        report["others"],
        json!([{
            "name": "tool-trial", "level": "tool", "why": "missing", "attribute": "tool",
            "because": "the request has no attribute 'tool'"
        }])
    );
}

#[test]
fn what_is_missing_or_misspelt_is_named() {
    let limits = "limits: [{name: a, per: [tenant], rate: 1/min, missing: deny}]";
    let arguments = ["explain", "-", "--attr", "tenent=acme"];
    let text = tidegate_reading(limits, &arguments);
    assert!(text.stdout.contains("no limit uses the attribute 'tenent'; did you mean 'tenant'?"), "{}", text.stdout);
    let report = tidegate_reading(limits, &[&arguments[..], &["--json"]].concat()).json();
    assert_eq!((&report["meets"][0]["missing"], &report["meets"][0]["refuses"]), (&json!("tenant"), &json!(true)));
    assert_eq!(report["unused_attributes"], json!(["tenent"]));
}

#[test]
fn a_request_that_meets_nothing() {
    let ended = tidegate_reading("limits: [{name: a, per: [org], rate: 1/min}]", &["explain", "-"]);
    assert_eq!(ended.code, 0);
    assert!(ended.stdout.contains("meets no limit: it always passes"), "{}", ended.stdout);
}

#[test]
fn faults_go_to_standard_error_and_end_with_1() {
    let bad = repository("crates/server/tests/cli/faulty.yaml").display().to_string();
    let text = tidegate(&["explain", &bad]);
    assert_eq!((text.code, text.stdout.as_str()), (1, ""));
    assert!(text.stderr.contains("faulty.yaml:2:7: fault: "), "{}", text.stderr);
    let json = tidegate(&["explain", &bad, "--json"]);
    assert_eq!(json.code, 1);
    assert!(json.json()["faults"].as_array().unwrap().len() >= 6);
}

#[test]
fn what_the_counters_are_called_in_redis() {
    let limits = "
store: { backend: redis, redis: { url: 'redis://127.0.0.1:6379' } }
limits:
  - { name: agent-minute, per: [org, agent], rate: 60/min }
  - { name: org-minute, per: [org], rate: 600/min }
  - { name: org-bursts, per: [org], rate: 600/min, algorithm: token_bucket, burst: 10 }
  - { name: everyone, per: [], rate: 10000/min }
  - { name: everyone-else, per: [], rate: 20000/min }
  - { name: month, per: [org], quota: 1000000, period: month }
";
    let arguments = ["explain", "-", "--attr", "org=acme", "--attr", "agent=a:{1}", "--keys"];
    let ended = tidegate_reading(limits, &arguments);
    assert_eq!((ended.code, ended.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(ended.stdout);
    let in_memory = tidegate(&["explain", &example("quickstart.yaml"), "--attr", "org=acme", "--keys"]);
    assert!(in_memory.stdout.contains("no counter has a key in Redis"), "{}", in_memory.stdout);
}
