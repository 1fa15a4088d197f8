//! The exact bytes of the limit headers.

use http::{HeaderMap, HeaderName, HeaderValue};
use tidegate::policy::HeaderSettings;
use tidegate::{Clock, Decision, Engine, Span};
use tidegate_tower::headers;

use crate::fixture::{NOW, engine, limit_headers, policy, take};

const ACME_A1: [(&str, &str); 2] = [("org", "acme"), ("agent", "a1")];

fn written(engine: &Engine, decision: &Decision) -> Vec<String> {
    let mut map = HeaderMap::new();
    headers::write(decision, &engine.policy().headers, &mut map);
    limit_headers(&map)
}

#[test]
fn three_levels_of_which_the_last_is_the_tightest() {
    let (engine, _) = engine(
        "
        limits:
          - { name: agent-minute, per: [org, agent], rate: 60/min }
          - { name: org-minute, per: [org], rate: 600/min }
          - { name: everyone, per: [], rate: 100/min }
        ",
    );
    assert!(take(&engine, &[], 78).allowed());
    assert!(take(&engine, &[("org", "acme")], 19).allowed());
    let decision = take(&engine, &ACME_A1, 1);
    assert_eq!(
        written(&engine, &decision),
        [
            "ratelimit: \"agent-minute\";r=59;t=40, \"org-minute\";r=580;t=40, \"everyone\";r=2;t=40",
            "ratelimit-policy: \"agent-minute\";q=60;w=60, \"org-minute\";q=600;w=60, \"everyone\";q=100;w=60",
            "x-ratelimit-limit: 100",
            "x-ratelimit-remaining: 2",
            "x-ratelimit-reset: 1700000040",
        ]
    );
}

#[test]
fn a_refusal_carries_retry_after() {
    let (engine, _) = engine(crate::fixture::THREE_LEVELS);
    assert!(take(&engine, &ACME_A1, 3).allowed());
    let decision = take(&engine, &ACME_A1, 1);
    assert!(!decision.allowed());
    assert_eq!(
        written(&engine, &decision),
        [
            "ratelimit: \"agent-minute\";r=0;t=40, \"org-minute\";r=2;t=40, \"everyone\";r=97;t=40",
            "ratelimit-policy: \"agent-minute\";q=3;w=60, \"org-minute\";q=5;w=60, \"everyone\";q=100;w=60",
            "retry-after: 40",
            "x-ratelimit-limit: 3",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1700000040",
        ]
    );
}

#[test]
fn a_bucket_grows_long_before_it_is_full() {
    let (engine, _) =
        engine("limits: [{ name: org-bucket, per: [org], rate: 60/min, algorithm: token_bucket, burst: 20 }]");
    let org = [("org", "acme")];
    let decision = take(&engine, &org, 10);
    assert_eq!(
        written(&engine, &decision),
        [
            "ratelimit: \"org-bucket\";r=10;t=1",
            "ratelimit-policy: \"org-bucket\";q=20;w=20",
            "x-ratelimit-limit: 20",
            "x-ratelimit-remaining: 10",
            "x-ratelimit-reset: 1700000010",
        ]
    );
    assert!(take(&engine, &org, 10).allowed());
    let refused = take(&engine, &org, 5);
    assert_eq!(written(&engine, &refused)[2], "retry-after: 5");
}

#[test]
fn what_can_never_pass_has_no_retry_after() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 5/min }]");
    let decision = take(&engine, &[("org", "acme")], 6);
    assert!(!decision.allowed());
    assert_eq!(
        written(&engine, &decision),
        [
            "ratelimit: \"org-minute\";r=5;t=0",
            "ratelimit-policy: \"org-minute\";q=5;w=60",
            "x-ratelimit-limit: 5",
            "x-ratelimit-remaining: 5",
            "x-ratelimit-reset: 1700000040",
        ]
    );
    let (closed, _) = self::engine("limits: [{ name: kill, per: [org], rate: 0/min }]");
    let decision = take(&closed, &[("org", "acme")], 1);
    assert!(!decision.allowed());
    assert_eq!(
        written(&closed, &decision),
        [
            "ratelimit: \"kill\";r=0;t=0",
            "ratelimit-policy: \"kill\";q=0;w=60",
            "x-ratelimit-limit: 0",
            "x-ratelimit-remaining: 0",
            "x-ratelimit-reset: 1700000040",
        ]
    );
}

