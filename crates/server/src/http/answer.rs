//! A decision as JSON: what `/v1/check` answers, and each result of a batch.

use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use tidegate::{Decision, LimitState};

/// What is told of a decision.
#[derive(Serialize)]
pub(crate) struct Answer<'a> {
    allowed: bool,
    refused_by: Option<&'a str>,
    level: Option<&'a str>,
    retry_after_ms: Option<u64>,
    never: bool,
    degraded: bool,
    limits: States<'a>,
}

impl<'a> Answer<'a> {
    /// What is told of `decision`.
    pub(crate) fn of(decision: &'a Decision) -> Self {
        let refused_by = decision.refused_by();
        Self {
            allowed: decision.allowed(),
            refused_by: refused_by.map(|state| &*state.limit.name),
            level: refused_by.map(|state| &*state.limit.level),
            retry_after_ms: decision.retry_after().map(|wait| wait.as_millis_ceil()),
            never: decision.never(),
            degraded: decision.degraded().is_some(),
            limits: States(decision),
        }
    }
}

/// The limits of a decision, in the order checked.
struct States<'a>(&'a Decision);

impl Serialize for States<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for state in self.0.limits() {
            list.serialize_element(&State::of(&state))?;
        }
        list.end()
    }
}

#[derive(Serialize)]
struct State<'a> {
    name: &'a str,
    level: &'a str,
    unit: &'static str,
    quota: u64,
    remaining: u64,
    reset_ms: u64,
    refused: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<&'a str>,
    mode: &'static str,
}

impl<'a> State<'a> {
    fn of(state: &LimitState<'a>) -> Self {
        Self {
            name: &state.limit.name,
            level: &state.limit.level,
            unit: state.limit.unit.name(),
            quota: state.quota,
            remaining: state.remaining,
            reset_ms: state.reset.as_millis_ceil(),
            refused: state.refused,
            missing: state.missing,
            mode: state.mode.name(),
        }
    }
}
