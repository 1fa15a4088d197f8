//! `POST /v1/check/batch`: up to 1,000 checks in one request, each on its own or all or none.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::Together;

use super::answer::Answer;
use super::asked::{AskedBatch, Pairs};
use super::body;
use super::check::json;
use super::problem::Problem;
use super::state::Shared;

#[derive(Serialize)]
struct Results<'a> {
    results: Vec<Answer<'a>>,
}

/// 200 with a result for each check, in their order.
pub(crate) async fn batch(State(shared): State<Arc<Shared>>, request: Request) -> Result<Response, Problem> {
    let timer = shared.metrics.batch_timer();
    let (parts, body) = request.into_parts();
    let text = body::read(&shared, &parts, body).await?;
    let asked = AskedBatch::parse(text.as_str())?;
    let pairs: Vec<Pairs<'_>> = asked.checks.iter().map(|check| check.pairs()).collect();
    let requests: Vec<_> = asked.checks.iter().zip(&pairs).map(|(check, pairs)| check.request(pairs)).collect();
    let together = if asked.atomic { Together::Atomic } else { Together::Independent };
    let decisions = shared.engine.decide_all(&requests, together).await;
    for (decision, check) in decisions.iter().zip(&asked.checks) {
        shared.metrics.decided(decision, check.peeks());
    }
    let response = json(StatusCode::OK, &Results { results: decisions.iter().map(Answer::of).collect() });
    drop(timer);
    Ok(response)
}
