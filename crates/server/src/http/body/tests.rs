use std::collections::VecDeque;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use hyper::body::Frame;
use tidegate::Policy;
use tokio::time::Sleep;

use super::*;

fn status_for(name: header::HeaderName, value: &str) -> Option<StatusCode> {
    let mut headers = HeaderMap::new();
    headers.insert(name, value.parse().unwrap());
    check_type(&headers).err().map(|problem| axum::response::IntoResponse::into_response(problem).status())
}

#[test]
fn types() {
    for good in [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        "application/json;charset=\"UTF-8\"",
        "application/x-www-form-urlencoded",
    ] {
        assert_eq!(status_for(header::CONTENT_TYPE, good), None, "{good}");
    }
    for bad in ["text/plain", "application/xml", "application/jsonp", "", "application/json; charset=latin1"] {
        assert_eq!(status_for(header::CONTENT_TYPE, bad), Some(StatusCode::UNSUPPORTED_MEDIA_TYPE), "{bad}");
    }
    assert_eq!(status_for(header::CONTENT_ENCODING, "gzip"), Some(StatusCode::UNSUPPORTED_MEDIA_TYPE));
    assert_eq!(status_for(header::CONTENT_ENCODING, "identity"), None);
}

/// A body that comes in pieces, each so long after the one before.
struct Pieces {
    rest: VecDeque<(Duration, usize)>,
    next: Pin<Box<Sleep>>,
}

impl Pieces {
    fn body(pieces: &[(Duration, usize)]) -> Body {
        let rest: VecDeque<_> = pieces.iter().copied().collect();
        let first = rest.front().map_or(Duration::ZERO, |(wait, _)| *wait);
        Body::new(Self { rest, next: Box::pin(tokio::time::sleep(first)) })
    }
}

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        ready!(self.next.as_mut().poll(cx));
        let Some((_, bytes)) = self.rest.pop_front() else { return Poll::Ready(None) };
        let wait = self.rest.front().map_or(Duration::ZERO, |(wait, _)| *wait);
        self.next.as_mut().reset(Instant::now() + wait);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b' '; bytes])))))
    }
}

fn shared() -> Arc<Shared> {
    Shared::with_places(Policy::default(), 1)
}

/// How many bytes were read, or the status that was answered; and after how many milliseconds.
async fn outcome(shared: &Shared, pieces: &[(Duration, usize)]) -> (Result<usize, u16>, u128) {
    let begun = Instant::now();
    let (parts, ()) = http::Request::new(()).into_parts();
    let read = read(shared, &parts, Pieces::body(pieces)).await;
    let told = read.map(|text| text.as_str().len());
    let status = |problem: Problem| axum::response::IntoResponse::into_response(problem).status().as_u16();
    (told.map_err(status), begun.elapsed().as_millis())
}

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

const PIECE: usize = 8 * 1024;

#[tokio::test(start_paused = true)]
async fn a_small_body_has_its_deadline() {
    let shared = shared();
    assert_eq!(outcome(&shared, &[(secs(9), PIECE)]).await, (Ok(PIECE), 9_000));
    assert_eq!(outcome(&shared, &[(secs(11), PIECE)]).await, (Err(408), 10_000));
}

#[tokio::test(start_paused = true)]
async fn a_large_body_that_stalls_gives_its_place_up() {
    let shared = shared();
    let stalls = [(secs(0), PIECE), (secs(0), PIECE), (secs(0), PIECE), (secs(3_600), PIECE)];
    assert_eq!(outcome(&shared, &stalls).await, (Err(408), 1_000));
    assert_eq!(shared.large_bodies.available_permits(), 1);
    // A sixteenth of the slowest rate that is taken: as good as a stall.
    let mut drips = stalls[..3].to_vec();
    drips.extend(std::iter::repeat_n((Duration::from_millis(250), 1_024), 1_000));
    let (told, after_ms) = outcome(&shared, &drips).await;
    assert_eq!(told, Err(408));
    assert!(after_ms < 1_200, "{after_ms}");
    // Fast enough, and late once.
    let mut fair = stalls[..3].to_vec();
    fair.extend(std::iter::repeat_n((Duration::from_millis(120), PIECE), 30));
    fair.push((Duration::from_millis(900), PIECE));
    assert_eq!(outcome(&shared, &fair).await, (Ok(34 * PIECE), 4_500));
}

#[tokio::test(start_paused = true)]
async fn the_wait_for_a_place_is_not_the_clients() {
    let shared = shared();
    let mut body = vec![(secs(4), PIECE), (secs(0), PIECE), (secs(0), PIECE)];
    body.extend(std::iter::repeat_n((Duration::from_millis(100), PIECE), 50));
    let held = shared.large_bodies.acquire().await.unwrap();
    // Four seconds until a place is needed, eight until there is one, 4.9 for the rest.
    let (told, ()) = tokio::join!(outcome(&shared, &body), async {
        tokio::time::sleep(secs(12)).await;
        drop(held);
    });
    assert_eq!(told, (Ok(53 * PIECE), 16_900));
    // Its own time counts on, before and after the wait.
    let mut slow = vec![(secs(8), PIECE), (secs(0), PIECE), (secs(0), PIECE)];
    slow.extend(std::iter::repeat_n((Duration::from_millis(100), PIECE), 50));
    assert_eq!(outcome(&shared, &slow).await, (Err(408), 10_000));
}

#[tokio::test(start_paused = true)]
async fn where_no_place_is_free_in_time_it_is_said() {
    let shared = shared();
    let _held = shared.large_bodies.acquire().await.unwrap();
    let body = [(secs(0), PIECE), (secs(0), PIECE), (secs(0), PIECE)];
    assert_eq!(outcome(&shared, &body).await, (Err(503), 10_000));
    assert_eq!(outcome(&shared, &body[..2]).await, (Ok(2 * PIECE), 0), "a small one needs none");
}
