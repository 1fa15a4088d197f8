//! Hostile input: each gets the right answer, moves no counter but its own, and leaves the server
//! small and alive.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::UsageItem;
use tidegate_server::Bounds;

use crate::process::{Process, file, start};
use crate::support::{Connection, Running, get, post, request, send, start_with};

const LIMITS: &str = "
limits:
  - { name: agent-minute, per: [org, agent], rate: 1000000/min }
  - { name: org-minute, per: [org], rate: 1000000/min }
store: { memory: { names: true } }
";
/// How much more memory all of it may take, in bytes: a few bodies of 1 MiB in all their forms, and
/// what an allocator keeps of them.
const GROWTH_BYTES_MAX: u64 = 80 * 1024 * 1024;

/// One input.
struct Hostile {
    name: &'static str,
    bytes: Vec<u8>,
    /// What the client does after its last byte.
    then: Then,
    /// The statuses of the answers, and then the connection is closed or goes on.
    answers: Vec<u16>,
    ends: Ends,
    /// The org whose counters it may move.
    org: Option<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Then {
    Waits,
    Finishes,
}

#[derive(Clone, Copy, PartialEq)]
enum Ends {
    Open,
    Closed,
}

impl Hostile {
    fn new(name: &'static str, bytes: Vec<u8>, answers: &[u16], ends: Ends) -> Self {
        Self { name, bytes, then: Then::Waits, answers: answers.into(), ends, org: None }
    }

    /// A check with this body, answered with this status; the connection goes on.
    fn check(name: &'static str, body: &str, status: u16) -> Self {
        Self::new(name, post("/v1/check", body), &[status], Ends::Open)
    }

