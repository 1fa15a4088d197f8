//! The atomic limiter over three nested levels: agent, org, everyone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tidegate::{Decision, Span};
use tidegate_testkit::Limiter;

/// Three levels with these numbers a minute.
fn levels(agent: u64, org: u64, everyone: u64) -> Limiter {
    Limiter::new(&format!(
        "
limits:
  - {{ name: agent-minute, per: [org, agent], rate: {agent}/min }}
  - {{ name: org-minute, per: [org], rate: {org}/min }}
  - {{ name: everyone, per: [], rate: {everyone}/min }}
"
    ))
}

/// What is left at agent, org and everyone.
fn left(limiter: &Limiter, who: &str) -> [u64; 3] {
    let left = limiter.remaining(who);
    ["agent-minute", "org-minute", "everyone"].map(|limit| left[limit])
}

/// The level that refused.
fn level(decision: &Decision) -> Option<String> {
    decision.refused_by().map(|state| state.limit.level.to_string())
}

/// Sends so many requests from eight threads at once; how many were admitted.
fn admitted_by_8_threads(limiter: &Limiter, who: impl Fn(usize) -> String + Sync, requests: usize) -> usize {
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..8 {
            let (who, admitted) = (&who, &admitted);
            scope.spawn(move || {
                for turn in 0..requests / 8 {
                    let passes = limiter.ask(&who(turn * 8 + worker)).allowed();
                    admitted.fetch_add(usize::from(passes), Ordering::Relaxed);
                }
            });
        }
    });
    admitted.into_inner()
}

/// To check and to take is one step at every level: callers at once get exactly what there is.
#[test]
fn h01_callers_at_once_get_exactly_what_each_level_has() {
    let by_agent = levels(500, 100_000, 100_000);
    assert_eq!(admitted_by_8_threads(&by_agent, |_| "org=acme agent=a1".into(), 8_000), 500);
    assert_eq!(left(&by_agent, "org=acme agent=a1"), [0, 99_500, 99_500]);

    let by_org = levels(100_000, 700, 100_000);
    assert_eq!(admitted_by_8_threads(&by_org, |turn| format!("org=acme agent=a{}", turn % 5), 8_000), 700);
    assert_eq!(left(&by_org, "org=acme agent=none"), [100_000, 0, 99_300]);

    let by_everyone = levels(100_000, 100_000, 900);
    let who = |turn| format!("org=o{} agent=a{}", turn % 3, turn % 7);
    assert_eq!(admitted_by_8_threads(&by_everyone, who, 8_000), 900);
    assert_eq!(left(&by_everyone, "org=none agent=none"), [100_000, 100_000, 0]);
}

/// One decision asks the agent's, the org's and everyone's counter.
#[test]
fn h04_three_levels_are_asked_at_once() {
    let limiter = levels(5, 10, 20);
    let decision = limiter.ask("org=acme agent=a1");
    let levels: Vec<&str> = decision.limits().map(|state| &*state.limit.level).collect();
    assert_eq!(levels, ["agent", "org", "global"]);
}

/// The numbers may come with the request: a plan of its own at each level.
#[test]
fn h05_a_request_brings_the_numbers_of_its_levels() {
    let limiter = Limiter::new(
        "
limits:
  - { name: agent-minute, per: [org, agent], rate: 2/min, overrides: [{ when: { plan: pro }, rate: 4/min }] }
  - { name: org-minute, per: [org], rate: 3/min, overrides: [{ when: { plan: pro }, rate: 6/min }] }
  - { name: everyone, per: [], rate: 100/min }
",
    );
    assert_eq!(limiter.admitted("org=acme agent=a1 plan=free", 9), 2);
    assert_eq!(limiter.admitted("org=acme agent=a2 plan=free", 9), 1);
    assert_eq!(limiter.admitted("org=beta agent=a1 plan=pro", 9), 4);
    assert_eq!(limiter.admitted("org=beta agent=a2 plan=pro", 9), 2);
}