#[test]
fn where_no_limit_applies_there_is_no_header() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 5/min }]");
    assert_eq!(written(&engine, &take(&engine, &[("user", "u")], 1)), [""; 0]);
    let (disabled, _) = self::engine("limits: [{ name: org-minute, per: [org], rate: 5/min, mode: disabled }]");
    assert_eq!(written(&disabled, &take(&disabled, &[("org", "acme")], 1)), [""; 0]);
}

#[test]
fn a_permissive_limit_is_written_as_if_enforced() {
    let limits = |mode: &str| format!("limits: [{{ name: org-minute, per: [org], rate: 2/min, mode: {mode} }}]");
    let (watching, _) = engine(&limits("permissive"));
    let (enforcing, _) = engine(&limits("enforce"));
    let org = [("org", "acme")];
    for _ in 0..2 {
        let [watched, enforced] = [&watching, &enforcing].map(|engine| written(engine, &take(engine, &org, 1)));
        assert_eq!(watched, enforced);
    }
    let over = take(&watching, &org, 1);
    assert!(over.allowed());
    let mut enforced = written(&enforcing, &take(&enforcing, &org, 1));
    assert_eq!(enforced.remove(2), "retry-after: 40");
    assert_eq!(written(&watching, &over), enforced);
}

#[test]
fn times_are_rounded_up_to_whole_seconds() {
    let (engine, clock) = engine("limits: [{ name: org-minute, per: [org], rate: 1/min }]");
    clock.advance(Span::from_micros(1));
    let org = [("org", "acme")];
    let decision = take(&engine, &org, 1);
    assert_eq!(written(&engine, &decision)[0], "ratelimit: \"org-minute\";r=0;t=40");
    assert_eq!(written(&engine, &decision)[4], "x-ratelimit-reset: 1700000040");
    clock.advance(Span::from_micros(38_999_999));
    assert_eq!(written(&engine, &take(&engine, &org, 1))[2], "retry-after: 1");
    clock.advance(Span::from_micros(999_999));
    assert_eq!(written(&engine, &take(&engine, &org, 1))[2], "retry-after: 1");
    // A bucket that is full again half a second after a whole one.
    let bucket = "limits: [{ name: b, per: [], rate: 2/s, algorithm: token_bucket, burst: 5 }]";
    let (engine, _) = self::engine(bucket);
    assert_eq!(
        written(&engine, &take(&engine, &[], 3)),
        [
            "ratelimit: \"b\";r=2;t=1",
            "ratelimit-policy: \"b\";q=5;w=3",
            "x-ratelimit-limit: 5",
            "x-ratelimit-remaining: 2",
            "x-ratelimit-reset: 1700000002",
        ]
    );
}

#[test]
fn a_window_below_a_second_is_one_second() {
    let (engine, _) = engine("limits: [{ name: b, per: [], rate: 1000/s, algorithm: token_bucket, burst: 1 }]");
    let lines = written(&engine, &take(&engine, &[], 1));
    assert_eq!(lines[..2], ["ratelimit: \"b\";r=0;t=1", "ratelimit-policy: \"b\";q=1;w=1"]);
}

#[test]
fn reset_can_be_seconds_from_now() {
    let limits = "limits: [{ name: org-minute, per: [org], rate: 5/min }]";
    let (engine, clock) = engine(&format!("headers: {{ reset: delta }}\n{limits}"));
    clock.advance(Span::from_millis(500));
    let lines = written(&engine, &take(&engine, &[("org", "acme")], 1));
    assert_eq!(lines[4], "x-ratelimit-reset: 40");
}

