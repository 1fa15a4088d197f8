//! Blocks and overrides with an end.

use tidegate::intervention::INTERVENTIONS_MAX;
use tidegate::policy::{Condition, Test};
use tidegate::{Algorithm, Effect, Intervention, InterventionError, Rate, Span, Timestamp, algorithm};
use tidegate_testkit::{Limiter, START};

const HIERARCHY: &str = "
limits:
  - { name: agent-minute, per: [org, agent], rate: 3/min }
  - { name: org-minute, per: [org], rate: 10/min, overrides: [{ when: { org: acme }, rate: 20/min }] }
  - { name: bucket, per: [org], rate: 60/min, burst: 60, algorithm: token_bucket }
";

fn equals(attribute: &str, value: &str) -> Vec<Condition> {
    vec![Condition { attribute: attribute.into(), test: Test::Equals(value.into()) }]
}

fn after_secs(secs: u64) -> Timestamp {
    START.after(Span::from_secs(secs))
}

fn block(attribute: &str, value: &str, until: Timestamp) -> Intervention {
    Intervention {
        when: equals(attribute, value),
        effect: Effect::Block,
        expires_at: until,
        reason: "runaway".into(),
        by: "ops".into(),
    }
}

fn window(count: u64, secs: u64) -> Algorithm {
    Algorithm::FixedWindow(algorithm::FixedWindow::new(Rate::new(count, secs).unwrap()).unwrap())
}

fn other_numbers(limit: &str, algorithm: Algorithm, org: &str, until: Timestamp) -> Intervention {
    let effect = Effect::Override { limit: limit.into(), algorithm };
    Intervention { effect, ..block("org", org, until) }
}

#[test]
fn a_block_stops_whom_it_names_and_no_one_else() {
    let limiter = Limiter::new(HIERARCHY);
    let id = limiter.engine.intervene(block("agent", "rogue", after_secs(3_600))).unwrap();

    let denied = limiter.ask("org=acme agent=rogue");
    assert!(!denied.allowed());
    let refused_by = denied.refused_by().unwrap();
    assert_eq!((&*refused_by.limit.name, &*refused_by.limit.level), (format!("block:{}", id.0).as_str(), "block"));
    assert_eq!(denied.retry_after(), Some(Span::from_secs(3_600)));
    assert!(!denied.never());
    assert_eq!(denied.limits().count(), 1);
    assert_eq!(denied.tightest().map(|state| state.remaining), Some(0));

    assert!(limiter.ask("org=acme agent=a1").allowed());
    assert!(limiter.ask("org=acme").allowed());
    // A request that only asks is told the same.
    assert!(!limiter.ask_cost("org=acme agent=rogue", 0).allowed());
}

#[test]
fn a_blocked_request_takes_nothing() {
    let limiter = Limiter::new(HIERARCHY);
    let id = limiter.engine.intervene(block("agent", "rogue", after_secs(60))).unwrap();
    assert_eq!(limiter.admitted("org=acme agent=rogue", 100), 0);
    assert!(limiter.engine.end_intervention(id));
    let untouched = [("agent-minute".into(), 3), ("bucket".into(), 60), ("org-minute".into(), 20)];
    assert_eq!(limiter.remaining("org=acme agent=rogue"), untouched.into());
    // Blocks are no limits: none of them counts what a block has refused.
    assert!(limiter.engine.limit_counts().iter().all(|counts| counts.refused == 0));
}

#[test]
fn a_block_ends_by_itself_at_its_very_instant() {
    let limiter = Limiter::new(HIERARCHY);
    limiter.engine.intervene(block("agent", "rogue", after_secs(5))).unwrap();
    let denied_at_ms = |ms| limiter.at_ms(ms).ask("org=acme agent=rogue").retry_after();
    assert_eq!(denied_at_ms(4_000), Some(Span::from_secs(1)));
    assert_eq!(denied_at_ms(4_999), Some(Span::from_millis(1)));
    assert_eq!(limiter.engine.interventions().len(), 1);
    assert!(limiter.at_ms(5_000).ask("org=acme agent=rogue").allowed());
    assert!(limiter.engine.interventions().is_empty());
}

#[test]
fn a_block_meets_all_of_its_conditions() {
    let limiter = Limiter::new(HIERARCHY);
    let mut intervention = block("org", "acme", after_secs(60));
    let prefix = Test::Prefix("bot-".into());
    intervention.when.push(Condition { attribute: "agent".into(), test: prefix });
    limiter.engine.intervene(intervention).unwrap();
    assert!(!limiter.ask("org=acme agent=bot-7").allowed());
    assert!(limiter.ask("org=acme agent=a1").allowed());
    assert!(limiter.ask("org=beta agent=bot-7").allowed());
}