/// The window's length is a setting.
#[test]
fn h06_a_window_is_as_long_as_it_is_set() {
    let limiter = Limiter::new("limits: [{ name: agent, per: [org, agent], rate: 2/15s }]");
    assert_eq!(limiter.admitted("org=acme agent=a1", 3), 2);
    assert_eq!(limiter.at_ms(14_999).admitted("org=acme agent=a1", 3), 0);
    assert_eq!(limiter.at_ms(15_000).admitted("org=acme agent=a1", 3), 2);
}

/// A counter that was never touched stands at nothing taken.
#[test]
fn h07_an_unknown_counter_stands_at_zero() {
    let limiter = levels(5, 10, 20);
    assert_eq!(left(&limiter, "org=new agent=new"), [5, 10, 20]);
    assert_eq!(limiter.engine.store_stats().keys, 0);
}

/// An agent at its limit is refused; the answer says so, and how much it has taken.
#[test]
fn h08_a_spent_agent_is_refused_with_its_count() {
    let limiter = levels(3, 10, 20);
    limiter.admitted("org=acme agent=a1", 3);
    let denied = limiter.ask("org=acme agent=a1");
    let refused_by = denied.refused_by().unwrap();
    assert_eq!(&*refused_by.limit.level, "agent");
    assert_eq!(refused_by.quota - refused_by.remaining, 3);
}

/// An org at its limit is refused; the answer says so, and how much it has taken.
#[test]
fn h09_a_spent_org_is_refused_with_its_count() {
    let limiter = levels(3, 4, 20);
    limiter.admitted("org=acme agent=a1", 3);
    limiter.admitted("org=acme agent=a2", 1);
    let denied = limiter.ask("org=acme agent=a2");
    let refused_by = denied.refused_by().unwrap();
    assert_eq!(&*refused_by.limit.level, "org");
    assert_eq!(refused_by.quota - refused_by.remaining, 4);
}

/// When everyone together is at the limit, the answer says so, and how much was taken.
#[test]
fn h10_a_spent_whole_is_refused_with_its_count() {
    let limiter = levels(3, 4, 5);
    limiter.admitted("org=acme agent=a1", 3);
    limiter.admitted("org=beta agent=a1", 2);
    let denied = limiter.ask("org=gamma agent=a1");
    let refused_by = denied.refused_by().unwrap();
    assert_eq!(&*refused_by.limit.level, "global");
    assert_eq!(refused_by.quota - refused_by.remaining, 5);
}

/// The request that reaches a limit passes; the one after it does not.
#[test]
fn h11_the_last_within_a_limit_passes_and_the_next_does_not() {
    let limiter = levels(7, 100, 100);
    let passed: Vec<bool> = (0..9).map(|_| limiter.ask("org=acme agent=a1").allowed()).collect();
    assert_eq!(passed, [true, true, true, true, true, true, true, false, false]);
}

/// All levels are checked before any is moved: what is refused adds nothing anywhere.
#[test]
fn h12_a_refused_request_moves_nothing() {
    let limiter = levels(2, 3, 100);
    limiter.admitted("org=acme agent=a1", 2);
    limiter.admitted("org=acme agent=a2", 1);
    let before = [left(&limiter, "org=acme agent=a1"), left(&limiter, "org=acme agent=a2")];
    assert_eq!(limiter.admitted("org=acme agent=a1", 40), 0);
    assert_eq!(limiter.admitted("org=acme agent=a2", 40), 0);
    assert_eq!([left(&limiter, "org=acme agent=a1"), left(&limiter, "org=acme agent=a2")], before);
}

/// What is admitted adds one at each of the three levels.
#[test]
fn h13_an_admitted_request_adds_one_at_each_level() {
    let limiter = levels(5, 10, 20);
    for taken in 1..=5 {
        assert!(limiter.ask("org=acme agent=a1").allowed());
        assert_eq!(left(&limiter, "org=acme agent=a1"), [5 - taken, 10 - taken, 20 - taken]);
    }
}

