//! Errors as `application/problem+json` (RFC 9457): what happened, and what to do about it.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;

/// Why a request was not answered, told to whoever sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    detail: String,
    closes: bool,
}

impl Problem {
    /// A problem with `detail`: what is wrong in this request, and what to do.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        Self { status, detail: detail.into(), closes: false }
    }

    /// 400.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// 404.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// The same problem, after which the connection is closed: its next bytes are not a request.
    pub(crate) fn closing(self) -> Self {
        Self { closes: true, ..self }
    }
}

#[derive(Serialize)]
struct ProblemBody<'a> {
    r#type: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = ProblemBody {
            r#type: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            detail: &self.detail,
        };
        // Strings and a number always serialize.
        let bytes = serde_json::to_vec(&body).unwrap_or_default();
        let mut response = Response::new(Body::from(bytes));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"tidegate admin\""));
        }
        response
    }
}

/// At most 40 characters of what somebody sent, in quotes, with nothing a terminal could act on.
pub(crate) fn quoted(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    let shown: String = text.chars().take(CHARS_MAX).flat_map(char::escape_debug).collect();
    let more = if text.chars().nth(CHARS_MAX).is_some() { "…" } else { "" };
    format!("'{shown}{more}'")
}
