//! What is counted beside the counters, for operators: refusals, would-be refusals, missing
//! attributes, and requests that found the store full.

use tidegate::LimitCounts;
use tidegate_testkit::Limiter;

fn counts(limiter: &Limiter) -> Vec<(String, u64, u64, u64)> {
    let row = |counts: LimitCounts| (counts.name.to_string(), counts.refused, counts.would_refuse, counts.missing);
    limiter.engine.limit_counts().into_iter().map(row).collect()
}

#[test]
fn a_refusal_counts_at_the_first_limit_that_refuses() {
    let limiter = Limiter::new(
        "
limits:
  - { name: everyone, per: [], rate: 2/min }
  - { name: agent, per: [org, agent], rate: 1/min }
  - { name: org, per: [org], rate: 2/min }
",
    );
    assert_eq!(limiter.admitted("org=acme agent=a1", 4), 1);
    assert_eq!(limiter.admitted("org=acme agent=a2", 1), 1);
    // The agent's limit and the org's and everyone's all refuse: one is counted.
    assert_eq!(limiter.admitted("org=acme agent=a1", 2), 0);
    assert_eq!(limiter.admitted("org=acme agent=a3", 4), 0);
    assert_eq!(limiter.admitted("org=beta agent=a1", 7), 0);
    // What only asks is not counted.
    for _ in 0..9 {
        assert!(!limiter.ask_cost("org=acme agent=a1", 0).allowed());
    }
    let wanted = [("agent".into(), 5, 0, 0), ("org".into(), 4, 0, 0), ("everyone".into(), 7, 0, 0)];
    assert_eq!(counts(&limiter), wanted);
    let levels: Vec<String> = limiter.engine.limit_counts().iter().map(|counts| counts.level.to_string()).collect();
    assert_eq!(levels, ["agent", "org", "global"]);
}

#[test]
fn what_a_permissive_limit_would_have_refused_is_counted_apart() {
    let limiter = Limiter::new(
        "
limits:
  - { name: trial, per: [user], rate: 2/min, mode: permissive }
  - { name: second, per: [user], rate: 3/min, mode: permissive }
  - { name: hard, per: [], rate: 5/min }
",
    );
    assert_eq!(limiter.admitted("user=u1", 8), 5);
    assert!(limiter.ask_cost("user=u1", 0).refused_by().is_some());
    // Of the five admitted, trial would have refused three and second two; of the three refused, all.
    let wanted = [("trial".into(), 0, 6, 0), ("second".into(), 0, 5, 0), ("hard".into(), 3, 0, 0)];
    assert_eq!(counts(&limiter), wanted);
}

#[test]
fn a_permissive_file_refuses_nothing_and_counts_all_of_it() {
    let limiter = Limiter::new("mode: permissive\nlimits: [{ name: user, per: [user], rate: 2/min }]");
    assert_eq!(limiter.admitted("user=u1", 10), 10);
    assert_eq!(counts(&limiter), [("user".into(), 0, 8, 0)]);
}

#[test]
fn a_disabled_limit_counts_nothing_and_is_not_listed() {
    let limiter = Limiter::new(
        "
limits:
  - { name: gone, per: [user], rate: 0/min, mode: disabled }
  - { name: user, per: [user], rate: 9/min }
",
    );
    assert_eq!(limiter.admitted("user=u1", 3), 3);
    assert_eq!(counts(&limiter), [("user".into(), 0, 0, 0)]);
    assert_eq!(limiter.engine.store_stats().keys, 1);
    limiter.reload("mode: disabled\nlimits: [{ name: user, per: [user], rate: 0/min }]");
    assert_eq!(limiter.admitted("user=u1", 30), 30);
    assert_eq!(counts(&limiter), []);
    assert_eq!(limiter.engine.store_stats().keys, 0);
}

#[test]
fn what_lacks_an_attribute_is_counted_whatever_comes_of_it() {
    let limiter = Limiter::new(
        "
limits:
  - { name: skips, per: [user], rate: 9/min }
  - { name: watches, per: [user], rate: 9/min, missing: deny, mode: permissive }
  - { name: stands-in, per: [user], rate: 9/min, missing: { value: anonymous } }
  - { name: denies, when: { tool: search }, per: [user], rate: 9/min, missing: deny }
",
    );
    assert_eq!(limiter.admitted("tool=fetch", 3), 3);
    assert_eq!(limiter.admitted("tool=search", 2), 0);
    assert_eq!(limiter.admitted("tool=search user=u1", 1), 1);
    let wanted = [
        ("skips".into(), 0, 0, 5),
        ("watches".into(), 0, 5, 5),
        ("stands-in".into(), 0, 0, 0),
        ("denies".into(), 2, 0, 2),
    ];
    assert_eq!(counts(&limiter), wanted);
}

#[test]
fn counts_go_on_over_a_reload() {
    let limiter = Limiter::new("limits: [{ name: user, per: [user], rate: 1/min }]");
    assert_eq!(limiter.admitted("user=u1", 4), 1);
    limiter.reload("limits: [{ name: user, per: [user], rate: 2/min }]");
    assert_eq!(limiter.admitted("user=u1", 4), 1);
    assert_eq!(counts(&limiter), [("user".into(), 6, 0, 0)]);
}

#[test]
fn a_full_store_lets_new_keys_pass_and_counts_them_or_refuses_them() {
    for (at_cap, passes) in [("allow", 4), ("deny", 0)] {
        let limiter = Limiter::new(&format!(
            "
store: {{ memory: {{ max_keys: 3, at_cap: {at_cap} }} }}
limits: [{{ name: user, per: [user], rate: 2/min }}]
"
        ));
        for user in ["u1", "u2", "u3"] {
            assert_eq!(limiter.admitted(&format!("user={user}"), 3), 2);
        }
        // Live counters are never dropped for a new one.
        assert_eq!(limiter.admitted("user=u4", 4), passes, "{at_cap}");
        for user in ["u1", "u2", "u3"] {
            assert!(!limiter.ask(&format!("user={user}")).allowed(), "{at_cap}");
        }
        assert_eq!(limiter.engine.store_stats().at_cap_total, 4);
        assert_eq!((limiter.engine.store_stats().keys, limiter.engine.store_stats().keys_max), (3, 3));
        let new = limiter.ask("user=u4");
        assert!(new.limits().all(|state| state.at_cap));
        let refused = if passes == 0 { 3 + 4 + 3 + 1 } else { 3 + 3 };
        assert_eq!(counts(&limiter), [("user".into(), refused, 0, 0)], "{at_cap}");
        // When the window has passed there is room again.
        limiter.at_ms(60_000).engine.tidy();
        assert_eq!(limiter.admitted("user=u4", 3), 2);
    }
}

#[test]
fn at_the_cap_a_request_takes_all_of_its_counters_or_none() {
    let limiter = Limiter::new(
        "
store: { memory: { max_keys: 2, at_cap: deny } }
limits:
  - { name: user, per: [user], rate: 5/min }
  - { name: everyone, per: [], rate: 100/min }
",
    );
    assert!(limiter.ask("user=u1").allowed());
    let denied = limiter.ask("user=u2");
    assert_eq!(denied.refused_by().map(|state| state.limit.name.to_string()).as_deref(), Some("user"));
    assert!(denied.retry_after().is_some());
    assert_eq!(limiter.remaining_of("everyone", "user=u1"), 99);
}
