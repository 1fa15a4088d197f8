//! Limits per user, tenant and tool: their algorithms, the store in memory, the modes, the headers. What
//! belongs to the plugin's own interface is pending; here the engine shows what the plugin will rest on.

use std::thread;
use std::time::{Duration, Instant};

use http::StatusCode;
use tidegate::config::{self, Source};
use tidegate::policy::StoreSettings;
use tidegate::{Decision, Engine, Rate, Request, Span};
use tidegate_testkit::{Limiter, attributes, policy};

use crate::http_door::call;

/// A limit for each user, one for each tenant, and one for each of two tools.
const DIMENSIONS: &str = "
limits:
  - { name: by_user, per: [user], rate: 30/m }
  - { name: by_tenant, per: [tenant], rate: 300/m }
  - { name: by_tool-search, when: { tool: search }, per: [tenant, tool], rate: 10/m }
  - { name: by_tool-summarise, when: { tool: summarise }, per: [tenant, tool], rate: 5/m }
";

/// One limit for each user, by this algorithm.
fn by_user(rate: &str, algorithm: &str) -> Limiter {
    Limiter::new(&format!("limits: [{{ name: by_user, per: [user], rate: {rate}, algorithm: {algorithm} }}]"))
}

fn refused_by(decision: &Decision) -> Option<String> {
    decision.refused_by().map(|state| state.limit.name.to_string())
}

/// Each user has a limit.
#[test]
fn p02_users_are_limited() {
    let limiter = Limiter::new(DIMENSIONS);
    assert_eq!(limiter.admitted("tenant=t1 user=u1 tool=fetch", 50), 30);
    assert_eq!(refused_by(&limiter.ask("tenant=t1 user=u1 tool=fetch")).as_deref(), Some("by_user"));
    assert_eq!(limiter.admitted("tenant=t1 user=u2 tool=fetch", 50), 30);
}

/// Each tenant has a limit.
#[test]
fn p03_tenants_are_limited() {
    let limiter = Limiter::new(DIMENSIONS);
    let admitted: usize = (0..20).map(|user| limiter.admitted(&format!("tenant=t1 user=u{user} tool=fetch"), 20)).sum();
    assert_eq!(admitted, 300);
    assert_eq!(refused_by(&limiter.ask("tenant=t1 user=new tool=fetch")).as_deref(), Some("by_tenant"));
    assert!(limiter.ask("tenant=t2 user=new tool=fetch").allowed());
}

/// Each named tool has a limit of its own.
#[test]
fn p04_tools_are_limited() {
    let limiter = Limiter::new(DIMENSIONS);
    assert_eq!(limiter.admitted("tenant=t1 user=u1 tool=search", 12), 10);
    assert_eq!(limiter.admitted("tenant=t1 user=u1 tool=summarise", 12), 5);
    assert_eq!(refused_by(&limiter.ask("tenant=t1 user=u1 tool=search")).as_deref(), Some("by_tool-search"));
    assert!(limiter.ask("tenant=t1 user=u1 tool=fetch").allowed());
}

/// The algorithm is a choice of three by name; each shows its own way of counting.
#[test]
fn p07_the_algorithm_is_chosen_by_name() {
    // Two at the end of a minute, two at the start of the next, one half a minute later.
    let passed = |algorithm| {
        let limiter = by_user("2/m", algorithm);
        [59_000, 60_000, 90_000].map(|ms| limiter.at_ms(ms).admitted("user=u1", 2))
    };
    assert_eq!(passed("fixed_window"), [2, 2, 0]);
    assert_eq!(passed("sliding_window"), [2, 0, 0]);
    assert_eq!(passed("token_bucket"), [2, 0, 1]);
}

/// The memory store decides within the process, at once: no service, and nothing to wait for.
#[test]
fn p08_memory_decides_at_once_within_the_process() {
    let limiter = by_user("2/m", "fixed_window");
    let pairs = attributes("user=u1");
    assert!(limiter.engine.decide_now(&Request::new(&pairs)).is_ok());
    assert!(tidegate_testkit::ready(limiter.engine.decide(&Request::new(&pairs))).allowed());
}

