//! `tidegate usage`, `block`, `blocks`, `unblock`, `reset` and `health`, against a running server.

use serde_json::json;

use crate::live::Live;
use crate::process::{Ended, command, tidegate};

const LIMITS: &str = "\
limits:
  - {name: per-agent, per: [org, agent], rate: 5/d, algorithm: sliding_window}
  - {name: everyone, per: [], rate: 100/d, algorithm: sliding_window}
store: {memory: {names: true}}
";

/// Runs a subcommand against a server.
fn ask(server: &Live, arguments: &[&str]) -> Ended {
    command().args(arguments).args(["--admin", &server.admin]).output().unwrap().into()
}

#[test]
fn counters_nearest_to_their_limit_first() {
    let server = Live::serving(LIMITS);
    assert_eq!(ask(&server, &["usage"]).stdout, "No counter is in use.\n");
    for agent in ["a1", "a2", "a2", "a2", "a2"] {
        assert_eq!(server.check(&json!({"org": "acme", "agent": agent})), 200);
    }
    let shown = ask(&server, &["usage", "--nearest"]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    let rows: Vec<Vec<&str>> = shown.stdout.lines().map(|line| line.split_whitespace().take(6).collect()).collect();
    assert_eq!(rows[0], ["LIMIT", "COUNTER", "USED", "OF", "LEFT", "RESETS"]);
    assert_eq!(rows[1], ["per-agent", "agent=a2", "org=acme", "4", "5", "1"]);
    assert_eq!(rows[2], ["per-agent", "agent=a1", "org=acme", "1", "5", "4"]);
    assert_eq!(rows[3][..5], ["everyone", "everyone", "5", "100", "95"]);

    let one = ask(&server, &["usage", "--limit", "per-agent", "--attr", "org=acme", "--attr", "agent=a1", "--json"]);
    let items = one.json()["items"].clone();
    assert_eq!(items.as_array().unwrap().len(), 1);
    assert_eq!((&items[0]["remaining"], &items[0]["attributes"]["agent"]), (&json!(4), &json!("a1")));

    let page = ask(&server, &["usage", "--items", "2"]).stdout;
    let cursor = page.lines().last().unwrap().strip_prefix("There are more: add --cursor ").unwrap();
    let rest = ask(&server, &["usage", "--items", "2", "--cursor", cursor]).stdout;
    assert_eq!((page.lines().count(), rest.lines().count()), (4, 2), "{page}\n{rest}");
}

#[test]
fn a_block_stops_an_agent_until_it_is_ended() {
    let server = Live::serving(LIMITS);
    let agent = json!({"org": "acme", "agent": "a1"});
    assert_eq!(ask(&server, &["blocks"]).stdout, "Nobody is blocked.\n");
    let blocked = ask(&server, &["block", "--attr", "agent=a1", "--for", "1h", "--reason", "runs in circles"]);
    assert_eq!((blocked.code, blocked.stderr.as_str()), (0, ""));
    assert_eq!(blocked.stdout, "agent=a1 is stopped for 1h: block 1. To end it: tidegate unblock 1\n");
    assert_eq!(server.check(&agent), 429);

    let listed = ask(&server, &["blocks"]).stdout;
    let row: Vec<&str> = listed.lines().nth(1).unwrap().split_whitespace().collect();
    assert_eq!((row[0], row[1]), ("1", "agent=a1"));
    assert!(listed.contains("tester") && listed.contains("runs in circles"), "{listed}");
    assert_eq!(ask(&server, &["blocks", "--json"]).json()["items"][0]["when"], json!({"agent": "a1"}));

    assert_eq!(ask(&server, &["unblock", "1"]).stdout, "Block 1 is ended.\n");
    assert_eq!(server.check(&agent), 200);
    let again = ask(&server, &["unblock", "1"]);
    assert_eq!(again.code, 1);
    assert!(again.stderr.starts_with("tidegate: there is no block '1' in force"), "{}", again.stderr);

    for time in ["soon", "0s", "367d", "/1h", "h"] {
        let wrong = ask(&server, &["block", "--attr", "agent=a1", "--for", time]);
        assert_eq!(wrong.code, 2, "{time}");
        assert!(wrong.stderr.contains("15min"), "{}", wrong.stderr);
    }
    for time in ["366d", "120s", "2hours"] {
        assert_eq!(ask(&server, &["block", "--attr", "agent=a9", "--for", time]).code, 0, "{time}");
    }
}

#[test]
fn an_attribute_that_no_limit_uses_gets_a_warning() {
    let server = Live::serving(LIMITS);
    let blocked = ask(&server, &["block", "--attr", "agnet=a1", "--for", "1h"]);
    assert_eq!((blocked.code, blocked.stdout.contains("agnet=a1 is stopped for 1h")), (0, true));
    assert_eq!(blocked.stderr, "warning: no limit uses the attribute 'agnet'; did you mean 'agent'?\n");
    let listed = ask(&server, &["usage", "--attr", "agnet=a1"]);
    assert_eq!((listed.code, listed.stdout.as_str()), (0, "No counter is in use.\n"));
    assert!(listed.stderr.contains("did you mean 'agent'?"), "{}", listed.stderr);
    assert_eq!(ask(&server, &["block", "--attr", "agent=a1", "--for", "1h"]).stderr, "");
}

#[test]
fn a_reset_counter_begins_afresh() {
    let server = Live::serving(LIMITS);
    let (first, second) = (json!({"org": "acme", "agent": "a1"}), json!({"org": "acme", "agent": "a2"}));
    for agent in [&first, &second] {
        for _ in 0..5 {
            assert_eq!(server.check(agent), 200);
        }
        assert_eq!(server.check(agent), 429);
    }
    let reset = ask(&server, &["reset", "per-agent", "--attr", "org=acme", "--attr", "agent=a1"]);
    assert_eq!((reset.code, reset.stdout.as_str()), (0, "1 counter of per-agent begins afresh.\n"));
    assert_eq!((server.check(&first), server.check(&second)), (200, 429));
    let partial = ask(&server, &["reset", "per-agent", "--attr", "org=acme"]);
    assert_eq!((partial.code, partial.stdout.as_str()), (1, ""));
    assert!(
        partial.stderr.contains("give attr.agent as well, or all=true (on the command line --all)"),
        "{}",
        partial.stderr
    );
    assert_eq!(server.check(&second), 429);
    let of_org = ask(&server, &["reset", "per-agent", "--attr", "org=other", "--all", "--json"]);
    assert_eq!(of_org.json(), json!({"reset": 0}));
    assert_eq!(ask(&server, &["reset", "per-agent", "--all", "--json"]).json(), json!({"reset": 2}));
    assert_eq!(server.check(&second), 200);
    let unknown = ask(&server, &["reset", "no-such-limit", "--all"]);
    assert_eq!((unknown.code, unknown.stderr.as_str()), (1, "tidegate: there is no limit 'no-such-limit' in force\n"));
}

#[test]
fn without_names_it_says_which_key_to_set() {
    let server = Live::serving("limits: [{name: per-agent, per: [agent], rate: 5/d}]");
    assert_eq!(server.check(&json!({"agent": "a1"})), 200);
    for arguments in [&["usage"][..], &["usage", "--nearest"], &["top", "--once"], &["top"]] {
        let ended = ask(&server, arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (1, ""), "{arguments:?}");
        assert!(ended.stderr.contains("store.memory.names"), "{arguments:?}: {}", ended.stderr);
    }
    let one = ask(&server, &["usage", "--limit", "per-agent", "--attr", "agent=a1"]);
    assert_eq!(one.code, 0, "one counter needs no names: {one:?}");
}

#[test]
fn a_token_is_asked_for_and_given() {
    let server = Live::serving("admin: {token: a-token-of-some-length}\nlimits: [{name: a, per: [], rate: 5/d}]\n");
    let refused = ask(&server, &["blocks"]);
    assert_eq!(refused.code, 1);
    assert!(
        refused.stderr.contains("--token") && refused.stderr.contains("TIDEGATE_ADMIN_TOKEN"),
        "{}",
        refused.stderr
    );
    assert_eq!(ask(&server, &["blocks", "--token", "a-token-of-some-length"]).code, 0);
    let from_environment = command()
        .args(["blocks", "--admin", &server.admin])
        .env("TIDEGATE_ADMIN_TOKEN", "a-token-of-some-length")
        .output()
        .unwrap();
    assert_eq!(Ended::from(from_environment).code, 0);
    assert_eq!(ask(&server, &["health"]).code, 0, "probes need no token");
}

#[test]
fn health() {
    let server = Live::serving(LIMITS);
    let ready = ask(&server, &["health"]);
    assert_eq!((ready.code, ready.stderr.as_str()), (0, ""));
    assert!(ready.stdout.ends_with(" is ready.\n"), "{}", ready.stdout);
    let admin = server.admin.clone();
    drop(server);
    let gone = tidegate(&["health", "--admin", &admin, "--json"]);
    assert_eq!((gone.code, gone.stdout.as_str()), (1, ""));
    let told: serde_json::Value = serde_json::from_str(&gone.stderr).unwrap();
    assert!(told["error"].as_str().unwrap().contains("no server can be reached at 127.0.0.1:"), "{told}");
    assert!(told["error"].as_str().unwrap().contains("tidegate serve FILE"), "{told}");
}

#[test]
fn something_else_that_answers_is_told_apart() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let other = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 4_096];
        let read = stream.read(&mut request).unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\n<ok>").unwrap();
        read
    });
    let ended = tidegate(&["usage", "--admin", &address]);
    assert_eq!(ended.code, 1);
    assert!(ended.stderr.contains("is not a tidegate server"), "{}", ended.stderr);
    assert!(other.join().unwrap() > 0);
}