#[test]
fn a_permissive_file_does_not_soften_a_block_and_a_disabled_one_has_none() {
    for (mode, allowed) in [("enforce", false), ("permissive", false), ("disabled", true)] {
        let limiter = Limiter::new(&format!("mode: {mode}\n{HIERARCHY}"));
        limiter.engine.intervene(block("org", "acme", after_secs(60))).unwrap();
        assert_eq!(limiter.ask("org=acme agent=a1").allowed(), allowed, "{mode}");
    }
}

#[test]
fn the_newest_of_two_blocks_is_named() {
    let limiter = Limiter::new(HIERARCHY);
    limiter.engine.intervene(block("org", "acme", after_secs(600))).unwrap();
    let newest = limiter.engine.intervene(block("agent", "a1", after_secs(60))).unwrap();
    let denied = limiter.ask("org=acme agent=a1");
    assert_eq!(*denied.refused_by().unwrap().limit.name, *format!("block:{}", newest.0));
}

#[test]
fn an_override_gives_other_numbers_until_it_ends_and_the_counter_goes_on() {
    let limiter = Limiter::new(HIERARCHY);
    assert_eq!(limiter.admitted("org=beta agent=a1", 4), 3);
    limiter.engine.intervene(other_numbers("agent-minute", window(5, 60), "beta", after_secs(30))).unwrap();
    // Three of the five were taken before.
    assert_eq!(limiter.admitted("org=beta agent=a1", 5), 2);
    assert_eq!(limiter.ask("org=beta agent=a1").refused_by().unwrap().quota, 5);
    assert_eq!(limiter.admitted("org=gamma agent=a1", 5), 3);
    // Ended, the limit's own numbers hold: of three, five are taken.
    let ended = limiter.at_ms(30_000).ask("org=beta agent=a1");
    let refused_by = ended.refused_by().unwrap();
    assert_eq!((refused_by.quota, refused_by.remaining), (3, 0));
    assert_eq!(limiter.at_ms(60_000).admitted("org=beta agent=a1", 5), 3);
}

#[test]
fn an_override_goes_before_the_files_own_and_the_newest_before_all() {
    let limiter = Limiter::new(HIERARCHY);
    let quota = || {
        let peeked = limiter.ask_cost("org=acme", 0);
        peeked.limits().find(|state| &*state.limit.name == "org-minute").unwrap().quota
    };
    assert_eq!(quota(), 20);
    let older = limiter.engine.intervene(other_numbers("org-minute", window(30, 60), "acme", after_secs(60))).unwrap();
    assert_eq!(quota(), 30);
    let newer = limiter.engine.intervene(other_numbers("org-minute", window(0, 60), "acme", after_secs(20))).unwrap();
    assert_eq!(quota(), 0);
    assert!(limiter.ask("org=acme").never());
    limiter.at_ms(20_000);
    assert_eq!(quota(), 30);
    assert!(limiter.engine.end_intervention(older));
    assert!(limiter.engine.end_intervention(newer));
    assert_eq!(quota(), 20);
}

#[test]
fn a_bucket_of_another_rate_is_another_counter() {
    let limiter = Limiter::new(HIERARCHY);
    let fast = algorithm::TokenBucket::new(Rate::new(600, 60).unwrap(), Some(100)).unwrap();
    assert!(limiter.ask_cost("org=beta", 10).allowed());
    assert_eq!(limiter.remaining_of("bucket", "org=beta"), 50);
    let fast = Algorithm::TokenBucket(fast);
    let id = limiter.engine.intervene(other_numbers("bucket", fast, "beta", after_secs(60))).unwrap();
    assert_eq!(limiter.remaining_of("bucket", "org=beta"), 100);
    assert!(limiter.engine.end_intervention(id));
    assert_eq!(limiter.remaining_of("bucket", "org=beta"), 50);
}