/// Any one dimension that is spent refuses.
#[test]
fn p10_any_spent_dimension_refuses() {
    for (user, tenant, tool, refuses) in [(1, 9, 9, "by_user"), (9, 1, 9, "by_tenant"), (9, 9, 1, "by_tool")] {
        let limiter = Limiter::new(&format!(
            "
limits:
  - {{ name: by_user, per: [user], rate: {user}/m }}
  - {{ name: by_tenant, per: [tenant], rate: {tenant}/m }}
  - {{ name: by_tool, per: [tool], rate: {tool}/m }}
"
        ));
        assert_eq!(limiter.admitted("tenant=t1 user=u1 tool=search", 5), 1);
        assert_eq!(refused_by(&limiter.ask("tenant=t1 user=u1 tool=search")).as_deref(), Some(refuses));
    }
}

/// Over HTTP a refusal is 429.
#[test]
fn p11_a_refusal_is_429() {
    let limiter = by_user("1/m", "fixed_window");
    assert_eq!(call(&limiter, "user=u1").status, StatusCode::OK);
    assert_eq!(call(&limiter, "user=u1").status, StatusCode::TOO_MANY_REQUESTS);
}

/// Whether it passes or not, every request's answer has the limit headers.
#[test]
fn p13_every_answer_has_the_headers() {
    let limiter = Limiter::new(DIMENSIONS);
    for turn in 0..60 {
        let answer = call(&limiter, &format!("tenant=t1 user=u{} tool=search", turn % 3));
        assert!(answer.x_ratelimit().iter().all(Option::is_some), "{turn} {}", answer.status);
    }
}

/// Of the limits that apply, the most restrictive one is shown.
#[test]
fn p14_the_most_restrictive_limit_is_shown() {
    let limiter = Limiter::new(DIMENSIONS);
    let shown = |who: &str| limiter.ask(who).tightest().unwrap().limit.name.to_string();
    assert_eq!(shown("tenant=t1 user=u1 tool=summarise"), "by_tool-summarise");
    assert_eq!(shown("tenant=t1 user=u1 tool=fetch"), "by_user");
    assert_eq!(shown("tenant=t1 tool=fetch"), "by_tenant");
    // A limit that does not apply is not shown, however little is left of it.
    limiter.admitted("tenant=t1 user=u1 tool=summarise", 9);
    assert_eq!(shown("tenant=t1 user=u1 tool=fetch"), "by_user");
}

/// With a user's and a tenant's limit, the one that is nearer to its end is shown, whichever it is.
#[test]
fn p15_of_user_and_tenant_the_nearer_to_its_end_is_shown() {
    let limiter = Limiter::new(
        "limits: [{ name: by_user, per: [user], rate: 10/m }, { name: by_tenant, per: [tenant], rate: 20/m }]",
    );
    let shown = |answer: crate::http_door::Answer| answer.x_ratelimit().map(|value| value.unwrap().to_owned());
    let [limit, remaining, _] = shown(call(&limiter, "tenant=t1 user=u1"));
    assert_eq!((limit.as_str(), remaining.as_str()), ("10", "9"));
    limiter.admitted("tenant=t1 user=u2", 9);
    limiter.admitted("tenant=t1 user=u3", 9);
    let [limit, remaining, _] = shown(call(&limiter, "tenant=t1 user=u1"));
    assert_eq!((limit.as_str(), remaining.as_str()), ("20", "0"));
}

/// There are three modes by these names, and no others.
#[test]
fn p17_the_modes_are_enforce_permissive_and_disabled() {
    let file = |mode: &str| format!("mode: {mode}\nlimits: [{{ name: by_user, per: [user], rate: 1/m }}]");
    let admitted = |mode: &str| Limiter::new(&file(mode)).admitted("user=u1", 5);
    assert_eq!(["enforce", "permissive", "disabled"].map(admitted), [1, 5, 5]);
    assert!(config::parse(&file("audit"), &Source::named("limits.yaml")).is_err());
}

