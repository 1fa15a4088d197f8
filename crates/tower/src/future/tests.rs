//! A decision that has to be waited for, as a store outside this process gives it.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use tidegate::{Clock, Cost, Engine, Timestamp, config};

use super::*;
use crate::attributes::Attributes;

const ORG: [(&str, &str); 1] = [("org", "acme")];

fn door() -> Arc<Door<impl crate::Extractor>> {
    let limits = "limits: [{ name: org-minute, per: [org], rate: 1/min }]";
    let policy = config::parse(limits, &config::Source::named("limits.yaml")).unwrap().policy;
    let engine = Engine::with_clock(policy, Clock::manual(Timestamp::from_secs(1_700_000_000)));
    let extractor = Arc::new(|_: &http::request::Parts| Attributes::new());
    Arc::new(Door { engine, extractor, cost: None, refusal: None })
}

#[tokio::test]
async fn the_service_is_called_once_the_decision_has_come() {
    let door = door();
    let calls = Arc::new(AtomicUsize::new(0));
    let service = {
        let calls = Arc::clone(&calls);
        tower::service_fn(move |request: Request<&'static str>| {
            calls.fetch_add(1, Ordering::SeqCst);
            let decision = request.extensions().get::<Arc<Decision>>().unwrap();
            let remaining = decision.tightest().unwrap().remaining;
            ready(Ok::<_, Infallible>(Response::new(format!("{} {remaining}", request.body()))))
        })
    };
    let (answer, answered) = tokio::sync::oneshot::channel::<()>();
    let decision = door.ask_elsewhere(&ORG, Cost::ONE);
    let late = Box::pin(async move {
        answered.await.unwrap();
        decision.await
    });
    let waiting = Waiting { door: Arc::clone(&door), service: service.clone(), request: Request::new("hello") };
    let mut future = std::pin::pin!(ResponseFuture::deciding(late, waiting));
    let mut context = Context::from_waker(Waker::noop());
    assert!(future.as_mut().poll(&mut context).is_pending());
    assert_eq!(calls.load(Ordering::SeqCst), 0);

    answer.send(()).unwrap();
    let response = future.await.unwrap();
    assert_eq!(response.headers()["x-ratelimit-remaining"], "0");
    assert_eq!(response.status(), 200);
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    let body = http_body_util::BodyExt::collect(response.into_body()).await.unwrap().to_bytes();
    assert_eq!(body, "hello 0");

    let waiting = Waiting { door: Arc::clone(&door), service, request: Request::new("again") };
    let refused = ResponseFuture::deciding(door.ask_elsewhere(&ORG, Cost::ONE), waiting).await.unwrap();
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "40");
    assert_eq!(calls.load(Ordering::SeqCst), 1);
}
