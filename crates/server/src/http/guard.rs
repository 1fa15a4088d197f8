//! What holds for every request, before any route: one valid `Host`, and a panic is an answer of
//! 500, not the end of the process.

use std::any::Any;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, Version, header};

use super::problem::Problem;
use super::state::Shared;

/// Refuses a request without one `Host`, and counts the answer. While the server drains, answers say
/// that the connection ends with them: so no client sends another request into one that closes.
pub(crate) async fn guard(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let mut response = match check_host(&request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    };
    if shared.readiness.is_draining() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    shared.metrics.answered(response.status());
    response
}

/// RFC 9112, section 3.2. HTTP/1.0 knows no Host, and simple health checks still speak it.
fn check_host(request: &Request) -> Result<(), Problem> {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => Ok(()),
        (None, _) if request.version() == Version::HTTP_10 => Ok(()),
        (None, _) => Err(Problem::bad_request("there is no Host header; send one").closing()),
        (Some(_), Some(_)) => Err(Problem::bad_request("there are several Host headers; send one").closing()),
    }
}

/// What a panic in a handler becomes. The panic itself is logged by the process's panic hook.
pub(crate) fn caught(_: Box<dyn Any + Send + 'static>) -> Response {
    let detail = "this request met a fault of the server; it is logged there, please report it";
    Problem::new(StatusCode::INTERNAL_SERVER_ERROR, detail).into_response()
}