/// A user's limit spans all tools.
#[test]
fn p20_a_users_limit_spans_all_tools() {
    let limiter = by_user("5/m", "fixed_window");
    assert_eq!(limiter.admitted("user=u1 tool=search", 3), 3);
    assert_eq!(limiter.admitted("user=u1 tool=fetch", 3), 2);
    assert_eq!(limiter.admitted("user=u1", 3), 0);
}

/// A tenant's limit is shared by all of its users.
#[test]
fn p21_a_tenants_users_share_its_limit() {
    let limiter = Limiter::new("limits: [{ name: by_tenant, per: [tenant], rate: 5/m }]");
    assert_eq!(limiter.admitted("tenant=t1 user=u1", 3), 3);
    assert_eq!(limiter.admitted("tenant=t1 user=u2", 3), 2);
    assert_eq!(limiter.admitted("tenant=t2 user=u1", 9), 5);
}

/// A tool's limit comes on top of the user's: a call has to pass both, and counts at both.
#[test]
fn p22_a_tools_limit_comes_on_top_of_the_users() {
    let limiter = Limiter::new(
        "
limits:
  - { name: by_user, per: [user], rate: 5/m }
  - { name: by_tool, when: { tool: search }, per: [tool], rate: 3/m }
",
    );
    assert_eq!(limiter.admitted("user=u1 tool=search", 9), 3);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 2);
    assert_eq!(limiter.admitted("user=u1 tool=fetch", 9), 2);
    limiter.at_ms(60_000);
    assert_eq!(limiter.admitted("user=u2 tool=fetch", 9), 5);
    assert_eq!(refused_by(&limiter.ask("user=u2 tool=search")).as_deref(), Some("by_user"));
    assert_eq!(limiter.remaining_of("by_tool", "user=u1 tool=search"), 3);
}

/// Without a word on it, a limit is a fixed window.
#[test]
fn p23_the_fixed_window_is_the_default() {
    let without = Limiter::new("limits: [{ name: by_user, per: [user], rate: 2/m }]");
    assert_eq!(without.engine.policy().rules[0].limit.algorithm.name(), "fixed_window");
    assert_eq!([59_000, 60_000].map(|ms| without.at_ms(ms).admitted("user=u1", 9)), [2, 2]);
}

/// An algorithm that is none of them is refused at the start.
#[test]
fn p24_another_algorithm_is_refused_at_the_start() {
    let file = "limits: [{ name: by_user, per: [user], rate: 2/m, algorithm: leaky_bucket }]";
    let faults = config::parse(file, &Source::named("limits.yaml")).unwrap_err();
    assert!(faults.to_string().contains("leaky_bucket"), "{faults}");
}

/// Without a word on it, counters live in memory.
#[test]
fn p25_memory_is_the_default_backend() {
    let file = "limits: [{ name: by_user, per: [user], rate: 2/m }]";
    assert!(matches!(policy(file).store, StoreSettings::Memory(_)));
    assert_eq!(policy(file).store, policy(&format!("store: {{ backend: memory }}\n{file}")).store);
}

/// What is in memory is gone with its process.
#[test]
fn p26_a_restart_begins_anew() {
    let limiter = by_user("2/h", "sliding_window");
    assert_eq!(limiter.admitted("user=u1", 5), 2);
    let policy = (*limiter.engine.policy()).clone();
    drop(limiter);
    assert_eq!(Limiter::with_policy(policy).admitted("user=u1", 5), 2);
}

/// A rate is a count, a slash and a unit.
#[test]
fn p31_a_rate_is_a_count_a_slash_and_a_unit() {
    let rate: Rate = "30/m".parse().unwrap();
    assert_eq!((rate.count(), rate.period()), (30, Span::from_secs(60)));
    let rate: Rate = "1/hour".parse().unwrap();
    assert_eq!((rate.count(), rate.period()), (1, Span::from_secs(3_600)));
}

fn periods(units: &[&str]) -> Vec<u64> {
    units.iter().map(|unit| format!("7/{unit}").parse::<Rate>().unwrap().period().as_secs_ceil()).collect()
}

/// A second is written in three ways.
#[test]
fn p32_a_second_has_three_spellings() {
    assert_eq!(periods(&["s", "sec", "second"]), [1; 3]);
}

