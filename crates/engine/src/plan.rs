//! A policy made ready to decide by: rules in the order they are checked, attributes by number.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use smallvec::SmallVec;
use tidegate_core::{Algorithm, Limit, Mode, Rate, Request, Span, Timestamp};
use tidegate_store::memory::usual::{ATTRIBUTES_MAX, Usual, UsualPart};
use tidegate_store::{LimitId, MemoryStore};

use crate::intervention::{ActiveIntervention, Effect};
use crate::policy::{Condition, Missing, OnFailure, Policy, Rule, Share, Test, Weights};

/// A policy made ready, with the interventions in force.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) policy: Arc<Policy>,
    /// Every attribute that the rules name.
    attributes: Vec<Arc<str>>,
    /// In the order they are checked; disabled ones are left out.
    pub(crate) rules: Vec<PlanRule>,
    pub(crate) blocks: Vec<PlanBlock>,
    /// Its limits as one prepared batch, if each applies to every request that has its attributes.
    pub(crate) usual: Option<Usual>,
}

/// A rule made ready.
#[derive(Debug)]
pub(crate) struct PlanRule {
    pub(crate) id: LimitId,
    pub(crate) limit: Arc<Limit>,
    /// The milder of the limit's mode and the file's.
    pub(crate) mode: Mode,
    pub(crate) when: Vec<PlanCondition>,
    pub(crate) per: Vec<usize>,
    pub(crate) missing: Missing,
    pub(crate) on_failure: OnFailure,
    pub(crate) share: Share,
    pub(crate) counts: Arc<Counts>,
    /// Whether it has neither conditions nor overrides, and a weight of 1: then none is looked for.
    pub(crate) is_plain: bool,
    weights: PlanWeights,
    overrides: Overrides,
}

#[derive(Debug)]
pub(crate) struct PlanCondition {
    pub(crate) attribute: usize,
    pub(crate) test: Test,
}

/// A rule's numbers for some requests.
#[derive(Debug)]
pub(crate) struct PlanOverride {
    pub(crate) id: LimitId,
    pub(crate) limit: Arc<Limit>,
    when: Vec<PlanCondition>,
    /// For a temporary one.
    expires_at: Option<Timestamp>,
}

#[derive(Debug)]
pub(crate) struct PlanBlock {
    pub(crate) limit: Arc<Limit>,
    pub(crate) expires_at: Timestamp,
    when: Vec<PlanCondition>,
}

/// What happened at a limit, since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) refused: AtomicU64,
    pub(crate) would_refuse: AtomicU64,
    pub(crate) missing: AtomicU64,
}

/// The values of a request's attributes, by the plan's numbers.
pub(crate) type Values<'a> = SmallVec<[Option<&'a str>; 8]>;

/// Numbers for limit identities that outlive a reload, and each limit's counts.
#[derive(Debug, Default)]
pub(crate) struct Identities {
    ids: HashMap<String, LimitId>,
    counts: HashMap<Arc<str>, Arc<Counts>>,
}

impl Plan {
    pub(crate) fn new(policy: Arc<Policy>, interventions: &[ActiveIntervention], known: &mut Identities) -> Self {
        let mut names = Names::default();
        let rules = ordered(&policy)
            .into_iter()
            .filter(|rule| rule.limit.mode.or_milder(policy.mode) != Mode::Disabled)
            .map(|rule| PlanRule::new(rule, policy.mode, interventions, &mut names, known))
            .collect();
        let blocks = interventions.iter().filter_map(|active| PlanBlock::new(active, &mut names)).collect();
        Self { policy, attributes: names.0, rules, blocks, usual: None }
    }

    /// Every limit that the store has to know.
    pub(crate) fn installed(&self) -> Vec<(LimitId, Arc<Limit>)> {
        let mut all: Vec<(LimitId, Arc<Limit>)> = Vec::new();
        for rule in &self.rules {
            all.push((rule.id, Arc::clone(&rule.limit)));
            all.extend(rule.variants().map(|variant| (variant.id, Arc::clone(&variant.limit))));
        }
        all
    }

