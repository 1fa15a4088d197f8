//! A door, as the golden rows see it: it is asked whether a request may pass, and says something of
//! the answer.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::future::Future;

use http::HeaderMap;
use tidegate::{Cost, Decision, Engine, Mode, Request};

/// A way in to the engine.
pub trait Door {
    /// Why it could not be asked at all.
    type Error: fmt::Display;

    /// Asks whether a request may pass.
    ///
    /// # Errors
    /// Where the door gave no decision.
    fn ask(&mut self, ask: &Ask) -> impl Future<Output = Result<Said, Self::Error>>;
}

/// What a door is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ask {
    /// The request's attributes.
    pub attributes: BTreeMap<String, String>,
    /// What it costs; 0 peeks.
    pub cost: u64,
}

/// What a door may say of a decision. Some doors have no place for some of it: each golden run names
/// the fields that its door has to say, and those alone are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Which limit refused, by name.
    RefusedBy,
    /// The level of the limit that refused.
    Level,
    /// How long to wait, in milliseconds.
    RetryAfter,
    /// That waiting does not help.
    Never,
    /// The limit to show where there is room for one, by name.
    Tightest,
    /// Every limit that applies.
    Limits,
    /// When a limit's remaining next grows; together with `Limits`.
    Next,
    /// `X-RateLimit-*` and `Retry-After`.
    XHeaders,
    /// `RateLimit` and `RateLimit-Policy`.
    IetfHeaders,
}

/// What a door says of a decision. What it has no field for stays at its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Whether the request may pass: every door says that.
    pub allowed: bool,
    /// Which limit refused, by name.
    pub refused_by: Option<String>,
    /// The level of the limit that refused.
    pub level: Option<String>,
    /// How long to wait.
    pub retry_after_ms: Option<u64>,
    /// Whether waiting does not help.
    pub never: bool,
    /// The limit to show where there is room for one, by name.
    pub tightest: Option<String>,
    /// Every limit that applies, in the order checked.
    pub limits: Vec<SaidLimit>,
    /// The answer's limit headers.
    pub headers: SaidHeaders,
}

/// What a door says of one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidLimit {
    /// Its name.
    pub name: String,
    /// Its level.
    pub level: String,
    /// What it counts.
    pub unit: String,
    /// The most that can be admitted at one instant.
    pub quota: u64,
    /// What can still be taken.
    pub remaining: u64,
    /// Until it is whole again.
    pub reset_ms: u64,
    /// Until `remaining` next grows; none where the door does not say it.
    pub next_ms: Option<u64>,
    /// Whether it refused, or would have.
    pub refused: bool,
    /// `enforce` or `permissive`.
    pub mode: String,
}

/// The limit headers of an answer, as they were sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SaidHeaders {
    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    pub x_ratelimit: [Option<String>; 3],
    /// `Retry-After`.
    pub retry_after: Option<String>,
    /// `RateLimit`.
    pub ratelimit: Option<String>,
    /// `RateLimit-Policy`.
    pub policy: Option<String>,
}

impl SaidHeaders {
    /// The limit headers among `headers`; one that stands twice is joined with a comma, as a client
    /// would read it.
    pub fn of(headers: &HeaderMap) -> Self {
        let text = |name: &str| {
            let values: Vec<_> =
                headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
            (!values.is_empty()).then(|| values.join(", "))
        };
        Self {
            x_ratelimit: ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(text),
            retry_after: text("retry-after"),
            ratelimit: text("ratelimit"),
            policy: text("ratelimit-policy"),
        }
    }
}

/// The engine itself, called as a library.
#[derive(Clone, Debug)]
pub struct EngineDoor(pub Engine);

impl EngineDoor {
    /// What it says.
    pub const FIELDS: &[Field] =
        &[Field::RefusedBy, Field::Level, Field::RetryAfter, Field::Never, Field::Tightest, Field::Limits, Field::Next];
}

impl Door for EngineDoor {
    type Error = Infallible;

    async fn ask(&mut self, ask: &Ask) -> Result<Said, Infallible> {
        let attributes: Vec<(&str, &str)> =
            ask.attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let decision = self.0.decide(&Request::new(&attributes).with_cost(Cost::new(ask.cost))).await;
        Ok(Said::from(&decision))
    }
}

impl From<&Decision> for Said {
    fn from(decision: &Decision) -> Self {
        let refused_by = decision.refused_by();
        Self {
            allowed: decision.allowed(),
            refused_by: refused_by.map(|state| state.limit.name.to_string()),
            level: refused_by.map(|state| state.limit.level.to_string()),
            retry_after_ms: decision.retry_after().map(|wait| wait.as_millis_ceil()),
            never: decision.never(),
            tightest: decision.tightest().map(|state| state.limit.name.to_string()),
            limits: decision
                .limits()
                .map(|state| SaidLimit {
                    name: state.limit.name.to_string(),
                    level: state.limit.level.to_string(),
                    unit: state.limit.unit.to_string(),
                    quota: state.quota,
                    remaining: state.remaining,
                    reset_ms: state.reset.as_millis_ceil(),
                    next_ms: Some(state.next.as_millis_ceil()),
                    refused: state.refused,
                    mode: mode(state.mode),
                })
                .collect(),
            headers: SaidHeaders::default(),
        }
    }
}

fn mode(mode: Mode) -> String {
    mode.name().to_owned()
}
