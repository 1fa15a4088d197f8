//! `/v1/overrides`: "twice as much for acme until tonight".

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate::intervention::{Effect, Intervention, InterventionError};
use tidegate::{Algorithm, Rate};

use super::asked;
use super::body;
use super::check::json;
use super::intervention::{self, Items, Told, created, read_for, read_note, refused};
use super::problem::Problem;
use super::segment::Segment;
use super::state::Shared;
use super::when;
use crate::json::{At, Json};

/// The limit, and its numbers meanwhile.
#[derive(Serialize)]
struct Numbers {
    limit: String,
    quota: u64,
    window_ms: u64,
}

/// `POST`: begins one.
pub(crate) async fn create(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let text = body::read(&shared, &parts, body).await?;
    let root = At::Root;
    let keys = ["limit", "when", "rate", "quota", "burst", "for", "reason", "by"];
    let [limit, when, rate, quota, burst, lasts, reason, by] = root.members(asked::parse(text.as_str())?, keys)?;
    let (at_limit, at_when) = (root.key("limit"), root.key("when"));
    let limit = at_limit.text(at_limit.required(limit)?)?.into_owned();
    let policy = shared.engine.policy();
    let Some(rule) = policy.rules.iter().find(|rule| *rule.limit.name == *limit) else {
        return Err(refused(&InterventionError::UnknownLimit(limit)));
    };
    let now = shared.engine.now();
    let algorithm = Given::read(rate, quota, burst)?.instead_of(&rule.limit.algorithm)?;
    let intervention = Intervention {
        when: when::read(at_when.required(when)?, &at_when)?,
        effect: Effect::Override { limit: limit.clone(), algorithm },
        expires_at: now.after(read_for(lasts)?),
        reason: read_note(reason, "reason")?,
        by: read_note(by, "by")?,
    };
    let told_when = when::write(&intervention.when);
    let (reason, by) = (intervention.reason.clone(), intervention.by.clone());
    let id = shared.engine.intervene(intervention).map_err(|error| refused(&error))?;
    tracing::info!(target: "audit", id = id.0, limit, when = %told_when, reason, by, "an override has begun");
    let active = shared.engine.interventions();
    let told = active
        .iter()
        .find(|active| active.id == id)
        .and_then(|active| Some(Told::of(active, numbers(&active.intervention)?, now).warned(active, &policy)));
    Ok(created("/v1/overrides", id, &told))
}

/// `GET`: those in force, newest first.
pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let now = shared.engine.now();
    let active = shared.engine.interventions();
    let told =
        active.iter().filter_map(|active| numbers(&active.intervention).map(|numbers| Told::of(active, numbers, now)));
    json(StatusCode::OK, &Items { items: told.collect() })
}

/// `DELETE`: ends one before its time.
pub(crate) async fn end(State(shared): State<Arc<Shared>>, Segment(id): Segment) -> Result<Response, Problem> {
    intervention::end(&shared.engine, "override", &id, |intervention| numbers(intervention).is_some())
}

fn numbers(intervention: &Intervention) -> Option<Numbers> {
    match &intervention.effect {
        Effect::Block => None,
        Effect::Override { limit, algorithm } => Some(Numbers {
            limit: limit.clone(),
            quota: algorithm.capacity(),
            window_ms: algorithm.window().as_millis_ceil(),
        }),
    }
}

/// The numbers that were given.
struct Given {
    rate: Option<Rate>,
    quota: Option<u64>,
    burst: Option<u64>,
}

impl Given {
    fn read(rate: Option<Json<'_>>, quota: Option<Json<'_>>, burst: Option<Json<'_>>) -> Result<Self, Problem> {
        let root = At::Root;
        let at_rate = root.key("rate");
        let rate = rate.map(|rate| {
            let text = at_rate.text(rate)?;
            text.parse::<Rate>().map_err(|error| at_rate.problem(format_args!("cannot be read: {error}")))
        });
        let count = |key: &str, value: Option<Json<'_>>| value.map(|value| root.key(key).count(&value)).transpose();
        let given = Self { rate: rate.transpose()?, quota: count("quota", quota)?, burst: count("burst", burst)? };
        if given.quota.is_some_and(|quota| quota > Rate::COUNT_MAX) {
            return Err(root.key("quota").problem(format_args!("is above {}", Rate::COUNT_MAX)));
        }
        Ok(given)
    }

    /// The counting rule of the limit's own kind with these numbers.
    fn instead_of(&self, own: &Algorithm) -> Result<Algorithm, Problem> {
        let built = match (own, self.rate, self.quota, self.burst) {
            (Algorithm::Calendar(own), None, Some(quota), None) => {
                return Ok(Algorithm::Calendar(Calendar::new(quota, own.civil().clone())));
            }
            (Algorithm::Calendar(_), ..) => {
                return Err(misfit("the limit has a quota for a calendar period; give quota, and no rate or burst"));
            }
            (Algorithm::TokenBucket(_), Some(rate), None, burst) => {
                TokenBucket::new(rate, burst).map(Algorithm::TokenBucket)
            }
            (Algorithm::TokenBucket(own), None, None, Some(burst)) => own.with_burst(burst).map(Algorithm::TokenBucket),
            (Algorithm::TokenBucket(_), ..) => {
                return Err(misfit("the limit is a token bucket; give rate, burst or both, and no quota"));
            }
            (Algorithm::FixedWindow(_), Some(rate), None, None) => FixedWindow::new(rate).map(Algorithm::FixedWindow),
            (Algorithm::SlidingWindow(_), Some(rate), None, None) => {
                SlidingWindow::new(rate).map(Algorithm::SlidingWindow)
            }
            (Algorithm::SlidingCounter(_), Some(rate), None, None) => {
                SlidingCounter::new(rate).map(Algorithm::SlidingCounter)
            }
            _ => return Err(misfit("the limit has a rate; give rate, and no quota or burst")),
        };
        built.map_err(|error| misfit(&error.to_string()))
    }
}

/// The body is well formed, and its numbers do not fit the limit.
fn misfit(detail: &str) -> Problem {
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
}