/// A minute is written in three ways.
#[test]
fn p33_a_minute_has_three_spellings() {
    assert_eq!(periods(&["m", "min", "minute"]), [60; 3]);
}

/// An hour is written in three ways.
#[test]
fn p34_an_hour_has_three_spellings() {
    assert_eq!(periods(&["h", "hr", "hour"]), [3_600; 3]);
}

/// A malformed rate never starts: the file is refused, at the place, with what would be right.
#[test]
fn p35_a_malformed_rate_is_refused_at_the_start() {
    let malformed = ["", "30", "30/", "/m", "x/m", "-1/m", "1.5/m", "30/fortnight", "30 m", "30/m/s", "1e3/s", "30/0s"];
    for rate in malformed {
        let file = format!("limits:\n  - name: by_user\n    per: [user]\n    rate: '{rate}'\n");
        let faults = config::parse(&file, &Source::named("limits.yaml")).unwrap_err().to_string();
        assert!(faults.contains("limits.yaml:4:"), "{rate}: {faults}");
        assert!(rate.parse::<Rate>().is_err(), "{rate}");
    }
}

/// A dimension that is left out is unlimited.
#[test]
fn p37_a_dimension_left_out_is_unlimited() {
    let limiter = Limiter::new("limits: [{ name: by_tenant, per: [tenant], rate: 3/m }]");
    for turn in 0..2_000 {
        assert!(limiter.ask(&format!("user=u1 tool=t{}", turn % 7)).allowed());
    }
    assert_eq!(limiter.admitted("tenant=t1 user=u1", 9), 3);
}

/// A dimension that is left out has no counter.
#[test]
fn p38_a_dimension_left_out_has_no_counter() {
    let limiter = Limiter::new("limits: [{ name: by_tenant, per: [tenant], rate: 3000/m }]");
    for turn in 0..1_000 {
        assert!(limiter.ask(&format!("tenant=t1 user=u{turn} tool=t{turn}")).allowed());
    }
    assert_eq!(limiter.engine.store_stats().keys, 1);
    assert_eq!(limiter.admitted("user=u1", 1_000), 1_000);
    assert_eq!(limiter.engine.store_stats().keys, 1);
}

/// An admitted request's answer tells limit, remaining and reset, and no time to wait.
#[test]
fn p39_an_admission_has_its_headers() {
    let limiter = by_user("30/m", "fixed_window");
    let answer = call(limiter.at_ms(12_000), "user=u1");
    assert_eq!(answer.status, StatusCode::OK);
    // The window ends a minute after 1 March 2026, midnight.
    assert_eq!(answer.x_ratelimit(), [Some("30"), Some("29"), Some("1772323260")]);
    assert_eq!(answer.header("retry-after"), None);
}

/// A refused request's answer tells them too, and how long to wait.
#[test]
fn p40_a_refusal_has_its_headers_and_a_wait() {
    let limiter = by_user("30/m", "fixed_window");
    limiter.at_ms(12_000).admitted("user=u1", 30);
    let answer = call(limiter.at_ms(12_500), "user=u1");
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.x_ratelimit(), [Some("30"), Some("0"), Some("1772323260")]);
    assert_eq!(answer.header("retry-after"), Some("48"));
}

/// A fixed window counts in slots of the clock, not from the first request.
#[test]
fn p42_a_fixed_window_counts_in_slots_of_the_clock() {
    let limiter = by_user("4/m", "fixed_window");
    // 00:14:03, 00:14:40 and 00:14:59 share a slot.
    let slot = |second: u64| (14 * 60 + second) * 1_000;
    assert_eq!(limiter.at_ms(slot(3)).admitted("user=u1", 2), 2);
    assert_eq!(limiter.at_ms(slot(40)).admitted("user=u1", 1), 1);
    assert_eq!(limiter.at_ms(slot(59)).admitted("user=u1", 9), 1);
}

/// It is whole again at the slot's end.
#[test]
fn p43_a_fixed_window_is_whole_again_at_the_boundary() {
    let limiter = by_user("4/m", "fixed_window");
    assert_eq!(limiter.at_ms(30_000).admitted("user=u1", 9), 4);
    assert_eq!(limiter.ask("user=u1").retry_after(), Some(Span::from_secs(30)));
    assert_eq!(limiter.at_ms(59_999).admitted("user=u1", 9), 0);
    assert_eq!(limiter.at_ms(60_000).admitted("user=u1", 9), 4);
}

