//! Several requests at once: all or none, or each for itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use proptest::prelude::*;
use tidegate::policy::{Condition, Test};
use tidegate::{Cost, Decision, Effect, Intervention, Request, Span, Together};
use tidegate_testkit::{Limiter, START, attributes, ready};

use crate::cases;

const SEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/together.txt");

const HIERARCHY: &str = "
limits:
  - { name: agent, per: [org, agent], rate: 3/min }
  - { name: org, per: [org], rate: 5/min }
  - { name: everyone, per: [], rate: 8/min }
";

fn ask(limiter: &Limiter, together: Together, whos: &[(&str, u64)]) -> Vec<Decision> {
    let pairs: Vec<_> = whos.iter().map(|(who, _)| attributes(who)).collect();
    let requests: Vec<Request<'_>> =
        pairs.iter().zip(whos).map(|(pairs, (_, cost))| Request::new(pairs).with_cost(Cost::new(*cost))).collect();
    ready(limiter.engine.decide_all(&requests, together))
}

fn allowed(decisions: &[Decision]) -> Vec<bool> {
    decisions.iter().map(Decision::allowed).collect()
}

fn refused_by(decision: &Decision) -> Option<String> {
    decision.refused_by().map(|state| state.limit.name.to_string())
}

#[test]
fn all_pass_together_and_add_up() {
    let limiter = Limiter::new(HIERARCHY);
    let batch = [("org=acme agent=a1", 2), ("org=acme agent=a1", 1), ("org=beta agent=a1", 1)];
    let decisions = ask(&limiter, Together::Atomic, &batch);
    assert_eq!(allowed(&decisions), [true, true, true]);
    // Each tells how its limits stand after it and those before it.
    let remaining = |decision: &Decision| decision.limits().map(|state| state.remaining).collect::<Vec<_>>();
    assert_eq!(decisions.iter().map(remaining).collect::<Vec<_>>(), [[1, 3, 6], [0, 2, 5], [2, 4, 4]]);
    let left = [("agent".into(), 0), ("org".into(), 2), ("everyone".into(), 4)];
    assert_eq!(limiter.remaining("org=acme agent=a1"), left.into());
}

#[test]
fn one_refusal_refuses_all_and_no_counter_moves() {
    let limiter = Limiter::new(HIERARCHY);
    let batch = [("org=beta agent=b1", 1), ("org=acme agent=a1", 2), ("org=acme agent=a1", 2), ("org=acme", 1)];
    let decisions = ask(&limiter, Together::Atomic, &batch);
    assert_eq!(allowed(&decisions), [false; 4]);
    for (decision, (who, _)) in decisions.iter().zip(&batch) {
        // Whoever would have passed alone is told whose refusal stopped it.
        assert_eq!(refused_by(decision).as_deref(), Some("agent"), "{who}");
        assert!(decision.tightest().is_some(), "{who}");
    }
    for who in ["org=beta agent=b1", "org=acme agent=a1"] {
        let untouched = [("agent".into(), 3), ("org".into(), 5), ("everyone".into(), 8)];
        assert_eq!(limiter.remaining(who), untouched.into(), "{who}");
    }
    // What is told of the limits is how they stand, not how far the batch got.
    assert!(decisions.iter().flat_map(Decision::limits).all(|state| state.remaining == state.quota));
}

#[test]
fn more_than_a_limit_can_hold_can_never_pass_together() {
    let limiter = Limiter::new(HIERARCHY);
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme agent=a1", 2), ("org=acme agent=a1", 2)]);
    assert!(decisions.iter().all(Decision::never));
    assert!(decisions.iter().all(|decision| decision.retry_after().is_none()));
    // What fits, but not now, waits.
    assert!(limiter.at_ms(20_000).ask_cost("org=acme agent=a1", 2).allowed());
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme agent=a1", 1), ("org=acme agent=a1", 2)]);
    assert!(decisions.iter().all(|decision| decision.retry_after() == Some(Span::from_secs(40))));
    limiter.at_ms(60_000);
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme agent=a1", 1), ("org=acme agent=a1", 2)]);
    assert_eq!(allowed(&decisions), [true, true]);
}

