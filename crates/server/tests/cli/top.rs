//! `tidegate top`, and what is different on a terminal.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::json;

use crate::live::Live;
use crate::process::{Ended, command, example, tidegate};
use crate::terminal::OnTerminal;

const LIMITS: &str = "\
limits:
  - {name: per-agent, per: [agent], rate: 5/d, algorithm: sliding_window}
store: {memory: {names: true}}
";

fn busy() -> Live {
    let server = Live::serving(LIMITS);
    for agent in ["calm", "eager", "eager", "eager", "eager", "eager"] {
        assert_eq!(server.check(&json!({ "agent": agent })), 200);
    }
    server
}

#[test]
fn one_picture() {
    let server = busy();
    let run = |arguments: &[&str]| -> Ended {
        command().args(["top", "--once", "--admin", &server.admin]).args(arguments).output().unwrap().into()
    };
    let shown = run(&[]);
    assert_eq!((shown.code, shown.stderr.as_str()), (0, ""));
    let rows: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows[1].contains("agent=eager") && rows[1].ends_with("100%"), "{rows:?}");
    assert!(rows[2].contains("agent=calm") && rows[2].ends_with("20%"), "{rows:?}");
    assert!(!shown.stdout.contains('\u{1b}'));
    assert_eq!(run(&["--items", "1"]).stdout.lines().count(), 2);
    assert_eq!(run(&["--json"]).json()["items"][0]["attributes"]["agent"], "eager");
    let calm = run(&["--limit", "per-agent", "--attr", "agent=calm", "--json"]);
    assert_eq!(calm.json()["items"].as_array().unwrap().len(), 1);
}

#[test]
fn into_a_pipe_go_plain_lines_until_it_is_ended() {
    let server = busy();
    let arguments = ["top", "--interval", "100ms", "--admin", &server.admin];
    let mut process = command().args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.map(Result::unwrap).take(4).collect();
    for (line, agent) in lines.iter().zip(["eager", "calm", "eager", "calm"]) {
        assert!(!line.contains('\u{1b}'), "{line}");
        let words: Vec<&str> = line.split(' ').collect();
        assert!(words[0].ends_with('Z'), "{line}");
        assert_eq!((words[1], words[2]), ("per-agent", format!("agent={agent}").as_str()), "{line}");
    }
    // The reader is gone, so the next line finds a closed pipe: the end, and not an error.
    assert!(process.wait().unwrap().success());
}

#[test]
fn on_a_terminal_it_redraws_and_ctrl_c_leaves_it_as_it_was() {
    let server = busy();
    let mut top = command();
    top.args(["top", "--interval", "100ms", "--admin", &server.admin]);
    let mut terminal = OnTerminal::run(top);
    terminal.wait_for("agent=eager");
    // Drawn again, from the upper left corner: three pictures.
    while terminal.drawn.matches("\u{1b}[H").count() < 3 {
        assert!(terminal.read_some(), "{:?}", terminal.drawn);
    }
    terminal.interrupt();
    assert_eq!(terminal.end(), 0, "{:?}", terminal.drawn);
    let drawn = &terminal.drawn;
    assert!(drawn.starts_with("\u{1b}[?1049h"), "{drawn:?}");
    assert!(drawn.ends_with("\u{1b}[?1049l"), "{drawn:?}");
    assert!(drawn.contains("\u{1b}[1m\u{1b}[31m██████████"), "used up is red: {drawn:?}");
    assert!(drawn.contains("Ctrl-C ends"), "{drawn:?}");
}

#[test]
fn a_server_that_goes_away_is_told_on_the_screen() {
    let server = busy();
    let mut top = command();
    top.args(["top", "--interval", "100ms", "--admin", &server.admin]).env("NO_COLOR", "1");
    let mut terminal = OnTerminal::run(top);
    terminal.wait_for("agent=eager");
    drop(server);
    terminal.wait_for("No answer, trying again:");
    terminal.wait_for("tidegate serve");
    terminal.interrupt();
    assert_eq!(terminal.end(), 0);
    assert!(!terminal.drawn.contains("\u{1b}[31m") && !terminal.drawn.contains("\u{1b}[1m"), "NO_COLOR holds");
}

#[test]
fn without_a_server_it_says_so_and_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    drop(listener);
    let ended = tidegate(&["top", "--admin", &address]);
    assert_eq!((ended.code, ended.stdout.as_str()), (1, ""));
    assert!(ended.stderr.starts_with(&format!("tidegate: no server can be reached at {address}")), "{}", ended.stderr);
}

#[test]
fn colours_go_to_terminals_only() {
    let drawn = |no_color: bool| {
        let mut check = command();
        check.args(["check", &example("quickstart.yaml")]);
        if no_color {
            check.env("NO_COLOR", "1");
        }
        let mut terminal = OnTerminal::run(check);
        assert_eq!(terminal.end(), 0);
        terminal.drawn.clone()
    };
    assert!(drawn(false).contains("\u{1b}[32mok"), "{:?}", drawn(false));
    assert!(!drawn(true).contains('\u{1b}'), "{:?}", drawn(true));
}