#[test]
fn interventions_survive_a_reload_as_long_as_their_limit_does() {
    let limiter = Limiter::new(HIERARCHY);
    let blocked = limiter.engine.intervene(block("agent", "rogue", after_secs(60))).unwrap();
    let kept = limiter.engine.intervene(other_numbers("agent-minute", window(9, 60), "acme", after_secs(60))).unwrap();
    limiter.engine.intervene(other_numbers("org-minute", window(9, 60), "acme", after_secs(60))).unwrap();
    limiter.reload("limits: [{ name: agent-minute, per: [org, agent], rate: 5/min }]");
    let left: Vec<_> = limiter.engine.interventions().into_iter().map(|active| active.id).collect();
    assert_eq!(left, [kept, blocked]);
    assert!(!limiter.ask("org=acme agent=rogue").allowed());
    assert_eq!(limiter.ask("org=acme agent=a1").limits().next().unwrap().quota, 9);
    // A limit of that name and another algorithm is another limit.
    limiter.reload("limits: [{ name: agent-minute, per: [org, agent], rate: 5/min, algorithm: sliding_window }]");
    let left: Vec<_> = limiter.engine.interventions().into_iter().map(|active| active.id).collect();
    assert_eq!(left, [blocked]);
}

#[test]
fn there_are_1000_at_most_and_ended_ones_make_room() {
    let limiter = Limiter::new(HIERARCHY);
    let mut ids = Vec::new();
    for number in 0..INTERVENTIONS_MAX as u64 {
        let agent = format!("agent-{number}");
        ids.push(limiter.engine.intervene(block("agent", &agent, after_secs(60 + number))).unwrap());
    }
    let one_more = || limiter.engine.intervene(block("agent", "one-more", after_secs(9_000)));
    assert_eq!(one_more(), Err(InterventionError::TooMany(1_000)));
    assert!(limiter.ask("org=acme agent=one-more").allowed());
    assert!(limiter.engine.end_intervention(ids[500]));
    one_more().unwrap();
    assert_eq!(one_more(), Err(InterventionError::TooMany(1_000)));
    // Ten more end by themselves.
    limiter.at_ms(69_000);
    one_more().unwrap();
    assert_eq!(limiter.engine.interventions().len(), 991);
}

#[test]
fn each_has_its_own_name_and_is_listed_newest_first() {
    let limiter = Limiter::new(HIERARCHY);
    let first = limiter.engine.intervene(block("agent", "a1", after_secs(60))).unwrap();
    limiter.at_ms(1_500);
    let second = limiter.engine.intervene(block("agent", "a2", after_secs(30))).unwrap();
    let listed = limiter.engine.interventions();
    assert_eq!(listed.iter().map(|active| active.id).collect::<Vec<_>>(), [second, first]);
    assert_eq!(listed[0].since, START.after(Span::from_millis(1_500)));
    assert_eq!(listed[0].intervention, block("agent", "a2", after_secs(30)));
    assert!(limiter.engine.end_intervention(second));
    assert!(!limiter.engine.end_intervention(second));
    let third = limiter.engine.intervene(block("agent", "a2", after_secs(30))).unwrap();
    assert!(third > second && second > first);
}

#[test]
fn what_is_wrong_with_one_is_told_and_changes_nothing() {
    let limiter = Limiter::new(HIERARCHY);
    let faulty = |change: &dyn Fn(&mut Intervention)| {
        let mut intervention = block("org", "acme", after_secs(60));
        change(&mut intervention);
        limiter.engine.intervene(intervention).err()
    };
    assert_eq!(faulty(&|one| one.when.clear()), Some(InterventionError::WhenEmpty));
    assert_eq!(faulty(&|one| one.expires_at = START), Some(InterventionError::Expiry));
    assert_eq!(faulty(&|one| one.expires_at = Timestamp::EPOCH), Some(InterventionError::Expiry));
    let year = 366 * 86_400;
    assert_eq!(faulty(&|one| one.expires_at = after_secs(year + 1)), Some(InterventionError::Expiry));
    assert_eq!(faulty(&|one| one.reason = "ü".repeat(501)), Some(InterventionError::TooLong));
    assert_eq!(faulty(&|one| one.by = "ü".repeat(101)), Some(InterventionError::TooLong));
    let of_nothing = Effect::Override { limit: "nothing".into(), algorithm: window(1, 60) };
    let unknown = Some(InterventionError::UnknownLimit("nothing".into()));
    assert_eq!(faulty(&|one| one.effect = of_nothing.clone()), unknown);
    let of_bucket = Effect::Override { limit: "bucket".into(), algorithm: window(1, 60) };
    let other = Some(InterventionError::OtherAlgorithm { own: "token_bucket", other: "fixed_window" });
    assert_eq!(faulty(&|one| one.effect = of_bucket.clone()), other);

    assert!(limiter.engine.interventions().is_empty());
    assert!(limiter.ask("org=acme agent=a1").allowed());
    // The longest of everything is fine.
    assert_eq!(faulty(&|one| one.expires_at = after_secs(year)), None);
    assert_eq!(faulty(&|one| (one.reason, one.by) = ("ü".repeat(500), "ü".repeat(100))), None);
}