#[test]
fn each_family_can_be_switched_off() {
    let (engine, _) = engine(crate::fixture::THREE_LEVELS);
    assert!(take(&engine, &ACME_A1, 3).allowed());
    let refused = take(&engine, &ACME_A1, 1);
    let names = |settings: HeaderSettings| {
        let mut map = HeaderMap::new();
        headers::write(&refused, &settings, &mut map);
        let mut names: Vec<String> = map.keys().map(ToString::to_string).collect();
        names.sort();
        names
    };
    let all = HeaderSettings::default();
    let x = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];
    let ietf = ["ratelimit", "ratelimit-policy"];
    let retry_after = ["retry-after"];
    assert_eq!(names(all), [&ietf[..], &retry_after, &x].concat());
    assert_eq!(names(HeaderSettings { x_ratelimit: false, ..all }), [&ietf[..], &retry_after].concat());
    assert_eq!(names(HeaderSettings { ietf: false, ..all }), [&retry_after[..], &x].concat());
    assert_eq!(names(HeaderSettings { retry_after: false, ..all }), [&ietf[..], &x].concat());
    let none = HeaderSettings { x_ratelimit: false, ietf: false, retry_after: false, ..all };
    assert_eq!(names(none), [""; 0]);
}

#[test]
fn integers_stay_within_what_a_structured_field_holds() {
    let (engine, _) = engine("limits: [{ name: wide, per: [], quota: 9007199254740991, period: day }]");
    assert_eq!(
        written(&engine, &take(&engine, &[], 1)),
        [
            "ratelimit: \"wide\";r=999999999999999;t=6400",
            "ratelimit-policy: \"wide\";q=999999999999999;w=86400",
            "x-ratelimit-limit: 9007199254740991",
            "x-ratelimit-remaining: 9007199254740990",
            "x-ratelimit-reset: 1700006400",
        ]
    );
}

#[test]
fn a_name_is_a_valid_string_whatever_it_is() {
    let mut policy = policy("limits: [{ name: x, per: [], rate: 5/min }]");
    policy.rules[0].limit.name = "a\"b\\c;d\r\nSet-Cookie: é".into();
    let engine = Engine::with_clock(policy, Clock::manual(NOW));
    let lines = written(&engine, &take(&engine, &[], 1));
    assert_eq!(lines[0], r#"ratelimit: "a\"b\\c;d??Set-Cookie: ?";r=4;t=40"#);
    assert_eq!(lines[1], r#"ratelimit-policy: "a\"b\\c;d??Set-Cookie: ?";q=5;w=60"#);
}

#[test]
fn the_lists_name_sixteen_limits_at_most() {
    let rules: String =
        (0..40).map(|n| format!("  - {{ name: limit-{n}, per: [], rate: {}/min }}\n", n + 10)).collect();
    let (engine, _) = engine(&format!("limits:\n{rules}"));
    let lines = written(&engine, &take(&engine, &[], 1));
    assert_eq!(lines[0].matches("limit-").count(), headers::LIMITS_MAX);
    assert!(lines[0].ends_with("\"limit-15\";r=24;t=40"), "{}", lines[0]);
    assert!(lines[1].ends_with("\"limit-15\";q=25;w=60"), "{}", lines[1]);
    assert_eq!(lines[2], "x-ratelimit-limit: 10");
}

#[test]
fn what_was_there_is_replaced_and_the_rest_kept() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 5/min }]");
    let mut map = HeaderMap::new();
    map.append("x-ratelimit-limit", HeaderValue::from_static("from elsewhere"));
    map.append("x-ratelimit-limit", HeaderValue::from_static("twice"));
    map.append("retry-after", HeaderValue::from_static("7"));
    map.append("x-request-id", HeaderValue::from_static("r1"));
    headers::write(&take(&engine, &[("org", "acme")], 1), &HeaderSettings::default(), &mut map);
    assert_eq!(map.get_all("x-ratelimit-limit").iter().collect::<Vec<_>>(), ["5"]);
    // The service's own, on a response that was let through.
    assert_eq!(map["retry-after"], "7");
    assert_eq!(map["x-request-id"], "r1");
}

#[test]
fn a_full_map_is_left_as_it_is() {
    let (engine, _) = engine("limits: [{ name: org-minute, per: [org], rate: 5/min }]");
    let mut map = HeaderMap::new();
    let mut number = 0;
    while map.try_insert(HeaderName::try_from(format!("h{number}")).unwrap(), HeaderValue::from_static("v")).is_ok() {
        number += 1;
    }
    let before = map.len();
    headers::write(&take(&engine, &[("org", "acme")], 1), &HeaderSettings::default(), &mut map);
    assert_eq!(map.len(), before);
}
