//! Which limits a request would meet, in order, and why not the others.

use std::fmt;
use std::sync::Arc;

use tidegate_core::{Limit, Mode, Request};
use tidegate_store::Key;

use crate::config::nearest;
use crate::engine::Engine;
use crate::plan::{Plan, PlanRule, Values};
use crate::policy::{Missing, Policy, Rule, Test};

/// What would happen to a request, limit by limit. Nothing is charged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The block that stops the request before any limit, if there is one.
    pub block: Option<Arc<str>>,
    /// The limits in the order they are checked; disabled ones last.
    pub limits: Vec<Explained>,
}

/// One limit and a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The limit, with the numbers that hold for this request.
    pub limit: Arc<Limit>,
    /// The milder of the limit's mode and the file's.
    pub mode: Mode,
    /// Whether it applies, and to whom.
    pub outcome: Outcome,
    /// What a shared store calls the counter, where the limit applies.
    pub store_key: Option<String>,
}

/// Whether a limit applies to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It does.
    Applies {
        /// Whose counter: the `per` attributes with their values.
        key: Vec<(Arc<str>, String)>,
        /// What the request takes from it.
        cost: u64,
        /// The override that gives it its numbers.
        numbers: Numbers,
    },
    /// The request does not meet a condition of `when`.
    Condition {
        /// The attribute it is about.
        attribute: String,
        /// What was wanted of it.
        wanted: String,
        /// What the request has.
        found: Option<String>,
    },
    /// The request lacks an attribute of `per`, so the limit is skipped.
    MissingSkipped {
        /// The attribute.
        attribute: String,
    },
    /// The request lacks an attribute of `per`, so the limit refuses it.
    MissingDenied {
        /// The attribute.
        attribute: String,
    },
    /// Its cost here is 0.
    Free,
    /// It is switched off.
    Disabled,
}

/// Where a limit's numbers come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// The limit itself.
    Own,
    /// Its override of this number, counted from 1 in the file's order.
    Override(usize),
    /// An operator's temporary override.
    Temporary,
}

impl Engine {
    /// Which limits a request would meet, in order, and why not the others. Charges nothing and
    /// counts nothing.
    pub fn explain(&self, request: &Request<'_>) -> Explanation {
        let plan = self.shared.plan.load();
        let now = self.now();
        let values = plan.values(request);
        let block = plan.block(&values, now).and_then(|number| plan.blocks.get(number));
        let mut limits: Vec<Explained> = plan
            .rules
            .iter()
            .map(|rule| {
                let overridden = rule.override_for(&values, now);
                let own = overridden.and_then(|number| rule.overridden(number));
                let numbers = match (overridden, own) {
                    (Some(_), Some(own)) if own.is_temporary() => Numbers::Temporary,
                    (Some(number), Some(_)) => Numbers::Override(number + 1 - rule.temporary_overrides()),
                    _ => Numbers::Own,
                };
                let outcome = outcome(&plan, rule, &values, request, numbers);
                let store_key = match &outcome {
                    Outcome::Applies { key, .. } => {
                        let values = key.iter().map(|(_, value)| value.as_str()).collect();
                        self.shared.store.counter_name(own.map_or(rule.id, |own| own.id), &Key { values })
                    }
                    _ => None,
                };
                let limit = Arc::clone(own.map_or(&rule.limit, |own| &own.limit));
                Explained { limit, mode: rule.mode, outcome, store_key }
            })
            .collect();
        let disabled =
            plan.policy.rules.iter().filter(|rule| rule.limit.mode.or_milder(plan.policy.mode) == Mode::Disabled);
        limits.extend(disabled.map(|rule| Explained {
            limit: Arc::new(rule.limit.clone()),
            mode: Mode::Disabled,
            outcome: Outcome::Disabled,
            store_key: None,
        }));
        Explanation { block: block.map(|block| Arc::clone(&block.limit.name)), limits }
    }
}

fn outcome(plan: &Plan, rule: &PlanRule, values: &Values<'_>, request: &Request<'_>, numbers: Numbers) -> Outcome {
    if let Some(failing) = rule.failing(values) {
        return Outcome::Condition {
            attribute: plan.attribute(failing.attribute).to_owned(),
            wanted: failing.test.to_string(),
            found: values[failing.attribute].map(str::to_owned),
        };
    }
    let missing = rule.per.iter().find(|attribute| values[**attribute].is_none());
    let stand_in = match (missing, &rule.missing) {
        (Some(attribute), Missing::Skip) => {
            return Outcome::MissingSkipped { attribute: plan.attribute(*attribute).to_owned() };
        }
        (Some(attribute), Missing::Deny) => {
            return Outcome::MissingDenied { attribute: plan.attribute(*attribute).to_owned() };
        }
        (_, Missing::Value(value)) => value,
        _ => "",
    };
    let weight = rule.weight(values);
    if weight == 0 {
        return Outcome::Free;
    }
    let key = rule
        .limit
        .per
        .iter()
        .zip(&rule.per)
        .map(|(name, attribute)| (Arc::clone(name), values[*attribute].unwrap_or(stand_in).to_owned()));
    Outcome::Applies { key: key.collect(), cost: request.cost().times(weight).units(), numbers }
}

/// An attribute that no limit of a policy uses: a misspelling, or one that only blocks ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnusedAttribute {
    /// Its name.
    pub name: String,
    /// The most similar attribute that a limit does use, if one is similar.
    pub nearest: Option<Arc<str>>,
}

impl UnusedAttribute {
    /// None where a limit counts, weighs or asks by the attribute.
    pub fn of(name: &str, policy: &Policy) -> Option<Self> {
        Self::among(name, &policy.rules.iter().flat_map(attributes).collect::<Vec<_>>())
    }

    /// None where a limit is counted per the attribute.
    pub fn in_per(name: &str, policy: &Policy) -> Option<Self> {
        Self::among(name, &policy.rules.iter().flat_map(|rule| &rule.limit.per).collect::<Vec<_>>())
    }

    fn among(name: &str, used: &[&Arc<str>]) -> Option<Self> {
        if used.iter().any(|attribute| ***attribute == *name) {
            return None;
        }
        let similar = nearest(name, used.iter().map(|attribute| &***attribute));
        Some(Self { name: name.to_owned(), nearest: similar.map(Into::into) })
    }
}

impl fmt::Display for UnusedAttribute {
    /// `no limit uses the attribute 'agnet'; did you mean 'agent'?`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.name.chars().take(64).flat_map(char::escape_debug).collect();
        write!(f, "no limit uses the attribute '{shown}'; ")?;
        match &self.nearest {
            Some(nearest) => write!(f, "did you mean '{nearest}'?"),
            None => f.write_str("is it spelled right?"),
        }
    }
}

/// Every attribute that a rule names, some of them twice.
fn attributes(rule: &Rule) -> impl Iterator<Item = &Arc<str>> {
    let overrides = rule.overrides.iter().flat_map(|other| &other.when);
    let conditions = rule.when.iter().chain(overrides).map(|condition| &condition.attribute);
    rule.limit.per.iter().chain(conditions).chain(rule.weights.by.iter().map(|(attribute, _)| attribute))
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Equals(value) => write!(f, "'{value}'"),
            Self::In(values) => write!(f, "one of '{}'", values.join("', '")),
            Self::Prefix(prefix) => write!(f, "something that begins with '{prefix}'"),
            Self::Glob(glob) => write!(f, "something like '{}'", glob.pattern()),
            Self::Absent => f.write_str("no value"),
        }
    }
}
