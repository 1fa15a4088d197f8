//! `GET /metrics`.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::{StatusCode, header};

use super::problem::Problem;
use super::state::Shared;

/// All metrics, in the OpenMetrics text format.
pub(crate) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    match shared.metrics.encode() {
        Ok(text) => {
            let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(error) => Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}