    /// What each limit does when a shared store does not answer.
    pub(crate) fn failure_policies(&self) -> HashMap<LimitId, (OnFailure, Share)> {
        let mut policies = HashMap::new();
        for rule in &self.rules {
            let ids = std::iter::once(rule.id).chain(rule.variants().map(|variant| variant.id));
            policies.extend(ids.map(|id| (id, (rule.on_failure, rule.share))));
        }
        policies
    }

    /// Prepares the usual batch, once the store knows the limits.
    pub(crate) fn prepare(&mut self, store: &MemoryStore) {
        let is_usual = self.blocks.is_empty()
            && self.attributes.len() <= ATTRIBUTES_MAX
            && self.rules.iter().all(|rule| rule.is_plain);
        let mut parts = Vec::new();
        for PlanRule { id, limit, mode, per, .. } in &self.rules {
            parts.push(UsualPart { limit: *id, algorithm: &limit.algorithm, mode: *mode, per });
        }
        let usual = if is_usual { Usual::new(store, &parts) } else { None };
        self.usual = usual;
    }

    /// The request's attributes by the plan's numbers.
    pub(crate) fn values<'a>(&self, request: &Request<'a>) -> Values<'a> {
        self.attributes_of(request).collect()
    }

    /// [`values`](Self::values), one after the other.
    #[inline]
    pub(crate) fn attributes_of<'a>(&self, request: &Request<'a>) -> impl Iterator<Item = Option<&'a str>> {
        self.attributes.iter().map(|name| request.attribute(name))
    }

    pub(crate) fn attribute(&self, number: usize) -> &str {
        self.attributes.get(number).map_or("", |name| name)
    }

    /// The block that stops a request, if there is one. A disabled file has none.
    pub(crate) fn block(&self, values: &Values<'_>, now: Timestamp) -> Option<usize> {
        if self.policy.mode == Mode::Disabled {
            return None;
        }
        self.blocks.iter().position(|block| now < block.expires_at && all_pass(&block.when, values))
    }
}

impl PlanRule {
    fn new(
        rule: &Rule,
        file_mode: Mode,
        interventions: &[ActiveIntervention],
        names: &mut Names,
        known: &mut Identities,
    ) -> Self {
        let limit = Arc::new(rule.limit.clone());
        let temporary = interventions.iter().filter_map(|active| match &active.intervention.effect {
            Effect::Override { limit: name, algorithm } if *name == *limit.name => {
                Some((&active.intervention.when, algorithm, Some(active.intervention.expires_at)))
            }
            _ => None,
        });
        let lasting = rule.overrides.iter().map(|own| (&own.when, &own.algorithm, None));
        let overrides: Vec<PlanOverride> = temporary
            .chain(lasting)
            .map(|(when, algorithm, expires_at)| {
                let limit = Arc::new(Limit { algorithm: algorithm.clone(), ..rule.limit.clone() });
                PlanOverride { id: known.id(&limit), limit, when: names.conditions(when), expires_at }
            })
            .collect();
        Self {
            id: known.id(&limit),
            mode: limit.mode.or_milder(file_mode),
            when: names.conditions(&rule.when),
            per: limit.per.iter().map(|name| names.number(name)).collect(),
            missing: rule.missing.clone(),
            on_failure: rule.on_failure,
            share: rule.share,
            counts: Arc::clone(known.counts.entry(Arc::clone(&limit.name)).or_default()),
            is_plain: rule.when.is_empty() && overrides.is_empty() && rule.weights == Weights::default(),
            weights: PlanWeights::new(&rule.weights, names),
            overrides: Overrides::new(overrides),
            limit,
        }
    }

    /// The first condition that the request does not meet.
    pub(crate) fn failing(&self, values: &Values<'_>) -> Option<&PlanCondition> {
        self.when.iter().find(|condition| !condition.passes(values))
    }

    /// What the request's cost is multiplied with.
    pub(crate) fn weight(&self, values: &Values<'_>) -> u64 {
        self.weights.of(values)
    }

