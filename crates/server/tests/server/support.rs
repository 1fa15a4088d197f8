//! A server in this process on free ports, and a client that sends exactly the bytes it is told to.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tidegate::config::{Source, parse};
use tidegate::{Clock, Engine, Timestamp, UsageItem, UsageOrder, UsageQuery};
use tidegate_server::{Bounds, Server, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// When a test waits longer than this for something that should happen, it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Two levels and everyone, with names so that all counters can be read.
pub(crate) const LIMITS: &str = "
limits:
  - { name: agent-minute, per: [org, agent], rate: 3/min }
  - { name: org-minute, per: [org], rate: 10/min }
  - { name: everyone, per: [], rate: 100/min }
store: { memory: { names: true } }
";

/// A server that runs until it is told to stop.
pub(crate) struct Running {
    pub(crate) check: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) clock: Clock,
    pub(crate) token: Option<&'static str>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

/// A server with these limits, on a clock that stands still, at the beginning of a minute.
pub(crate) async fn start(limits: &str) -> Running {
    start_with(limits, Bounds::default()).await
}

pub(crate) async fn start_with(limits: &str, bounds: Bounds) -> Running {
    let policy = parse(limits, &Source::named("limits.yaml")).unwrap().policy;
    let clock = Clock::manual(Timestamp::from_secs(28_333_333 * 60));
    let engine = Engine::with_clock(policy, clock.clone());
    Running { clock, ..start_bounded(engine, bounds).await }
}

/// A server around an engine that exists.
pub(crate) async fn start_engine(engine: Engine) -> Running {
    start_bounded(engine, Bounds::default()).await
}

async fn start_bounded(engine: Engine, bounds: Bounds) -> Running {
    let clock = Clock::system();
    let free = || Some("127.0.0.1:0".to_owned());
    let settings = Settings { listen: free(), admin: free(), bounds, ..Settings::new() };
    let server = Server::bind_engine(engine.clone(), settings).await.unwrap();
    let (check, admin) = (server.check_addr(), server.admin_addr());
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(server.run(async {
        let _ = stopped.await;
    }));
    Running { check, admin, engine, clock, token: None, stop, task }
}

impl Running {
    /// `POST /v1/check` with this body.
    pub(crate) async fn check(&self, body: &str) -> Answer {
        send(self.check, &post("/v1/check", body)).await
    }

    /// A request with a JSON body, or none, to the admin listener.
    pub(crate) async fn admin(&self, method: &str, path: &str, body: &str) -> Answer {
        let token = self.token.map_or(String::new(), |token| format!("Authorization: Bearer {token}\r\n"));
        send(self.admin, &request(method, path, &token, body.as_bytes())).await
    }

    /// Every counter there is, in a fixed order.
    pub(crate) async fn counters(&self) -> Vec<UsageItem> {
        let query =
            UsageQuery { limit: None, attributes: Vec::new(), cursor: None, items_max: 1_000, order: UsageOrder::Key };
        let page = self.engine.usage(&query).await.unwrap();
        assert_eq!(page.next, None);
        let mut items = page.items;
        items.sort_by_key(|item| (item.limit.to_string(), item.attributes.clone()));
        items
    }

    /// Tells it to stop.
    pub(crate) fn stop(self) -> JoinHandle<()> {
        let _ = self.stop.send(());
        self.task
    }
}

/// An answer, as it came.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The detail of a problem document, which is checked to be one.
    pub(crate) fn problem(&self) -> String {
        assert_eq!(self.header("content-type"), Some("application/problem+json"), "{self:?}");
        let problem = self.json();
        assert_eq!(problem["status"], self.status);
        assert_eq!(problem["type"], "about:blank");
        assert!(problem["title"].is_string());
        problem["detail"].as_str().unwrap().to_owned()
    }
}

pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    request("POST", path, "Content-Type: application/json\r\n", body.as_bytes())
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request("GET", path, "", b"")
}

/// A request with one Host, these header lines, and a body with its length.
pub(crate) fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let length = if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    let mut bytes = format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\n{headers}{length}\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// Sends bytes on a connection of their own and reads one answer.
pub(crate) async fn send(addr: SocketAddr, bytes: &[u8]) -> Answer {
    let mut connection = Connection::open(addr).await;
    connection.write(bytes).await;
    connection.answer().await.expect("an answer")
}

/// A connection, with what has been read and not yet taken.
pub(crate) struct Connection {
    stream: TcpStream,
    read: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(addr).await.unwrap(), read: Vec::new() }
    }

    /// Writes as far as the peer takes it: it may answer and close before it has read everything.
    pub(crate) async fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).await;
    }

    /// Writes all of it; false if the connection ended.
    pub(crate) async fn write_all(&mut self, bytes: &[u8]) -> bool {
        self.stream.write_all(bytes).await.is_ok()
    }

    /// The next answer; none if the connection was closed instead.
    pub(crate) async fn answer(&mut self) -> Option<Answer> {
        tokio::time::timeout(PATIENCE, self.read_answer()).await.expect("an answer in time")
    }

    /// Whether the peer closes the connection, without another byte.
    pub(crate) async fn is_closed(&mut self) -> bool {
        self.answer().await.is_none()
    }

    /// Says that nothing more will be written.
    pub(crate) async fn finish(&mut self) {
        self.stream.shutdown().await.unwrap();
    }

    async fn read_answer(&mut self) -> Option<Answer> {
        let head_end = loop {
            if let Some(at) = self.read.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if !self.fill().await {
                assert!(self.read.is_empty(), "half an answer: {:?}", String::from_utf8_lossy(&self.read));
                return None;
            }
        };
        let head = String::from_utf8(self.read[..head_end].to_vec()).unwrap();
        self.read.drain(..head_end + 4);
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| line.split_once(':').unwrap())
            .map(|(name, value)| (name.to_owned(), value.trim().to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        let length: usize = answer.header("content-length").map_or(0, |length| length.parse().unwrap());
        while self.read.len() < length {
            assert!(self.fill().await, "the body of the answer broke off");
        }
        answer.body = self.read.drain(..length).collect();
        Some(answer)
    }

    /// Reads some more; false at the end.
    async fn fill(&mut self) -> bool {
        let mut some = [0; 16 * 1024];
        match self.stream.read(&mut some).await {
            Ok(0) | Err(_) => false,
            Ok(length) => {
                self.read.extend_from_slice(&some[..length]);
                true
            }
        }
    }
}
