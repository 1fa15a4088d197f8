//! What was left open and decided once, for every door. The golden rows show the same, answer by answer;
//! here each rule has a test of its own name.

use tidegate::config::{self, Source};
use tidegate::policy::StoreSettings;
use tidegate::{Decision, Span, algorithm};
use tidegate_testkit::{Limiter, policy};

use crate::http_door::call;

fn refused_by(decision: &Decision) -> Option<String> {
    decision.refused_by().map(|state| state.limit.name.to_string())
}

/// The limits' names, in the order checked.
fn order(limiter: &Limiter, who: &str) -> Vec<String> {
    limiter.ask_cost(who, 0).limits().map(|state| state.limit.name.to_string()).collect()
}

/// A limit's level comes from what it is counted by.
#[test]
fn d01_a_level_comes_from_the_attributes() {
    let limiter = Limiter::new(
        "
limits:
  - { name: a, per: [org, agent], rate: 9/min }
  - { name: b, per: [agent, org], rate: 9/min }
  - { name: c, per: [], rate: 9/min }
  - { name: d, per: [org], quota: 9, period: month }
",
    );
    let decision = limiter.ask("org=acme agent=a1");
    let levels: Vec<&str> = decision.limits().map(|state| &*state.limit.level).collect();
    assert_eq!(levels, ["agent", "org", "global", "budget"]);
}

/// It may be set, and is then the word in answers.
#[test]
fn d02_a_level_can_be_set() {
    let limiter = Limiter::new("limits: [{ name: a, level: fleet, per: [org], rate: 1/min }]");
    limiter.ask("org=acme");
    assert_eq!(&*limiter.ask("org=acme").refused_by().unwrap().limit.level, "fleet");
}

/// Rates are checked with the most specific first, then in the file's order.
#[test]
fn d03_the_most_specific_rate_goes_first() {
    let limiter = Limiter::new(
        "
limits:
  - { name: everyone, per: [], rate: 9/min }
  - { name: org, per: [org], rate: 9/min }
  - { name: region, per: [region], rate: 9/min }
  - { name: agent, per: [org, agent], rate: 9/min }
",
    );
    assert_eq!(order(&limiter, "org=acme agent=a1 region=eu"), ["agent", "org", "region", "everyone"]);
}

/// Budgets are checked last.
#[test]
fn d04_budgets_go_last() {
    let limiter = Limiter::new(
        "
limits:
  - { name: agent-month, per: [org, agent], quota: 9, period: month }
  - { name: everyone, per: [], rate: 9/min }
",
    );
    assert_eq!(order(&limiter, "org=acme agent=a1"), ["everyone", "agent-month"]);
}

/// An order of its own puts a limit anywhere.
#[test]
fn d05_an_order_of_its_own_overrides() {
    let limiter = Limiter::new(
        "
limits:
  - { name: agent, per: [org, agent], rate: 9/min }
  - { name: month, per: [org], quota: 9, period: month, order: 2 }
  - { name: everyone, per: [], rate: 9/min, order: 1 }
",
    );
    assert_eq!(order(&limiter, "org=acme agent=a1"), ["everyone", "month", "agent"]);
}

/// The first that refuses is named, with name and level.
#[test]
fn d06_the_first_that_refuses_is_named() {
    let limiter =
        Limiter::new("limits: [{ name: everyone, per: [], rate: 1/min }, { name: org, per: [org], rate: 1/min }]");
    limiter.ask("org=acme");
    let denied = limiter.ask("org=acme");
    let named = denied.refused_by().unwrap();
    assert_eq!((&*named.limit.name, &*named.limit.level), ("org", "org"));
    assert_eq!(refused_by(&limiter.ask("org=beta")).as_deref(), Some("everyone"));
}