    /// The override that applies, by number.
    pub(crate) fn override_for(&self, values: &Values<'_>, now: Timestamp) -> Option<usize> {
        self.overrides.first(values, now)
    }

    pub(crate) fn overridden(&self, number: usize) -> Option<&PlanOverride> {
        self.overrides.all.get(number)
    }

    /// How many overrides operators set for a time; they go before the file's own.
    pub(crate) fn temporary_overrides(&self) -> usize {
        self.overrides.all.iter().take_while(|one| one.is_temporary()).count()
    }

    /// The counters and numbers that may hold for a key, of whose requests `values` has only the
    /// `per` attributes: an override that asks for more may apply to some of them. The last is what
    /// holds where none of those does.
    pub(crate) fn numbers_for(&self, values: &Values<'_>, now: Timestamp) -> SmallVec<[(LimitId, &Arc<Limit>); 2]> {
        let mut found = SmallVec::new();
        for number in self.overrides.named(values, &self.per) {
            let one = &self.overrides.all[number];
            let (known, more): (Vec<_>, Vec<_>) =
                one.when.iter().partition(|condition| self.per.contains(&condition.attribute));
            if one.holds_at(now) && known.iter().all(|condition| condition.passes(values)) {
                found.push((one.id, &one.limit));
                if more.is_empty() {
                    return found;
                }
            }
        }
        found.push((self.id, &self.limit));
        found
    }

    /// The overrides whose counters are kept apart from the limit's own, each layout once.
    pub(crate) fn variants(&self) -> impl Iterator<Item = &PlanOverride> {
        let all = &self.overrides.all;
        all.iter()
            .enumerate()
            .filter(|(at, one)| one.id != self.id && all[..*at].iter().all(|earlier| earlier.id != one.id))
            .map(|(_, one)| one)
    }
}

impl PlanOverride {
    /// Whether an operator set it, for a time.
    pub(crate) const fn is_temporary(&self) -> bool {
        self.expires_at.is_some()
    }

    pub(crate) fn algorithm(&self) -> &Algorithm {
        &self.limit.algorithm
    }

    fn holds_at(&self, now: Timestamp) -> bool {
        self.expires_at.is_none_or(|expires_at| now < expires_at)
    }
}

impl PlanBlock {
    fn new(active: &ActiveIntervention, names: &mut Names) -> Option<Self> {
        let intervention = &active.intervention;
        if !matches!(intervention.effect, Effect::Block) {
            return None;
        }
        let algorithm = tidegate_core::algorithm::FixedWindow::new(Rate::new(0, 1).ok()?).ok()?;
        let limit = Limit {
            name: format!("block:{}", active.id.0).into(),
            level: "block".into(),
            per: Vec::new(),
            unit: tidegate_core::Unit::Requests,
            mode: Mode::Enforce,
            algorithm: Algorithm::FixedWindow(algorithm),
        };
        let when = names.conditions(&intervention.when);
        Some(Self { limit: Arc::new(limit), expires_at: intervention.expires_at, when })
    }

    pub(crate) const fn wait(&self, now: Timestamp) -> Span {
        self.expires_at.since(now)
    }
}

impl PlanCondition {
    fn passes(&self, values: &Values<'_>) -> bool {
        self.test.passes(values.get(self.attribute).copied().flatten())
    }
}

fn all_pass(conditions: &[PlanCondition], values: &Values<'_>) -> bool {
    conditions.iter().all(|condition| condition.passes(values))
}

/// Overrides, of which the first that applies counts; those that name one value are found by it,
/// so that thousands of tenants with numbers of their own cost a request nothing.
#[derive(Debug, Default)]
struct Overrides {
    all: Vec<PlanOverride>,
    /// By an attribute: the overrides that ask for each of its values.
    by_value: Vec<(usize, NumbersByValue)>,
    others: Vec<usize>,
}

type NumbersByValue = HashMap<String, SmallVec<[usize; 1]>>;

