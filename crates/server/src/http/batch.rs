//! `POST /v1/check/batch`: up to 1,000 checks in one request, each on its own or all or none.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use serde::Serialize;
use tidegate::{Decision, Together};
use tokio::sync::OwnedSemaphorePermit;

use super::answer::Answer;
use super::asked::{AskedBatch, Pairs};
use super::body;
use super::check::{json, json_held};
use super::problem::Problem;
use super::state::Shared;
use crate::bounds::{BATCH_ROWS_MAX, SMALL_BATCH_ROWS_MAX};

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
    let place = place(&shared, asked.checks.len()).await?;
    let pairs: Vec<Pairs<'_>> = asked.checks.iter().map(|check| check.pairs()).collect();
    let requests: Vec<_> = asked.checks.iter().zip(&pairs).map(|(check, pairs)| check.request(pairs)).collect();
    let together = if asked.atomic { Together::Atomic } else { Together::Independent };
    let decisions = decide(&shared, &requests, together).await;
    for (decision, check) in decisions.iter().zip(&asked.checks) {
        shared.metrics.decided(decision, check.peeks());
    }
    let results = Results { results: decisions.iter().map(Answer::of).collect() };
    let response = match place {
        None => json(StatusCode::OK, &results),
        Some(place) => json_held(StatusCode::OK, &results, place),
    };
    drop(timer);
    Ok(response)
}

/// A place among the large batches, if this is one.
async fn place(shared: &Shared, checks: usize) -> Result<Option<OwnedSemaphorePermit>, Problem> {
    let limits = shared.engine.policy().rules.len().max(1);
    let rows = checks.saturating_mul(limits);
    if rows > BATCH_ROWS_MAX {
        let most = BATCH_ROWS_MAX / limits;
        let detail =
            format!("{checks} checks over {limits} limits are too many for one batch; send at most {most} checks");
        return Err(Problem::bad_request(detail));
    }
    if rows <= SMALL_BATCH_ROWS_MAX {
        return Ok(None);
    }
    let wait = shared.bounds.body_wait;
    match tokio::time::timeout(wait, Arc::clone(&shared.large_batches).acquire_owned()).await {
        Ok(place) => Ok(place.ok()),
        Err(_) => {
            let detail = "too many large batches are under way; try again, or send smaller ones";
            Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail))
        }
    }
}

/// Decides them; those that are independent in turns, between which others get theirs.
async fn decide(shared: &Shared, requests: &[tidegate::Request<'_>], together: Together) -> Vec<Decision> {
    const TURN: usize = 32;
    if together == Together::Atomic {
        return shared.engine.decide_all(requests, together).await;
    }
    let mut decisions = Vec::with_capacity(requests.len());
    for turn in requests.chunks(TURN) {
        decisions.extend(shared.engine.decide_all(turn, together).await);
        tokio::task::yield_now().await;
    }
    decisions
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use tidegate::config::{Source, parse};
    use tokio::time::Instant;
    use tower::ServiceExt as _;

    use super::*;
    use crate::http::check_router;

    #[tokio::test(start_paused = true)]
    async fn too_many_large_batches_are_refused_until_an_answer_is_taken() {
        let limits = "limits: [{name: all, per: [], rate: 1000000/min}]";
        let policy = parse(limits, &Source::named("limits.yaml")).unwrap().policy;
        let shared = Shared::with_places(policy, 1);
        let ask = async |checks: usize| {
            let body = format!(r#"{{"checks": [{}]}}"#, vec![r#"{"attributes":{}}"#; checks].join(","));
            let request = Request::builder().method("POST").uri("/v1/check/batch").header("host", "x");
            check_router(&shared).oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
        };
        let (large, small) = (SMALL_BATCH_ROWS_MAX + 1, SMALL_BATCH_ROWS_MAX);
        let untaken = ask(large).await;
        assert_eq!(untaken.status(), StatusCode::OK);
        let begun = Instant::now();
        let refused = ask(large).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
        assert_eq!(begun.elapsed(), shared.bounds.body_wait);
        assert_eq!(ask(small).await.status(), StatusCode::OK, "small ones need no place");
        drop(untaken);
        assert_eq!(ask(large).await.status(), StatusCode::OK);
    }
}
