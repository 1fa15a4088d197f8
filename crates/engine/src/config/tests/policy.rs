use std::sync::Arc;

use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, CivilPeriod, Mode, PeriodKind, Rate};

use super::*;
use crate::policy::{AtCap, Condition, Glob, MemorySettings, Missing, ResetForm, StoreSettings, Test, Weights};

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

#[test]
fn a_file_with_everything_says_what_it_says() {
    let policy = loaded(
        r#"
listen: 0.0.0.0:80
admin: { addr: "[::1]:9091", token: "${ADMIN_TOKEN}" }
mode: permissive
headers: { x_ratelimit: false, ietf: false, retry_after: false, reset: delta }
store: { backend: memory, memory: { max_keys: 1_000, at_cap: deny, names: true } }
limits:
  - name: a.1-b_c
    level: team
    per: [org, agent]
    rate: 10/30s
    algorithm: token_bucket
    burst: 20
    unit: requests
    when:
      tool: search
      model: [gpt, claude]
      path: { prefix: /v1 }
      host: { glob: "*.example" }
      debug: { absent: true }
    cost: { base: 2, by: { tool: { search: 5, 404: 0 } } }
    overrides:
      - when: { org: acme }
        rate: 100/30s
      - when: { org: slow }
        burst: 5
    mode: permissive
    missing: { value: anonymous }
    order: -3
"#,
    )
    .policy;
    assert_eq!(policy.mode, Mode::Permissive);
    assert_eq!(policy.server.listen, "0.0.0.0:80");
    assert_eq!(policy.server.admin_addr, "[::1]:9091");
    assert_eq!(policy.server.admin_token.unwrap().reveal(), "hunter2-hunter2-hunter2");
    let headers = policy.headers;
    assert!(!headers.x_ratelimit && !headers.ietf && !headers.retry_after && headers.reset == ResetForm::Delta);
    let memory = MemorySettings { keys_max: 1_000, at_cap: AtCap::Deny, names: true };
    assert_eq!(policy.store, StoreSettings::Memory(memory));

    let [rule] = &policy.rules[..] else { panic!("one rule") };
    assert_eq!((&*rule.limit.name, &*rule.limit.level), ("a.1-b_c", "team"));
    assert_eq!(rule.limit.per, [Arc::<str>::from("org"), "agent".into()]);
    assert_eq!(rule.limit.mode, Mode::Permissive);
    let bucket = |text: &str, burst| Algorithm::TokenBucket(TokenBucket::new(rate(text), Some(burst)).unwrap());
    assert_eq!(rule.limit.algorithm, bucket("10/30s", 20));
    let condition = |attribute: &str, test| Condition { attribute: attribute.into(), test };
    assert_eq!(
        rule.when,
        [
            condition("tool", Test::Equals("search".into())),
            condition("model", Test::In(vec!["gpt".into(), "claude".into()])),
            condition("path", Test::Prefix("/v1".into())),
            condition("host", Test::Glob(Glob::new("*.example"))),
            condition("debug", Test::Absent),
        ]
    );
    let weights = Weights { base: 2, by: vec![("tool".into(), vec![("search".into(), 5), ("404".into(), 0)])] };
    assert_eq!(rule.weights, weights);
    assert_eq!(rule.overrides[0].when, [condition("org", Test::Equals("acme".into()))]);
    assert_eq!(rule.overrides[0].algorithm, bucket("100/30s", 20), "the limit's burst stays");
    assert_eq!(rule.overrides[1].algorithm, bucket("10/30s", 5), "the limit's rate stays");
    assert_eq!(rule.missing, Missing::Value("anonymous".into()));
    assert_eq!(rule.order, Some(-3));
}

#[test]
fn what_is_left_out_has_its_default() {
    let policy = loaded(&limit("per: [org, agent]\nrate: 60/min")).policy;
    assert_eq!(policy.server.listen, "127.0.0.1:8080");
    assert_eq!(policy.server.admin_addr, "127.0.0.1:9090");
    assert_eq!(policy.server.admin_token, None);
    assert!(policy.headers.x_ratelimit && policy.headers.ietf && policy.headers.retry_after);
    let rule = &policy.rules[0];
    assert_eq!(rule.limit.algorithm, Algorithm::FixedWindow(FixedWindow::new(rate("60/min")).unwrap()));
    assert_eq!(&*rule.limit.level, "agent");
    assert_eq!((rule.limit.mode, &rule.missing, rule.order), (Mode::Enforce, &Missing::Skip, None));
    assert_eq!((rule.weights.base, rule.when.len(), rule.overrides.len()), (1, 0, 0));
}

