//! Refusals that hold until a known instant are not asked again, and nothing else is remembered.

use tidegate::{Cost, Request};
use tidegate_testkit::servers::{Flavor, Server};

use super::{HIERARCHY, admits, engine, of, until};

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_does_not_wait_costs_the_server_nothing() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, HIERARCHY);
    for _ in 0..3 {
        assert!(admits(&engine, "acme", "a1").await);
    }
    let first = engine.decide(&Request::new(&of("acme", "a1"))).await;
    let calls = engine.shared_store().unwrap().counts.calls;
    for _ in 0..100 {
        let again = engine.decide(&Request::new(&of("acme", "a1"))).await;
        assert!(!again.allowed());
        assert_eq!(again.refused_by().unwrap().limit.name, first.refused_by().unwrap().limit.name);
        assert!(again.retry_after() <= first.retry_after() && again.retry_after().is_some());
    }
    let counts = engine.shared_store().unwrap().counts;
    assert_eq!((counts.calls, counts.denied_from_memory), (calls, 100));
    // Others, and other costs, are asked as ever.
    assert!(admits(&engine, "acme", "a2").await);
    assert!(!engine.decide(&Request::new(&of("acme", "a1")).with_cost(Cost::new(2))).await.allowed());
    assert_eq!(engine.shared_store().unwrap().counts.calls, calls + 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_here_or_elsewhere_is_seen() {
    let server = Server::start(Flavor::Redis70);
    let (one, two) = (engine(&server, HIERARCHY), engine(&server, HIERARCHY));
    for _ in 0..3 {
        assert!(admits(&one, "acme", "a1").await);
    }
    assert!(!admits(&one, "acme", "a1").await && !admits(&two, "acme", "a1").await);
    assert_eq!(one.reset("agent-minute", &of("acme", "a1")).await.unwrap(), 1);
    assert!(admits(&one, "acme", "a1").await, "here at once");
    let took = until("elsewhere", async || admits(&two, "acme", "a1").await).await;
    assert!(took < std::time::Duration::from_secs(2), "{took:?}");
}