/// Around a boundary twice the limit may pass, and no more than that.
#[test]
fn p44_a_fixed_window_may_pass_twice_its_limit_around_a_boundary() {
    let limiter = by_user("10/m", "fixed_window");
    let admitted: usize = (59_000..61_000).step_by(10).map(|ms| limiter.at_ms(ms).admitted("user=u1", 1)).sum();
    assert_eq!(admitted, 20);
}

/// A sliding window remembers when each request of the last window came.
#[test]
fn p45_a_sliding_window_remembers_each_request() {
    let limiter = by_user("3/m", "sliding_window");
    let arrivals = [1_000, 17_250, 42_003];
    for ms in arrivals {
        assert!(limiter.at_ms(ms).ask("user=u1").allowed());
    }
    // Each makes room at its own time, to the millisecond.
    for ms in arrivals {
        assert!(!limiter.at_ms(ms + 59_999).ask("user=u1").allowed());
        assert!(limiter.at_ms(ms + 60_000).ask("user=u1").allowed());
    }
}

/// What has left the window no longer counts; the rest is held against the limit.
#[test]
fn p46_a_sliding_window_counts_what_has_not_left_it() {
    let limiter = by_user("5/m", "sliding_window");
    assert_eq!(limiter.at_ms(0).admitted("user=u1", 2), 2);
    assert_eq!(limiter.at_ms(30_000).admitted("user=u1", 2), 2);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 1);
    limiter.at_ms(60_000);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 3);
    limiter.at_ms(90_000);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 5);
}

/// No stretch of one window ever holds more than the limit, boundaries included.
#[test]
fn p47_a_sliding_window_has_no_bursts_at_boundaries() {
    let limiter = by_user("10/m", "sliding_window");
    let admitted: Vec<u64> =
        (50_000..250_000).step_by(700).filter(|ms| limiter.at_ms(*ms).ask("user=u1").allowed()).collect();
    assert!(admitted.len() > 20);
    for (at, from) in admitted.iter().enumerate() {
        let within = admitted[at..].iter().take_while(|ms| **ms < from + 60_000).count();
        assert!(within <= 10, "{within} from {from}");
    }
}

/// Its memory grows with the requests in the window: at most eight bytes each, and they are given back.
#[test]
fn p48_a_sliding_windows_memory_grows_with_its_requests() {
    let limiter = Limiter::new("limits: [{ name: all, per: [], rate: 50000/h, algorithm: sliding_window }]");
    let bytes = |limiter: &Limiter| {
        limiter.engine.tidy();
        limiter.engine.store_stats().bytes
    };
    limiter.ask("");
    let with_one = bytes(&limiter);
    for ms in 1..=40_000 {
        assert!(limiter.at_ms(ms * 60).ask("").allowed());
    }
    let grown = bytes(&limiter) - with_one;
    assert!((40_000..=8 * 40_000).contains(&grown), "{grown} bytes for 40,000 requests");
    limiter.at_ms(2 * 3_600_000);
    assert!(bytes(&limiter) <= with_one);
}

/// Each identity has a bucket of its own, which holds as many tokens as the count says.
#[test]
fn p49_each_identity_has_a_bucket_of_count_tokens() {
    let limiter = Limiter::new(
        "
limits:
  - { name: by_user, per: [user], rate: 30/m, algorithm: token_bucket }
  - { name: by_tenant, per: [tenant], rate: 50/m, algorithm: token_bucket }
",
    );
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 30);
    assert_eq!(limiter.admitted("tenant=t1 user=u1", 99), 30);
    assert_eq!(limiter.admitted("tenant=t1 user=u2", 99), 20);
    assert_eq!(limiter.admitted("tenant=t2 user=u2", 99), 10);
    // However long it rests, it never holds more.
    limiter.at_ms(86_400_000);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 30);
}

