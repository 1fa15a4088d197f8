//! Which limits a request would meet, and why not the others: every outcome, and nothing charged.

use tidegate::policy::{Condition, Test};
use tidegate::{Effect, Explained, Intervention, Mode, Numbers, Outcome, Request, Span};
use tidegate_testkit::{Limiter, START, attributes};

fn explained(limiter: &Limiter, who: &str) -> Vec<(String, Mode, Outcome)> {
    let pairs = attributes(who);
    let row = |one: Explained| (one.limit.name.to_string(), one.mode, one.outcome);
    limiter.engine.explain(&Request::new(&pairs)).limits.into_iter().map(row).collect()
}

fn outcome(limiter: &Limiter, limit: &str, who: &str) -> Outcome {
    explained(limiter, who).into_iter().find(|(name, ..)| name == limit).unwrap().2
}

fn applies(key: &[(&str, &str)], cost: u64, numbers: Numbers) -> Outcome {
    let key = key.iter().map(|(name, value)| ((*name).into(), (*value).to_owned())).collect();
    Outcome::Applies { key, cost, numbers }
}

const EVERYTHING: &str = "
limits:
  - { name: everyone, per: [], rate: 100/min }
  - name: org
    per: [org]
    rate: 10/min
    overrides:
      - { when: { org: beta }, rate: 20/min }
      - { when: { org: [gamma, delta] }, rate: 30/min }
  - { name: agent, per: [org, agent], rate: 5/min, mode: permissive }
  - { name: user-denies, per: [user], rate: 5/min, missing: deny }
  - { name: user-stands-in, per: [org, user], rate: 5/min, missing: { value: anonymous } }
  - { name: search, when: { tool: [search, find] }, per: [org], rate: 5/min }
  - { name: nightly, when: { job: { absent: true } }, per: [org], rate: 5/min }
  - { name: models, when: { model: { prefix: gpt- }, region: { glob: 'eu-*' } }, per: [org], rate: 5/min }
  - { name: weighed, per: [org], rate: 5/min, cost: { base: 3, by: { tool: { help: 0 } } } }
  - { name: gone, per: [org, agent, user], rate: 5/min, mode: disabled }
  - { name: month, per: [org], quota: 1000, period: month }
";

#[test]
fn the_limits_stand_in_the_order_checked_and_disabled_ones_last() {
    let limiter = Limiter::new(EVERYTHING);
    let names: Vec<String> = explained(&limiter, "org=acme").into_iter().map(|(name, ..)| name).collect();
    let wanted = [
        "agent",
        "user-stands-in",
        "org",
        "user-denies",
        "search",
        "nightly",
        "models",
        "weighed",
        "everyone",
        "month",
        "gone",
    ];
    assert_eq!(names, wanted);
}

#[test]
fn every_outcome_says_why() {
    let limiter = Limiter::new(EVERYTHING);
    let of = |limit: &str, who: &str| outcome(&limiter, limit, who);
    assert_eq!(of("everyone", ""), applies(&[], 1, Numbers::Own));
    assert_eq!(of("org", "org=acme"), applies(&[("org", "acme")], 1, Numbers::Own));
    assert_eq!(of("agent", "agent=a1 org=acme"), applies(&[("org", "acme"), ("agent", "a1")], 1, Numbers::Own));
    assert_eq!(of("org", "org=beta"), applies(&[("org", "beta")], 1, Numbers::Override(1)));
    assert_eq!(of("org", "org=delta"), applies(&[("org", "delta")], 1, Numbers::Override(2)));
    let anonymous = applies(&[("org", "acme"), ("user", "anonymous")], 1, Numbers::Own);
    assert_eq!(of("user-stands-in", "org=acme"), anonymous);

    let lacks = |attribute: &str| Outcome::MissingSkipped { attribute: attribute.into() };
    assert_eq!(of("org", "agent=a1"), lacks("org"));
    assert_eq!(of("agent", "org=acme"), lacks("agent"));
    assert_eq!(of("user-denies", "org=acme"), Outcome::MissingDenied { attribute: "user".into() });

    let condition = |attribute: &str, wanted: &str, found: Option<&str>| Outcome::Condition {
        attribute: attribute.into(),
        wanted: wanted.into(),
        found: found.map(str::to_owned),
    };
    let one_of = "one of 'search', 'find'";
    assert_eq!(of("search", "org=acme tool=fetch"), condition("tool", one_of, Some("fetch")));
    assert_eq!(of("search", "org=acme"), condition("tool", one_of, None));
    assert_eq!(of("nightly", "org=acme job=backup"), condition("job", "no value", Some("backup")));
    let begins = "something that begins with 'gpt-'";
    assert_eq!(of("models", "org=acme model=claude region=us"), condition("model", begins, Some("claude")));
    let like = "something like 'eu-*'";
    assert_eq!(of("models", "org=acme model=gpt-9 region=us"), condition("region", like, Some("us")));

    assert_eq!(of("weighed", "org=acme"), applies(&[("org", "acme")], 3, Numbers::Own));
    assert_eq!(of("weighed", "org=acme tool=help"), Outcome::Free);
    assert_eq!(of("gone", "org=acme agent=a1 user=u1"), Outcome::Disabled);
}