#[test]
fn algorithms() {
    let algorithm = |lines: &str| loaded(&limit(&format!("per: []\n{lines}"))).policy.rules[0].limit.algorithm.clone();
    assert_eq!(
        algorithm("rate: 5/s\nalgorithm: sliding_window"),
        Algorithm::SlidingWindow(SlidingWindow::new(rate("5/s")).unwrap())
    );
    assert_eq!(
        algorithm("rate: 5/s\nalgorithm: sliding_counter"),
        Algorithm::SlidingCounter(SlidingCounter::new(rate("5/s")).unwrap())
    );
    assert_eq!(
        algorithm("rate: 5/s\nalgorithm: token_bucket"),
        Algorithm::TokenBucket(TokenBucket::new(rate("5/s"), None).unwrap())
    );
    let month = CivilPeriod::new(PeriodKind::Month, "Europe/Berlin", Some(15)).unwrap();
    let lines = "quota: 50_000_000\nperiod: month\ntimezone: Europe/Berlin\nanchor_day: 15";
    assert_eq!(algorithm(lines), Algorithm::Calendar(Calendar::new(50_000_000, month.clone())));
    assert_eq!(algorithm(&format!("{lines}\nalgorithm: calendar")), algorithm(lines));
    let policy = loaded(&limit(&format!("per: [org]\n{lines}\noverrides: [{{when: {{org: x}}, quota: 5}}]"))).policy;
    assert_eq!(policy.rules[0].overrides[0].algorithm, Algorithm::Calendar(Calendar::new(5, month)));
    assert_eq!(&*policy.rules[0].limit.level, "budget");
}

#[test]
fn references_work_in_every_kind_of_value() {
    let text = "
listen: ${LISTEN:-127.0.0.1:1234}
admin: { token: \"file:/run/token\" }
limits:
  - name: a
    per: [\"${NONE:-org}\"]
    rate: ${RATE}
    when: { tool: \"$${x}\", path: $file:x }
    overrides: [{ when: { org: x }, rate: \"${COUNT}/min\" }]
  - { name: b, per: [], quota: \"${COUNT}\", period: \"${NONE:-day}\", mode: \"${NONE:-permissive}\" }
";
    let policy = loaded(text).policy;
    assert_eq!(policy.server.listen, "127.0.0.1:1234");
    assert_eq!(policy.server.admin_token.unwrap().reveal(), "hunter2-from-a-file");
    assert_eq!(policy.rules[0].limit.per, [Arc::<str>::from("org")]);
    assert_eq!(policy.rules[0].limit.capacity(), 60);
    assert_eq!(policy.rules[0].overrides[0].algorithm.capacity(), 500);
    assert_eq!(policy.rules[0].when[0].test, Test::Equals("${x}".into()));
    assert_eq!(policy.rules[0].when[1].test, Test::Equals("file:x".into()));
    assert_eq!(policy.rules[1].limit.capacity(), 500);
}

#[test]
fn json_gives_the_same_policy() {
    let yaml = limit("per: [org]\nrate: 60/min\nwhen: {tool: search}\nmissing: deny");
    let json = r#"{"limits": [{"name": "a", "per": ["org"], "rate": "60/min", "when": {"tool": "search"}, "missing": "deny"}]}"#;
    assert_eq!(loaded(&yaml).policy, loaded(json).policy);
}

#[test]
fn the_starter_file_has_no_fault_and_no_warning() {
    let loaded = loaded(STARTER);
    assert_eq!(loaded.warnings, []);
    assert_eq!(loaded.policy.rules.len(), 5);
}

#[test]
fn the_settings_that_the_starter_file_shows_are_the_defaults() {
    let shown: String = STARTER
        .lines()
        .skip_while(|line| !line.starts_with("# Everything below"))
        .skip(1)
        .filter_map(|line| line.strip_prefix("# "))
        .map(|line| format!("{line}\n"))
        .collect();
    let text = format!("limits: []\n{}", shown.replace("  token:", "  # token:"));
    assert!(text.contains("max_keys"), "{text}");
    assert_eq!(loaded(&text).policy, loaded("limits: []").policy);
}

#[test]
fn a_file_is_read_from_disk() {
    let folder = std::env::temp_dir().join(format!("tidegate-config-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (path, secret) = (folder.join("limits.yaml"), folder.join("token"));
    std::fs::write(&secret, "a-token-from-a-file\n").unwrap();
    std::fs::write(&path, format!("\u{feff}admin: {{token: 'file:token'}}\n{STARTER}")).unwrap();
    let policy = load(&path).unwrap().policy;
    assert_eq!(policy.server.admin_token.unwrap().reveal(), "a-token-from-a-file");
    std::fs::remove_dir_all(&folder).unwrap();

    let told = load(&path).unwrap_err().to_string();
    let name = path.display();
    let beginning = format!("{name}: the file cannot be read: No such file");
    assert!(told.starts_with(&beginning) && told.ends_with("; `tidegate init` writes one to start from"), "{told}");
    assert!(load(&std::env::temp_dir()).unwrap_err().to_string().contains("cannot be read"));
}
