//! Which paths each listener serves. The check listener knows no admin path: it answers 404.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::{delete, get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::problem::{Problem, quoted};
use super::state::Shared;
use super::{batch, blocks, check, guard, health, limits, openapi, overrides, reload, scrape, usage};
use crate::admin;

/// What both listeners serve.
fn shared_routes() -> Router<Arc<Shared>> {
    Router::new()
        .route("/v1/check", post(check::check))
        .route("/v1/check/batch", post(batch::batch))
        .route("/v1/limits", get(limits::limits))
}

/// Open to probes, without a token.
fn health_routes() -> Router<Arc<Shared>> {
    Router::new().route("/healthz", get(health::healthz)).route("/readyz", get(health::readyz))
}

/// The check listener.
pub(crate) fn check_router(shared: &Arc<Shared>) -> Router {
    let routes = shared_routes().merge(health_routes()).route("/openapi.json", get(openapi::check_document));
    finish(routes, shared)
}

/// The admin listener.
pub(crate) fn admin_router(shared: &Arc<Shared>) -> Router {
    let routes = shared_routes()
        .route("/v1/usage", get(usage::list))
        .route("/v1/usage/{limit}", delete(usage::reset))
        .route("/v1/blocks", get(blocks::list).post(blocks::create))
        .route("/v1/blocks/{id}", delete(blocks::end))
        .route("/v1/overrides", get(overrides::list).post(overrides::create))
        .route("/v1/overrides/{id}", delete(overrides::end))
        .route("/-/reload", post(reload::reload))
        .route("/metrics", get(scrape::metrics))
        .route("/openapi.json", get(openapi::admin_document))
        .layer(from_fn_with_state(Arc::clone(shared), admin::admit));
    finish(routes.merge(health_routes()), shared)
}

fn finish(routes: Router<Arc<Shared>>, shared: &Arc<Shared>) -> Router {
    routes
        .fallback(unknown_path)
        .method_not_allowed_fallback(unknown_method)
        .layer(CatchPanicLayer::custom(guard::caught))
        .layer(from_fn_with_state(Arc::clone(shared), guard::guard))
        .with_state(Arc::clone(shared))
}

async fn unknown_path(request: Request) -> Problem {
    let path = quoted(request.uri().path());
    Problem::not_found(format!("{path} is not served here; GET /openapi.json lists what is"))
}

async fn unknown_method(request: Request) -> Problem {
    let (method, path) = (request.method(), quoted(request.uri().path()));
    let detail = format!("{path} does not take {method}; the Allow header says what it takes");
    Problem::new(http::StatusCode::METHOD_NOT_ALLOWED, detail)
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::StatusCode;
    use tidegate::Policy;
    use tower::ServiceExt as _;

    use super::*;

    #[tokio::test]
    async fn a_path_that_is_no_text_is_a_problem() {
        let shared = Shared::with_places(Policy::default(), 1);
        for (method, path) in [
            ("DELETE", "/v1/usage/%ff?attr.org=acme"),
            ("DELETE", "/v1/blocks/%ff"),
            ("DELETE", "/v1/overrides/%ff"),
            ("GET", "/%ff"),
            ("POST", "/v1/check/%ff"),
        ] {
            let peer = axum::Extension(crate::admin::Peer(([127, 0, 0, 1], 1).into()));
            let router = admin_router(&shared).layer(peer);
            let request = Request::builder().method(method).uri(path).header("host", "localhost").body(Body::empty());
            let answer = router.oneshot(request.unwrap()).await.unwrap();
            assert!(answer.status().is_client_error(), "{path}: {}", answer.status());
            assert_eq!(answer.headers()["content-type"], "application/problem+json", "{path}");
        }
    }

    async fn broken() {
        panic!("as a handler never should");
    }

    #[tokio::test]
    async fn a_panic_is_an_answer() {
        let shared = Shared::with_places(Policy::default(), 1);
        let router = finish(Router::new().route("/broken", get(broken)).merge(health_routes()), &shared);
        let ask = async |path: &str| {
            let request = Request::builder().uri(path).header("host", "x").body(Body::empty()).unwrap();
            router.clone().oneshot(request).await.unwrap()
        };
        let answer = ask("/broken").await;
        assert_eq!(answer.status(), StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(answer.headers()["content-type"], "application/problem+json");
        assert!(shared.metrics.encode().unwrap().contains("tidegate_http_responses_total{class=\"5xx\"} 1"));
        assert_eq!(ask("/healthz").await.status(), StatusCode::OK);
    }
}
