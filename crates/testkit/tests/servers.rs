//! The kit that starts servers does what it says, with every server.
#![expect(clippy::disallowed_methods, reason = "how long real servers take is measured by the real clock")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use tidegate_testkit::servers::{
    AppendFsync, ClientCertificates, Cluster, Connection, FaultProxy, Flavor, Replicated, Reply, SLOTS, Sentinel,
    Server,
};

/// Long enough for a server that answers, short enough to wait for one that does not.
const A_MOMENT: Duration = Duration::from_millis(100);

/// Time for an answer on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn each_server_answers_and_is_of_its_version() {
    for flavor in Flavor::all() {
        let server = Server::start(flavor);
        server.ping(PATIENCE).unwrap();
        // Valkey gives the version of Redis whose commands it has, too.
        let version = server.info(&format!("{}_version", flavor.product()));
        assert!(version.starts_with(&format!("{}.", flavor.version())), "{flavor}: {version}");
        assert_eq!(server.info("tcp_port"), server.port().to_string(), "{flavor}");
        let over_tcp = Connection::tcp(server.port(), PATIENCE).unwrap().call(&["PING"]).unwrap();
        assert_eq!(over_tcp, Reply::Simple("PONG".to_owned()), "{flavor}");
        assert_eq!(server.url(), format!("redis://127.0.0.1:{}", server.port()));
    }
}

#[test]
fn a_restart_keeps_what_the_append_only_file_has_and_else_nothing() {
    for flavor in Flavor::all() {
        let kept = Server::builder(flavor).appendonly(AppendFsync::Always).start();
        let forgetful = Server::start(flavor);
        for server in [&kept, &forgetful] {
            let (port, pid) = (server.port(), server.pid());
            server.cli(&["SET", "key", "value"]);
            server.kill();
            assert!(server.ping(A_MOMENT).is_err(), "{flavor} answers after its death");
            server.restart();
            assert_eq!(server.port(), port);
            assert_ne!(server.pid(), pid);
        }
        assert_eq!(kept.cli(&["GET", "key"]), "value", "{flavor}");
        assert_eq!(forgetful.call(&["GET", "key"]), Reply::Nil, "{flavor}");
    }
}

#[test]
fn a_paused_server_hangs_and_a_resumed_one_goes_on() {
    for flavor in Flavor::all() {
        let server = Server::start(flavor);
        server.pause();
        let error = server.ping(A_MOMENT).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{flavor}: {error}");
        server.resume();
        server.ping(PATIENCE).unwrap();
    }
}

#[test]
fn nothing_is_left_of_a_server_that_was_dropped() {
    for flavor in Flavor::all() {
        let running = Server::start(flavor);
        let paused = Server::start(flavor);
        paused.pause();
        let killed = Server::start(flavor);
        let left = [&running, &paused, &killed].map(|server| (server.pid(), server.folder().to_owned()));
        killed.kill();
        for (pid, folder) in &left[..2] {
            assert!(is_running(*pid), "{flavor}: the test sees no process that runs");
            assert!(folder.is_dir());
        }
        drop((running, paused, killed));
        for (pid, folder) in &left {
            assert!(!is_running(*pid), "{flavor}");
            assert!(!folder.exists(), "{flavor}: {}", folder.display());
        }
    }
}

#[test]
fn a_server_outlives_the_thread_that_started_it() {
    let server = std::thread::spawn(|| Server::start(Flavor::Valkey91)).join().unwrap();
    server.ping(PATIENCE).unwrap();
    server.call(&["INCR", "key"]);
    assert_eq!(server.cli(&["GET", "key"]), "1");
}

#[test]
fn users_are_told_apart() {
    for flavor in Flavor::all() {
        let server = Server::builder(flavor).password("p@ss:w/rd").acl_user("reader", "secret", "~* +get").start();
        assert_eq!(server.cli(&["PING"]), "PONG");
        assert_eq!(server.url(), format!("redis://:p%40ss%3Aw%2Frd@127.0.0.1:{}", server.port()));
        assert_eq!(server.url_as("reader"), format!("redis://reader:secret@127.0.0.1:{}", server.port()));
        let mut stranger = Connection::tcp(server.port(), PATIENCE).unwrap();
        let mut ask = |command: &[&str]| stranger.call(command).unwrap().to_string();
        assert!(ask(&["GET", "key"]).starts_with("NOAUTH"), "{flavor}");
        assert!(ask(&["AUTH", "reader", "wrong"]).starts_with("WRONGPASS"), "{flavor}");
        assert_eq!(ask(&["AUTH", "reader", "secret"]), "OK", "{flavor}");
        assert_eq!(ask(&["GET", "key"]), "", "{flavor}");
        assert!(ask(&["SET", "key", "1"]).starts_with("NOPERM"), "{flavor}");
    }
}

