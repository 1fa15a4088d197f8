//! The atomic limiter over three nested levels: agent, org, everyone.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use tidegate::{Decision, Degraded, Engine, Request, Span, config};
use tidegate_testkit::Limiter;
use tidegate_testkit::servers::{Flavor, Server};
use tokio::runtime::Runtime;

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

/// Three levels on a Redis of their own.
struct OnRedis {
    server: Server,
    engine: Engine,
    runtime: Runtime,
}

impl OnRedis {
    fn new() -> Self {
        let server = Server::start(Flavor::Redis70);
        let limits = format!(
            "
store: {{ backend: redis, redis: {{ url: \"{}\", timeout_ms: 2000 }} }}
limits:
  - {{ name: agent-minute, per: [org, agent], rate: 60/min }}
  - {{ name: org-minute, per: [org], rate: 600/min }}
  - {{ name: everyone, per: [], rate: 10000/min }}
",
            server.url()
        );
        let policy = config::parse(&limits, &config::Source::named("limits.yaml")).unwrap().policy;
        let (engine, runtime) = (Engine::new(policy), Runtime::new().unwrap());
        runtime.block_on(engine.connect()).unwrap();
        Self { server, engine, runtime }
    }

    fn ask(&self, org: &str, agent: &str) -> Decision {
        self.runtime.block_on(self.engine.decide(&Request::new(&[("org", org), ("agent", agent)])))
    }

    /// How often the server has run a command.
    fn calls(&self, command: &str) -> u64 {
        let stats = self.server.cli(&["INFO", "commandstats"]);
        let line = stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        line.and_then(|rest| rest.split(',').next()?.parse().ok()).unwrap_or(0)
    }
}

/// All three levels are checked and taken by one call.
#[test]
fn h16_three_counters_in_one_round_trip() {
    let redis = OnRedis::new();
    redis.server.cli(&["CONFIG", "RESETSTAT"]);
    for _ in 0..10 {
        assert_eq!(redis.ask("acme", "a1").limits().count(), 3);
    }
    assert_eq!(redis.calls("evalsha"), 10 + beats(&redis));
    assert_eq!(redis.calls("eval"), 0);
}

/// Calls that only say that this instance is there; they are made beside the requests.
fn beats(redis: &OnRedis) -> u64 {
    redis.calls("zadd")
}

/// The script is called by its hash.
#[test]
fn h24_the_script_is_called_by_its_hash() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    assert!(redis.calls("evalsha") > 0);
    assert_eq!(redis.calls("eval"), 0);
}

/// A server that does not know the script gets it, and the call is answered all the same.
#[test]
fn h25_an_unknown_script_is_told_and_the_call_answered() {
    let redis = OnRedis::new();
    redis.server.cli(&["SCRIPT", "FLUSH"]);
    let decision = redis.ask("acme", "a1");
    assert_eq!((decision.allowed(), decision.degraded()), (true, None));
    assert!(redis.calls("eval") > 0, "it was told");
}

/// The hash is known from the start: no call asks for it.
#[test]
fn h26_the_hash_is_known_from_the_start() {
    let redis = OnRedis::new();
    redis.server.cli(&["CONFIG", "RESETSTAT"]);
    for _ in 0..5 {
        redis.ask("acme", "a1");
    }
    assert_eq!((redis.calls("script|load"), redis.calls("script|exists")), (0, 0));
}

/// After a restart the hash is made sure of again.
#[test]
fn h27_after_a_restart_the_script_is_there_again() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    redis.server.kill();
    redis.server.restart();
    let again = (0..1_000).any(|_| {
        thread::sleep(std::time::Duration::from_millis(5));
        redis.ask("acme", "a1").degraded().is_none()
    });
    assert!(again, "it heals by itself");
    assert!(redis.calls("script|load") > 0);
}

/// The script's text is not sent with each request: what comes in for one is far shorter.
#[test]
fn h28_the_text_is_not_sent_with_each_request() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    let received = || redis.server.info("total_net_input_bytes").parse::<u64>().unwrap();
    let before = received();
    for _ in 0..100 {
        redis.ask("acme", "a1");
    }
    let each = (received() - before) / 100;
    assert!((50..1_000).contains(&each), "{each} bytes a request");
}

/// Requests pass when the server fails.
#[test]
fn h29_requests_pass_when_the_server_fails() {
    let redis = OnRedis::new();
    redis.server.kill();
    for nth in 0..10 {
        let decision = redis.ask("acme", &format!("a{nth}"));
        assert_eq!((decision.allowed(), decision.degraded()), (true, Some(Degraded::Local)));
    }
}

/// The key of an agent's minute is as it was named.
#[test]
fn h37_the_key_of_an_agents_minute() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    assert_eq!(redis.server.cli(&["EXISTS", "ratelimit:{acme}:agent:a1:minute"]), "1");
}

/// The key of an org's minute is as it was named.
#[test]
fn h39_the_key_of_an_orgs_minute() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    assert_eq!(redis.server.cli(&["EXISTS", "ratelimit:{acme}:minute"]), "1");
}

/// The key of everyone's minute is as it was named.
#[test]
fn h41_the_key_of_everyones_minute() {
    let redis = OnRedis::new();
    redis.ask("acme", "a1");
    assert_eq!(redis.server.cli(&["EXISTS", "ratelimit:global:minute"]), "1");
}

/// The script is loaded at the start, before the first request.
#[test]
fn h44_the_script_is_loaded_at_the_start() {
    let redis = OnRedis::new();
    assert!(redis.calls("script|load") > 0);
    assert!(redis.calls("evalsha") > 0, "and tried");
}

/// The whole way from an unknown hash over loading to the answer, with the counters right at its end.
#[test]
fn h45_from_an_unknown_hash_to_the_answer() {
    let redis = OnRedis::new();
    let left = |decision: &Decision| decision.limits().map(|state| state.remaining).collect::<Vec<_>>();
    assert_eq!(left(&redis.ask("acme", "a1")), [59, 599, 9_999]);
    redis.server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(left(&redis.ask("acme", "a1")), [58, 598, 9_998], "taken once");
    let evals = redis.calls("eval");
    assert_eq!(left(&redis.ask("acme", "a1")), [57, 597, 9_997]);
    assert_eq!(redis.calls("eval"), evals, "from then on by its hash again");
}

/// An outage from end to end, with two tenants: one tenant's load never refuses the other.
#[test]
fn h47_an_outage_with_two_tenants() {
    let redis = OnRedis::new();
    redis.server.kill();
    let refused = (0..100).filter(|_| !redis.ask("greedy", "a1").allowed()).count();
    assert_eq!(refused, 40, "a runaway is stopped at its own limit");
    assert!((0..50).all(|_| redis.ask("modest", "a1").allowed()));
}
