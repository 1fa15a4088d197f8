//! Connections: how many, how they end, and what happens to them when the server does.

use std::time::Duration;

use tidegate::config::{Source, parse};
use tidegate_server::{Bounds, Server, Settings, StartError};

use crate::support::{Connection, LIMITS, PATIENCE, get, post, start, start_with};

const BODY: &str = r#"{"attributes": {"org": "acme", "agent": "a1"}}"#;

#[tokio::test]
async fn one_connection_carries_many_requests() {
    let server = start(LIMITS).await;
    let mut connection = Connection::open(server.check).await;
    let pipelined = [post("/v1/check", BODY), post("/v1/check", BODY), get("/healthz")].concat();
    connection.write(&pipelined).await;
    let statuses = [connection.answer().await, connection.answer().await, connection.answer().await];
    assert_eq!(statuses.map(|answer| answer.unwrap().status), [200, 200, 200]);
}

#[tokio::test]
async fn connections_above_the_cap_are_closed_and_counted() {
    let server = start_with(LIMITS, Bounds { connections_max: 2, ..Bounds::default() }).await;
    let mut held = Vec::new();
    for _ in 0..2 {
        let mut connection = Connection::open(server.check).await;
        connection.write(&get("/healthz")).await;
        assert_eq!(connection.answer().await.unwrap().status, 200);
        held.push(connection);
    }
    let mut third = Connection::open(server.check).await;
    let answer = third.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (503, Some("close")));
    assert!(answer.problem().contains("all connections of this listener are in use"));
    assert!(third.is_closed().await);
    let metrics = server.admin("GET", "/metrics", "").await;
    assert!(metrics.text().contains("tidegate_connections_refused_total{listener=\"check\"} 1"));
    assert!(metrics.text().contains("tidegate_connections{listener=\"check\"} 2"));
    drop(held.pop());
    let freed = async {
        loop {
            let mut connection = Connection::open(server.check).await;
            connection.write(&get("/healthz")).await;
            if connection.answer().await.is_some_and(|answer| answer.status == 200) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, freed).await.expect("a closed connection makes room");
}

#[tokio::test]
async fn idle_connections_are_closed() {
    let bounds = Bounds { headers_wait: Duration::from_millis(100), ..Bounds::default() };
    let server = start_with(LIMITS, bounds).await;
    let mut fresh = Connection::open(server.check).await;
    assert!(fresh.is_closed().await);
    let mut used = Connection::open(server.check).await;
    used.write(&get("/healthz")).await;
    assert_eq!(used.answer().await.unwrap().status, 200);
    assert!(used.is_closed().await);
}

