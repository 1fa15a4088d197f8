//! The response's body: the inner service's, untouched, or a refusal's.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// The inner service's body, passed through frame by frame, or the text of a refusal.
    #[derive(Debug)]
    pub struct ResponseBody<B> {
        #[pin]
        kind: Kind<B>,
    }
}

pin_project! {
    #[project = KindProjection]
    #[derive(Debug)]
    enum Kind<B> {
        Passed { #[pin] body: B },
        // Empty once it has been sent.
        Refusal { text: Bytes },
    }
}

impl<B> ResponseBody<B> {
    pub(crate) fn passed(body: B) -> Self {
        Self { kind: Kind::Passed { body } }
    }

    pub(crate) fn refusal(text: Bytes) -> Self {
        Self { kind: Kind::Refusal { text } }
    }
}

impl<B> Body for ResponseBody<B>
where
    B: Body,
    B::Data: From<Bytes>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        match self.project().kind.project() {
            KindProjection::Passed { body } => body.poll_frame(context),
            KindProjection::Refusal { text } if text.is_empty() => Poll::Ready(None),
            KindProjection::Refusal { text } => {
                let text = std::mem::take(text);
                Poll::Ready(Some(Ok(Frame::data(text.into()))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.kind {
            Kind::Passed { body } => body.is_end_stream(),
            Kind::Refusal { text } => text.is_empty(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Passed { body } => body.size_hint(),
            Kind::Refusal { text } => SizeHint::with_exact(text.len() as u64),
        }
    }
}
