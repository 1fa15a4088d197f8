//! A request's body, whole: JSON by its type, at most 1 MiB, complete before a deadline.

use std::future::Future;
use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use super::problem::Problem;
use super::state::Shared;
use crate::bounds::{BODY_BYTES_MAX, LARGE_BODY_BYTES_PER_SEC_MIN, LARGE_BODY_LAG_MAX, SMALL_BODY_BYTES_MAX};

/// How much more than the largest body is read and thrown away before 413 is said: a client that
/// is still sending when the connection closes may never see the answer.
const DISCARDED_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Reads the whole body as text.
///
/// # Errors
/// 415 for a body that does not claim to be plain JSON, 413 above 1 MiB, 408 when it is not
/// complete in time or comes too slowly, 503 when there is no place for a large one, 400 when it breaks
/// off or is not UTF-8.
pub(crate) async fn read<'s>(shared: &'s Shared, parts: &Parts, body: Body) -> Result<Text<'s>, Problem> {
    check_type(&parts.headers)?;
    let wait = shared.bounds.body_wait;
    // A client that waits for a word before it sends its body can be told no at once.
    let discards = !parts.headers.contains_key(header::EXPECT);
    let mut incoming = Incoming { body, discards, place: None };
    let begun = Instant::now();
    let bytes = match within(begun + wait, || late(wait), incoming.begin()).await? {
        Begun::Whole(bytes) => bytes,
        Begun::Large(part) => {
            let asked = Instant::now();
            incoming.place = Some(within(asked + wait, busy, place(&shared.large_bodies)).await?);
            // What it waited for its place is not its client's fault.
            let until = begun + wait + asked.elapsed();
            within(until, || late(wait), incoming.rest(part)).await?
        }
    };
    match std::str::from_utf8(&bytes) {
        Ok(_) => Ok(Text { bytes, _place: incoming.place }),
        Err(error) => Err(Problem::bad_request(format!("the body is not UTF-8 text (byte {})", error.valid_up_to()))),
    }
}

/// A body that is UTF-8. It keeps its place among the large ones while it is used.
pub(crate) struct Text<'s> {
    bytes: Bytes,
    _place: Option<SemaphorePermit<'s>>,
}

impl Text<'_> {
    /// The text.
    pub(crate) fn as_str(&self) -> &str {
        // It was checked when it was made; checking a kilobyte again takes some 30 ns.
        std::str::from_utf8(&self.bytes).unwrap_or_default()
    }
}

/// A body that is being read.
struct Incoming<'s> {
    body: Body,
    discards: bool,
    place: Option<SemaphorePermit<'s>>,
}

impl<'s> Incoming<'s> {
    /// The body as far as it needs no place.
    async fn begin(&mut self) -> Result<Begun, Problem> {
        if self.body.size_hint().lower() > BODY_BYTES_MAX as u64 {
            return Err(self.too_large().await);
        }
        // Nearly every body comes in one piece, which then needs no copy.
        let Some(first) = next(&mut self.body).await? else { return Ok(Begun::Whole(Bytes::new())) };
        let Some(second) = next(&mut self.body).await? else { return Ok(Begun::Whole(first)) };
        let mut whole = BytesMut::with_capacity(first.len() + second.len());
        whole.extend_from_slice(&first);
        whole.extend_from_slice(&second);
        drop((first, second));
        while whole.len() <= SMALL_BODY_BYTES_MAX {
            let Some(part) = next(&mut self.body).await? else { return Ok(Begun::Whole(whole.freeze())) };
            whole.extend_from_slice(&part);
        }
        // What is not read stays in the system's buffers, which push back.
        Ok(Begun::Large(whole))
    }

    /// The rest of a large body, which has its place.
    async fn rest(&mut self, mut whole: BytesMut) -> Result<Bytes, Problem> {
        let pace = Pace { begun: Instant::now(), read_before: whole.len() };
        // At once as large as it says it is, at most 1 MiB: growing would double it.
        whole.reserve(usize::try_from(self.body.size_hint().lower()).unwrap_or_default());
        while whole.len() <= BODY_BYTES_MAX {
            let next = within(pace.due(whole.len()), slow, next(&mut self.body));
            let Some(part) = next.await? else { return Ok(whole.freeze()) };
            whole.extend_from_slice(&part);
        }
        drop(whole);
        Err(self.too_large().await)
    }

