//! Random walks: batches of mixed rules, modes, costs and twins, step by step the same on a store
//! and on the reference.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use tidegate_core::{Algorithm, Cost, Mode, Span, Timestamp};
use tidegate_store::{At, Charge, Key, Op, PageQuery, Store, StoreError};

use crate::limits::{Kind, Known, START, block_on, install};
use crate::reference::Reference;

/// The limits of a walk, with three sizes each.
#[derive(Debug)]
pub struct Ground {
    limits: Vec<Known>,
    /// For each limit, rules that read its counters.
    rules: Vec<[Algorithm; 3]>,
}

/// One step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A batch, so much later (or earlier).
    Charge(i64, Vec<Ask>),
    /// Forgets a counter.
    Reset(usize, usize),
    /// Lists a limit's counters.
    List(usize),
    /// Upkeep, where the store has some.
    Tidy,
}

/// One charge of a step.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Of which limit.
    pub limit: usize,
    /// Of whose counter.
    pub key: usize,
    /// By which of the limit's rules.
    pub rule: usize,
    /// How much.
    pub units: u64,
    /// Whether it is permissive.
    pub permissive: bool,
    /// Whether it only asks.
    pub peek: bool,
}

impl Default for Ground {
    fn default() -> Self {
        Self::of(&Kind::ALL)
    }
}

impl Ground {
    /// These rules, each once for many counters and once for all.
    pub fn of(kinds: &[Kind]) -> Self {
        let mut ground = Self { limits: Vec::new(), rules: Vec::new() };
        for (id, kind) in (0_u32..).zip(kinds.iter().chain(kinds)) {
            let per: &[&str] = if (id as usize) < kinds.len() { &["k"] } else { &[] };
            ground.limits.push(Known::new(id, per, kind.rule(4)));
            ground.rules.push([4, 2, 9].map(|capacity| kind.rule(capacity)));
        }
        ground
    }
}

/// Steps among `keys` keys. Time goes both ways if `back`.
pub fn steps(keys: usize, back: bool, count: usize) -> impl Strategy<Value = Vec<Step>> {
    let ask = (0..10_usize, 0..keys, prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(2)], units(), 0..4, 0..5);
    let ask = ask.prop_map(|(limit, key, rule, units, permissive, peek)| Ask {
        limit,
        key,
        rule,
        units,
        permissive: permissive == 0,
        peek: peek == 0,
    });
    let batch = proptest::collection::vec(ask, 1..6);
    let step = prop_oneof![
        24 => (jump(back), batch).prop_map(|(by_us, asks)| Step::Charge(by_us, asks)),
        2 => (0..10_usize, 0..keys).prop_map(|(limit, key)| Step::Reset(limit, key)),
        1 => (0..10_usize).prop_map(Step::List),
        2 => Just(Step::Tidy),
    ];
    proptest::collection::vec(step, 1..count)
}

/// Steps as requests make them: one charge of each of `limits` limits, all of one cost.
pub fn requests(limits: usize, keys: usize, back: bool, count: usize) -> impl Strategy<Value = Vec<Step>> {
    let ask = (0..keys, prop_oneof![4 => Just(0), 1 => Just(1), 1 => Just(2)], 0..5);
    let request = (proptest::collection::vec(ask, limits), units(), jump(back)).prop_map(|(asks, units, by_us)| {
        let asks = asks.into_iter().enumerate();
        let ask = |(limit, (key, rule, permissive))| Ask {
            limit,
            key,
            rule,
            units,
            permissive: permissive == 0,
            peek: false,
        };
        Step::Charge(by_us, asks.map(ask).collect())
    });
    let step = prop_oneof![
        12 => request,
        1 => (0..limits, 0..keys).prop_map(|(limit, key)| Step::Reset(limit, key)),
        1 => Just(Step::Tidy),
    ];
    proptest::collection::vec(step, 1..count)
}

fn units() -> impl Strategy<Value = u64> {
    prop_oneof![2 => Just(0), 12 => Just(1), 6 => 2..4_u64, 1 => 4..11_u64, 1 => Just(u64::MAX)]
}

/// Microseconds: usually none or some seconds, now and then past every window.
fn jump(back: bool) -> impl Strategy<Value = i64> {
    let least = if back { -1 } else { 0 };
    prop_oneof![
        8 => Just(0),
        4 => least * 2_000_000..3_000_000_i64,
        2 => least * 40_000_000..70_000_000_i64,
        1 => least * 4_000_000_000..5_000_000_000_i64,
    ]
}

