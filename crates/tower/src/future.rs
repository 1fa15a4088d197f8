//! The response on its way.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll, ready as try_ready};

use bytes::Bytes;
use http::Response;
use pin_project_lite::pin_project;
use tidegate::Decision;
use tidegate::policy::HeaderSettings;

use crate::body::ResponseBody;
use crate::headers;

pin_project! {
    /// The response of a [`RateLimit`](crate::RateLimit) service: a refusal, ready at once, or what
    /// the inner service answers, with the limit headers added.
    #[derive(Debug)]
    pub struct ResponseFuture<F> {
        #[pin]
        state: State<F>,
    }
}

pin_project! {
    #[project = StateProjection]
    #[derive(Debug)]
    enum State<F> {
        Passed { #[pin] inner: F, decision: Decision, settings: HeaderSettings },
        Refused { #[pin] response: Ready<Response<Bytes>> },
    }
}

impl<F> ResponseFuture<F> {
    pub(crate) fn passed(inner: F, decision: Decision, settings: HeaderSettings) -> Self {
        Self { state: State::Passed { inner, decision, settings } }
    }

    pub(crate) fn refused(response: Response<Bytes>) -> Self {
        Self { state: State::Refused { response: ready(response) } }
    }
}

impl<F, B, E> Future for ResponseFuture<F>
where
    F: Future<Output = Result<Response<B>, E>>,
{
    type Output = Result<Response<ResponseBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().state.project() {
            StateProjection::Passed { inner, decision, settings } => {
                let mut response = try_ready!(inner.poll(context))?;
                headers::write(decision, settings, response.headers_mut());
                Poll::Ready(Ok(response.map(ResponseBody::passed)))
            }
            StateProjection::Refused { response } => {
                let response = try_ready!(response.poll(context));
                Poll::Ready(Ok(response.map(ResponseBody::refusal)))
            }
        }
    }
}
