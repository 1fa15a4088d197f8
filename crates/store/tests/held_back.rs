//! A clock that is set back after upkeep has forgotten what had expired: time does not go back
//! behind what is forgotten, or a request late by a moment would begin a spent window anew.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate_conformance::limits::{Kind, Known, START, block_on, charge, install};
use tidegate_conformance::reference::State;
use tidegate_core::{Cost, Span, Timestamp};
use tidegate_store::{MemorySettings, MemoryStore};

#[derive(Clone, Debug)]
enum Step {
    Take { key: usize, units: u64 },
    Tidy,
}

/// What the store must say of a limit without `per`: its counters share a table, and the clock of
/// all of them is held back when that is replaced.
#[derive(Default)]
struct Expected {
    states: BTreeMap<usize, State>,
    floor: Timestamp,
}

const KEYS: [&str; 3] = ["a", "b", "c"];

fn steps() -> impl Strategy<Value = Vec<(i64, Step)>> {
    let jump = prop_oneof![
        3 => Just(0),
        4 => -20_000_000..25_000_000_i64,
        2 => -90_000_000..130_000_000_i64,
        1 => -4_000_000_000..5_000_000_000_i64,
    ];
    let step = prop_oneof![
        5 => (0..KEYS.len(), 0..4_u64).prop_map(|(key, units)| Step::Take { key, units }),
        2 => Just(Step::Tidy),
    ];
    proptest::collection::vec((jump, step), 1..50)
}

fn walk(kind: Kind, steps: &[(i64, Step)]) -> Result<(), TestCaseError> {
    let store = MemoryStore::new(MemorySettings::default());
    let limit = Known::new(0, &[], kind.rule(4));
    install(&store, &[&limit]);
    let mut expected = Expected::default();
    let mut now = START.after(Span::from_secs(7_200));
    for (by_us, step) in steps {
        let by = Span::from_micros(by_us.unsigned_abs());
        now = if *by_us < 0 { now.before(by) } else { now.after(by) };
        match step {
            Step::Take { key, units } => {
                let row = block_on(charge(&store, &[limit.take(&[KEYS[*key]], *units)], now)).rows[0];
                let told = expected.take(&limit, *key, *units, now);
                prop_assert_eq!((row.verdict, row.standing), told, "{:?}: {:?} at {:?}", kind, step, now);
            }
            Step::Tidy => {
                store.tidy(now);
                expected.tidy(&limit, now);
            }
        }
    }
    Ok(())
}

impl Expected {
    fn take(
        &mut self,
        limit: &Known,
        key: usize,
        units: u64,
        now: Timestamp,
    ) -> (tidegate_core::Verdict, tidegate_core::Standing) {
        let (rule, cost) = (&limit.limit.algorithm, Cost::new(units));
        let mut state = self.states.get(&key).cloned().unwrap_or_else(|| State::fresh(rule));
        let now = state.advance(rule, now.max(self.floor));
        let verdict = state.check(rule, cost, now);
        if verdict.admits() && units > 0 {
            state.take(rule, cost, now);
        }
        let standing = state.standing(rule, now);
        if verdict.admits() && units > 0 {
            self.states.insert(key, state);
        }
        (verdict, standing)
    }

    fn tidy(&mut self, limit: &Known, now: Timestamp) {
        let rule = &limit.limit.algorithm;
        let count = self.states.len();
        self.states.retain(|_, state| {
            if matches!(state, State::Log(_)) {
                state.advance(rule, now);
            }
            state.expires_at(rule) > now
        });
        if self.states.len() < count {
            self.floor = self.floor.max(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn behind_what_upkeep_has_forgotten(steps in steps()) {
        for kind in Kind::ALL {
            walk(kind, &steps)?;
        }
    }
}
