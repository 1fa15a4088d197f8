//! A connection with faults.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use tidegate_testkit::servers::{Connection, FaultProxy, Flavor, Reply, Server};

use super::{A_MOMENT, PATIENCE, now};

#[test]
fn a_proxy_makes_round_trips_longer_by_what_it_is_told() {
    const LATENCY: Duration = Duration::from_millis(200);
    let server = Server::start(Flavor::Redis70);
    let proxy = FaultProxy::start(server.port());
    let mut connection = Connection::tcp(proxy.port(), PATIENCE).unwrap();
    let mut round_trip = || {
        let began = now();
        assert_eq!(connection.call(&["PING"]).unwrap().to_string(), "PONG");
        began.elapsed()
    };
    let fastest = (0..10).map(|_| round_trip()).min().unwrap();
    assert!(fastest < LATENCY / 10, "without a fault: {fastest:?}");
    proxy.set_latency(LATENCY);
    let slow = (0..3).map(|_| round_trip()).min().unwrap();
    assert!(slow >= LATENCY && slow < 2 * LATENCY, "{slow:?}");
    proxy.set_latency(Duration::ZERO);
    assert!((0..10).map(|_| round_trip()).min().unwrap() < LATENCY / 10);
    assert_eq!((proxy.accepted(), proxy.open()), (1, 1));
}

#[test]
fn a_proxy_s_latency_is_no_limit_to_what_is_under_way() {
    let server = Server::start(Flavor::Redis70);
    let proxy = FaultProxy::start(server.port());
    proxy.set_latency(Duration::from_millis(100));
    let mut stream = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let began = now();
    for _ in 0..100 {
        stream.write_all(b"PING\r\n").unwrap();
    }
    let mut answers = vec![0; 100 * "+PONG\r\n".len()];
    stream.read_exact(&mut answers).unwrap();
    assert!(began.elapsed() < Duration::from_secs(1), "one after another they would take 10 s");
}

#[test]
fn a_stalled_proxy_accepts_and_passes_nothing_until_it_flows() {
    let server = Server::start(Flavor::Redis70);
    let proxy = FaultProxy::start(server.port());
    let mut before = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    before.set_read_timeout(Some(PATIENCE)).unwrap();
    before.write_all(b"PING\r\n").unwrap();
    before.read_exact(&mut [0; 7]).unwrap();
    proxy.stall();
    let meanwhile = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    for mut connection in [before, meanwhile] {
        connection.set_read_timeout(Some(A_MOMENT)).unwrap();
        connection.write_all(b"INCR key\r\n").unwrap();
        let error = connection.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
    }
    assert_eq!(server.call(&["GET", "key"]), Reply::Nil);
    // Not even that the server is gone is passed on, to whoever connected before or after.
    let connect = || TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    let earlier = connect();
    server.kill();
    let mut both = [earlier, connect()];
    for connection in &mut both {
        connection.set_read_timeout(Some(A_MOMENT)).unwrap();
        assert_eq!(connection.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    }
    proxy.flow();
    for connection in &mut both {
        connection.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(connection.read(&mut [0]).unwrap(), 0, "the end comes late, and comes");
    }
}

#[test]
fn a_cut_ends_what_is_open_and_a_refusal_keeps_out_what_is_new() {
    let server = Server::start(Flavor::Redis70);
    let proxy = FaultProxy::start(server.port());
    let connect = || Connection::tcp(proxy.port(), PATIENCE);
    let mut first = connect().unwrap();
    first.call(&["PING"]).unwrap();
    proxy.cut();
    assert_eq!(proxy.open(), 0);
    assert_eq!(first.call(&["PING"]).unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let mut second = connect().unwrap();
    second.call(&["PING"]).unwrap();
    proxy.refuse();
    assert_eq!(connect().unwrap_err().kind(), std::io::ErrorKind::ConnectionRefused);
    second.call(&["PING"]).unwrap();
    proxy.accept();
    connect().unwrap().call(&["PING"]).unwrap();
    assert_eq!(proxy.accepted(), 3);
    // Where no server is, a connection ends at once.
    server.kill();
    assert!(connect().unwrap().call(&["PING"]).is_err());
    let port = proxy.port();
    drop(proxy);
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the proxy is still there");
}
