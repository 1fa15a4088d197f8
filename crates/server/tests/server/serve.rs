//! The command `tidegate serve`, as a process.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;

use crate::process::{command, file, start, start_command};
use crate::support::{Connection, PATIENCE, get, post, send};

const LIMITS: &str = "limits:\n  - { name: agent-minute, per: [org, agent], rate: 4/min }\n";

fn run(path: &Path, options: &[&str]) -> Output {
    command(path, options).output().unwrap()
}

#[tokio::test]
async fn it_says_where_it_listens_and_ends_well() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(&file(folder.path(), LIMITS), &[]);
    assert_eq!(
        process.first_line,
        format!("listening check=http://{} admin=http://{}\n", process.check, process.admin)
    );
    let check = post("/v1/check", r#"{"attributes": {"org": "acme", "agent": "a1"}}"#);
    assert_eq!(send(process.check, &check).await.status, 200);
    assert_eq!(send(process.admin, &get("/metrics")).await.status, 200);
    process.signal("TERM");
    let (well, log) = process.end().await;
    assert!(well, "{log}");
    assert!(log.contains("draining") && log.contains("SIGTERM") && log.contains("drained"), "{log}");
    assert!(!log.contains('\x1b'), "no colours where it is no terminal");
}

#[tokio::test]
async fn an_interrupt_ends_it_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(&file(folder.path(), LIMITS), &[]);
    process.signal("INT");
    assert!(process.end().await.0);
}

#[tokio::test]
async fn a_hangup_reads_the_file_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), LIMITS);
    let process = start(&path, &["--log-format", "json"]);
    file(folder.path(), "limits:\n  - { name: org-minute, per: [org], rate: 4/min }\n");
    process.signal("HUP");
    let changed = async {
        while send(process.check, &get("/v1/limits")).await.json()["limits"][0]["name"] != "org-minute" {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, changed).await.expect("the limits change");
    process.signal("TERM");
    let (_, log) = process.end().await;
    let lines: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let reloaded = lines.iter().find(|line| line["message"] == "limits reloaded").expect("it is in the log");
    assert_eq!((&reloaded["target"], &reloaded["kept"]), (&"audit".into(), &0.into()));
    assert!(reloaded["added"].as_str().unwrap().contains("org-minute"), "{reloaded}");
}

#[tokio::test]
async fn the_hints_are_true() {
    let folder = tempfile::tempdir().unwrap();
    let mut process = start(&file(folder.path(), LIMITS), &["--hints"]);
    let mut text = String::new();
    while !text.contains("/metrics") {
        assert!(process.stdout.read_line(&mut text).unwrap() > 0, "{text}");
    }
    assert!(text.contains("Try 5 in a row, of which limit 'agent-minute' refuses the last (429)"), "{text}");
    let line = text.lines().find(|line| line.contains("for i in")).unwrap().trim();
    // A fixed window may end between two requests, once.
    let try_it = || {
        let shell = Command::new("sh").args(["-c", line]).output().unwrap();
        String::from_utf8(shell.stdout).unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let statuses = try_it();
    assert!(statuses == ["200", "200", "200", "200", "429"] || try_it().contains(&"429".to_owned()), "{statuses:?}");
}

#[test]
fn every_fault_of_the_file_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let path =
        file(folder.path(), "limits:\n  - { name: a, pre: [org], rate: 5/min }\n  - { name: b, per: [], rate: 5/x }\n");
    let output = run(&path, &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(output.stdout.is_empty());
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("limits.yaml:2:16: ") && told.contains("limits.yaml:3:"), "{told}");
    let output = run(&path, &["--json"]);
    assert_eq!(output.status.code(), Some(1));
    let told: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(told["faults"].as_array().unwrap().len() >= 2, "{told}");
}