#[test]
fn a_server_may_listen_on_a_unix_socket_alone() {
    for flavor in Flavor::all() {
        let server = Server::builder(flavor).unix_socket().start();
        assert!(Connection::tcp(server.port(), PATIENCE).is_err(), "{flavor}");
        let url = server.url();
        let path = url.strip_prefix("unix://").unwrap();
        let reply = Connection::unix(Path::new(path), PATIENCE).unwrap().call(&["PING"]).unwrap();
        assert_eq!(reply.to_string(), "PONG");
    }
}

#[test]
fn arguments_hold_after_a_restart() {
    for flavor in Flavor::all() {
        let server = Server::builder(flavor).args(&["--maxmemory", "10mb", "--databases", "3"]).start();
        for _ in 0..2 {
            assert_eq!(server.cli(&["CONFIG", "GET", "maxmemory"]), "maxmemory\n10485760", "{flavor}");
            assert!(server.call(&["SELECT", "3"]).is_error(), "{flavor}");
            server.restart();
        }
    }
}

#[test]
fn processor_time_is_that_of_the_server() {
    let server = Server::start(Flavor::Redis70);
    let before = server.cpu_time();
    // A million turns of an empty loop: some milliseconds.
    server.cli(&["EVAL", "for turn = 1, 3000000 do end", "0"]);
    let taken = server.cpu_time() - before;
    assert!(taken > Duration::from_millis(1), "{taken:?}");
    let idle = server.cpu_time();
    assert!(server.cpu_time() - idle < taken, "time passes that nothing took");
}

#[test]
fn a_server_with_tls_takes_nothing_else() {
    for asks in [ClientCertificates::NotAsked, ClientCertificates::Required] {
        let server = Server::builder(Flavor::Redis70).tls(asks).start();
        assert_eq!(server.url(), format!("rediss://127.0.0.1:{}", server.port()));
        assert_eq!(server.cli(&["PING"]), "PONG");
        let files = server.tls().unwrap();
        let ping = |more: &[&Path]| {
            let mut command = Command::new(Flavor::tool("redis-cli"));
            command.args(["-p", &server.port().to_string(), "--tls", "--cacert"]).args(more).arg("PING");
            String::from_utf8(command.output().unwrap().stdout).unwrap()
        };
        let ca = files.ca();
        let is_let_in = ping(&[&ca]) == "PONG\n";
        assert_eq!(is_let_in, asks == ClientCertificates::NotAsked);
        let (certificate, key) = (files.client_certificate(), files.client_key());
        let with_certificate: [&Path; 5] = [&ca, "--cert".as_ref(), &certificate, "--key".as_ref(), &key];
        assert_eq!(ping(&with_certificate), "PONG\n");
        let of_another = Server::builder(Flavor::Redis70).tls(asks).start().tls().unwrap().ca();
        assert_eq!(ping(&[&of_another]), "", "a server's certificate is believed that nobody trusted has signed");
        let without = Connection::tcp(server.port(), PATIENCE).unwrap().call(&["PING"]);
        assert!(without.is_err(), "{without:?}");
    }
}

#[test]
#[should_panic(expected = "not built with TLS")]
fn a_server_without_tls_says_so() {
    let _ = Server::builder(Flavor::Valkey91).tls(ClientCertificates::NotAsked);
}

