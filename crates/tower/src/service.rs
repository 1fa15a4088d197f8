//! The service: decides, then passes the request on or answers it.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower_service::Service;

use crate::body::ResponseBody;
use crate::door::{Asked, Door};
use crate::extract::Extractor;
use crate::future::{ResponseFuture, Waiting};

/// A service with limits in front of it: see [`RateLimitLayer`](crate::RateLimitLayer).
///
/// It is ready whenever the inner service is. With counters in this process, whether a request may
/// pass is decided when it is called: its charge stands even if the response is not waited for.
pub struct RateLimit<S, E> {
    inner: S,
    door: Arc<Door<E>>,
}

impl<S, E> RateLimit<S, E> {
    pub(crate) fn new(inner: S, door: Arc<Door<E>>) -> Self {
        Self { inner, door }
    }

    /// The service behind the limits.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S, E, ReqBody, ResBody> Service<Request<ReqBody>> for RateLimit<S, E>
where
    S: Service<Request<ReqBody>, Response = Response<ResBody>> + Clone,
    E: Extractor,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S, E, ReqBody>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        match self.door.ask(&parts) {
            Asked::Decided(decision) => {
                let request = Request::from_parts(parts, body);
                ResponseFuture::decided(&self.door, decision, request, &mut self.inner)
            }
            Asked::Deciding(decision) => {
                // What was asked whether it is ready is what has to be called.
                let not_yet_ready = self.inner.clone();
                let service = std::mem::replace(&mut self.inner, not_yet_ready);
                let request = Request::from_parts(parts, body);
                ResponseFuture::deciding(decision, Waiting { door: Arc::clone(&self.door), service, request })
            }
        }
    }
}

impl<S: Clone, E> Clone for RateLimit<S, E> {
    fn clone(&self) -> Self {
        Self { inner: self.inner.clone(), door: Arc::clone(&self.door) }
    }
}

impl<S: fmt::Debug, E> fmt::Debug for RateLimit<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateLimit").field("inner", &self.inner).finish_non_exhaustive()
    }
}
