//! The service: decides, then passes the request on or answers it.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use smallvec::SmallVec;
use tidegate::policy::HeaderSettings;
use tidegate::{Cost, Decision};
use tower_service::Service;

use crate::attributes::Attributes;
use crate::body::ResponseBody;
use crate::extract::Extractor;
use crate::future::ResponseFuture;
use crate::layer::Door;
use crate::{headers, refusal};

/// A service with limits in front of it: see [`RateLimitLayer`](crate::RateLimitLayer).
///
/// It is ready whenever the inner service is. Whether a request may pass is decided when it is
/// called: its charge stands even if the response is not waited for.
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
    S: Service<Request<ReqBody>, Response = Response<ResBody>>,
    E: Extractor,
{
    type Response = Response<ResponseBody<ResBody>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<ReqBody>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let settings = self.door.engine.policy().headers;
        let decision = self.door.decide(&parts);
        if !decision.allowed() {
            return ResponseFuture::refused(self.door.refuse(&decision, &settings, &parts));
        }
        let mut request = Request::from_parts(parts, body);
        request.extensions_mut().insert(decision.clone());
        ResponseFuture::passed(self.inner.call(request), decision, settings)
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

impl<E: Extractor> Door<E> {
    fn decide(&self, parts: &Parts) -> Decision {
        let mut attributes = Attributes::new();
        self.extractor.extract(parts, &mut attributes);
        let pairs: SmallVec<[(&str, &str); 8]> = attributes.iter().collect();
        let cost = self.cost.as_ref().map_or(Cost::ONE, |cost| cost(parts));
        self.engine.decide_now(&tidegate::Request::new(&pairs).with_cost(cost))
    }

    fn refuse(&self, decision: &Decision, settings: &HeaderSettings, parts: &Parts) -> Response<Bytes> {
        let mut response = match &self.refusal {
            Some(refusal) => refusal(decision, parts),
            None => refusal::response(decision, parts),
        };
        headers::write(decision, settings, response.headers_mut());
        response
    }
}