#[test]
fn a_promoted_replica_has_the_data_and_the_old_primary_refuses_writes() {
    for flavor in Flavor::all() {
        let both = Replicated::start_with(flavor, |server| server.password("secret"));
        let (first, second) = (both.primary(), both.replica());
        first.cli(&["SET", "key", "value"]);
        assert!(second.call(&["SET", "key", "other"]).to_string().starts_with("READONLY"), "{flavor}");
        let mut open = Connection::tcp(first.port(), PATIENCE).unwrap();
        open.call(&["AUTH", "secret"]).unwrap();
        both.promote();
        assert_eq!(both.primary().port(), second.port(), "{flavor}");
        assert_eq!(both.replica().port(), first.port(), "{flavor}");
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        assert!(open.call(&["SET", "key", "value"]).unwrap().to_string().starts_with("READONLY"), "{flavor}");
        both.promote();
        assert_eq!(both.primary().port(), first.port(), "{flavor}");
        assert_eq!(first.cli(&["GET", "key"]), "other", "{flavor}");
    }
}

#[test]
fn sentinels_make_another_server_the_primary() {
    for flavor in Flavor::all() {
        let began = Instant::now();
        let sentinel = Sentinel::start(flavor);
        let started = began.elapsed();
        assert_eq!(sentinel.sentinel_urls().len(), 3);
        assert_eq!(sentinel.master_name(), "tidegate");
        let first = sentinel.primary();
        assert_eq!(first.info("connected_slaves"), "2", "{flavor}");
        first.cli(&["SET", "key", "value"]);
        assert_eq!(first.cli(&["WAIT", "2", "5000"]), "2");

        let began = Instant::now();
        assert_eq!(sentinel.kill_primary().port(), first.port());
        let second = sentinel.wait_for_failover(first);
        let failed_over = began.elapsed();
        assert_ne!(second.port(), first.port());
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        println!("{flavor}: six started in {started:?}, another primary after {failed_over:?}");
    }
}

#[test]
fn a_cluster_serves_every_slot() {
    for flavor in Flavor::all() {
        let began = Instant::now();
        let cluster = Cluster::start(flavor);
        println!("{flavor}: cluster in {:?}", began.elapsed());
        assert_eq!(cluster.urls().len(), 3);
        let mut connections: Vec<_> =
            cluster.nodes().iter().map(|node| Connection::tcp(node.port(), PATIENCE).unwrap()).collect();
        let mut served = vec![0; usize::from(SLOTS)];
        // By then each slot has had its key: 2^20 keys, and the chance that a slot has none is e^-64.
        for number in 0..1 << 20 {
            let key = format!("key{number}");
            let slot = usize::from(cluster_slot(key.as_bytes()));
            if served[slot] > 0 {
                continue;
            }
            // One node takes it, and the two others say who.
            for connection in &mut connections {
                let reply = connection.call(&["SET", &key, "value"]).unwrap();
                let is_taken = reply == Reply::Simple("OK".to_owned());
                let says_who = reply.to_string().starts_with(&format!("MOVED {slot} 127.0.0.1:"));
                assert!(is_taken != says_who, "{flavor}: {key}: {reply}");
                served[slot] += usize::from(is_taken);
            }
        }
        assert_eq!(served.iter().filter(|&&keys| keys == 1).count(), usize::from(SLOTS), "{flavor}");
        let keys = cluster.nodes().iter().map(|node| node.cli(&["DBSIZE"]).parse::<u16>().unwrap());
        assert_eq!(keys.sum::<u16>(), SLOTS, "{flavor}");
        assert_eq!(cluster.slot_of("key1"), cluster_slot(b"key1"));
    }
}

#[test]
fn a_replica_takes_over_from_a_cluster_s_master() {
    for flavor in Flavor::all() {
        let began = Instant::now();
        let cluster = Cluster::start_with_replicas(flavor);
        let started = began.elapsed();
        assert_eq!(cluster.urls().len(), 6);
        let slot = cluster.slot_of("key");
        let first = cluster.master_of(slot);
        first.cli(&["SET", "key", "value"]);
        assert_eq!(first.cli(&["WAIT", "1", "5000"]), "1");

        let began = Instant::now();
        assert_eq!(cluster.kill_master(slot).port(), first.port());
        let second = cluster.wait_for_failover(slot, first);
        let failed_over = began.elapsed();
        assert_eq!(second.cli(&["GET", "key"]), "value", "{flavor}");
        second.cli(&["SET", "key", "other"]);
        println!("{flavor}: six nodes in {started:?}, a replica has taken over after {failed_over:?}");
    }
}