    fn with_cost(name: &'static str, cost: &str, status: u16) -> Self {
        let body = format!(r#"{{"attributes": {{"org": "evil", "agent": "a1"}}, "cost": {cost}}}"#);
        Self::check(name, &body, status)
    }

    fn may_charge(self, org: &str) -> Self {
        Self { org: Some(org.to_owned()), ..self }
    }

    fn then_finishes(self) -> Self {
        Self { then: Then::Finishes, ..self }
    }
}

fn inputs() -> Vec<Hostile> {
    let good = r#"{"attributes": {"org": "evil", "agent": "a1"}}"#;
    let big = "v".repeat(1_000_000);
    let many: Vec<String> = (0..10_000).map(|number| format!(r#""n{number}":"v""#)).collect();
    let peek = post("/v1/check", r#"{"attributes": {"org": "acme"}, "cost": 0}"#);
    let raw = |text: &str| text.as_bytes().to_vec();
    let odd = "a:{}\n\0acme";
    let deep = format!("{{\"attributes\": {}{}}}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
    let chunk = format!("10000\r\n{}\r\n", "v".repeat(0x10000));
    vec![
        Hostile::check(
            "an attribute with : { } newline and NUL",
            r#"{"attributes": {"org": "a:{}\n\u0000acme", "agent": "a1"}}"#,
            200,
        )
        .may_charge(odd),
        Hostile::check("a value of 1 MB", &format!(r#"{{"attributes": {{"org": "{big}"}}}}"#), 400),
        Hostile::check("a name of 1 MB", &format!(r#"{{"attributes": {{"{big}": "x"}}}}"#), 400),
        Hostile::new(
            "a body above 1 MiB",
            post("/v1/check", &format!(r#"{{"attributes": {{"org": "{big}{big}"}}}}"#)),
            &[413],
            Ends::Closed,
        ),
        Hostile::new(
            "a body in chunks without an end",
            [raw("POST /v1/check HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"), raw(&chunk.repeat(400))].concat(),
            &[413],
            Ends::Closed,
        ),
        Hostile::check("10,000 attributes", &format!(r#"{{"attributes": {{{}}}}}"#, many.join(",")), 400),
        Hostile::check("JSON 100,000 levels deep", &deep, 400),
        Hostile::check("a key twice", r#"{"attributes": {"org": "evil"}, "attributes": {"org": "acme"}}"#, 400),
        Hostile::check("an attribute twice", r#"{"attributes": {"org": "evil", "org": "acme"}}"#, 400),
        Hostile::check("a number for a value", r#"{"attributes": {"org": 5}}"#, 400),
        Hostile::with_cost("a negative cost", "-1", 400),
        Hostile::with_cost("a fractional cost", "0.5", 400),
        Hostile::with_cost("a cost with an exponent", "1e3", 400),
        Hostile::with_cost("the smallest i64", "-9223372036854775808", 400),
        Hostile::with_cost("the largest i64", "9223372036854775807", 429),
        Hostile::with_cost("one above the largest i64", "9223372036854775808", 429),
        Hostile::with_cost("the largest u64", "18446744073709551615", 429),
        Hostile::with_cost("one above the largest u64", "18446744073709551616", 400),
        Hostile::new(
            "bad UTF-8",
            request("POST", "/v1/check", "", b"{\"attributes\": {\"org\": \"\xff\xfe\"}}"),
            &[400],
            Ends::Open,
        ),
        Hostile::check("half a surrogate pair", r#"{"attributes": {"org": "\ud800"}}"#, 400),
        Hostile::new("a compressed body", request("POST", "/v1/check", "Content-Encoding: gzip\r\n", good.as_bytes()), &[415], Ends::Open),
        Hostile::new(
            "a body that never ends",
            raw("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"attributes\":"),
            &[408],
            Ends::Closed,
        ),
        Hostile::new("headers that never end", raw("POST /v1/check HTTP/1.1\r\nHost: x\r\nX-A: "), &[], Ends::Closed),
        Hostile::new(
            "a body that breaks off",
            raw("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{\"attributes\":"),
            &[400],
            Ends::Closed,
        )
        .then_finishes(),
        Hostile::new(
            "garbage behind a request",
            [peek, raw("\x01\x02garbage\r\n\r\n"), post("/v1/check", good)].concat(),
            &[200, 400],
            Ends::Closed,
        ),
        Hostile::new(
            "a length and chunks at once",
            [
                raw("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
                post("/v1/check", good),
            ]
            .concat(),
            &[400],
            Ends::Closed,
        ),
        Hostile::new("no Host", raw("GET /healthz HTTP/1.1\r\n\r\n"), &[400], Ends::Closed),
        Hostile::new("two Hosts", raw("GET /healthz HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), &[400], Ends::Closed),
        Hostile::new(
            "200 header lines",
            request("GET", "/healthz", &"X-A: b\r\n".repeat(200), b""),
            &[431],
            Ends::Closed,
        ),
        Hostile::new(
            "a header of 100 kB",
            request("GET", "/healthz", &format!("X-A: {}\r\n", "b".repeat(100_000)), b""),
            &[431],
            Ends::Closed,
        ),
        Hostile::new("a target of 100 kB", request("GET", &format!("/{}", "a".repeat(100_000)), "", b""), &[431], Ends::Closed),
        Hostile::new("another protocol", raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), &[], Ends::Closed),
        Hostile::new("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), &[400], Ends::Closed),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_input_gets_its_answer_and_harms_nobody() {
    let wait = Duration::from_millis(300);
    let server = start_with(LIMITS, Bounds { headers_wait: wait, body_wait: wait, ..Bounds::default() }).await;
    for org in ["acme", "a", "evil"] {
        let body = format!(r#"{{"attributes": {{"org": "{org}", "agent": "a1"}}, "cost": 7}}"#);
        assert_eq!(server.check(&body).await.status, 200);
    }
    let inputs = inputs();
    assert!(inputs.len() >= 24);
    for input in &inputs {
        throw(&server, input).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_input_leaves_the_server_small_and_alive() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(&file(folder.path(), LIMITS), &[]);
    let inputs: Vec<Hostile> = inputs().into_iter().filter(|input| !input.name.contains("never end")).collect();
    let before = process.resident_bytes();
    for _ in 0..5 {
        for input in &inputs {
            provoke(process.check, input).await;
        }
    }
    assert_grown(&process, before);

    let value = "v".repeat(1_000_000);
    let body = post("/v1/check", &format!(r#"{{"attributes": {{"org": "{value}"}}}}"#));
    let begin: Arc<[u8]> = body[..body.len() / 2].into();
    // 250 clients that each hold back the end of their body: 125 MB if all of it were kept.
    let mut clients = Vec::new();
    for _ in 0..250 {
        let mut client = Connection::open(process.check).await;
        let begin = Arc::clone(&begin);
        clients.push(tokio::spawn(async move {
            let _ = tokio::time::timeout(Duration::from_millis(500), client.write_all(&begin)).await;
            client
        }));
    }
    let mut held = Vec::new();
    for client in clients {
        held.push(client.await.unwrap());
    }
    assert_grown(&process, before);
    assert_eq!(send(process.check, &get("/healthz")).await.status, 200);
    drop(held);
    process.signal("TERM");
    let (well, log) = process.end().await;
    assert!(well && !log.contains("a fault of the server"), "{log}");
}

fn assert_grown(process: &Process, before: u64) {
    let now = process.resident_bytes();
    assert!(now < before + GROWTH_BYTES_MAX, "{now} from {before}");
}

/// Sends the input, and checks every effect that it has.
async fn throw(server: &Running, input: &Hostile) {
    let name = input.name;
    let before = server.counters().await;
    provoke(server.check, input).await;
    let of_others = |items: Vec<UsageItem>| -> Vec<UsageItem> {
        let own = |item: &UsageItem| item.attributes.iter().any(|(_, value)| Some(value) == input.org.as_ref());
        items.into_iter().filter(|item| !own(item)).collect()
    };
    let after = server.counters().await;
    if let Some(org) = &input.org {
        let own = after.iter().filter(|item| item.attributes.iter().any(|(_, value)| value == org)).count();
        assert_eq!(own, 2, "{name}: its own counters exist");
    }
    assert_eq!(of_others(after), of_others(before), "{name}: another's counter moved");
}

/// Sends the input and checks its answers.
async fn provoke(addr: SocketAddr, input: &Hostile) {
    let name = input.name;
    let mut connection = Connection::open(addr).await;
    connection.write(&input.bytes).await;
    if input.then == Then::Finishes {
        connection.finish().await;
    }
    for wanted in &input.answers {
        let answer = connection.answer().await.unwrap_or_else(|| panic!("{name}: closed instead of {wanted}"));
        assert_eq!(answer.status, *wanted, "{name}: {}", answer.text());
        if answer.status >= 400 && answer.status != 429 && !answer.body.is_empty() {
            assert!(answer.problem().len() > 10, "{name}");
        }
    }
    match input.ends {
        Ends::Closed => assert!(connection.is_closed().await, "{name}"),
        Ends::Open => {
            connection.write(&get("/healthz")).await;
            assert_eq!(connection.answer().await.unwrap().status, 200, "{name}");
        }
    }
}
