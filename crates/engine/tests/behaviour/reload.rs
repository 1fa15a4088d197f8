//! Another policy in place of the one in force: whose counters go on, and that none is lost on the way.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use tidegate::policy::{Condition, Test};
use tidegate::{Effect, Intervention, Policy, Span};
use tidegate_testkit::{Limiter, START, policy};

/// Takes one of `before`, reloads, and says whether that one is still counted.
fn counter_goes_on(before: &str, after: &str) -> bool {
    let file = |limit: &str| format!("limits: [{{ name: it, {limit} }}]");
    let limiter = Limiter::new(&file(before));
    let who = "org=acme user=u1";
    assert!(limiter.ask(who).allowed());
    let reloaded = limiter.reload(&file(after));
    let peeked = limiter.ask_cost(who, 0);
    let state = peeked.limits().next().unwrap();
    let goes_on = state.remaining < state.quota;
    let told: Vec<String> = reloaded.kept.iter().map(ToString::to_string).collect();
    assert_eq!(told, if goes_on { vec!["it"] } else { Vec::new() }, "{after}: {reloaded:?}");
    assert_eq!((reloaded.added.len(), reloaded.removed.len()), if goes_on { (0, 0) } else { (1, 1) });
    goes_on
}

#[test]
fn a_counter_goes_on_unless_its_limit_changed() {
    let window = "per: [org], rate: 60/min";
    for kept in [
        "per: [org], rate: 60/min",
        "per: [org], rate: 600/min",
        "per: [org], rate: 60/60s",
        "per: [org], rate: 9/1min, level: crew, mode: permissive, order: -3",
        "per: [org], rate: 60/min, when: { user: u1 }, missing: deny, cost: 2",
        "per: [org], rate: 60/min, overrides: [{ when: { user: u1 }, rate: 30/min }]",
    ] {
        assert!(counter_goes_on(window, kept), "{kept}");
    }
    for anew in [
        "per: [user], rate: 60/min",
        "per: [org, user], rate: 60/min",
        "per: [], rate: 60/min",
        "per: [org], rate: 60/h",
        "per: [org], rate: 60/min, algorithm: sliding_window",
        "per: [org], rate: 60/min, algorithm: sliding_counter",
        "per: [org], rate: 60/min, algorithm: token_bucket",
        "per: [org], quota: 60, period: hour",
    ] {
        assert!(!counter_goes_on(window, anew), "{anew}");
        assert!(!counter_goes_on(anew, window), "{anew}");
    }
}

#[test]
fn a_bucket_goes_on_with_another_burst_and_begins_anew_with_another_rate() {
    let bucket = "per: [org], algorithm: token_bucket, rate: 60/min, burst: 10";
    assert!(counter_goes_on(bucket, "per: [org], algorithm: token_bucket, rate: 60/min, burst: 5"));
    assert!(counter_goes_on(bucket, "per: [org], algorithm: token_bucket, rate: 1/s, burst: 50"));
    assert!(!counter_goes_on(bucket, "per: [org], algorithm: token_bucket, rate: 120/min, burst: 10"));
}

#[test]
fn a_month_goes_on_with_another_quota_and_begins_anew_in_another_zone() {
    let month = "per: [org], quota: 100, period: month";
    assert!(counter_goes_on(month, "per: [org], quota: 50, period: month, timezone: UTC, anchor_day: 1"));
    assert!(!counter_goes_on(month, "per: [org], quota: 100, period: month, timezone: Europe/Berlin"));
    assert!(!counter_goes_on(month, "per: [org], quota: 100, period: month, anchor_day: 15"));
    assert!(!counter_goes_on(month, "per: [org], quota: 100, period: week"));
}

#[test]
fn a_lowered_quota_is_no_debt_and_a_raised_one_gives_the_rest() {
    let file = |quota: u64| format!("limits: [{{ name: org, per: [org], rate: {quota}/min }}]");
    let limiter = Limiter::new(&file(10));
    assert!(limiter.ask_cost("org=acme", 7).allowed());
    limiter.reload(&file(5));
    assert_eq!(limiter.remaining_of("org", "org=acme"), 0);
    let denied = limiter.at_ms(15_000).ask("org=acme");
    assert_eq!(denied.retry_after(), Some(Span::from_secs(45)));
    limiter.reload(&file(20));
    assert_eq!(limiter.remaining_of("org", "org=acme"), 13);
}

#[test]
fn a_renamed_or_removed_limit_is_forgotten() {
    let limiter = Limiter::new("limits: [{ name: a, per: [org], rate: 5/min }, { name: b, per: [org], rate: 5/min }]");
    assert_eq!(limiter.admitted("org=acme", 9), 5);
    assert_eq!(limiter.engine.store_stats().keys, 2);
    let reloaded =
        limiter.reload("limits: [{ name: a, per: [org], rate: 5/min }, { name: c, per: [org], rate: 5/min }]");
    let names = |names: &[std::sync::Arc<str>]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(&reloaded.kept), ["a"]);
    assert_eq!(names(&reloaded.added), ["c"]);
    assert_eq!(names(&reloaded.removed), ["b"]);
    assert_eq!(limiter.remaining("org=acme"), [("a".into(), 0), ("c".into(), 5)].into());
    // Back again, the second one begins anew.
    limiter.reload("limits: [{ name: b, per: [org], rate: 5/min }]");
    assert_eq!(limiter.remaining("org=acme"), [("b".into(), 5)].into());
}