#[test]
fn independent_requests_pass_one_by_one() {
    let limiter = Limiter::new(HIERARCHY);
    let batch =
        [("org=acme agent=a1", 2), ("org=acme agent=a1", 2), ("org=acme agent=a1", 1), ("org=acme agent=a2", 3)];
    let decisions = ask(&limiter, Together::Independent, &batch);
    assert_eq!(allowed(&decisions), [true, false, true, false]);
    assert_eq!(
        decisions.iter().map(refused_by).collect::<Vec<_>>(),
        [None, Some("agent".into()), None, Some("org".into())]
    );
    let left = [("agent".into(), 0), ("org".into(), 2), ("everyone".into(), 5)];
    assert_eq!(limiter.remaining("org=acme agent=a1"), left.into());
}

#[test]
fn none_and_what_meets_no_limit() {
    let limiter = Limiter::new("limits: [{ name: org, per: [org], rate: 1/min }]");
    for together in [Together::Atomic, Together::Independent] {
        assert!(ask(&limiter, together, &[]).is_empty());
        assert_eq!(allowed(&ask(&limiter, together, &[("user=u1", 5), ("user=u2", 5)])), [true, true]);
    }
    // It falls with the others all the same.
    let decisions = ask(&limiter, Together::Atomic, &[("user=u1", 1), ("org=acme", 2)]);
    assert_eq!(allowed(&decisions), [false, false]);
    assert_eq!(refused_by(&decisions[0]).as_deref(), Some("org"));
}

#[test]
fn a_peek_sees_what_came_before_it_and_its_no_counts() {
    let limiter = Limiter::new(HIERARCHY);
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme agent=a1", 2), ("org=acme agent=a1", 0)]);
    assert_eq!(allowed(&decisions), [true, true]);
    assert_eq!(limiter.remaining_of("agent", "org=acme agent=a1"), 1);
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme agent=a1", 1), ("org=acme agent=a1", 0)]);
    assert_eq!(allowed(&decisions), [false, false]);
    assert_eq!(limiter.remaining_of("agent", "org=acme agent=a1"), 1);
}

#[test]
fn a_refusal_that_needs_no_counter_refuses_all() {
    let limiter = Limiter::new(
        "
limits:
  - { name: org, per: [org], rate: 5/min }
  - { name: user, when: { tool: search }, per: [user], rate: 5/min, missing: deny }
",
    );
    let untouched = |limiter: &Limiter| assert_eq!(limiter.remaining_of("org", "org=acme"), 5);
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme", 1), ("org=acme tool=search", 1)]);
    assert_eq!(allowed(&decisions), [false, false]);
    assert!(decisions.iter().all(|decision| refused_by(decision).as_deref() == Some("user") && decision.never()));
    untouched(&limiter);

    let block = Intervention {
        when: vec![Condition { attribute: "org".into(), test: Test::Equals("beta".into()) }],
        effect: Effect::Block,
        expires_at: START.after(Span::from_secs(30)),
        reason: String::new(),
        by: String::new(),
    };
    limiter.engine.intervene(block).unwrap();
    let decisions = ask(&limiter, Together::Atomic, &[("org=acme", 1), ("org=beta", 1), ("org=acme", 1)]);
    assert_eq!(allowed(&decisions), [false, false, false]);
    assert!(decisions.iter().all(|decision| decision.retry_after() == Some(Span::from_secs(30))));
    untouched(&limiter);
    let decisions = ask(&limiter, Together::Independent, &[("org=acme", 1), ("org=beta", 1), ("org=acme", 1)]);
    assert_eq!(allowed(&decisions), [true, false, true]);
}

#[test]
fn a_permissive_limit_has_no_say_in_a_batch_either() {
    let limiter = Limiter::new(
        "
limits:
  - { name: trial, per: [org], rate: 1/min, mode: permissive }
  - { name: everyone, per: [], rate: 5/min }
",
    );
    let batch = [("org=acme", 1), ("org=acme", 1), ("org=acme", 1)];
    assert_eq!(allowed(&ask(&limiter, Together::Atomic, &batch)), [true, true, true]);
    assert_eq!(limiter.remaining("org=acme"), [("everyone".into(), 2), ("trial".into(), 0)].into());
    assert_eq!(limiter.engine.limit_counts()[0].would_refuse, 2);
}

