//! A large answer that keeps its place until the client has taken it: so the memory that unread
//! answers take is bounded, however many clients leave them unread.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

/// The server hands the connection this many bytes at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// An answer with a place.
#[derive(Debug)]
pub(crate) struct HeldBody {
    rest: Bytes,
    _place: OwnedSemaphorePermit,
}

impl HeldBody {
    pub(crate) const fn new(bytes: Bytes, place: OwnedSemaphorePermit) -> Self {
        Self { rest: bytes, _place: place }
    }
}

impl Body for HeldBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.rest.is_empty() {
            return Poll::Ready(None);
        }
        let piece_bytes = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(piece_bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.rest.len() as u64)
    }
}
