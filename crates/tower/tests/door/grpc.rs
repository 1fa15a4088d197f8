//! A tonic server behind the layer, with a tonic client in front of it.

use http::HeaderName;
use tidegate_tower::{Extractor, RateLimitLayer, extract};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::metadata::MetadataMap;
use tonic::transport::server::TcpConnectInfo;
use tonic::transport::{Channel, Server};
use tonic::{Code, Request};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::fixture::engine;

const LIMITS: &str = "
limits:
  - { name: method-minute, per: [org, method], rate: 2/min }
  - { name: peer-minute, per: [peer], rate: 100/min }
";

/// Serves the health service on a free port, and gives a client of it.
async fn health() -> HealthClient<Channel> {
    let who = extract::header("org", HeaderName::from_static("x-org"))
        .and(extract::path_prefix("method", ["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"]))
        .and(extract::peer_address("peer", |peer: &TcpConnectInfo| peer.remote_addr().map(|address| address.ip())));
    let layer = RateLimitLayer::new(engine(LIMITS).0, who);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, service) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(layer).add_service(service);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let channel = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    HealthClient::new(channel)
}

fn of(org: &'static str) -> Request<HealthCheckRequest> {
    let mut request = Request::new(HealthCheckRequest { service: String::new() });
    request.metadata_mut().insert("x-org", org.parse().unwrap());
    request
}

fn value<'a>(metadata: &'a MetadataMap, name: &str) -> Option<&'a str> {
    metadata.get(name).map(|value| value.to_str().unwrap())
}

#[tokio::test]
async fn an_allowed_call_carries_headers() {
    let mut client = health().await;
    let response = client.check(of("acme")).await.unwrap();
    let metadata = response.metadata();
    assert_eq!(value(metadata, "x-ratelimit-limit"), Some("2"));
    assert_eq!(value(metadata, "x-ratelimit-remaining"), Some("1"));
    assert_eq!(value(metadata, "ratelimit"), Some("\"method-minute\";r=1;t=40, \"peer-minute\";r=99;t=40"));
    assert_eq!(value(metadata, "retry-after"), None);
}

#[tokio::test]
async fn a_refused_call_is_resource_exhausted() {
    let mut client = health().await;
    for _ in 0..2 {
        client.check(of("acme")).await.unwrap();
    }
    let status = client.check(of("acme")).await.unwrap_err();
    assert_eq!(status.code(), Code::ResourceExhausted);
    let message = "The limit \"method-minute\" (level method) allows 2 requests in 1min. Retry after 40 s.";
    assert_eq!(status.message(), message);
    assert_eq!(value(status.metadata(), "retry-after"), Some("40"));
    assert_eq!(value(status.metadata(), "x-ratelimit-remaining"), Some("0"));
    assert_eq!(value(status.metadata(), "x-ratelimit-reset"), Some("1700000040"));
    // Another org, and another method of the same org, have counters of their own.
    assert!(client.check(of("other")).await.is_ok());
    assert!(client.watch(of("acme")).await.is_ok());
}

#[tokio::test]
async fn a_stream_is_limited_where_it_begins() {
    let mut client = health().await;
    let mut streams = Vec::new();
    for remaining in ["1", "0"] {
        let response = client.watch(of("acme")).await.unwrap();
        assert_eq!(value(response.metadata(), "x-ratelimit-remaining"), Some(remaining));
        streams.push(response.into_inner());
    }
    assert_eq!(client.watch(of("acme")).await.unwrap_err().code(), Code::ResourceExhausted);
    for stream in &mut streams {
        assert!(stream.message().await.unwrap().is_some());
    }
}

#[tokio::test]
async fn a_refusal_is_a_response_of_headers_alone() {
    use http_body::Body;
    use tower::{Layer, ServiceExt};

    let layer = RateLimitLayer::new(engine("limits: [{ name: closed, per: [], rate: 0/min }]").0, extract::method("m"));
    let (_, service) = tonic_health::server::health_reporter();
    for (sent, answered) in
        [("application/grpc+proto", "application/grpc"), ("application/grpc-web+proto", "application/grpc-web")]
    {
        let request = http::Request::post("/grpc.health.v1.Health/Check")
            .header("content-type", sent)
            .body(tonic::body::Body::empty())
            .unwrap();
        let response = layer.layer(service.clone()).oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], answered);
        assert_eq!(response.headers()["grpc-status"], "8");
        assert_eq!(
            response.headers()["grpc-message"],
            "The limit \"closed\" (level global) is closed. Waiting does not help."
        );
        assert_eq!(response.headers()["x-ratelimit-limit"], "0");
        assert!(response.body().is_end_stream());
    }
}