#[test]
fn the_numbers_are_those_that_hold_for_the_request() {
    let limiter = Limiter::new(EVERYTHING);
    let quota = |who: &str| {
        let pairs = attributes(who);
        let explained = limiter.engine.explain(&Request::new(&pairs));
        explained.limits.iter().find(|one| &*one.limit.name == "org").unwrap().limit.capacity()
    };
    assert_eq!((quota("org=acme"), quota("org=beta"), quota("org=gamma")), (10, 20, 30));
}

#[test]
fn modes_are_the_milder_of_limit_and_file() {
    let limiter = Limiter::new(EVERYTHING);
    let mode_of = |limiter: &Limiter, limit: &str| {
        explained(limiter, "org=acme").into_iter().find(|(name, ..)| name == limit).unwrap().1
    };
    let modes = |limiter: &Limiter| ["org", "agent", "gone"].map(|limit| mode_of(limiter, limit));
    assert_eq!(modes(&limiter), [Mode::Enforce, Mode::Permissive, Mode::Disabled]);
    limiter.reload(&format!("mode: permissive\n{EVERYTHING}"));
    assert_eq!(modes(&limiter), [Mode::Permissive, Mode::Permissive, Mode::Disabled]);
    limiter.reload(&format!("mode: disabled\n{EVERYTHING}"));
    assert!(
        explained(&limiter, "org=acme")
            .iter()
            .all(|(_, mode, outcome)| { (*mode, outcome) == (Mode::Disabled, &Outcome::Disabled) })
    );
}

#[test]
fn an_operators_decisions_are_told() {
    let limiter = Limiter::new(EVERYTHING);
    let pairs = attributes("org=beta");
    let request = Request::new(&pairs);
    let until = START.after(Span::from_secs(60));
    let mut intervention = Intervention {
        when: vec![Condition { attribute: "org".into(), test: Test::Equals("beta".into()) }],
        effect: Effect::Block,
        expires_at: until,
        reason: String::new(),
        by: String::new(),
    };
    let blocked = limiter.engine.intervene(intervention.clone()).unwrap();
    let algorithm = limiter.engine.policy().rules[1].limit.algorithm.clone();
    intervention.effect = Effect::Override { limit: "org".into(), algorithm };
    intervention.when[0].test = Test::Equals("acme".into());
    limiter.engine.intervene(intervention).unwrap();

    let block = limiter.engine.explain(&request).block;
    assert_eq!(block.as_deref(), Some(format!("block:{}", blocked.0).as_str()));
    assert_eq!(outcome(&limiter, "org", "org=acme"), applies(&[("org", "acme")], 1, Numbers::Temporary));
    // The file's own overrides keep the numbers that they have in the file.
    assert_eq!(outcome(&limiter, "org", "org=gamma"), applies(&[("org", "gamma")], 1, Numbers::Override(2)));

    limiter.reload(&format!("mode: disabled\n{EVERYTHING}"));
    assert_eq!(limiter.engine.explain(&request).block, None, "a disabled file blocks no one");
    limiter.reload(EVERYTHING);
    limiter.at_ms(60_000);
    assert_eq!(limiter.engine.explain(&request).block, None);
    assert_eq!(outcome(&limiter, "org", "org=acme"), applies(&[("org", "acme")], 1, Numbers::Own));
}

#[test]
fn an_explanation_charges_and_counts_nothing() {
    let limiter = Limiter::new(EVERYTHING);
    let who = "org=acme agent=a1";
    let before = limiter.remaining(who);
    let missing = |limiter: &Limiter| limiter.engine.limit_counts().iter().map(|counts| counts.missing).sum::<u64>();
    let missing_before = missing(&limiter);
    for _ in 0..20 {
        explained(&limiter, who);
    }
    assert_eq!(missing(&limiter), missing_before);
    assert_eq!(limiter.remaining(who), before);
    assert_eq!(limiter.engine.store_stats().keys, 0);
}

#[test]
fn an_explanation_agrees_with_the_decision() {
    let limiter = Limiter::new(EVERYTHING);
    let whos = [
        "org=acme",
        "org=beta agent=a1 user=u1",
        "org=gamma tool=search user=u2",
        "user=u1 tool=help",
        "org=acme user=u1 model=gpt-9 region=eu-west job=x",
        "",
    ];
    for who in whos {
        let decided: Vec<(String, u64)> =
            limiter.ask_cost(who, 0).limits().map(|state| (state.limit.name.to_string(), state.quota)).collect();
        let pairs = attributes(who);
        let meets = |one: &Explained| matches!(one.outcome, Outcome::Applies { .. } | Outcome::MissingDenied { .. });
        let explained: Vec<(String, u64)> = limiter
            .engine
            .explain(&Request::new(&pairs))
            .limits
            .iter()
            .filter(|one| meets(one))
            .map(|one| (one.limit.name.to_string(), one.limit.capacity()))
            .collect();
        assert_eq!(decided, explained, "{who}");
    }
}