#[test]
fn a_limit_that_is_switched_off_and_on_begins_anew() {
    let file = |mode: &str| format!("limits: [{{ name: a, per: [org], rate: 5/min, mode: {mode} }}]");
    let limiter = Limiter::new(&file("enforce"));
    assert!(limiter.ask("org=acme").allowed());
    limiter.reload(&file("permissive"));
    assert_eq!(limiter.remaining_of("a", "org=acme"), 4);
    limiter.reload(&file("disabled"));
    assert_eq!(limiter.engine.store_stats().keys, 0);
    limiter.reload(&file("enforce"));
    assert_eq!(limiter.remaining_of("a", "org=acme"), 5);
}

#[test]
fn what_needs_a_restart_is_named_and_the_rest_takes_effect() {
    let limiter = Limiter::new("limits: [{ name: a, per: [org], rate: 5/min }]");
    let reloaded = limiter.reload(
        "
listen: 127.0.0.1:8181
admin: { addr: '127.0.0.1:9191' }
store: { memory: { max_keys: 5 } }
headers: { ietf: false }
limits: [{ name: a, per: [org], rate: 6/min }]
",
    );
    assert_eq!(reloaded.needs_restart, ["store", "listen", "admin"]);
    assert!(!limiter.engine.policy().headers.ietf);
    assert_eq!(limiter.remaining_of("a", "org=acme"), 6);
    assert!(limiter.reload("limits: [{ name: a, per: [org], rate: 6/min }]").needs_restart.len() == 3);
    assert_eq!(limiter.engine.store_stats().keys_max, 10_000_000);
}

/// Files between which the limits `agent` and `everyone` stay as they are and all else changes.
fn changing_file(turn: u64) -> String {
    let around = match turn % 4 {
        0 => "",
        1 => "  - { name: extra, per: [agent], rate: 100000000/h }\n",
        2 => "  - { name: extra, per: [agent], rate: 1/min, algorithm: sliding_window, mode: permissive }\n",
        _ => {
            "  - { name: extra, per: [], rate: 1/min, mode: disabled }\n  - { name: month, per: [agent], quota: 100000000, period: month }\n"
        }
    };
    let others = ["", ", overrides: [{ when: { agent: nobody }, rate: 7/min }]"][turn as usize % 2];
    let order = ["", ", order: 1"][turn as usize / 2 % 2];
    format!(
        "limits:\n{around}  - {{ name: agent, per: [agent], rate: 60000/min{others} }}\n  - {{ name: everyone, per: [], rate: 200000/min{order} }}\n"
    )
}

#[test]
fn a_thousand_reloads_under_load_lose_no_count() {
    const AGENTS: u64 = 5;
    let policies: Vec<Policy> = (0..8).map(|turn| policy(&changing_file(turn))).collect();
    let limiter = Limiter::with_policy(policies[0].clone());
    let (reloads_done, spent, total) = (AtomicBool::new(false), AtomicBool::new(false), AtomicU64::new(0));
    let admitted: Vec<AtomicU64> = (0..AGENTS).map(|_| AtomicU64::new(0)).collect();
    let whos: Vec<String> = (0..AGENTS).map(|agent| format!("agent=a{agent}")).collect();
    thread::scope(|scope| {
        for worker in 0..8_u64 {
            let (limiter, admitted, whos) = (&limiter, &admitted, &whos);
            let (reloads_done, spent, total) = (&reloads_done, &spent, &total);
            scope.spawn(move || {
                let mut refused_in_a_row = 0;
                let mut turn = worker;
                while refused_in_a_row < AGENTS || !reloads_done.load(Ordering::Relaxed) {
                    turn += 1;
                    let agent = (turn % AGENTS) as usize;
                    let decision = limiter.ask(&whos[agent]);
                    assert_eq!(decision.degraded(), None);
                    if decision.allowed() {
                        admitted[agent].fetch_add(1, Ordering::Relaxed);
                        total.fetch_add(1, Ordering::Relaxed);
                        refused_in_a_row = 0;
                    } else {
                        refused_in_a_row += 1;
                        spent.fetch_or(refused_in_a_row > AGENTS, Ordering::Relaxed);
                        thread::yield_now();
                    }
                }
            });
        }
        scope.spawn(|| {
            for turn in 1..=1_000 {
                // Spread over all that is admitted.
                while total.load(Ordering::Relaxed) < turn * 190 && !spent.load(Ordering::Relaxed) {
                    thread::yield_now();
                }
                limiter.engine.reload(policies[turn as usize % policies.len()].clone());
                // Interventions replace the plan too.
                let block = Intervention {
                    when: vec![Condition { attribute: "agent".into(), test: Test::Equals("nobody".into()) }],
                    effect: Effect::Block,
                    expires_at: START.after(Span::from_secs(3_600)),
                    reason: String::new(),
                    by: String::new(),
                };
                let id = limiter.engine.intervene(block).unwrap();
                assert!(limiter.engine.end_intervention(id));
            }
            reloads_done.store(true, Ordering::Relaxed);
        });
    });
    let admitted: Vec<u64> = admitted.into_iter().map(AtomicU64::into_inner).collect();
    assert_eq!(admitted.iter().sum::<u64>(), 200_000);
    for (who, admitted) in whos.iter().zip(admitted) {
        assert_eq!(60_000 - limiter.remaining_of("agent", who), admitted, "{who}");
    }
}
