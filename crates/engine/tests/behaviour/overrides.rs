//! Other numbers for some requests: found by value, they are what a search from the top would find.

use proptest::prelude::*;
use tidegate::policy::{Condition, Glob, Override, Test};
use tidegate::{Algorithm, Effect, Intervention, Rate, Request, Span, algorithm};
use tidegate_testkit::{Limiter, START, policy};

use crate::cases;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/overrides.txt");
const NAMES: [&str; 3] = ["org", "plan", "region"];
/// The limit's own quota; the overrides have smaller ones, so a quota tells which.
const OWN: u64 = 1_000;

fn numbers(quota: u64) -> Algorithm {
    Algorithm::FixedWindow(algorithm::FixedWindow::new(Rate::new(quota, 60).unwrap()).unwrap())
}

fn tests() -> impl Strategy<Value = Test> {
    let value = "[xyz]{1,2}";
    prop_oneof![
        4 => value.prop_map(Test::Equals),
        3 => prop::collection::vec(value, 1..4).prop_map(Test::In),
        1 => "[xyz]".prop_map(Test::Prefix),
        1 => "[xyz*?]{1,3}".prop_map(|pattern| Test::Glob(Glob::new(&pattern))),
        1 => Just(Test::Absent),
    ]
}

fn conditions() -> impl Strategy<Value = Vec<Condition>> {
    let condition = (0_usize..3, tests()).prop_map(|(name, test)| Condition { attribute: NAMES[name].into(), test });
    prop::collection::vec(condition, 1..4)
}

fn meets(conditions: &[Condition], request: &[(&str, &str)]) -> bool {
    conditions.iter().all(|condition| {
        let value = request.iter().find(|(name, _)| *name == &*condition.attribute).map(|(_, value)| *value);
        condition.test.passes(value)
    })
}

proptest! {
    #![proptest_config(cases(400, SEEDS))]

    #[test]
    fn the_first_that_matches_counts(
        own in prop::collection::vec(conditions(), 0..12),
        temporary in prop::collection::vec((conditions(), 1_u64..4), 0..5),
        requests in prop::collection::vec(prop::collection::btree_map(0_usize..3, "[xyz]{1,2}", 0..4), 1..8),
    ) {
        let mut limits = policy(&format!("limits: [{{ name: all, per: [], rate: {OWN}/min }}]"));
        let of_file = own.iter().zip(1..).map(|(when, quota)| Override { when: when.clone(), algorithm: numbers(quota) });
        limits.rules[0].overrides = of_file.collect();
        let limiter = Limiter::with_policy(limits);
        for ((when, lives_secs), quota) in temporary.iter().zip(101..) {
            limiter.engine.intervene(Intervention {
                when: when.clone(),
                effect: Effect::Override { limit: "all".into(), algorithm: numbers(quota) },
                expires_at: START.after(Span::from_secs(*lives_secs)),
                reason: String::new(),
                by: String::new(),
            }).unwrap();
        }
        for now_secs in 0..5 {
            limiter.at_ms(now_secs * 1_000);
            for request in &requests {
                let pairs: Vec<(&str, &str)> =
                    request.iter().map(|(name, value)| (NAMES[*name], value.as_str())).collect();
                // From the top: operators' overrides, the newest first, then the file's.
                let newest_first: Vec<_> = temporary.iter().zip(101..).collect();
                let mut from_top = newest_first
                    .into_iter()
                    .rev()
                    .filter(|((_, lives_secs), _)| now_secs < *lives_secs)
                    .map(|((when, _), quota)| (when, quota))
                    .chain(own.iter().zip(1..));
                let wanted = from_top.find(|(when, _)| meets(when, &pairs)).map_or(OWN, |(_, quota)| quota);
                let request = Request::new(&pairs).with_cost(tidegate::Cost::ZERO);
                let decision = limiter.engine.decide_now(&request).unwrap();
                prop_assert_eq!(decision.limits().next().unwrap().quota, wanted);
                prop_assert_eq!(limiter.engine.explain(&request).limits[0].limit.capacity(), wanted);
            }
        }
    }
}

#[test]
fn each_of_many_tenants_has_its_own_numbers() {
    let mut limits = policy(&format!("limits: [{{ name: org-minute, per: [org], rate: {OWN}/min }}]"));
    limits.rules[0].overrides = (1..=20_000)
        .map(|number| Override {
            when: vec![Condition { attribute: "org".into(), test: Test::Equals(format!("org-{number}")) }],
            algorithm: numbers(number),
        })
        .collect();
    let limiter = Limiter::with_policy(limits);
    for number in [1, 2, 9_999, 20_000] {
        let who = format!("org=org-{number}");
        assert_eq!(limiter.ask_cost(&who, 0).limits().next().unwrap().quota, number);
        assert!(limiter.ask_cost(&who, number).allowed());
        assert!(!limiter.ask(&who).allowed());
    }
    assert_eq!(limiter.ask_cost("org=org-20001", 0).limits().next().unwrap().quota, OWN);
}

#[test]
fn an_override_with_the_limits_layout_shares_its_counter_and_another_rate_of_a_bucket_does_not() {
    let limiter = Limiter::new(
        "
limits:
  - { name: window, per: [org], rate: 5/min, overrides: [{ when: { plan: pro }, rate: 9/min }] }
  - name: bucket
    per: [org]
    rate: 60/min
    burst: 5
    algorithm: token_bucket
    overrides:
      - { when: { plan: burst }, burst: 9 }
      - { when: { plan: pro }, rate: 120/min }
",
    );
    assert!(limiter.ask_cost("org=acme", 3).allowed());
    assert_eq!(limiter.remaining("org=acme plan=pro"), [("bucket".into(), 5), ("window".into(), 6)].into());
    assert_eq!(limiter.remaining("org=acme plan=burst"), [("bucket".into(), 6), ("window".into(), 2)].into());
    assert!(limiter.ask_cost("org=acme plan=pro", 5).allowed());
    assert_eq!(limiter.remaining("org=acme plan=pro"), [("bucket".into(), 0), ("window".into(), 1)].into());
    // Eight of the window's five are taken: a plan that is left leaves no debt but what was taken.
    assert_eq!(limiter.remaining("org=acme"), [("bucket".into(), 2), ("window".into(), 0)].into());
}
