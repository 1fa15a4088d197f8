//! `POST /-/reload`: reads the limits file anew.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;

use super::check::json;
use super::problem::Problem;
use super::state::Shared;
use crate::reload::{Cause, ReloadError};

#[derive(Serialize)]
struct Told<'a> {
    kept: Vec<&'a str>,
    added: Vec<&'a str>,
    removed: Vec<&'a str>,
    needs_restart: &'a [&'static str],
}

/// 200 with what changed, or 422 with every fault of the file; the limits before it stay then.
pub(crate) async fn reload(State(shared): State<Arc<Shared>>) -> Result<Response, Problem> {
    let Some(reloads) = &shared.reloads else {
        return Err(Problem::new(StatusCode::CONFLICT, "the limits in force did not come from a file"));
    };
    let reloaded = reloads.reload(Cause::Admin).await.map_err(|error| {
        let status = match error {
            ReloadError::Faults(_) | ReloadError::OpenToAll(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ReloadError::Broken => StatusCode::INTERNAL_SERVER_ERROR,
            ReloadError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        };
        Problem::new(status, error.to_string())
    })?;
    let told = Told {
        kept: names(&reloaded.kept),
        added: names(&reloaded.added),
        removed: names(&reloaded.removed),
        needs_restart: &reloaded.needs_restart,
    };
    Ok(json(StatusCode::OK, &told))
}

fn names(limits: &[Arc<str>]) -> Vec<&str> {
    limits.iter().map(|name| &**name).collect()
}
