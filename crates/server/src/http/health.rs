//! `/healthz`: the process answers. `/readyz`: it should get traffic.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;

use super::problem::Problem;
use super::state::Shared;

/// Always 200.
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// 200, or 503 from the moment the server begins to drain.
pub(crate) async fn readyz(State(shared): State<Arc<Shared>>) -> Response {
    if shared.readiness.is_draining() {
        let detail = "the server is draining; send requests to another instance";
        return Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).into_response();
    }
    "ready\n".into_response()
}