#[test]
fn a_slot_moves_with_its_keys() {
    for flavor in Flavor::all() {
        let cluster = Cluster::start_with(flavor, false, |node| node.password("secret"));
        let slot = cluster.slot_of("{tag}");
        let from = cluster.master_of(slot);
        let to = cluster.nodes().iter().find(|node| node.port() != from.port()).unwrap();
        for number in 0..250 {
            from.cli(&["SET", &format!("{{tag}}{number}"), "value"]);
        }

        let migration = cluster.begin_migration(slot, to);
        assert_eq!((migration.from().port(), migration.to().port()), (from.port(), to.port()));
        migration.move_key("{tag}0");
        let ask = format!("ASK {slot} 127.0.0.1:{}", to.port());
        assert_eq!(from.call(&["GET", "{tag}0"]).to_string(), ask, "{flavor}");
        assert_eq!(from.cli(&["GET", "{tag}1"]), "value", "{flavor}");
        let both = from.call(&["MGET", "{tag}0", "{tag}1"]).to_string();
        assert!(both.starts_with("TRYAGAIN"), "{flavor}: {both}");
        migration.move_keys();
        migration.finish();

        assert_eq!(cluster.master_of(slot).port(), to.port(), "{flavor}");
        assert_eq!(to.cli(&["CLUSTER", "COUNTKEYSINSLOT", &slot.to_string()]), "250", "{flavor}");
        let moved = format!("MOVED {slot} 127.0.0.1:{}", to.port());
        for node in cluster.nodes().iter().filter(|node| node.port() != to.port()) {
            assert_eq!(node.call(&["GET", "{tag}0"]).to_string(), moved, "{flavor}");
        }
        cluster.migrate_slot(slot, from);
        assert_eq!(from.cli(&["GET", "{tag}249"]), "value", "{flavor}");
    }
}

#[test]
fn a_proxy_makes_round_trips_longer_by_what_it_is_told() {
    const LATENCY: Duration = Duration::from_millis(200);
    let server = Server::start(Flavor::Redis70);
    let proxy = FaultProxy::start(server.port());
    let mut connection = Connection::tcp(proxy.port(), PATIENCE).unwrap();
    let mut round_trip = || {
        let began = Instant::now();
        assert_eq!(connection.call(&["PING"]).unwrap().to_string(), "PONG");
        began.elapsed()
    };
    let fastest = (0..10).map(|_| round_trip()).min().unwrap();
    assert!(fastest < LATENCY / 10, "without a fault: {fastest:?}");
    proxy.set_latency(LATENCY);
    let slow = (0..3).map(|_| round_trip()).min().unwrap();
    assert!(slow >= LATENCY && slow < LATENCY + LATENCY / 4, "{slow:?}");
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
    let began = Instant::now();
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
    let mut before = Connection::tcp(proxy.port(), A_MOMENT).unwrap();
    before.call(&["PING"]).unwrap();
    proxy.stall();
    let mut meanwhile = Connection::tcp(proxy.port(), A_MOMENT).unwrap();
    for connection in [&mut before, &mut meanwhile] {
        let error = connection.call(&["INCR", "key"]).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock, "{error}");
    }
    assert_eq!(server.call(&["GET", "key"]), Reply::Nil);
    // Not even that the server is gone is passed on.
    let mut third = TcpStream::connect(("127.0.0.1", proxy.port())).unwrap();
    third.set_read_timeout(Some(A_MOMENT)).unwrap();
    server.kill();
    assert_eq!(third.read(&mut [0]).unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    proxy.flow();
    third.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(third.read(&mut [0]).unwrap(), 0, "the end comes late, and comes");
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

/// The slot of a key without a tag: CRC-16/XMODEM, as the cluster's specification has it.
fn cluster_slot(key: &[u8]) -> u16 {
    let crc = key.iter().fold(0_u16, |crc, &byte| {
        (0..8).fold(crc ^ u16::from(byte) << 8, |crc, _| if crc & 0x8000 == 0 { crc << 1 } else { crc << 1 ^ 0x1021 })
    });
    crc % SLOTS
}

/// Whether a process runs, or waits to be waited for.
fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
