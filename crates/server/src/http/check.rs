//! `POST /v1/check`: may this request pass?

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::{HeaderValue, StatusCode, header};
use tidegate::Degraded;
use tokio::sync::OwnedSemaphorePermit;

use super::answer::Answer;
use super::asked::Asked;
use super::body;
use super::held_body::HeldBody;
use super::problem::Problem;
use super::state::Shared;

/// 200 where it may, 429 where it may not, 503 where it may not because the shared store does not answer, with
/// the same JSON and headers.
pub(crate) async fn check(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let timer = shared.metrics.check_timer();
    let (parts, body) = request.into_parts();
    let text = body::read(&shared, &parts, body).await?;
    let asked = Asked::parse(text.as_str())?;
    let pairs = asked.pairs();
    let decision = shared.engine.decide(&asked.request(&pairs)).await;
    shared.metrics.decided(&decision, asked.peeks());

    let status = match (decision.allowed(), decision.degraded()) {
        (true, _) => StatusCode::OK,
        (false, Some(Degraded::Closed)) => StatusCode::SERVICE_UNAVAILABLE,
        (false, _) => StatusCode::TOO_MANY_REQUESTS,
    };
    let mut response = json(status, &Answer::of(&decision));
    tidegate_tower::headers::write(&decision, &shared.engine.policy().headers, response.headers_mut());
    drop(timer);
    Ok(response)
}

/// An answer of JSON.
pub(crate) fn json(status: StatusCode, value: &impl serde::Serialize) -> Response {
    // Room for a decision over three limits; growing step by step would cost a microsecond.
    json_of(status, Body::from(written(value, 768)))
}

/// A JSON answer that keeps its place until the client has taken it.
pub(crate) fn json_held(status: StatusCode, value: &impl serde::Serialize, place: OwnedSemaphorePermit) -> Response {
    json_of(status, Body::new(HeldBody::new(written(value, 64 * 1024).into(), place)))
}

fn written(value: &impl serde::Serialize, capacity: usize) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(capacity);
    if let Err(error) = serde_json::to_writer(&mut bytes, value) {
        tracing::error!(%error, "an answer cannot be written as JSON");
    }
    bytes
}

fn json_of(status: StatusCode, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
