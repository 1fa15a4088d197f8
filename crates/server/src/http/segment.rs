//! The variable segment of a path: `{limit}` or `{id}`.

use axum::extract::{FromRequestParts, Path};
use http::request::Parts;

use super::problem::Problem;

/// The text of the segment, decoded.
#[derive(Debug)]
pub(crate) struct Segment(pub(crate) String);

impl<S: Send + Sync> FromRequestParts<S> for Segment {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::from_request_parts(parts, state).await {
            Ok(Path(text)) => Ok(Self(text)),
            // The one thing that a single segment can have wrong.
            Err(_) => Err(Problem::bad_request("the path is not UTF-8 text; percent-encode UTF-8 in it")),
        }
    }
}