/// Each counter ends with its window, however steadily its caller goes on.
#[test]
fn h14_a_window_ends_under_a_steady_caller() {
    let limiter = levels(6, 60, 600);
    // One request every eleven seconds, for an hour: never more than six in a minute, so all pass.
    for turn in 0..327 {
        assert!(limiter.at_ms(turn * 11_000).ask("org=acme agent=a1").allowed(), "{turn}");
    }
    // One every second: exactly six in each minute.
    let busy = levels(6, 60, 600);
    let admitted = (0..600).filter(|turn| busy.at_ms(turn * 1_000).ask("org=acme agent=a1").allowed()).count();
    assert_eq!(admitted, 60);
}

/// An admission tells what the agent has taken, this request included.
#[test]
fn h15_an_admission_tells_the_agents_new_count() {
    let limiter = levels(5, 10, 20);
    for taken in 1..=5 {
        let decision = limiter.ask("org=acme agent=a1");
        assert!(decision.allowed() && level(&decision).is_none());
        let agent = decision.limits().next().unwrap();
        assert_eq!(agent.quota - agent.remaining, taken);
    }
}

/// Where several levels are spent, the agent is named before the org, and the org before everyone.
#[test]
fn h17_levels_are_asked_from_the_agent_outwards() {
    let limiter = levels(2, 2, 2);
    limiter.admitted("org=acme agent=a1", 2);
    assert_eq!(level(&limiter.ask("org=acme agent=a1")).as_deref(), Some("agent"));
    assert_eq!(level(&limiter.ask("org=acme agent=a2")).as_deref(), Some("org"));
    assert_eq!(level(&limiter.ask("org=beta agent=a1")).as_deref(), Some("global"));
}

/// Each level alone is enough to refuse.
#[test]
fn h19_any_spent_level_refuses() {
    for (limiter, admitted) in [(levels(1, 9, 9), 1), (levels(9, 2, 9), 2), (levels(9, 9, 3), 3)] {
        assert_eq!(limiter.admitted("org=acme agent=a1", 9), admitted);
    }
}

/// The level that refused is one of three words.
#[test]
fn h20_a_refusal_says_agent_org_or_global() {
    let refused_at = |limiter: Limiter| {
        limiter.admitted("org=acme agent=a1", 9);
        level(&limiter.ask("org=acme agent=a1"))
    };
    assert_eq!(refused_at(levels(1, 9, 9)).as_deref(), Some("agent"));
    assert_eq!(refused_at(levels(9, 1, 9)).as_deref(), Some("org"));
    assert_eq!(refused_at(levels(9, 9, 1)).as_deref(), Some("global"));
}

/// A noisy agent is stopped at its own limit, before it has used up what its org shares.
#[test]
fn h22_a_noisy_agent_leaves_its_org_room() {
    let limiter = levels(10, 40, 1_000);
    assert_eq!(limiter.admitted("org=acme agent=noisy", 5_000), 10);
    for agent in ["a1", "a2", "a3"] {
        assert_eq!(limiter.admitted(&format!("org=acme agent={agent}"), 10), 10);
    }
}

/// With one counter for the org alone, the same noise starves the others.
#[test]
fn h23_levels_are_fairer_than_one_counter_for_the_org() {
    let flat = Limiter::new("limits: [{ name: org-minute, per: [org], rate: 40/min }]");
    let nested = levels(10, 40, 1_000);
    let quiet_after_noise = |limiter: &Limiter| {
        limiter.admitted("org=acme agent=noisy", 5_000);
        limiter.admitted("org=acme agent=quiet", 10)
    };
    assert_eq!(quiet_after_noise(&flat), 0);
    assert_eq!(quiet_after_noise(&nested), 10);
}

/// Nobody ever sees a request counted at one level and not yet at another.
#[test]
fn h31_no_one_sees_half_of_an_admission() {
    let limiter = levels(100_000, 100_000, 100_000);
    thread::scope(|scope| {
        let writers: Vec<_> =
            (0..2).map(|_| scope.spawn(|| assert_eq!(limiter.admitted("org=acme agent=a1", 20_000), 20_000))).collect();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            let [agent, org, everyone] = left(&limiter, "org=acme agent=a1");
            assert!(agent == org && org == everyone, "{agent} {org} {everyone}");
        }
    });
    assert_eq!(left(&limiter, "org=acme agent=a1"), [60_000; 3]);
}

