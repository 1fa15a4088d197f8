//! A request on its way: what a plan asks of the store for it, and the decision that the answer makes.
//!
//! This is the path of every request. Nothing in it is allocated for the usual number of limits, and
//! large values are filled in place rather than returned and moved.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use smallvec::SmallVec;
use tidegate_core::{Cost, Mode, Request, Standing, Timestamp, Verdict};
use tidegate_store::{Charge, Key, MemoryStore, Op, Row};

use crate::current::PlanLoan;
use crate::decision::{Decision, Degraded, RowSource};
use crate::plan::{Plan, PlanRule, Values};
use crate::policy::Missing;

/// A request, and what a plan asks of the store for it.
pub(crate) struct Asked<'p> {
    plan: &'p Plan,
    now: Timestamp,
    cost: Cost,
    charges: SmallVec<[Charge<'p>; 4]>,
    /// Which limit each charge is of.
    sources: SmallVec<[RowSource; 4]>,
    block: Option<usize>,
    /// The rules that refuse because an attribute is missing, permissive ones included; and which of
    /// their `per` it is.
    lacking: SmallVec<[(u32, u32); 2]>,
}

/// What is decided, but for the plan that it was decided by.
pub(crate) struct Outcome {
    pub(crate) rows: SmallVec<[Row; 4]>,
    pub(crate) sources: SmallVec<[RowSource; 4]>,
    pub(crate) allowed: bool,
    pub(crate) degraded: Option<Degraded>,
}

impl<'p> Asked<'p> {
    /// Nothing asked yet; [`fill`](Self::fill) it.
    #[inline]
    pub(crate) fn new(plan: &'p Plan, cost: Cost, now: Timestamp) -> Self {
        Self {
            plan,
            now,
            cost,
            charges: SmallVec::new(),
            sources: SmallVec::new(),
            block: None,
            lacking: SmallVec::new(),
        }
    }

    /// Asks what the plan asks of a request with these attributes.
    pub(crate) fn fill(&mut self, values: &Values<'p>) {
        let plan = self.plan;
        if !plan.blocks.is_empty() && plan.policy.mode != Mode::Disabled {
            self.block = plan.block(values, self.now);
        }
        for (number, rule) in plan.rules.iter().enumerate() {
            let number = number as u32;
            if rule.is_plain && rule.per.iter().all(|attribute| values[*attribute].is_some()) {
                self.push(RowSource::rule(number, None), 1, values);
                continue;
            }
            match Self::part(rule, values) {
                Part::None => {}
                Part::Lacking(attribute) => self.lacking.push((number, attribute)),
                Part::Weight(weight) => {
                    self.push(RowSource::rule(number, rule.override_for(values, self.now)), weight, values);
                }
            }
        }
        if self.is_refused_for_lacking() {
            // Refused anyway: the counters are only looked at, to say how they stand.
            self.only_look();
        }
    }

    fn push(&mut self, source: RowSource, weight: u64, values: &Values<'p>) {
        let (rule, own) = source.find(self.plan);
        let (limit, algorithm) = match own {
            Some(own) => (own.id, own.algorithm()),
            None => (rule.id, &rule.limit.algorithm),
        };
        let stand_in = if let Missing::Value(value) = &rule.missing { value } else { "" };
        let (op, cost) = if self.cost.is_zero() { (Op::Peek, Cost::ONE) } else { (Op::Take, self.cost) };
        let key = key(&rule.per, values, stand_in);
        self.charges.push(Charge { limit, key, algorithm, cost: cost.times(weight), mode: rule.mode, op });
        self.sources.push(source);
    }

    /// Makes the charges peeks.
    pub(crate) fn only_look(&mut self) {
        self.charges.iter_mut().for_each(|charge| charge.op = Op::Peek);
    }

    /// A rule's part in the request.
    fn part(rule: &PlanRule, values: &Values<'_>) -> Part {
        if rule.failing(values).is_some() {
            return Part::None;
        }
        if let Some(lacking) = rule.per.iter().position(|attribute| values[*attribute].is_none()) {
            match rule.missing {
                Missing::Value(_) => {}
                Missing::Skip => {
                    rule.counts.missing.fetch_add(1, Ordering::Relaxed);
                    return Part::None;
                }
                Missing::Deny => {
                    rule.counts.missing.fetch_add(1, Ordering::Relaxed);
                    return Part::Lacking(lacking as u32);
                }
            }
        }
        match rule.weight(values) {
            0 => Part::None,
            weight => Part::Weight(weight),
        }
    }

    /// Whether a counter has a say in the decision.
    pub(crate) fn asks_store(&self) -> bool {
        self.block.is_none() && !self.charges.is_empty()
    }

    /// What is asked of the store.
    pub(crate) fn charges(&self) -> &[Charge<'p>] {
        &self.charges
    }

    /// Whether the request is refused however the counters stand.
    pub(crate) fn is_refused_alone(&self) -> bool {
        self.block.is_some() || self.is_refused_for_lacking()
    }

    fn is_refused_for_lacking(&self) -> bool {
        self.lacking.iter().any(|(rule, _)| self.plan.rules[*rule as usize].mode == Mode::Enforce)
    }

