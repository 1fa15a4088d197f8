//! The layer: what to ask the engine, and what to answer those who may not pass.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use http::request::Parts;
use tidegate::{Cost, Decision, Engine};
use tower_layer::Layer;

use crate::door::Door;
use crate::extract::Extractor;
use crate::service::RateLimit;

/// Puts limits in front of a service.
///
/// A request costs 1 unless [`cost`](Self::cost) says otherwise, and a refused one is answered with
/// a problem document or a gRPC status unless [`refusal`](Self::refusal) says otherwise. Which
/// limits apply, which of them only watch (permissive), and which headers are written is the
/// engine's policy: a reload takes effect with the next request.
///
/// Two layers with different engines count separately; of headers that both write, the outer one's
/// stay.
pub struct RateLimitLayer<E> {
    door: Door<E>,
}

impl<E: Extractor> RateLimitLayer<E> {
    /// Asks `engine` about each request, with the attributes that `extractor` reads from it.
    pub fn new(engine: Engine, extractor: E) -> Self {
        Self { door: Door { engine, extractor: Arc::new(extractor), cost: None, refusal: None } }
    }

    /// Reads each request's cost from its head. 0 takes nothing: it passes exactly while a request
    /// of cost 1 would.
    #[must_use]
    pub fn cost(mut self, cost: impl Fn(&Parts) -> Cost + Send + Sync + 'static) -> Self {
        self.door.cost = Some(Arc::new(cost));
        self
    }

    /// Makes the answer to a refused request, HTTP and gRPC alike. The limit headers are added to
    /// what it returns.
    #[must_use]
    pub fn refusal<B: Into<Bytes>>(
        mut self,
        refusal: impl Fn(&Decision, &Parts) -> Response<B> + Send + Sync + 'static,
    ) -> Self {
        self.door.refusal = Some(Arc::new(move |decision, parts| refusal(decision, parts).map(Into::into)));
        self
    }
}

impl<S, E> Layer<S> for RateLimitLayer<E> {
    type Service = RateLimit<S, E>;

    fn layer(&self, inner: S) -> Self::Service {
        RateLimit::new(inner, Arc::new(self.door.clone()))
    }
}

impl<E> Clone for RateLimitLayer<E> {
    fn clone(&self) -> Self {
        Self { door: self.door.clone() }
    }
}

impl<E> fmt::Debug for RateLimitLayer<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimitLayer").finish_non_exhaustive()
    }
}