    async fn too_large(&mut self) -> Problem {
        // What is thrown away takes no memory.
        self.place = None;
        let mut left = DISCARDED_BYTES_MAX;
        while self.discards && left > 0 && self.body.size_hint().lower() <= left {
            let Ok(Some(part)) = next(&mut self.body).await else { break };
            left = left.saturating_sub(part.len() as u64);
        }
        let detail = "the body is larger than 1 MiB; split the batch, or shorten attribute values";
        Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).closing()
    }
}

/// How much of a body there is so far.
enum Begun {
    Whole(Bytes),
    Large(BytesMut),
}

/// By when a large body has to have gone on.
struct Pace {
    begun: Instant,
    read_before: usize,
}

impl Pace {
    /// The latest that another piece may come, after so many bytes in all.
    fn due(&self, read: usize) -> Instant {
        let secs = (read - self.read_before) as f64 / LARGE_BODY_BYTES_PER_SEC_MIN as f64;
        self.begun + LARGE_BODY_LAG_MAX + Duration::from_secs_f64(secs)
    }
}

/// A place among the large bodies.
async fn place(large_bodies: &Semaphore) -> Result<SemaphorePermit<'_>, Problem> {
    // It is never closed.
    large_bodies.acquire().await.map_err(|_| busy())
}

/// What `work` comes to, or the problem of not having come to it by `until`.
async fn within<T>(
    until: Instant,
    problem: impl FnOnce() -> Problem,
    work: impl Future<Output = Result<T, Problem>>,
) -> Result<T, Problem> {
    tokio::time::timeout_at(until, work).await.unwrap_or_else(|_| Err(problem()))
}

fn busy() -> Problem {
    let detail = "too many large bodies are under way; try again, or send smaller ones";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail).closing()
}

fn slow() -> Problem {
    let detail = format!(
        "the body came too slowly: one of more than {} KiB has to come at {} KiB a second; send it in one go",
        SMALL_BODY_BYTES_MAX / 1024,
        LARGE_BODY_BYTES_PER_SEC_MIN / 1024
    );
    Problem::new(StatusCode::REQUEST_TIMEOUT, detail).closing()
}

fn late(wait: Duration) -> Problem {
    let wait_secs = wait.as_secs_f64();
    let detail =
        format!("the body was not complete {wait_secs} s after the headers; send it in one go, or retry later");
    Problem::new(StatusCode::REQUEST_TIMEOUT, detail).closing()
}

/// The next piece of data; trailers are dropped.
async fn next(body: &mut Body) -> Result<Option<Bytes>, Problem> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::bad_request("the body broke off; send all of it").closing())?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// JSON, no type at all, and the type that `curl -d` sends by default are read as JSON: what
/// counts is the body, and the first thing anyone tries is a plain `curl -d`.
fn check_type(headers: &HeaderMap) -> Result<(), Problem> {
    let refuse = |detail: &str| Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, detail));
    if headers.get(header::CONTENT_ENCODING).is_some_and(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
    {
        return refuse("the body has a content-encoding; send it as it is");
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    // The common case, without any parsing.
    if value == "application/json" {
        return Ok(());
    }
    let value = value.to_str().unwrap_or_default().to_ascii_lowercase();
    let (essence, parameters) = value.split_once(';').unwrap_or((&value, ""));
    if !matches!(essence.trim(), "application/json" | "application/x-www-form-urlencoded") {
        return refuse("the content-type is not application/json; set that header and send JSON");
    }
    let charset = parameters.split(';').find_map(|parameter| parameter.trim().strip_prefix("charset="));
    match charset.map(|charset| charset.trim_matches('"')) {
        None | Some("utf-8" | "utf8" | "us-ascii") => Ok(()),
        Some(_) => refuse("the charset is not UTF-8; send UTF-8"),
    }
}

#[cfg(test)]
mod tests;