#[test]
fn a_file_that_is_not_there() {
    let output = run(Path::new("/nowhere/limits.yaml"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(told.contains("/nowhere/limits.yaml"), "{told}");
}

#[tokio::test]
async fn a_taken_port_and_an_open_door_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), LIMITS);
    let process = start(&path, &[]);
    let taken = process.check.to_string();
    let told = |options: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        let output = command.arg("serve").arg(&path).args(options).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8(output.stderr).unwrap()
    };
    let error = told(&["--listen", &taken, "--admin", "127.0.0.1:0"]);
    assert!(error.contains("the port is taken; choose another address with --listen"), "{error}");
    let error = told(&["--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0"]);
    assert!(error.contains("no token guards it; set admin.token"), "{error}");
    let error = told(&["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-level", "a=b=c"]);
    assert_eq!(error.matches("error parsing level filter").count(), 1, "a cause is told once: {error}");
    assert!(error.contains("write error, warn, info, debug or trace"), "{error}");
}

#[tokio::test]
async fn it_outlives_a_lack_of_descriptors() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(folder.path(), LIMITS);
    let serve = command(&path, &[]);
    let mut limited = Command::new("sh");
    // Fewer descriptors than connections below.
    limited.args(["-c", "ulimit -n 40; exec \"$0\" \"$@\""]).arg(serve.get_program()).args(serve.get_args());
    let mut process = start_command(limited.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut held = Vec::new();
    for _ in 0..60 {
        held.push(tokio::net::TcpStream::connect(process.check).await.unwrap());
    }
    // What is in the log comes first, so all of them are held until it says so.
    let mut log = BufReader::new(process.child.stderr.take().unwrap());
    let lacks = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        while !line.contains("no connection can be accepted") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "the log ended");
        }
        log
    });
    let log = tokio::time::timeout(PATIENCE, lacks).await.expect("the log says what is lacking").unwrap();
    process.child.stderr = Some(log.into_inner());
    drop(held);
    let answer = tokio::time::timeout(PATIENCE, send(process.check, &get("/healthz"))).await;
    assert_eq!(answer.expect("it accepts again").status, 200);
    process.signal("TERM");
    assert!(process.end().await.0);
}

#[tokio::test]
async fn what_was_sent_before_the_end_is_answered() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(&file(folder.path(), "limits: [{name: all, per: [], rate: 1000/h}]"), &[]);
    let check = post("/v1/check", r#"{"attributes": {}}"#);
    let mut connections = Vec::new();
    for _ in 0..20 {
        let mut used = Connection::open(process.check).await;
        used.write(&check).await;
        assert_eq!(used.answer().await.unwrap().status, 200);
        connections.push(used);
    }
    for _ in 0..20 {
        // Accepted, and not yet written to.
        connections.push(Connection::open(process.check).await);
    }
    assert_eq!(send(process.check, &get("/healthz")).await.status, 200);
    // While it stands still, the next connections wait in the system's queue, and all that is sent
    // waits unread; the signal is there before it goes on.
    process.signal("STOP");
    for _ in 0..400 {
        connections.push(Connection::open(process.check).await);
    }
    for connection in &mut connections {
        connection.write(&check).await;
    }
    process.signal("TERM");
    process.signal("CONT");
    for (number, connection) in connections.iter_mut().enumerate() {
        let answer = connection.answer().await.unwrap_or_else(|| panic!("connection {number} was closed"));
        assert_eq!(answer.status, 200, "connection {number}");
        assert!(connection.is_closed().await);
    }
    let (well, log) = process.end().await;
    assert!(well, "{log}");
}

#[tokio::test]
async fn a_client_that_sends_no_more_still_gets_its_answers() {
    let folder = tempfile::tempdir().unwrap();
    let process = start(&file(folder.path(), "limits: [{name: all, per: [], rate: 1000/h}]"), &[]);
    let check = || post("/v1/check", r#"{"attributes": {}}"#);
    let three = [check(), check(), get("/healthz")].concat();
    for (requests, count) in [(check(), 1), (get("/readyz"), 1), (three, 3)] {
        let mut connection = Connection::open(process.check).await;
        // So that it finds the request and the end behind it at once.
        process.signal("STOP");
        connection.write(&requests).await;
        connection.finish().await;
        process.signal("CONT");
        for _ in 0..count {
            assert_eq!(connection.answer().await.expect("an answer, not the end").status, 200);
        }
        assert!(connection.is_closed().await);
    }
    process.signal("TERM");
    assert!(process.end().await.0);
}
