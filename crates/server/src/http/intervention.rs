//! What `/v1/blocks` and `/v1/overrides` share: whom it concerns, for how long, why and by whom.

use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use tidegate::intervention::{ActiveIntervention, Intervention, InterventionError, InterventionId};
use tidegate::{Engine, Policy, Rate, Span, Timestamp, UnusedAttribute};

use super::check::json;
use super::problem::{Problem, quoted};
use super::when;
use crate::json::{At, Json};

/// An intervention in force, as it is told.
#[derive(Serialize)]
pub(crate) struct Told<N: Serialize> {
    id: u64,
    when: serde_json::Value,
    #[serde(flatten)]
    numbers: N,
    reason: String,
    by: String,
    since: String,
    expires_at: String,
    left_ms: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl<N: Serialize> Told<N> {
    /// What is told of `active`, with what it changes.
    pub(crate) fn of(active: &ActiveIntervention, numbers: N, now: Timestamp) -> Self {
        let intervention = &active.intervention;
        Self {
            id: active.id.0,
            when: when::write(&intervention.when),
            numbers,
            reason: intervention.reason.clone(),
            by: intervention.by.clone(),
            since: instant(active.since),
            expires_at: instant(intervention.expires_at),
            left_ms: intervention.expires_at.since(now).as_millis_ceil(),
            warnings: Vec::new(),
        }
    }

    /// With a word on each attribute that no limit uses: the intervention holds, and may be meant
    /// otherwise.
    pub(crate) fn warned(self, active: &ActiveIntervention, policy: &Policy) -> Self {
        let names = active.intervention.when.iter().map(|condition| &*condition.attribute);
        let unused = names.filter_map(|name| UnusedAttribute::of(name, policy));
        Self { warnings: unused.map(|unused| unused.to_string()).collect(), ..self }
    }
}

/// `{"items": […]}`.
#[derive(Serialize)]
pub(crate) struct Items<T> {
    pub(crate) items: Vec<T>,
}

/// 201 for the intervention `id`, which has just begun below `path`.
pub(crate) fn created(path: &str, id: InterventionId, told: &impl Serialize) -> Response {
    let mut response = json(StatusCode::CREATED, told);
    if let Ok(location) = HeaderValue::try_from(format!("{path}/{}", id.0)) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

/// Ends the intervention whose id stands in the path, if `is_kind` holds for it: 204 or 404.
pub(crate) fn end(
    engine: &Engine,
    kind: &str,
    id: &str,
    is_kind: impl Fn(&Intervention) -> bool,
) -> Result<Response, Problem> {
    let unknown = || Problem::not_found(format!("there is no {kind} {} in force; GET lists them", quoted(id)));
    let number = id.parse().ok().map(InterventionId).ok_or_else(unknown)?;
    let active = engine.interventions();
    let found = active.iter().find(|active| active.id == number && is_kind(&active.intervention));
    if found.is_none() || !engine.end_intervention(number) {
        return Err(unknown());
    }
    tracing::info!(target: "audit", kind, id = number.0, "an intervention was ended");
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Why an intervention was not accepted, as an answer.
pub(crate) fn refused(error: &InterventionError) -> Problem {
    let status = match error {
        InterventionError::UnknownLimit(_) => StatusCode::NOT_FOUND,
        InterventionError::TooMany(_) => StatusCode::CONFLICT,
        InterventionError::WhenTooLarge { .. } => StatusCode::UNPROCESSABLE_ENTITY,
        _ => StatusCode::BAD_REQUEST,
    };
    Problem::new(status, error.to_string())
}

/// Reads `for`: `30s`, `15min`, `1h`, `7d`; one second to 366 days.
pub(crate) fn read_for(value: Option<Json<'_>>) -> Result<Span, Problem> {
    let root = At::Root;
    let at = root.key("for");
    let text = at.text(at.required(value)?)?;
    // The same units as in a rate.
    let begins_well = text.starts_with(|c: char| c.is_ascii_digit());
    let period = begins_well.then(|| format!("1/{text}").parse::<Rate>().ok()).flatten().map(Rate::period);
    period.ok_or_else(|| {
        at.problem(format_args!("is {}; write a time from 1s to 366d, for example 30s, 15min, 1h or 7d", quoted(&text)))
    })
}

/// Reads a text that may be left out.
pub(crate) fn read_note(value: Option<Json<'_>>, key: &str) -> Result<String, Problem> {
    value.map_or(Ok(String::new()), |value| At::Root.key(key).text(value).map(Into::into))
}

/// An instant as RFC 3339 has it, in UTC.
fn instant(at: Timestamp) -> String {
    let micros = i64::try_from(at.as_micros()).unwrap_or(i64::MAX);
    jiff::Timestamp::from_microsecond(micros).unwrap_or(jiff::Timestamp::MAX).to_string()
}
