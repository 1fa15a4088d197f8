//! The server's HTTP API, over a real socket.

use std::error::Error;
use std::net::SocketAddr;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tidegate::Engine;
use tidegate_server::{Server, Settings};
use tidegate_testkit::{Ask, Door, Field, Said, SaidHeaders, SaidLimit, golden};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

const FIELDS: &[Field] = &[
    Field::RefusedBy,
    Field::Level,
    Field::RetryAfter,
    Field::Never,
    Field::Limits,
    Field::XHeaders,
    Field::IetfHeaders,
];

#[tokio::test]
async fn the_http_api_answers_every_row() {
    let rows = golden::load().unwrap();
    let report = golden::run(&rows, FIELDS, HttpDoor::open).await;
    let report = report.unwrap_or_else(|failures| panic!("{failures}"));
    assert_eq!(report.rows, rows.len());
    println!("{report:?}");
}

/// A server around the row's engine, and one connection to it.
struct HttpDoor {
    to_server: hyper::client::conn::http1::SendRequest<Full<Bytes>>,
    tasks: [JoinHandle<()>; 2],
}

impl HttpDoor {
    async fn open(engine: Engine) -> Self {
        let local = || Some("127.0.0.1:0".to_owned());
        let settings = Settings { listen: local(), admin: local(), ..Settings::new() };
        let server = Server::bind_engine(engine, settings).await.unwrap();
        let addr: SocketAddr = server.check_addr();
        let serves = tokio::spawn(server.run(std::future::pending()));
        let socket = TokioIo::new(TcpStream::connect(addr).await.unwrap());
        let (to_server, connection) = hyper::client::conn::http1::handshake(socket).await.unwrap();
        let connects = tokio::spawn(async { drop(connection.await) });
        Self { to_server, tasks: [serves, connects] }
    }
}

impl Drop for HttpDoor {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

/// The whole of an answer: a field more or less is a change that every client would notice.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Answer {
    allowed: bool,
    refused_by: Option<String>,
    level: Option<String>,
    retry_after_ms: Option<u64>,
    never: bool,
    degraded: bool,
    limits: Vec<Limit>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Limit {
    name: String,
    level: String,
    unit: String,
    quota: u64,
    remaining: u64,
    reset_ms: u64,
    refused: bool,
    /// Only where it refuses for an attribute that the request lacks.
    missing: Option<String>,
    mode: String,
}

impl Door for HttpDoor {
    type Error = Box<dyn Error>;

    async fn ask(&mut self, ask: &Ask) -> Result<Said, Box<dyn Error>> {
        let body = serde_json::json!({ "attributes": ask.attributes, "cost": ask.cost });
        let request = Request::post("/v1/check")
            .header("host", "tidegate.test")
            .header("content-type", "application/json")
            .body(Full::from(body.to_string()))?;
        self.to_server.ready().await?;
        let response = self.to_server.send_request(request).await?;
        let (status, headers) = (response.status(), SaidHeaders::of(response.headers()));
        let text = response.into_body().collect().await?.to_bytes();
        let answer: Answer = serde_json::from_slice(&text)
            .map_err(|error| format!("{status}: {error}: {}", String::from_utf8_lossy(&text)))?;
        assert_eq!(status, if answer.allowed { StatusCode::OK } else { StatusCode::TOO_MANY_REQUESTS });
        assert!(!answer.degraded);
        Ok(Said {
            allowed: answer.allowed,
            refused_by: answer.refused_by,
            level: answer.level,
            retry_after_ms: answer.retry_after_ms,
            never: answer.never,
            tightest: None,
            limits: answer.limits.into_iter().map(Limit::said).collect(),
            headers,
        })
    }
}

impl Limit {
    fn said(self) -> SaidLimit {
        let Self { name, level, unit, quota, remaining, reset_ms, refused, missing, mode } = self;
        assert!(missing.is_none() || refused, "{name} lacks an attribute and does not refuse");
        SaidLimit { name, level, unit, quota, remaining, reset_ms, next_ms: None, refused, mode }
    }
}
