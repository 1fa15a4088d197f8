//! `GET /openapi.json`: what this listener serves, as OpenAPI 3.1.

use std::sync::LazyLock;

use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use http::header;
use serde_json::Value;

/// What the admin listener serves: everything. Paths that only it serves are marked.
const DOCUMENT: &str = include_str!("openapi.json");
/// The mark of a path that the check listener does not serve.
const ADMIN_ONLY: &str = "x-admin-only";

static CHECK_DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| check_part(DOCUMENT).into());

/// What the check listener serves.
pub(crate) async fn check_document() -> Response {
    answer(CHECK_DOCUMENT.clone())
}

/// What the admin listener serves.
pub(crate) async fn admin_document() -> Response {
    answer(Bytes::from_static(DOCUMENT.as_bytes()))
}

fn answer(document: Bytes) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], document).into_response()
}

/// The document without the paths that are marked, and without the token.
fn check_part(document: &str) -> String {
    // A test reads the document; here an unreadable one would be passed on as it is.
    let Ok(mut value) = serde_json::from_str::<Value>(document) else { return document.to_owned() };
    if let Some(paths) = value.get_mut("paths").and_then(Value::as_object_mut) {
        paths.retain(|_, path| path.get(ADMIN_ONLY).is_none());
    }
    if let Some(root) = value.as_object_mut() {
        root.remove("security");
    }
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_listener_names_its_own_paths_only() {
        let check: Value = serde_json::from_str(&check_part(DOCUMENT)).unwrap();
        let paths: Vec<&String> = check["paths"].as_object().unwrap().keys().collect();
        assert!(paths.iter().any(|path| *path == "/v1/check"));
        assert!(paths.iter().all(|path| *path != "/v1/blocks" && *path != "/metrics"), "{paths:?}");
        assert!(check.get("security").is_none());
    }
}