/// The wait is the longest of those that refuse: who waits so long finds none of them in the way.
#[test]
fn d07_the_longest_wait_counts() {
    let limiter =
        Limiter::new("limits: [{ name: user, per: [user], rate: 1/s }, { name: tenant, per: [tenant], rate: 1/h }]");
    limiter.at_ms(500).ask("tenant=t1 user=u1");
    let wait = limiter.ask("tenant=t1 user=u1").retry_after().unwrap();
    assert_eq!(wait, Span::from_millis(3_599_500));
    assert!(!limiter.at_ms(500 + 3_599_499).ask("tenant=t1 user=u1").allowed());
    assert!(limiter.at_ms(500 + 3_599_500).ask("tenant=t1 user=u1").allowed());
}

/// It is rounded up to whole seconds where seconds are written.
#[test]
fn d08_a_wait_is_rounded_up() {
    let limiter = Limiter::new("limits: [{ name: user, per: [user], rate: 1/min }]");
    limiter.at_ms(10_001).ask("user=u1");
    assert_eq!(limiter.ask("user=u1").retry_after(), Some(Span::from_millis(49_999)));
    assert_eq!(call(&limiter, "user=u1").header("retry-after"), Some("50"));
}

/// What can never pass has no wait.
#[test]
fn d09_what_never_passes_has_no_wait() {
    let limiter = Limiter::new(
        "limits: [{ name: a, per: [], rate: 1/min }, { name: b, when: { user: gone }, per: [], rate: 0/min }]",
    );
    limiter.ask("user=u1");
    assert!(limiter.ask("user=u1").retry_after().is_some());
    let denied = limiter.ask("user=gone");
    assert!(denied.never() && denied.retry_after().is_none());
    assert_eq!(call(&limiter, "user=gone").header("retry-after"), None);
}

/// Of an admitted request the limit with the least remaining share is the tightest.
#[test]
fn d11_the_least_share_is_the_tightest() {
    let limiter =
        Limiter::new("limits: [{ name: few, per: [user], rate: 10/min }, { name: many, per: [], rate: 1000/min }]");
    let tightest = |who: &str, cost| limiter.ask_cost(who, cost).tightest().unwrap().limit.name.to_string();
    assert_eq!(tightest("user=u1", 5), "few");
    assert_eq!(tightest("", 895), "many");
    // 99 of 1000 are a smaller share than 4 of 10, though more in number.
    assert_eq!(tightest("user=u1", 1), "many");
}

/// What is denied moves no counter at any level, by whichever algorithm it counts.
#[test]
fn d13_a_denial_moves_no_counter() {
    for algorithm in ["fixed_window", "sliding_window", "sliding_counter", "token_bucket"] {
        let limiter = Limiter::new(&format!(
            "
limits:
  - {{ name: first, per: [a], rate: 50/min, algorithm: {algorithm} }}
  - {{ name: refuses, per: [b], rate: 1/min, algorithm: {algorithm} }}
  - {{ name: third, per: [], rate: 50/min, algorithm: {algorithm} }}
  - {{ name: month, per: [a], quota: 50, period: month }}
"
        ));
        limiter.ask("a=1 b=1");
        let before = limiter.remaining("a=1 b=1");
        assert_eq!(limiter.admitted("a=1 b=1", 30), 0);
        assert_eq!(limiter.remaining("a=1 b=1"), before, "{algorithm}");
    }
}

/// A permissive limit counts what it admits, refuses nothing and stops no other limit.
#[test]
fn d14_a_permissive_limit_counts_and_never_refuses() {
    let limiter = Limiter::new(
        "
limits:
  - { name: trial, per: [user], rate: 2/min, mode: permissive }
  - { name: hard, per: [], rate: 5/min }
",
    );
    assert_eq!(limiter.admitted("user=u1", 9), 5);
    assert_eq!(limiter.remaining("user=u1"), [("hard".into(), 0), ("trial".into(), 0)].into());
    assert_eq!(refused_by(&limiter.ask("user=u1")).as_deref(), Some("hard"));
}

/// What it would have refused is counted and shown.
#[test]
fn d15_would_be_refusals_are_counted_and_shown() {
    let limiter = Limiter::new("limits: [{ name: trial, per: [user], rate: 2/min, mode: permissive }]");
    assert_eq!(limiter.admitted("user=u1", 6), 6);
    assert_eq!(limiter.engine.limit_counts()[0].would_refuse, 4);
    let over = limiter.ask("user=u1");
    let trial = over.limits().next().unwrap();
    assert!(over.allowed() && trial.refused);
}