impl Overrides {
    fn new(all: Vec<PlanOverride>) -> Self {
        let mut index = Self::default();
        for (number, one) in all.iter().enumerate() {
            let named = one.when.iter().find_map(|condition| match &condition.test {
                Test::Equals(value) => Some((condition.attribute, std::slice::from_ref(value))),
                Test::In(values) => Some((condition.attribute, values.as_slice())),
                _ => None,
            });
            match named {
                Some((attribute, values)) => {
                    let at = index.by_value.iter().position(|(known, _)| *known == attribute).unwrap_or_else(|| {
                        index.by_value.push((attribute, HashMap::new()));
                        index.by_value.len() - 1
                    });
                    for value in values {
                        index.by_value[at].1.entry(value.clone()).or_default().push(number);
                    }
                }
                None => index.others.push(number),
            }
        }
        index.all = all;
        index
    }

    fn first(&self, values: &Values<'_>, now: Timestamp) -> Option<usize> {
        if self.all.is_empty() {
            return None;
        }
        let applies = |number: &usize| {
            let one = &self.all[*number];
            one.holds_at(now) && all_pass(&one.when, values)
        };
        let named = self.by_value.iter().filter_map(|(attribute, numbers)| {
            let numbers = numbers.get(values.get(*attribute).copied().flatten()?)?;
            numbers.iter().find(|number| applies(number))
        });
        named.chain(self.others.iter().find(|number| applies(number))).min().copied()
    }

    /// The overrides that are left when those are out that name other values of these attributes;
    /// in their order.
    fn named(&self, values: &Values<'_>, attributes: &[usize]) -> Vec<usize> {
        let mut numbers = self.others.clone();
        for (attribute, by_value) in &self.by_value {
            if attributes.contains(attribute) {
                let value = values.get(*attribute).copied().flatten();
                numbers.extend(value.and_then(|value| by_value.get(value)).into_iter().flatten());
            } else {
                numbers.extend(by_value.values().flatten());
            }
        }
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}

#[derive(Debug)]
struct PlanWeights {
    base: u64,
    by: Vec<(usize, HashMap<String, u64>)>,
}

impl PlanWeights {
    fn new(weights: &Weights, names: &mut Names) -> Self {
        let by =
            weights.by.iter().map(|(attribute, values)| (names.number(attribute), values.iter().cloned().collect()));
        Self { base: weights.base, by: by.collect() }
    }

    fn of(&self, values: &Values<'_>) -> u64 {
        let named = self
            .by
            .iter()
            .filter_map(|(attribute, weights)| weights.get(values.get(*attribute).copied().flatten()?).copied());
        named.max().unwrap_or(self.base)
    }
}

/// The rules in the order they are checked: those with an `order` by it; then rates before calendar
/// limits, more attributes first, and else as the file has them.
fn ordered(policy: &Policy) -> Vec<&Rule> {
    let mut rules: Vec<&Rule> = policy.rules.iter().collect();
    rules.sort_by_key(|rule| {
        let is_budget = matches!(rule.limit.algorithm, Algorithm::Calendar(_));
        let specific = usize::MAX - rule.limit.per.len();
        (rule.order.is_none(), rule.order, is_budget, specific)
    });
    rules
}

/// Numbers for attribute names.
#[derive(Debug, Default)]
struct Names(Vec<Arc<str>>);

impl Names {
    fn number(&mut self, name: &Arc<str>) -> usize {
        self.0.iter().position(|known| known == name).unwrap_or_else(|| {
            self.0.push(Arc::clone(name));
            self.0.len() - 1
        })
    }

    fn conditions(&mut self, conditions: &[Condition]) -> Vec<PlanCondition> {
        conditions
            .iter()
            .map(|condition| PlanCondition {
                attribute: self.number(&condition.attribute),
                test: condition.test.clone(),
            })
            .collect()
    }
}

impl Identities {
    fn id(&mut self, limit: &Limit) -> LimitId {
        let next = LimitId(u32::try_from(self.ids.len()).unwrap_or(u32::MAX));
        *self.ids.entry(limit.identity()).or_insert(next)
    }
}
