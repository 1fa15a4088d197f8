//! What holds for every tower service, whatever its bodies and errors.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use tidegate_tower::{Attributes, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

use crate::fixture::engine;

/// One request a minute.
const ONE: &str = "limits: [{ name: everyone, per: [], rate: 1/min }]";

fn nobody(_: &http::request::Parts) -> Attributes<'static> {
    Attributes::new()
}

#[test]
fn it_is_ready_when_the_inner_service_is() {
    #[derive(Clone)]
    struct Readiness(Poll<Result<(), &'static str>>);
    impl Service<Request<()>> for Readiness {
        type Response = Response<String>;
        type Error = &'static str;
        type Future = Ready<Result<Response<String>, &'static str>>;
        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), &'static str>> {
            self.0
        }
        fn call(&mut self, _: Request<()>) -> Self::Future {
            ready(Err("called"))
        }
    }
    let layer = RateLimitLayer::new(engine(ONE).0, nobody);
    let mut context = Context::from_waker(Waker::noop());
    for readiness in [Poll::Pending, Poll::Ready(Ok(())), Poll::Ready(Err("broken"))] {
        assert_eq!(layer.layer(Readiness(readiness)).poll_ready(&mut context), readiness);
    }
}

#[tokio::test]
async fn a_refused_request_does_not_reach_the_service() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = {
        let calls = Arc::clone(&calls);
        tower::service_fn(move |_: Request<String>| {
            calls.fetch_add(1, Ordering::SeqCst);
            ready(Ok::<_, Infallible>(Response::new("passed".to_owned())))
        })
    };
    let mut service = RateLimitLayer::new(engine(ONE).0, nobody).layer(counted);
    let mut statuses = Vec::new();
    for _ in 0..3 {
        let response = service.ready().await.unwrap().call(Request::new("body".to_owned())).await.unwrap();
        statuses.push(response.status().as_u16());
    }
    assert_eq!(statuses, [200, 429, 429]);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn an_error_of_the_service_stays_what_it_is() {
    let broken = tower::service_fn(|_: Request<()>| ready(Err::<Response<String>, _>("broken")));
    let service = RateLimitLayer::new(engine(ONE).0, nobody).layer(broken);
    assert_eq!(service.oneshot(Request::new(())).await.err(), Some("broken"));
}

#[tokio::test]
async fn a_refusal_is_ready_at_once() {
    let never = tower::service_fn(|_: Request<()>| std::future::pending::<Result<Response<String>, Infallible>>());
    let mut service = RateLimitLayer::new(engine(ONE).0, nobody).layer(never);
    let mut context = Context::from_waker(Waker::noop());
    let mut passed = std::pin::pin!(service.call(Request::new(())));
    assert!(passed.as_mut().poll(&mut context).is_pending());
    let mut refused = std::pin::pin!(service.call(Request::new(())));
    assert!(refused.as_mut().poll(&mut context).is_ready());
}

/// Two frames of data, then trailers; its length is known to be between 1 and 100.
struct Framed(Vec<Frame<Bytes>>);

impl Body for Framed {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        Poll::Ready(Some(self.0.pop().ok_or("cut off")))
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(1);
        hint.set_upper(100);
        hint
    }
}

#[tokio::test]
async fn frames_trailers_and_errors_of_a_body_go_through() {
    let framed = tower::service_fn(|_: Request<()>| {
        let trailers = HeaderMap::from_iter([(http::header::ETAG, http::HeaderValue::from_static("t"))]);
        let frames = [Frame::trailers(trailers), Frame::data("two".into()), Frame::data("one".into())];
        ready(Ok::<_, Infallible>(Response::new(Framed(frames.into()))))
    });
    let service = RateLimitLayer::new(engine(ONE).0, nobody).layer(framed);
    let mut body = service.oneshot(Request::new(())).await.unwrap().into_body();
    assert_eq!((body.size_hint().lower(), body.size_hint().upper()), (1, Some(100)));
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "one");
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "two");
    assert!(!body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().unwrap().into_trailers().unwrap()["etag"], "t");
    assert!(body.is_end_stream());
    assert_eq!(body.frame().await.unwrap().err(), Some("cut off"));
}

#[tokio::test]
async fn the_body_of_a_refusal_knows_its_length_and_its_end() {
    let service = tower::service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(Framed(Vec::new())))));
    let mut service = RateLimitLayer::new(engine(ONE).0, nobody).layer(service);
    service.ready().await.unwrap().call(Request::new(())).await.unwrap();
    let mut body = service.ready().await.unwrap().call(Request::new(())).await.unwrap().into_body();
    let length = body.size_hint().exact().unwrap();
    assert!(!body.is_end_stream());
    let text = body.frame().await.unwrap().unwrap().into_data().unwrap();
    assert_eq!(text.len() as u64, length);
    assert!(body.is_end_stream());
    assert_eq!(body.size_hint().exact(), Some(0));
    assert!(body.frame().await.is_none());
}

#[tokio::test]
async fn clones_share_the_counters() {
    let service = tower::service_fn(|_: Request<()>| ready(Ok::<_, Infallible>(Response::new(String::new()))));
    let layer = RateLimitLayer::new(engine(ONE).0, nobody);
    let first = layer.layer(service);
    let clone = first.clone();
    let other = layer.clone().layer(service);
    let mut statuses = Vec::new();
    for service in [first, clone, other] {
        statuses.push(service.oneshot(Request::new(())).await.unwrap().status().as_u16());
    }
    assert_eq!(statuses, [200, 429, 429]);
}