/// Headers of a permissive limit are those of an enforced one, over the limit too.
#[test]
fn d16_a_permissive_limit_has_the_headers_of_an_enforced_one() {
    let [permissive, enforced] = ["permissive", "enforce"].map(|mode| {
        let file = format!("limits: [{{ name: a, per: [user], rate: 2/min, mode: {mode} }}]");
        let limiter = Limiter::new(&file);
        let row = || {
            let answer = call(&limiter, "user=u1");
            answer.x_ratelimit().map(|value| value.map(str::to_owned))
        };
        [row(), row(), row(), row()]
    });
    assert_eq!(permissive, enforced);
    assert_eq!(permissive[3][1].as_deref(), Some("0"));
}

/// A disabled limit has no counter and no header.
#[test]
fn d17_a_disabled_limit_has_no_counter_and_no_header() {
    let limiter = Limiter::new("limits: [{ name: a, per: [user], rate: 2/min, mode: disabled }]");
    let answer = call(&limiter, "user=u1");
    assert_eq!(answer.x_ratelimit(), [None; 3]);
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(limiter.admitted("user=u1", 30), 30);
    assert_eq!(limiter.engine.store_stats().keys, 0);
}

/// The default algorithm is the fixed window, aligned to the epoch.
#[test]
fn d18_the_default_is_a_fixed_window_aligned_to_the_epoch() {
    let limiter = Limiter::new("limits: [{ name: a, per: [user], rate: 2/7s }]");
    let rate = tidegate::Rate::new(2, 7).unwrap();
    let fixed = tidegate::Algorithm::FixedWindow(algorithm::FixedWindow::new(rate).unwrap());
    assert_eq!(limiter.engine.policy().rules[0].limit.algorithm, fixed);
    // The clock stands 4 s beyond a multiple of 7 s, so three are left of this window.
    let decision = limiter.ask("user=u1");
    let reset = decision.limits().next().unwrap().reset;
    assert_eq!(reset, Span::from_secs(3));
}

/// The default store is in memory.
#[test]
fn d19_the_default_store_is_memory() {
    assert!(matches!(policy("limits: [{ name: a, per: [user], rate: 2/min }]").store, StoreSettings::Memory(_)));
}

/// A limit whose attribute is missing is skipped, and that is counted.
#[test]
fn d31_a_missing_attribute_skips_the_limit_and_is_counted() {
    let limiter = Limiter::new("limits: [{ name: a, per: [user], rate: 2/min }]");
    assert_eq!(limiter.admitted("org=acme", 7), 7);
    assert_eq!(limiter.engine.limit_counts()[0].missing, 7);
}

/// A file in which every limit can be skipped gets a warning.
#[test]
fn d32_a_file_that_can_be_skipped_whole_is_warned_about() {
    let warnings = |limits: &str| {
        let file = format!("limits: [{limits}]");
        let loaded = config::parse(&file, &Source::named("limits.yaml")).unwrap();
        loaded.warnings.iter().filter(|warning| warning.message.contains("meets no limit at all")).count()
    };
    let user = "{ name: a, per: [user], rate: 2/min }";
    assert!(warnings(user) > 0);
    assert_eq!(warnings(&format!("{user}, {{ name: all, per: [], rate: 9/min }}")), 0);
    assert_eq!(warnings("{ name: a, per: [user], rate: 2/min, missing: deny }"), 0);
}

/// It may refuse instead.
#[test]
fn d33_a_missing_attribute_may_refuse() {
    let limiter = Limiter::new(
        "limits: [{ name: a, per: [user], rate: 2/min, missing: deny }, { name: b, per: [], rate: 9/min }]",
    );
    let denied = limiter.ask("org=acme");
    assert_eq!(refused_by(&denied).as_deref(), Some("a"));
    assert!(denied.never());
    assert_eq!(limiter.remaining_of("b", "user=u1"), 9);
}

