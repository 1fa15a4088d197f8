//! A request on its way: what a plan asks of the store for it, and the decision that the answer makes.
//!
//! This is the path of every request. Nothing in it is allocated for the usual number of limits, and
//! large values are filled in place rather than returned and moved.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use arc_swap::Guard;
use smallvec::SmallVec;
use tidegate_core::{Cost, Mode, Request, Standing, Timestamp, Verdict};
use tidegate_store::{Charge, Key, Op, Row};

use crate::decision::{Decision, RowSource};
use crate::plan::{Plan, PlanRule, Values};
use crate::policy::Missing;

/// A request, the plan that it is decided by, and the rules of it that apply.
pub(crate) struct Asked<'a> {
    plan: Guard<Arc<Plan>>,
    now: Timestamp,
    cost: Cost,
    values: Values<'a>,
    applies: SmallVec<[Applies; 4]>,
    block: Option<usize>,
    /// The rules that refuse because an attribute is missing, permissive ones included.
    lacking: SmallVec<[u32; 2]>,
}

/// A rule that applies, and the override that does.
#[derive(Clone, Copy, Debug)]
struct Applies {
    source: RowSource,
    weight: u64,
}

impl<'a> Asked<'a> {
    pub(crate) fn new(plan: Guard<Arc<Plan>>, request: &Request<'a>, now: Timestamp) -> Self {
        let mut asked = Self {
            plan,
            now,
            cost: request.cost(),
            values: Values::new(),
            applies: SmallVec::new(),
            block: None,
            lacking: SmallVec::new(),
        };
        asked.plan.fill_values(request, &mut asked.values);
        if !asked.plan.blocks.is_empty() && asked.plan.policy.mode != Mode::Disabled {
            asked.block = asked.plan.block(&asked.values, now);
        }
        for (number, rule) in asked.plan.rules.iter().enumerate() {
            let number = number as u32;
            if rule.is_plain && rule.per.iter().all(|attribute| asked.values[*attribute].is_some()) {
                asked.applies.push(Applies { source: RowSource::rule(number, None), weight: 1 });
                continue;
            }
            match Self::part(rule, &asked.values) {
                Part::None => {}
                Part::Lacking => asked.lacking.push(number),
                Part::Weight(weight) => {
                    let source = RowSource::rule(number, rule.override_for(&asked.values, now));
                    asked.applies.push(Applies { source, weight });
                }
            }
        }
        asked
    }

    /// A rule's part in the request.
    fn part(rule: &PlanRule, values: &Values<'_>) -> Part {
        if rule.failing(values).is_some() {
            return Part::None;
        }
        if rule.per.iter().any(|attribute| values[*attribute].is_none()) {
            match rule.missing {
                Missing::Value(_) => {}
                Missing::Skip => {
                    rule.counts.missing.fetch_add(1, Ordering::Relaxed);
                    return Part::None;
                }
                Missing::Deny => {
                    rule.counts.missing.fetch_add(1, Ordering::Relaxed);
                    return Part::Lacking;
                }
            }
        }
        match rule.weight(values) {
            0 => Part::None,
            weight => Part::Weight(weight),
        }
    }

    /// When the clock was read for it.
    pub(crate) const fn now(&self) -> Timestamp {
        self.now
    }

    /// Whether a counter has a say in the decision.
    pub(crate) fn asks_store(&self) -> bool {
        self.block.is_none() && !self.applies.is_empty()
    }

    /// Whether the request is refused however the counters stand.
    pub(crate) fn is_refused_alone(&self) -> bool {
        self.block.is_some() || self.is_refused_for_lacking()
    }

    fn is_refused_for_lacking(&self) -> bool {
        self.lacking.iter().any(|rule| self.plan.rules[*rule as usize].mode == Mode::Enforce)
    }