/// Walks `store`, which is empty, and the reference; `tidy` is the store's upkeep.
///
/// # Errors
/// The first step on which they differ.
pub fn walk(
    store: &impl Store,
    ground: &Ground,
    steps: &[Step],
    tidy: impl Fn(Timestamp),
) -> Result<(), TestCaseError> {
    walk_and_look(store, ground, steps, tidy, |_| Ok(()))
}

/// The same, with a look at the reference after each step.
///
/// # Errors
/// The first step on which they differ, or on which `look` finds something.
pub fn walk_and_look(
    store: &impl Store,
    ground: &Ground,
    steps: &[Step],
    tidy: impl Fn(Timestamp),
    look: impl Fn(&Reference) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut reference = Reference::default();
    install(store, &ground.limits.iter().collect::<Vec<_>>());
    let installed: Vec<_> = ground.limits.iter().map(|known| (known.id, known.limit.clone())).collect();
    reference.install(&installed);
    let mut now = START;
    for (nth, step) in steps.iter().enumerate() {
        match step {
            Step::Charge(by_us, asks) => {
                now = moved(now, *by_us);
                let keys: Vec<String> = asks.iter().map(|ask| ground.key(ask.limit, ask.key)).collect();
                let batch: Vec<Charge<'_>> = asks.iter().zip(&keys).map(|(ask, key)| ground.charge(ask, key)).collect();
                let expected = reference.charge(&batch, now).unwrap();
                let answer = block_on(store.charge(&batch, At::Given(now))).unwrap();
                prop_assert_eq!(answer, expected, "step {}: {:?} at {:?}", nth, asks, now);
            }
            Step::Reset(limit, key) => {
                let (known, key) = (&ground.limits[*limit], ground.key(*limit, *key));
                let key = ground.values(*limit, &key);
                let expected = reference.reset(known.id, &key, now).unwrap();
                let answer = block_on(store.reset(known.id, &key, At::Given(now))).unwrap();
                prop_assert_eq!(answer, expected, "step {}: {:?}", nth, step);
            }
            Step::List(limit) => list(store, &reference, &ground.limits[*limit], now)?,
            Step::Tidy => tidy(now),
        }
        look(&reference)?;
    }
    for known in &ground.limits {
        list(store, &reference, known, now)?;
    }
    Ok(())
}

/// Compares a listing, if the store has one.
fn list(store: &impl Store, reference: &Reference, known: &Known, now: Timestamp) -> Result<(), TestCaseError> {
    let algorithm = &known.limit.algorithm;
    let query = PageQuery { limit: known.id, algorithm, after: None, items_max: usize::MAX };
    let page = match block_on(store.page(&query, At::Given(now))) {
        Err(StoreError::NamesOff) => return Ok(()),
        page => page.unwrap(),
    };
    let by_key = |counted: Vec<tidegate_store::Counted>| -> BTreeMap<_, _> {
        counted.into_iter().map(|counted| (counted.values, counted.standing)).collect()
    };
    prop_assert_eq!(by_key(page.counters), by_key(reference.list(known.id, algorithm, now).unwrap()));
    Ok(())
}

impl Ground {
    /// The limits.
    pub fn limits(&self) -> &[Known] {
        &self.limits
    }

    fn key(&self, limit: usize, key: usize) -> String {
        format!("{}-{key}", self.limits[limit].limit.name)
    }

    /// The key's value, unless the limit has one counter for all.
    fn values<'a>(&self, limit: usize, key: &'a str) -> Key<'a> {
        if self.limits[limit].limit.per.is_empty() { Key::default() } else { Key::of(&[key]) }
    }

    fn charge<'a>(&'a self, ask: &Ask, key: &'a str) -> Charge<'a> {
        Charge {
            key: self.values(ask.limit, key),
            algorithm: &self.rules[ask.limit][ask.rule],
            cost: Cost::new(ask.units),
            mode: if ask.permissive { Mode::Permissive } else { Mode::Enforce },
            op: if ask.peek { Op::Peek } else { Op::Take },
            ..self.limits[ask.limit].take(&[], 1)
        }
    }
}

fn moved(now: Timestamp, by_us: i64) -> Timestamp {
    let by = Span::from_micros(by_us.unsigned_abs());
    if by_us < 0 { now.before(by) } else { now.after(by) }
}