/// Tokens come back steadily, count in a window.
#[test]
fn p50_a_bucket_refills_steadily() {
    let limiter = by_user("30/m", "token_bucket");
    assert_eq!(limiter.admitted("user=u1", 99), 30);
    for second in 0..60 {
        limiter.at_ms(second * 1_000);
        assert_eq!(limiter.remaining_of("by_user", "user=u1"), second / 2, "{second}");
    }
    limiter.at_ms(60_000);
    assert_eq!(limiter.remaining_of("by_user", "user=u1"), 30);
}

/// A request takes one token.
#[test]
fn p51_a_request_takes_one_token() {
    let limiter = by_user("30/m", "token_bucket");
    for taken in 1..=30 {
        assert!(limiter.ask("user=u1").allowed());
        assert_eq!(limiter.remaining_of("by_user", "user=u1"), 30 - taken);
    }
}

/// A burst up to the bucket's size passes at once.
#[test]
fn p52_a_burst_up_to_the_bucket_passes() {
    let limiter = by_user("30/m", "token_bucket");
    let passed: Vec<bool> = (0..31).map(|_| limiter.ask("user=u1").allowed()).collect();
    assert_eq!(passed.iter().filter(|one| **one).count(), 30);
    assert!(!passed[30]);
}

/// More than the refill, kept up, is refused: over time only what refills passes.
#[test]
fn p53_more_than_the_refill_is_refused_over_time() {
    let limiter = by_user("30/m", "token_bucket");
    // Two a second for ten minutes, four times the refill: the bucket once, then the refill.
    let admitted = (0..1_200).filter(|turn| limiter.at_ms(turn * 500).ask("user=u1").allowed()).count();
    assert_eq!(admitted, 30 + 299);
    // Exactly the refill passes for ever.
    let steady = by_user("30/m", "token_bucket");
    assert!((0..1_200).all(|turn| steady.at_ms(turn * 2_000).ask("user=u1").allowed()));
}

/// Counters belong to the engine that keeps them, and die with it.
#[test]
fn p58_counters_belong_to_one_engine() {
    let limiter = by_user("5/m", "fixed_window");
    limiter.admitted("user=u1", 3);
    let clone = limiter.clone();
    assert_eq!(clone.remaining_of("by_user", "user=u1"), 2);
    let stats = limiter.engine.store_stats();
    assert_eq!(stats.keys, 1);
    assert_eq!(by_user("5/m", "fixed_window").engine.store_stats().keys, 0);
}

/// Reads and writes of counters are one after the other: tasks at once get exactly the limit.
#[test]
fn p59_counters_are_right_under_concurrent_tasks() {
    for algorithm in ["fixed_window", "sliding_window", "token_bucket"] {
        let limiter = by_user("1000/m", algorithm);
        let admitted: usize = thread::scope(|scope| {
            let workers: Vec<_> = (0..8).map(|_| scope.spawn(|| limiter.admitted("user=u1", 500))).collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).sum()
        });
        assert_eq!(admitted, 1_000, "{algorithm}");
    }
}

/// What has expired is swept by itself, in the background, within a second of its window's end.
#[test]
fn p60_expired_counters_are_swept_in_the_background() {
    let engine = Engine::new(policy(
        "
limits:
  - { name: window, per: [user], rate: 5/s }
  - { name: log, per: [user], rate: 5/s, algorithm: sliding_window }
  - { name: bucket, per: [user], rate: 5/s, algorithm: token_bucket }
",
    ));
    for user in 0..2_000 {
        let user = format!("user=u{user}");
        assert!(engine.decide_now(&Request::new(&attributes(&user))).unwrap().allowed());
    }
    let full = engine.store_stats();
    assert!(full.keys > 0);
    // Here real time is what is tested: a second until all has expired, and one to be swept. A busy
    // machine may run late, so the wait ends when it is done and fails only far behind.
    let begun = clock();
    while engine.store_stats().keys > 0 {
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", engine.store_stats());
        thread::sleep(Duration::from_millis(20));
    }
}

#[expect(clippy::disallowed_methods, reason = "how long the background work takes is what is tested")]
fn clock() -> Instant {
    Instant::now()
}

