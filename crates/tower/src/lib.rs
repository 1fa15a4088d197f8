//! Limits for axum, tonic and every other tower service.
//!
//! A [`RateLimitLayer`] asks an [`Engine`](tidegate::Engine) about each request. What may pass
//! reaches the service, with the
//! [`Decision`](tidegate::Decision) among its extensions (as `Arc<Decision>`); what may not
//! is answered at once: 429 with a problem document for HTTP, `RESOURCE_EXHAUSTED` for gRPC. Either
//! way the response carries the limit headers.
//!
//! ```
//! # use tidegate::{Engine, Policy};
//! # use http::{HeaderName, request::Parts};
//! use tidegate_tower::{Attributes, Extractor, RateLimitLayer, extract};
//!
//! # let policy = Policy::default();
//! let engine = Engine::new(policy);
//! let who = extract::header("org", HeaderName::from_static("x-org"))
//!     .and(extract::path_prefix("tool", ["/tools/search", "/tools/fetch"]))
//!     .and(|parts: &Parts| Attributes::new().with("scheme", parts.uri.scheme_str().unwrap_or("http").to_owned()));
//! let layer = RateLimitLayer::new(engine, who);
//! // axum: Router::new().route(…).layer(layer); tonic: Server::builder().layer(layer)
//! # let _ = layer;
//! ```
//!
//! # Layout
//! - [`extract`]: who a request comes from, as attributes.
//! - `layer`, `service`, `future`, `body`: the tower door, around what all its services share, `door`.
//! - `refusal`: what a refused caller reads.
//! - [`headers`]: the limit headers, which the other HTTP doors write too.

mod attributes;
mod body;
mod door;
pub mod extract;
mod future;
pub mod headers;
mod layer;
mod refusal;
mod service;

pub use attributes::{ATTRIBUTES_MAX, Attributes};
pub use body::ResponseBody;
pub use extract::Extractor;
pub use future::ResponseFuture;
pub use layer::RateLimitLayer;
pub use service::RateLimit;