/// What is taken of each counter, the plain way: one map.
#[derive(Clone, Default)]
struct Model(BTreeMap<(&'static str, String), u64>);

impl Model {
    const QUOTAS: [(&'static str, u64); 3] = [("agent", 3), ("org", 5), ("everyone", 8)];

    /// Takes a cost of all three, or of none; 0 only asks for 1.
    fn take(&mut self, org: u8, agent: u8, cost: u64) -> bool {
        let key = |limit| match limit {
            "agent" => format!("{org}/{agent}"),
            "org" => org.to_string(),
            _ => String::new(),
        };
        let fits = Self::QUOTAS
            .iter()
            .all(|(limit, quota)| self.0.get(&(*limit, key(limit))).unwrap_or(&0) + cost.max(1) <= *quota);
        if fits {
            for (limit, _) in Self::QUOTAS {
                *self.0.entry((limit, key(limit))).or_default() += cost;
            }
        }
        fits
    }
}

proptest! {
    #![proptest_config(cases(600, SEEDS))]

    #[test]
    fn batches_are_what_one_map_says(
        batches in prop::collection::vec(
            (prop::collection::vec((0_u8..2, 0_u8..2, 0_u64..4), 1..6), prop::bool::ANY),
            1..8,
        ),
    ) {
        let limiter = Limiter::new(HIERARCHY);
        let mut model = Model::default();
        for (batch, atomic) in batches {
            let whos: Vec<(String, u64)> =
                batch.iter().map(|(org, agent, cost)| (format!("org={org} agent={agent}"), *cost)).collect();
            let whos: Vec<(&str, u64)> = whos.iter().map(|(who, cost)| (who.as_str(), *cost)).collect();
            let mut after = model.clone();
            let one_by_one: Vec<bool> =
                batch.iter().map(|(org, agent, cost)| after.take(*org, *agent, *cost)).collect();
            let together = if atomic { Together::Atomic } else { Together::Independent };
            let said = allowed(&ask(&limiter, together, &whos));
            if atomic {
                let all = one_by_one.iter().all(|one| *one);
                prop_assert_eq!(said, vec![all; batch.len()]);
                if all {
                    model = after;
                }
            } else {
                prop_assert_eq!(said, one_by_one);
                model = after;
            }
        }
        for (org, agent) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let left = limiter.remaining(&format!("org={org} agent={agent}"));
            for ((limit, quota), key) in Model::QUOTAS.iter().zip([format!("{org}/{agent}"), org.to_string(), String::new()]) {
                let taken = model.0.get(&(*limit, key)).unwrap_or(&0);
                prop_assert_eq!(left[*limit], quota - taken);
            }
        }
    }
}

#[test]
fn eight_threads_of_batches_admit_exactly_what_there_is() {
    let limiter = Limiter::new(
        "
limits:
  - { name: agent, per: [agent], rate: 100000/min }
  - { name: everyone, per: [], rate: 3001/min }
",
    );
    // Each batch takes two at one agent and one at another, in either order.
    let batches = AtomicUsize::new(0);
    thread::scope(|scope| {
        for worker in 0..8_usize {
            let (limiter, batches) = (&limiter, &batches);
            scope.spawn(move || {
                for turn in 0..400 {
                    let (one, two) = (format!("agent=a{}", (worker + turn) % 3), format!("agent=a{}", turn % 2));
                    let batch = [(one.as_str(), 1), (two.as_str(), 1), (one.as_str(), 1)];
                    let decisions = ask(limiter, Together::Atomic, &batch);
                    let admitted = decisions.iter().filter(|decision| decision.allowed()).count();
                    assert!(admitted == 0 || admitted == 3);
                    batches.fetch_add(admitted / 3, Ordering::Relaxed);
                }
            });
        }
    });
    assert_eq!(batches.into_inner(), 1_000);
    assert_eq!(limiter.remaining_of("everyone", "agent=a0"), 1);
    let taken: u64 =
        ["agent=a0", "agent=a1", "agent=a2"].map(|who| 100_000 - limiter.remaining_of("agent", who)).iter().sum();
    assert_eq!(taken, 3_000);
}
