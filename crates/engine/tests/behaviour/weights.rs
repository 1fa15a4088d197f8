//! What a request takes from a limit: its cost times the limit's weight for it.

use proptest::prelude::*;
use tidegate::policy::Weights;
use tidegate::{Outcome, Request};
use tidegate_testkit::{Limiter, attributes, policy, ready};

use crate::cases;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/weights.txt");

const WEIGHED: &str = "
limits:
  - name: user-minute
    per: [user]
    rate: 100/min
    cost: { base: 2, by: { tool: { search: 5, help: 0 }, model: { large: 9, small: 1 } } }
";

#[test]
fn the_largest_weight_that_applies_counts_and_else_the_base() {
    let limiter = Limiter::new(WEIGHED);
    let taken = |who: &str, cost| {
        let before = limiter.remaining_of("user-minute", "user=u1");
        assert!(limiter.ask_cost(who, cost).allowed());
        before - limiter.remaining_of("user-minute", "user=u1")
    };
    assert_eq!(taken("user=u1", 1), 2);
    assert_eq!(taken("user=u1 tool=other model=other", 3), 6);
    assert_eq!(taken("user=u1 tool=search", 1), 5);
    assert_eq!(taken("user=u1 tool=search model=small", 1), 5);
    assert_eq!(taken("user=u1 tool=search model=large", 2), 18);
    // Free by one attribute, not by the other.
    assert_eq!(taken("user=u1 tool=help model=small", 4), 4);
    assert_eq!(taken("user=u1 tool=help", 1_000_000), 0);
}

#[test]
fn a_free_request_does_not_meet_the_limit_even_when_it_is_spent() {
    let limiter = Limiter::new(WEIGHED);
    assert!(limiter.ask_cost("user=u1", 50).allowed());
    assert!(!limiter.ask("user=u1").allowed());
    let free = limiter.ask("user=u1 tool=help");
    assert!(free.allowed());
    assert_eq!(free.limits().count(), 0);
}

#[test]
fn a_peek_asks_for_the_weight_of_one() {
    let limiter = Limiter::new(WEIGHED);
    assert!(limiter.ask_cost("user=u1 model=small", 92).allowed());
    // 8 are left.
    assert!(limiter.ask_cost("user=u1 tool=search", 0).allowed());
    assert!(!limiter.ask_cost("user=u1 model=large", 0).allowed());
    assert_eq!(limiter.remaining_of("user-minute", "user=u1"), 8);
}

#[test]
fn a_product_beyond_64_bits_is_above_every_capacity() {
    let limiter = Limiter::new(WEIGHED);
    for cost in [u64::MAX, u64::MAX / 2 + 1, 1 << 63] {
        let denied = limiter.ask_cost("user=u1", cost);
        assert!(!denied.allowed() && denied.never(), "{cost}");
    }
    assert_eq!(limiter.remaining_of("user-minute", "user=u1"), 100);
}

proptest! {
    #![proptest_config(cases(500, SEEDS))]

    #[test]
    fn the_weight_is_the_largest_of_those_that_apply(
        base in 0_u64..5,
        by in prop::collection::vec((0_usize..3, prop::collection::btree_map("[xyz]", 0_u64..9, 0..4)), 0..3),
        request in prop::collection::vec((0_usize..3, "[xyzw]"), 0..4),
        cost in 1_u64..5,
    ) {
        const NAMES: [&str; 3] = ["a", "b", "c"];
        let mut limits = policy("limits: [{ name: all, per: [], rate: 1000/min }]");
        let named = by.iter().map(|(name, values)| (NAMES[*name].into(), values.clone().into_iter().collect()));
        limits.rules[0].weights = Weights { base, by: named.collect() };
        let limiter = Limiter::with_policy(limits);

        let text: Vec<String> = request.iter().map(|(name, value)| format!("{}={value}", NAMES[*name])).collect();
        let text = text.join(" ");
        let has = |name: &str| attributes(&text).into_iter().find(|(own, _)| *own == name).map(|(_, value)| value.to_owned());
        let applying = by.iter().filter_map(|(name, values)| values.get(&has(NAMES[*name])?).copied());
        let weight = applying.max().unwrap_or(base);

        let pairs = attributes(&text);
        let explained = limiter.engine.explain(&Request::new(&pairs).with_cost(tidegate::Cost::new(cost)));
        match &explained.limits[0].outcome {
            Outcome::Free => prop_assert_eq!(weight, 0),
            Outcome::Applies { cost: charged, .. } => prop_assert_eq!(*charged, weight * cost),
            other => prop_assert!(false, "{:?}", other),
        }
        prop_assert!(limiter.ask_cost(&text, cost).allowed());
        let query = usage_of_all();
        let left = ready(limiter.engine.usage(&query)).unwrap().items[0].remaining;
        prop_assert_eq!(left, 1_000 - weight * cost);
    }
}

fn usage_of_all() -> tidegate::UsageQuery {
    tidegate::UsageQuery {
        limit: Some("all".into()),
        attributes: Vec::new(),
        cursor: None,
        items_max: 10,
        order: tidegate::UsageOrder::Key,
    }
}
