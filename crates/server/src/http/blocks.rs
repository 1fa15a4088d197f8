//! `/v1/blocks`: "stop agent X for an hour".

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::intervention::{Effect, Intervention};

use super::asked;
use super::body;
use super::check::json;
use super::intervention::{self, Items, Told, created, read_for, read_note, refused};
use super::problem::Problem;
use super::segment::Segment;
use super::state::Shared;
use super::when;
use crate::json::At;

/// A block changes no numbers.
#[derive(Serialize)]
struct Nothing {}

/// `POST`: begins one.
pub(crate) async fn create(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let text = body::read(&shared, &parts, body).await?;
    let root = At::Root;
    let [when, lasts, reason, by] = root.members(asked::parse(text.as_str())?, ["when", "for", "reason", "by"])?;
    let at_when = root.key("when");
    let now = shared.engine.now();
    let intervention = Intervention {
        when: when::read(at_when.required(when)?, &at_when)?,
        effect: Effect::Block,
        expires_at: now.after(read_for(lasts)?),
        reason: read_note(reason, "reason")?,
        by: read_note(by, "by")?,
    };
    let told_when = when::write(&intervention.when);
    let (reason, by) = (intervention.reason.clone(), intervention.by.clone());
    let id = shared.engine.intervene(intervention).map_err(|error| refused(&error))?;
    tracing::info!(target: "audit", id = id.0, when = %told_when, reason, by, "a block has begun");
    let active = shared.engine.interventions();
    let policy = shared.engine.policy();
    let told = active.iter().find(|active| active.id == id);
    let told = told.map(|active| Told::of(active, Nothing {}, now).warned(active, &policy));
    Ok(created("/v1/blocks", id, &told))
}

/// `GET`: those in force, newest first.
pub(crate) async fn list(State(shared): State<Arc<Shared>>) -> Response {
    let now = shared.engine.now();
    let active = shared.engine.interventions();
    let blocks = active.iter().filter(|active| is_block(&active.intervention));
    json(StatusCode::OK, &Items { items: blocks.map(|active| Told::of(active, Nothing {}, now)).collect() })
}

/// `DELETE`: ends one before its time.
pub(crate) async fn end(State(shared): State<Arc<Shared>>, Segment(id): Segment) -> Result<Response, Problem> {
    intervention::end(&shared.engine, "block", &id, is_block)
}

fn is_block(intervention: &Intervention) -> bool {
    matches!(intervention.effect, Effect::Block)
}