/// Or it counts as a value.
#[test]
fn d34_a_missing_attribute_may_count_as_a_value() {
    let limiter = Limiter::new("limits: [{ name: a, per: [user], rate: 3/min, missing: { value: anonymous } }]");
    assert_eq!(limiter.admitted("org=acme", 1) + limiter.admitted("user=anonymous", 1), 2);
    assert_eq!(limiter.admitted("org=beta", 9), 1);
    assert_eq!(limiter.admitted("user=u1", 9), 3);
}

/// A file may say 0: a switch that stops those it applies to.
#[test]
fn d35_a_limit_may_be_0() {
    let limiter = Limiter::new(
        "limits: [{ name: stop, when: { agent: rogue }, per: [], rate: 0/s }, { name: org, per: [org], rate: 5/min }]",
    );
    let denied = limiter.ask("org=acme agent=rogue");
    assert!(!denied.allowed() && denied.never() && denied.retry_after().is_none());
    assert_eq!(limiter.admitted("org=acme agent=a1", 9), 5);
}

/// A tool has one counter in each tenant, shared by its users, beside each user's own.
#[test]
fn d37_a_tool_has_one_counter_for_a_tenants_users() {
    let limiter = Limiter::new(
        "
limits:
  - { name: by_user, per: [tenant, user], rate: 9/min }
  - { name: by_tool, when: { tool: [search, summarise] }, per: [tenant, tool], rate: 4/min }
",
    );
    assert_eq!(limiter.admitted("tenant=t1 user=u1 tool=search", 3), 3);
    assert_eq!(limiter.admitted("tenant=t1 user=u2 tool=search", 3), 1);
    assert_eq!(limiter.admitted("tenant=t1 user=u2 tool=summarise", 3), 3);
    assert_eq!(limiter.admitted("tenant=t2 user=u1 tool=search", 9), 4);
    assert_eq!(limiter.remaining_of("by_user", "tenant=t1 user=u1"), 6);
    assert_eq!(limiter.remaining_of("by_user", "tenant=t1 user=u2"), 5);
}

/// A second after their windows have passed, counters and their memory are gone, logs included.
#[test]
fn d39_expired_state_is_gone_a_second_later() {
    let limiter = Limiter::new(
        "
limits:
  - { name: window, per: [user], rate: 9/min }
  - { name: log, per: [user], rate: 9/min, algorithm: sliding_window }
  - { name: bucket, per: [user], rate: 9/min, algorithm: token_bucket }
  - { name: live, per: [], rate: 5001/h }
",
    );
    let kept = |limiter: &Limiter| {
        limiter.engine.tidy();
        limiter.engine.store_stats()
    };
    let empty = kept(&limiter);
    for user in 0..5_000 {
        assert!(limiter.ask(&format!("user=u{user}")).allowed());
    }
    let full = kept(&limiter);
    assert_eq!(full.keys, 5_000 * 3 + 1);
    let after = kept(limiter.at_ms(61_000));
    assert_eq!(after.keys, 1);
    assert!(after.bytes <= empty.bytes + 1_024, "{empty:?} {full:?} {after:?}");
    // What had not expired stands where it was.
    assert_eq!(limiter.remaining_of("live", ""), 1);
}

/// A caller's plan gives it numbers of its own, within what the file says.
#[test]
fn d41_a_plan_brings_numbers_of_its_own() {
    let limiter = Limiter::new(
        "
limits:
  - name: org
    per: [org]
    rate: 2/min
    overrides:
      - { when: { plan: team }, rate: 4/min }
      - { when: { plan: [pro, enterprise] }, rate: 6/min }
",
    );
    let admitted = |who: &str| limiter.admitted(who, 20);
    assert_eq!(admitted("org=o1 plan=team"), 4);
    assert_eq!(admitted("org=o2 plan=enterprise"), 6);
    // A plan that the file does not know gives nothing more.
    assert_eq!(admitted("org=o3 plan=unlimited"), 2);
    assert_eq!(admitted("org=o4"), 2);
}