#[tokio::test]
async fn a_client_that_never_reads_is_cut() {
    let bounds = Bounds { write_wait: Duration::from_millis(200), ..Bounds::default() };
    let server = start_with(LIMITS, bounds).await;
    // Answers of some 100 kB each, asked for until the sockets' buffers are full.
    let checks = vec![r#"{"attributes":{"org":"acme","agent":"a1"}}"#; 300].join(",");
    let batch = post("/v1/check/batch", &format!(r#"{{"checks":[{checks}]}}"#));
    let mut greedy = Connection::open(server.check).await;
    let asks = async {
        while tokio::time::timeout(Duration::from_secs(5), greedy.write_all(&batch)).await.is_ok_and(|sent| sent) {}
    };
    tokio::time::timeout(PATIENCE, asks).await.expect("the server cuts the connection");
    let open = async {
        while !server.admin("GET", "/metrics", "").await.text().contains("tidegate_connections{listener=\"check\"} 0") {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, open).await.expect("the connection is gone");
}

#[tokio::test]
async fn a_drain_finishes_what_is_in_flight() {
    let server = start(LIMITS).await;
    let (check, admin, engine) = (server.check, server.admin, server.engine.clone());
    let mut idle = Connection::open(check).await;
    idle.write(&get("/healthz")).await;
    assert_eq!(idle.answer().await.unwrap().status, 200);
    // Half a request is in flight when the drain begins.
    let request = post("/v1/check", BODY);
    let (head, tail) = request.split_at(request.len() - 10);
    let mut busy = Connection::open(check).await;
    busy.write(head).await;
    let mut probe = Connection::open(admin).await;
    probe.write(&get("/readyz")).await;
    assert_eq!(probe.answer().await.unwrap().status, 200);
    wait_for_connections(&mut probe, 2).await;

    let ended = server.stop();
    assert!(idle.is_closed().await, "an idle connection is closed at once");
    probe.write(&get("/readyz")).await;
    let answer = probe.answer().await.unwrap();
    assert_eq!(answer.status, 503, "probes see the draining");
    assert!(answer.problem().contains("draining"));
    assert!(tokio::net::TcpStream::connect(check).await.is_err(), "nothing new is accepted");
    assert!(!ended.is_finished());

    busy.write(tail).await;
    let answer = busy.answer().await.unwrap();
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    assert!(busy.is_closed().await);
    drop(probe);
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends").unwrap();
    assert_eq!(engine.store_stats().keys, 3);
}

/// Until the server has read so many check connections' first bytes.
async fn wait_for_connections(probe: &mut Connection, count: u64) {
    let line = format!("tidegate_connections{{listener=\"check\"}} {count}");
    let seen = async {
        loop {
            probe.write(&get("/metrics")).await;
            if probe.answer().await.unwrap().text().contains(&line) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, seen).await.expect("the connections are seen");
}

#[tokio::test]
async fn clients_that_vanish_hold_nothing() {
    let server = start(LIMITS).await;
    let body = format!("{{{}", " ".repeat(100_000));
    let head = format!("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n", 1_000_000);
    for bytes in
        [get("/healthz"), post("/v1/check", BODY), b"GET /heal".to_vec(), [head.as_bytes(), body.as_bytes()].concat()]
    {
        for _ in 0..40 {
            let mut connection = Connection::open(server.check).await;
            connection.write(&bytes).await;
        }
    }
    let mut probe = Connection::open(server.admin).await;
    wait_for_connections(&mut probe, 0).await;
}

#[tokio::test]
async fn stalled_uploads_do_not_keep_others_out() {
    // Far longer than this test waits for anything.
    let server = start_with(LIMITS, Bounds { body_wait: Duration::from_secs(600), ..Bounds::default() }).await;
    let begin = format!("POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n{}", " ".repeat(60_000));
    let mut stalled = Vec::new();
    for _ in 0..tidegate_server::bounds::LARGE_BODIES_MAX {
        let mut connection = Connection::open(server.check).await;
        connection.write(begin.as_bytes()).await;
        stalled.push(connection);
    }
    let padded = format!("{}{BODY}", " ".repeat(900_000));
    assert_eq!(server.check(&padded).await.status, 200);
    let cut = stalled[0].answer().await.unwrap();
    assert_eq!(cut.status, 408);
    assert!(cut.problem().contains("KiB a second"), "{}", cut.problem());
}

#[tokio::test]
async fn a_drain_has_a_deadline() {
    let bounds = Bounds { drain_wait: Duration::from_millis(200), ..Bounds::default() };
    let server = start_with(LIMITS, bounds).await;
    let mut stuck = Connection::open(server.check).await;
    stuck.write(b"POST /v1/check HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").await;
    let mut probe = Connection::open(server.admin).await;
    wait_for_connections(&mut probe, 1).await;
    let ended = server.stop();
    tokio::time::timeout(PATIENCE, ended).await.expect("it ends without the client").unwrap();
    assert!(stuck.is_closed().await);
}

#[tokio::test]
async fn while_a_drain_is_delayed_connections_are_accepted() {
    let bounds = Bounds { drain_delay: Duration::from_secs(3_600), ..Bounds::default() };
    let server = start_with(LIMITS, bounds).await;
    let check = server.check;
    let task = server.stop();
    let draining = async {
        while crate::support::send(check, &get("/readyz")).await.status != 503 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, draining).await.expect("readyz says 503");
    let answer = crate::support::send(check, &post("/v1/check", BODY)).await;
    // So its client sends nothing more into a connection that is about to close.
    assert_eq!((answer.status, answer.header("connection")), (200, Some("close")));
    task.abort();
}

#[tokio::test]
async fn a_taken_port_is_told_with_its_flag() {
    let server = start(LIMITS).await;
    let policy = || parse(LIMITS, &Source::named("limits.yaml")).unwrap().policy;
    let taken = |check: Option<String>, admin: Option<String>| Settings { listen: check, admin, ..Settings::new() };
    let free = || Some("127.0.0.1:0".to_owned());
    for (settings, flag) in [
        (taken(Some(server.check.to_string()), free()), "--listen HOST:PORT"),
        (taken(free(), Some(server.check.to_string())), "--admin HOST:PORT"),
    ] {
        let error = Server::bind(policy(), settings).await.err().expect("the port is taken");
        assert!(matches!(error, StartError::Bind { .. }));
        let told = error.to_string();
        assert!(told.contains("the port is taken") && told.contains(flag), "{told}");
    }
}
