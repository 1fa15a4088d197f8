//! What a refused caller reads: a problem document (RFC 9457) with status 429, or, from a gRPC
//! client's request, the status `RESOURCE_EXHAUSTED` in a response of headers alone.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use serde::Serialize;
use tidegate::{Decision, Degraded, LimitState, Mode};

use crate::headers::LIMITS_MAX;

/// The registered problem type (draft-ietf-httpapi-ratelimit-headers, "Quota Exceeded").
const PROBLEM_TYPE: &str = "https://iana.org/assignments/http-problem-types#quota-exceeded";
const PROBLEM_TITLE: &str = "Request cannot be satisfied as assigned quota has been exceeded";

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// `RESOURCE_EXHAUSTED`.
const GRPC_RESOURCE_EXHAUSTED: HeaderValue = HeaderValue::from_static("8");

/// The answer to the request of which `parts` is the head, without the limit headers.
pub(crate) fn response(decision: &Decision, parts: &Parts) -> Response<Bytes> {
    match grpc_content_type(parts) {
        Some(content_type) => grpc_status(decision, content_type),
        None => problem(decision),
    }
}

fn problem(decision: &Decision) -> Response<Bytes> {
    let refused_by = decision.refused_by();
    let status = match decision.degraded() {
        // The limiter's store is away, which is no fault of the caller's.
        Some(Degraded::Closed) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::TOO_MANY_REQUESTS,
    };
    let document = Problem {
        problem_type: PROBLEM_TYPE,
        title: PROBLEM_TITLE,
        status: status.as_u16(),
        detail: &detail(decision),
        violated_policies: decision.limits().filter(refuses).take(LIMITS_MAX).map(|state| &*state.limit.name).collect(),
        level: refused_by.as_ref().map(|state| &*state.limit.level),
        retry_after_ms: decision.retry_after().map(tidegate::Span::as_millis_ceil),
        never: decision.never(),
    };
    // Strings and numbers always serialize.
    let body = serde_json::to_vec(&document).unwrap_or_default();
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    response
}

#[derive(Serialize)]
struct Problem<'a> {
    #[serde(rename = "type")]
    problem_type: &'a str,
    title: &'a str,
    status: u16,
    detail: &'a str,
    #[serde(rename = "violated-policies")]
    violated_policies: Vec<&'a str>,
    level: Option<&'a str>,
    retry_after_ms: Option<u64>,
    never: bool,
}

fn refuses(state: &LimitState<'_>) -> bool {
    state.refused && state.mode == Mode::Enforce
}

/// The protocol that the caller speaks, if it is gRPC: what its answer has to be labelled with.
fn grpc_content_type(parts: &Parts) -> Option<&'static str> {
    // Longest first: each is a prefix of the one before it. Behind it stands `+proto`, `;…` or nothing.
    const TYPES: [&str; 3] = ["application/grpc-web-text", "application/grpc-web", "application/grpc"];
    let sent = parts.headers.get(CONTENT_TYPE)?.as_bytes();
    TYPES.into_iter().find(|known| match sent.split_at_checked(known.len()) {
        Some((start, rest)) => {
            start.eq_ignore_ascii_case(known.as_bytes()) && matches!(rest.first(), None | Some(b'+' | b';' | b' '))
        }
        None => false,
    })
}

/// A status without a message: "trailers-only" in gRPC's words, so the status stands in the headers.
fn grpc_status(decision: &Decision, content_type: &'static str) -> Response<Bytes> {
    let mut response = Response::new(Bytes::new());
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(GRPC_STATUS, GRPC_RESOURCE_EXHAUSTED);
    if let Ok(message) = HeaderValue::try_from(percent_encoded(&detail(decision))) {
        headers.insert(GRPC_MESSAGE, message);
    }
    response
}

/// gRPC's encoding of a message: printable ASCII as it is, except `%`; every other byte as `%XX`.
fn percent_encoded(text: &str) -> String {
    const DIGITS: [char; 16] = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F'];
    let digit = |half: u8| DIGITS[usize::from(half & 0xF)];
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'%' => encoded.push_str("%25"),
            b' '..=b'~' => encoded.push(char::from(byte)),
            _ => encoded.extend(['%', digit(byte >> 4), digit(byte)]),
        }
    }
    encoded
}

/// A sentence or two for a person: which limit, what it allows, when to come back.
fn detail(decision: &Decision) -> String {
    let which = decision.refused_by().map_or_else(
        || "The request is refused".to_owned(),
        |state| {
            let limit = format!("The limit \"{}\" (level {})", state.limit.name, state.limit.level);
            match state.quota {
                0 => format!("{limit} is closed"),
                quota => format!("{limit} allows {quota} {} in {}", state.limit.unit, state.window),
            }
        },
    );
    match decision.retry_after() {
        Some(wait) => format!("{which}. Retry after {} s.", wait.as_secs_ceil()),
        None => format!("{which}. Waiting does not help."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grpc_type_of(content_type: &str) -> Option<&'static str> {
        let request = http::Request::builder().header(CONTENT_TYPE, content_type).body(()).unwrap();
        grpc_content_type(&request.into_parts().0)
    }

    #[test]
    fn tells_grpc_from_everything_else() {
        let grpc = ["application/grpc", "application/grpc+proto", "APPLICATION/gRPC;charset=utf-8"];
        for sent in grpc {
            assert_eq!(grpc_type_of(sent), Some("application/grpc"), "{sent}");
        }
        assert_eq!(grpc_type_of("application/grpc-web+proto"), Some("application/grpc-web"));
        assert_eq!(grpc_type_of("application/grpc-web-text"), Some("application/grpc-web-text"));
        for sent in
            ["application/json", "application/grpcish", "application/grpc-webby", "text/grpc", "application/grp", ""]
        {
            assert_eq!(grpc_type_of(sent), None, "{sent}");
        }
        let unlabelled = http::Request::new(()).into_parts().0;
        assert_eq!(grpc_content_type(&unlabelled), None);
    }

    #[test]
    fn a_message_is_percent_encoded_as_grpc_has_it() {
        assert_eq!(percent_encoded("limit \"a\" ~ 100%"), "limit \"a\" ~ 100%25");
        assert_eq!(percent_encoded("Zähler\n\u{7f}"), "Z%C3%A4hler%0A%7F");
        assert_eq!(percent_encoded(""), "");
    }
}