    /// What is asked of the store.
    pub(crate) fn charges<'s>(&'s self) -> SmallVec<[Charge<'s>; 4]> {
        let (op, cost) = match self.cost {
            Cost::ZERO => (Op::Peek, Cost::ONE),
            // Refused anyway: the counters are only looked at, to say how they stand.
            cost if self.is_refused_for_lacking() => (Op::Peek, cost),
            cost => (Op::Take, cost),
        };
        let mut charges = SmallVec::new();
        for applies in &self.applies {
            let (rule, own) = applies.source.find(&self.plan);
            let (limit, algorithm) = match own {
                Some(own) => (own.id, own.algorithm()),
                None => (rule.id, &rule.limit.algorithm),
            };
            let stand_in = if let Missing::Value(value) = &rule.missing { value } else { "" };
            let key = self.key(&rule.per, stand_in);
            charges.push(Charge { limit, key, algorithm, cost: cost.times(applies.weight), mode: rule.mode, op });
        }
        charges
    }

    fn key<'s>(&'s self, per: &[usize], stand_in: &'s str) -> Key<'s> {
        let value = |attribute: &usize| self.values[*attribute].unwrap_or(stand_in);
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

    /// The decision where no counter has a say in it.
    pub(crate) fn decided_alone(self) -> Decision {
        let Some(number) = self.block else { return self.decided(SmallVec::new(), true) };
        let wait = self.plan.blocks[number].wait(self.now);
        let standing = Standing { remaining: 0, reset: wait, next: wait };
        let row = Row { verdict: Verdict::Wait(wait), standing, at_cap: false };
        let source = RowSource::block(number as u32);
        self.decision(SmallVec::from_iter([row]), SmallVec::from_iter([source]), false)
    }

    /// The decision that the store's rows make, and the rules that refuse without it.
    pub(crate) fn decided(self, mut rows: SmallVec<[Row; 4]>, admitted: bool) -> Decision {
        let mut sources: SmallVec<[RowSource; 4]> = SmallVec::new();
        for applies in &self.applies {
            sources.push(applies.source);
        }
        let mut allowed = admitted;
        if !self.lacking.is_empty() {
            allowed &= !self.is_refused_for_lacking();
            let row = Row { verdict: Verdict::Never, standing: Standing::default(), at_cap: false };
            for rule in &self.lacking {
                let at = sources.iter().position(|source| source.number() > *rule).unwrap_or(sources.len());
                sources.insert(at, RowSource::rule(*rule, None));
                rows.insert(at.min(rows.len()), row);
            }
        }
        if !self.cost.is_zero() && rows.iter().any(|row| !row.verdict.admits()) {
            self.count_refusals(&rows, &sources);
        }
        self.decision(rows, sources, allowed)
    }

    /// The decision where the store does not answer: a limiter is never the reason for an outage.
    pub(crate) fn undecided(self) -> Decision {
        Decision { degraded: true, ..self.decision(SmallVec::new(), SmallVec::new(), true) }
    }

    fn decision(self, rows: SmallVec<[Row; 4]>, sources: SmallVec<[RowSource; 4]>, allowed: bool) -> Decision {
        Decision { plan: self.plan, rows, sources, allowed, at: self.now, degraded: false, vetoed_by: None }
    }

    fn count_refusals(&self, rows: &[Row], sources: &[RowSource]) {
        let mut is_first = true;
        for (source, _) in sources.iter().zip(rows).filter(|(_, row)| !row.verdict.admits()) {
            let (rule, _) = source.find(&self.plan);
            if rule.mode == Mode::Permissive {
                rule.counts.would_refuse.fetch_add(1, Ordering::Relaxed);
            } else if is_first {
                rule.counts.refused.fetch_add(1, Ordering::Relaxed);
                is_first = false;
            }
        }
    }
}

/// A rule's part in a request.
enum Part {
    /// It does not apply.
    None,
    /// It refuses: the request lacks an attribute.
    Lacking,
    /// It is charged the request's cost times this.
    Weight(u64),
}

/// The decisions on requests that stand or fall together.
pub(crate) fn decided_together(asked: Vec<Asked<'_>>, mut rows: &[Row], allowed: bool) -> Vec<Decision> {
    let mut decisions: Vec<Decision> = Vec::with_capacity(asked.len());
    for one in asked {
        let decision = if one.asks_store() {
            let (own, rest) = rows.split_at(one.applies.len().min(rows.len()));
            rows = rest;
            one.decided(SmallVec::from_slice(own), allowed)
        } else {
            one.decided_alone()
        };
        decisions.push(Decision { allowed, ..decision });
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