/// An agent is counted within its org: two orgs may have agents of one name.
#[test]
fn h38_an_agent_is_counted_within_its_org() {
    let limiter = levels(3, 100, 100);
    assert_eq!(limiter.admitted("org=acme agent=a1", 9), 3);
    assert_eq!(limiter.admitted("org=beta agent=a1", 9), 3);
    assert_eq!(limiter.admitted("org=acme agent=a2", 9), 3);
}

/// All agents of an org share the org's minute.
#[test]
fn h40_an_orgs_agents_share_its_counter() {
    let limiter = levels(100, 5, 100);
    assert_eq!(limiter.admitted("org=acme agent=a1", 2), 2);
    assert_eq!(limiter.admitted("org=acme agent=a2", 2), 2);
    assert_eq!(limiter.admitted("org=acme agent=a3", 9), 1);
    assert_eq!(limiter.admitted("org=beta agent=a1", 9), 5);
}

/// All orgs share everyone's minute.
#[test]
fn h42_all_orgs_share_one_counter() {
    let limiter = levels(100, 100, 5);
    assert_eq!(limiter.admitted("org=acme agent=a1", 2), 2);
    assert_eq!(limiter.admitted("org=beta agent=a1", 2), 2);
    assert_eq!(limiter.admitted("org=gamma agent=a1", 9), 1);
}

/// One tenant at its limit, or flooding beyond it, is nothing to another.
#[test]
fn h48_tenants_are_isolated() {
    let limiter = levels(5, 8, 1_000);
    for agent in 0..50 {
        limiter.admitted(&format!("org=acme agent=a{agent}"), 20);
    }
    assert_eq!(level(&limiter.ask("org=acme agent=a0")).as_deref(), Some("agent"));
    assert_eq!(left(&limiter, "org=beta agent=a0"), [5, 8, 992]);
    assert_eq!(limiter.admitted("org=beta agent=a0", 9), 5);
    assert_eq!(limiter.admitted("org=beta agent=a1", 9), 3);
}

/// The agent's level alone: what it refuses leaves the org's and everyone's counters where they were.
#[test]
fn h49_a_tripped_agent_leaves_the_others_counters() {
    let limiter = levels(3, 50, 100);
    assert_eq!(limiter.admitted("org=acme agent=a1", 1_000), 3);
    assert_eq!(left(&limiter, "org=acme agent=a1"), [0, 47, 97]);
    // A minute on, the agent has its own again; the others' windows ended too.
    assert_eq!(limiter.at_ms(60_000).admitted("org=acme agent=a1", 1_000), 3);
    assert_eq!(left(&limiter, "org=acme agent=a1"), [0, 47, 97]);
}

/// The org's level alone: what it refuses leaves the agents' and everyone's counters where they were.
#[test]
fn h50_a_tripped_org_leaves_the_others_counters() {
    let limiter = levels(50, 3, 100);
    assert_eq!(limiter.admitted("org=acme agent=a1", 1_000), 3);
    assert_eq!(left(&limiter, "org=acme agent=a1"), [47, 0, 97]);
    assert_eq!(limiter.admitted("org=acme agent=a2", 1_000), 0);
    assert_eq!(left(&limiter, "org=acme agent=a2"), [50, 0, 97]);
    assert_eq!(limiter.ask("org=acme agent=a2").retry_after(), Some(Span::from_secs(60)));
}

/// Everyone's level alone: what it refuses leaves the agents' and orgs' counters where they were.
#[test]
fn h51_a_tripped_whole_leaves_the_others_counters() {
    let limiter = levels(50, 100, 3);
    assert_eq!(limiter.admitted("org=acme agent=a1", 1_000), 3);
    assert_eq!(left(&limiter, "org=acme agent=a1"), [47, 97, 0]);
    assert_eq!(limiter.admitted("org=beta agent=a1", 1_000), 0);
    assert_eq!(left(&limiter, "org=beta agent=a1"), [50, 100, 0]);
}
