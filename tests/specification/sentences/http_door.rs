//! A service behind the tower door, for what a caller over HTTP has to see.

use std::convert::Infallible;

use http::request::Parts;
use http::{HeaderMap, Request, Response, StatusCode};
use tidegate_testkit::{Limiter, attributes, ready};
use tidegate_tower::{Attributes, RateLimitLayer};
use tower::{Layer, Service, service_fn};

/// What was answered: the status and the headers.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

impl Answer {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }

    /// `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    pub(crate) fn x_ratelimit(&self) -> [Option<&str>; 3] {
        ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"].map(|name| self.header(name))
    }
}

/// Calls a service that answers 200 to everything, through the limits. Each attribute of `who` goes in
/// a header of its own.
pub(crate) fn call(limiter: &Limiter, who: &str) -> Answer {
    let extractor = |parts: &Parts| {
        parts.headers.iter().fold(Attributes::new(), |attributes, (name, value)| {
            attributes.with(name.to_string(), value.to_str().unwrap().to_owned())
        })
    };
    let layer = RateLimitLayer::new(limiter.engine.clone(), extractor);
    let inner = service_fn(async |_: Request<String>| Ok::<_, Infallible>(Response::new(String::new())));
    let mut request = Request::builder();
    for (name, value) in attributes(who) {
        request = request.header(name, value);
    }
    let response = ready(layer.layer(inner).call(request.body(String::new()).unwrap())).unwrap();
    let (parts, _) = response.into_parts();
    Answer { status: parts.status, headers: parts.headers }
}