    /// What is decided where no counter has a say in it.
    pub(crate) fn decided_alone(self) -> Outcome {
        let Some(number) = self.block else { return self.decided(SmallVec::new(), true) };
        let wait = self.plan.blocks[number].wait(self.now);
        let standing = Standing { remaining: 0, reset: wait, next: wait };
        let row = Row { verdict: Verdict::Wait(wait), standing, at_cap: false };
        let source = RowSource::block(number as u32);
        let (rows, sources) = (SmallVec::from_iter([row]), SmallVec::from_iter([source]));
        Outcome { rows, sources, allowed: false, degraded: None }
    }

    /// What the store's rows decide, and the rules that refuse without it.
    pub(crate) fn decided(mut self, mut rows: SmallVec<[Row; 4]>, admitted: bool) -> Outcome {
        let mut sources = std::mem::take(&mut self.sources);
        let mut allowed = admitted;
        if !self.lacking.is_empty() {
            allowed &= !self.is_refused_for_lacking();
            let row = Row { verdict: Verdict::Never, standing: Standing::default(), at_cap: false };
            for (rule, attribute) in &self.lacking {
                let at = sources.iter().position(|source| source.number() > *rule).unwrap_or(sources.len());
                sources.insert(at, RowSource::lacking(*rule, *attribute));
                rows.insert(at.min(rows.len()), row);
            }
        }
        if !self.cost.is_zero() && rows.iter().any(|row| !row.verdict.admits()) {
            count_refusals(self.plan, &rows, &sources);
        }
        Outcome { rows, sources, allowed, degraded: None }
    }
}

/// Decides a request the fast way, if the plan and the request are usual ones. Fills the decision in
/// place; what it says is of no use otherwise.
#[inline]
pub(crate) fn decide_usual(decision: &mut Decision, store: &MemoryStore, request: &Request<'_>) -> Option<()> {
    let Decision { plan, rows, sources, allowed, at, .. } = decision;
    let usual = plan.usual.as_ref().filter(|_| !request.cost().is_zero())?;
    *allowed = usual.charge(store, plan.attributes_of(request), request.cost(), *at, rows)?;
    for number in 0..rows.len() {
        sources.push(RowSource::rule(number as u32, None));
    }
    if rows.iter().any(|row| !row.verdict.admits()) {
        count_refusals(plan, rows, sources);
    }
    Some(())
}

/// Counts what limits refused: of enforced ones the first only, which the decision names.
fn count_refusals(plan: &Plan, rows: &[Row], sources: &[RowSource]) {
    let mut is_first = true;
    for (source, _) in sources.iter().zip(rows).filter(|(_, row)| !row.verdict.admits()) {
        let (rule, _) = source.find(plan);
        if rule.mode == Mode::Permissive {
            rule.counts.would_refuse.fetch_add(1, Ordering::Relaxed);
        } else if is_first {
            rule.counts.refused.fetch_add(1, Ordering::Relaxed);
            is_first = false;
        }
    }
}

/// A rule's part in a request.
enum Part {
    /// It does not apply.
    None,
    /// It refuses: the request lacks this attribute of its `per`.
    Lacking(u32),
    /// It is charged the request's cost times this.
    Weight(u64),
}

impl Outcome {
    /// What is decided where the store does not answer: a limiter is never the reason for an outage.
    pub(crate) fn undecided() -> Self {
        Self { rows: SmallVec::new(), sources: SmallVec::new(), allowed: true, degraded: Some(Degraded::Open) }
    }

    /// With the plan that it was decided by.
    #[inline]
    pub(crate) fn under(self, plan: PlanLoan, at: Timestamp) -> Decision {
        let Self { rows, sources, allowed, degraded } = self;
        Decision { plan, rows, sources, allowed, at, degraded, vetoed_by: None }
    }
}

fn key<'p>(per: &[usize], values: &Values<'p>, stand_in: &'p str) -> Key<'p> {
    let value = |attribute: &usize| values[*attribute].unwrap_or(stand_in);
    // Up to three values are written in place, which costs a quarter of pushing them.
    let mut few = [""; 3];
    if per.len() > few.len() {
        return Key { values: per.iter().map(value).collect() };
    }
    for (place, attribute) in few.iter_mut().zip(per) {
        *place = value(attribute);
    }
    Key { values: SmallVec::from_buf_and_len(few, per.len()) }
}

/// The decisions on requests that stand or fall together.
pub(crate) fn decided_together(
    asked: Vec<Asked<'_>>,
    mut rows: &[Row],
    allowed: bool,
    plan: &Arc<Plan>,
    at: Timestamp,
) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = Vec::with_capacity(asked.len());
    for one in asked {
        let outcome = if one.asks_store() {
            let (own, rest) = rows.split_at(one.charges.len().min(rows.len()));
            rows = rest;
            one.decided(SmallVec::from_iter(own.iter().copied()), allowed)
        } else {
            one.decided_alone()
        };
        decisions.push(Outcome { allowed, ..outcome }.under(Arc::clone(plan).into(), at));
    }
    if !allowed {
        let refusal = decisions.iter().find(|one| one.refused_by().is_some()).map(Decision::copied);
        for decision in &mut decisions {
            if decision.refused_by().is_none() {
                decision.vetoed_by = refusal.as_ref().map(|refusal| Box::new(refusal.copied()));
            }
        }
    }
    decisions
}
