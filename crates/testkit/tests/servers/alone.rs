//! One server.

use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;

use tidegate_testkit::servers::{AppendFsync, ClientCertificates, Connection, Flavor, Reply, Server};

use super::{A_MOMENT, PATIENCE};

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
    let server = thread::spawn(|| Server::start(Flavor::Valkey91)).join().unwrap();
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

/// Whether a process runs, or waits to be waited for.
fn is_running(pid: u32) -> bool {
    Path::new(&format!("/proc/{pid}")).exists()
}