/// How many counters there are, and bytes, before and a second after their window's end.
fn before_and_after(algorithm: &str) -> [(u64, u64); 2] {
    let limiter = by_user("9/m", algorithm);
    for user in 0..20_000 {
        limiter.ask(&format!("user=u{user}"));
    }
    let kept = |limiter: &Limiter| {
        limiter.engine.tidy();
        let stats = limiter.engine.store_stats();
        (stats.keys, stats.bytes)
    };
    let before = kept(&limiter);
    [before, kept(limiter.at_ms(61_000))]
}

/// Windows and buckets that have expired are gone a second later, and so is their memory.
#[test]
fn p61_expired_windows_and_buckets_are_removed() {
    for algorithm in ["fixed_window", "token_bucket"] {
        let [before, after] = before_and_after(algorithm);
        assert_eq!((before.0, after.0), (20_000, 0), "{algorithm}");
        assert!(before.1 >= 20_000 * 16 && after.1 * 10 < before.1, "{algorithm}: {before:?} {after:?}");
    }
}

/// Logs of which everything has left are gone a second later, and so is their memory.
#[test]
fn p62_stale_sliding_windows_are_removed() {
    let [before, after] = before_and_after("sliding_window");
    assert_eq!((before.0, after.0), (20_000, 0));
    assert!(after.1 * 10 < before.1, "{before:?} {after:?}");
}

/// Instances do not know of each other's counters.
#[test]
fn p63_instances_do_not_share_memory() {
    let (one, other) = (by_user("5/m", "fixed_window"), by_user("5/m", "fixed_window"));
    one.admitted("user=u1", 5);
    assert!(!one.ask("user=u1").allowed());
    assert_eq!(other.remaining_of("by_user", "user=u1"), 5);
}

/// So of N instances with memory alone, a user gets N times the limit.
#[test]
fn p64_n_instances_admit_n_times_the_limit() {
    let instances: Vec<Limiter> = (0..3).map(|_| by_user("5/m", "fixed_window")).collect();
    let admitted = (0..60).filter(|turn| instances[turn % 3].ask("user=u1").allowed()).count();
    assert_eq!(admitted, 15);
}

const PERMISSIVE: &str = "mode: permissive\nlimits: [{ name: by_user, per: [user], rate: 60/m }]";

/// A permissive limiter records what it would have refused.
#[test]
fn p80_permissive_records_violations() {
    let limiter = Limiter::new(PERMISSIVE);
    limiter.admitted("user=u1", 75);
    let counts = &limiter.engine.limit_counts()[0];
    assert_eq!((counts.would_refuse, counts.refused), (15, 0));
    let over = limiter.ask("user=u1");
    assert!(over.limits().next().unwrap().refused);
}

/// It still writes the headers, within the limit and beyond it.
#[test]
fn p81_permissive_writes_the_headers() {
    let limiter = Limiter::new(PERMISSIVE);
    for turn in 1_u64..=70 {
        let answer = call(&limiter, "user=u1");
        let remaining = 60_u64.saturating_sub(turn).to_string();
        assert_eq!(answer.x_ratelimit(), [Some("60"), Some(remaining.as_str()), Some("1772323260")]);
    }
}

/// It refuses nothing.
#[test]
fn p82_permissive_refuses_nothing() {
    let limiter = Limiter::new(PERMISSIVE);
    assert_eq!(limiter.admitted("user=u1", 1_000), 1_000);
    assert_eq!(call(&limiter, "user=u1").status, StatusCode::OK);
}

/// What it recorded for a day's traffic is what enforcing would have refused.
#[test]
fn p83_permissive_tells_what_enforcing_would_refuse() {
    let [permissive, enforced] = ["permissive", "enforce"].map(|mode| {
        let limiter = Limiter::new(&PERMISSIVE.replace("permissive", mode));
        for turn in 0..3_000_u64 {
            // Between one and three a second, unevenly.
            limiter.at_ms(turn * turn % 7 * 100 + turn * 333).ask(&format!("user=u{}", turn % 2));
        }
        let counts = &limiter.engine.limit_counts()[0];
        counts.refused + counts.would_refuse
    });
    assert_eq!(permissive, enforced);
    assert!(permissive > 100);
}
