//! The response on its way.

use std::fmt;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready as try_ready};

use bytes::Bytes;
use http::{Request, Response};
use pin_project_lite::pin_project;
use tidegate::Decision;
use tidegate::policy::HeaderSettings;
use tower_service::Service;

use crate::body::ResponseBody;
use crate::door::{Deciding, Door};
use crate::headers;

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit) service: a refusal, or what the inner
    /// service answers, with the limit headers added.
    ///
    /// A refusal that was decided in this process is ready at once.
    pub struct ResponseFuture<S, E, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, E, B, S::Future>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, E, B, F> {
        Deciding { decision: Deciding, waiting: Option<Waiting<S, E, B>> },
        Passed { #[pin] inner: F, decision: Arc<Decision>, settings: HeaderSettings },
        Refused { #[pin] response: Ready<Response<Bytes>> },
    }
}

/// A request that waits for its decision, and the service that is ready for it.
pub(crate) struct Waiting<S, E, B> {
    pub(crate) door: Arc<Door<E>>,
    pub(crate) service: S,
    pub(crate) request: Request<B>,
}

impl<S, E, B> ResponseFuture<S, E, B>
where
    S: Service<Request<B>>,
{
    pub(crate) fn decided(door: &Door<E>, decision: Decision, request: Request<B>, service: &mut S) -> Self {
        Self { state: State::decided(door, decision, request, service) }
    }

    pub(crate) fn deciding(decision: Deciding, waiting: Waiting<S, E, B>) -> Self {
        Self { state: State::Deciding { decision, waiting: Some(waiting) } }
    }
}

impl<S, E, B> State<S, E, B, S::Future>
where
    S: Service<Request<B>>,
{
    fn decided(door: &Door<E>, decision: Decision, mut request: Request<B>, service: &mut S) -> Self {
        if !decision.allowed() {
            let (parts, _) = request.into_parts();
            return Self::Refused { response: ready(door.refuse(&decision, &parts)) };
        }
        let decision = Arc::new(decision);
        request.extensions_mut().insert(Arc::clone(&decision));
        Self::Passed { inner: service.call(request), decision, settings: door.header_settings() }
    }
}

impl<S, E, B, R> Future for ResponseFuture<S, E, B>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Output = Result<Response<ResponseBody<R>>, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProjection::Deciding { decision, waiting } => {
                    let decision = try_ready!(decision.as_mut().poll(context));
                    // Taken once: with the decision this state ends.
                    let Some(Waiting { door, mut service, request }) = waiting.take() else { return Poll::Pending };
                    State::decided(&door, decision, request, &mut service)
                }
                StateProjection::Passed { inner, decision, settings } => {
                    let mut response = try_ready!(inner.poll(context))?;
                    headers::write(decision, settings, response.headers_mut());
                    return Poll::Ready(Ok(response.map(ResponseBody::passed)));
                }
                StateProjection::Refused { response } => {
                    let response = try_ready!(response.poll(context));
                    return Poll::Ready(Ok(response.map(ResponseBody::refusal)));
                }
            };
            state.set(next);
        }
    }
}

impl<S, E, B> fmt::Debug for ResponseFuture<S, E, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Deciding { .. } => "Deciding",
            State::Passed { .. } => "Passed",
            State::Refused { .. } => "Refused",
        };
        f.debug_struct("ResponseFuture").field("state", &state).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
