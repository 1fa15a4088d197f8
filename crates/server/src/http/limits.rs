//! `GET /v1/limits`: the limits in force, without whom their conditions and overrides name.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::policy::{Policy, Rule};

use super::check::json;
use super::state::Shared;

#[derive(Serialize)]
struct Limits<'a> {
    mode: &'static str,
    limits: Vec<Told<'a>>,
}

#[derive(Serialize)]
struct Told<'a> {
    name: &'a str,
    level: &'a str,
    unit: &'static str,
    per: Vec<&'a str>,
    algorithm: &'static str,
    quota: u64,
    window_ms: u64,
    mode: &'static str,
}

/// All of them, in the file's order.
pub(crate) async fn limits(State(shared): State<Arc<Shared>>) -> Response {
    let policy = shared.engine.policy();
    let limits = policy.rules.iter().map(|rule| told(rule, &policy)).collect();
    json(StatusCode::OK, &Limits { mode: policy.mode.name(), limits })
}

fn told<'a>(rule: &'a Rule, policy: &Policy) -> Told<'a> {
    let limit = &rule.limit;
    Told {
        name: &limit.name,
        level: &limit.level,
        unit: limit.unit.name(),
        per: limit.per.iter().map(|attribute| &**attribute).collect(),
        algorithm: limit.algorithm.name(),
        quota: limit.capacity(),
        window_ms: limit.window().as_millis_ceil(),
        mode: limit.mode.or_milder(policy.mode).name(),
    }
}
