//! What `explain` tells, ready to be written as text or JSON.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tidegate::policy::Policy;
use tidegate::{Algorithm, Explained, Explanation, Limit, Mode, Numbers, Outcome, PeriodKind, Rate, UnusedAttribute};

use crate::cli::attributes::Attribute;
use crate::cli::style::shown;

/// One request and all limits of a file.
#[derive(Debug, Serialize)]
pub(super) struct Report {
    attributes: BTreeMap<String, String>,
    pub(super) cost: u64,
    /// In the order checked.
    pub(super) meets: Vec<Met>,
    pub(super) others: Vec<Other>,
    /// Attributes of the request that no limit of the file names.
    pub(super) unused_attributes: Vec<String>,
    /// The same in sentences, each with the attribute that may be meant.
    #[serde(skip)]
    pub(super) unused: Vec<UnusedAttribute>,
}

/// A limit that the request meets.
#[derive(Debug, Serialize)]
pub(super) struct Met {
    pub(super) name: String,
    pub(super) level: String,
    unit: &'static str,
    /// Whose counter: `per` with its values. None where the request lacks one of them.
    counter: Option<BTreeMap<String, String>>,
    /// What the request takes.
    pub(super) cost: u64,
    quota: u64,
    window_ms: u64,
    pub(super) algorithm: &'static str,
    pub(super) mode: &'static str,
    /// Which override of the limit gives the numbers, counted from 1.
    r#override: Option<usize>,
    /// Whether it refuses the request however its counter stands.
    pub(super) refuses: bool,
    /// The attribute of `per` that it refuses the request for.
    missing: Option<String>,
    /// What a shared store calls the counter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) store_key: Option<String>,
    /// The counter on one line, its attributes in the order of `per`.
    #[serde(skip)]
    pub(super) counter_line: String,
    /// Quota and window in words.
    #[serde(skip)]
    pub(super) allows: String,
    /// What is out of the ordinary.
    pub(super) notes: Vec<String>,
}

/// A limit that the request does not meet.
#[derive(Debug, Serialize)]
pub(super) struct Other {
    pub(super) name: String,
    level: String,
    /// `condition`, `missing`, `free` or `disabled`.
    why: &'static str,
    /// The attribute that it is about.
    attribute: Option<String>,
    /// The same in words.
    pub(super) because: String,
}

impl Report {
    pub(super) fn new(attributes: &[Attribute], cost: u64, explanation: &Explanation, policy: &Policy) -> Self {
        let mut report = Self {
            attributes: attributes.iter().map(|a| (a.name.clone(), a.value.clone())).collect(),
            cost,
            meets: Vec::new(),
            others: Vec::new(),
            unused_attributes: Vec::new(),
            unused: attributes.iter().filter_map(|attribute| UnusedAttribute::of(&attribute.name, policy)).collect(),
        };
        report.unused_attributes = report.unused.iter().map(|unused| shown(&unused.name)).collect();
        for explained in &explanation.limits {
            match Other::of(explained) {
                Some(other) => report.others.push(other),
                None => report.meets.push(Met::of(explained, cost)),
            }
        }
        report
    }
}

impl Met {
    fn of(explained: &Explained, request_cost: u64) -> Self {
        let limit = &*explained.limit;
        let (key, cost, numbers) = match &explained.outcome {
            Outcome::Applies { key, cost, numbers } => (Some(key), *cost, *numbers),
            _ => (None, request_cost, Numbers::Own),
        };
        let enforced = explained.mode == Mode::Enforce;
        let mut met = Self {
            name: limit.name.to_string(),
            level: limit.level.to_string(),
            unit: limit.unit.name(),
            refuses: enforced && (key.is_none() || cost.max(1) > limit.capacity()),
            missing: match &explained.outcome {
                Outcome::MissingDenied { attribute } => Some(attribute.clone()),
                _ => None,
            },
            counter: key.map(|key| key.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()),
            counter_line: key.map_or("none".to_owned(), |key| counter_line(key)),
            store_key: explained.store_key.clone(),
            cost,
            quota: limit.capacity(),
            window_ms: limit.window().as_millis_ceil(),
            algorithm: limit.algorithm.name(),
            mode: explained.mode.name(),
            r#override: if let Numbers::Override(number) = numbers { Some(number) } else { None },
            allows: allows(limit),
            notes: Vec::new(),
        };
        met.notes = met.notes_on(&explained.outcome);
        met
    }

    fn notes_on(&self, outcome: &Outcome) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(number) = self.r#override {
            notes.push(format!("its numbers come from override {number}"));
        }
        let refuses = if self.mode == "enforce" { "refuses the request" } else { "would refuse the request" };
        if let Outcome::MissingDenied { attribute } = outcome {
            notes.push(format!("{refuses}: it has no attribute '{}' (missing: deny)", shown(attribute)));
        } else if self.quota == 0 {
            notes.push(format!("{refuses}: it allows 0"));
        } else if self.cost > self.quota {
            notes.push(format!("{refuses}, however long one waits: {} is above {}", self.cost, self.quota));
        }
        notes
    }
}

impl Other {
    /// None for a limit that the request does meet.
    fn of(explained: &Explained) -> Option<Self> {
        let (why, attribute, because) = match &explained.outcome {
            Outcome::Applies { .. } | Outcome::MissingDenied { .. } => return None,
            Outcome::Condition { attribute, wanted, found } => {
                let found = found.as_ref().map_or("missing".to_owned(), |found| format!("'{}'", shown(found)));
                let because = format!("{} is {found}; it wants {}", shown(attribute), shown(wanted));
                ("condition", Some(attribute), because)
            }
            Outcome::MissingSkipped { attribute } => {
                ("missing", Some(attribute), format!("the request has no attribute '{}'", shown(attribute)))
            }
            Outcome::Free => ("free", None, "it counts such a request as 0".to_owned()),
            Outcome::Disabled => ("disabled", None, "it is disabled".to_owned()),
        };
        let (name, level) = (explained.limit.name.to_string(), explained.limit.level.to_string());
        Some(Self { name, level, why, attribute: attribute.cloned(), because })
    }
}

/// `org=acme agent=a1`.
fn counter_line(key: &[(Arc<str>, String)]) -> String {
    if key.is_empty() {
        return "everyone's".to_owned();
    }
    key.iter().map(|(name, value)| format!("{}={}", shown(name), shown(value))).collect::<Vec<_>>().join(" ")
}

/// `60/min`, `100 at once, full again in 10s`, `1000000 a month, UTC`.
fn allows(limit: &Limit) -> String {
    let quota = limit.capacity();
    match &limit.algorithm {
        Algorithm::TokenBucket(_) if quota > 0 => format!("{quota} at once, full again in {}", limit.window()),
        Algorithm::Calendar(calendar) => {
            let civil = calendar.civil();
            let article = if civil.kind() == PeriodKind::Hour { "an" } else { "a" };
            format!("{quota} {article} {}, {}", civil.kind().name(), civil.zone_name())
        }
        _ => {
            Rate::new(quota, limit.window().as_secs_ceil()).map_or_else(|_| quota.to_string(), |rate| rate.to_string())
        }
    }
}
