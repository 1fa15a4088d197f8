//! The files of packaging/: what they start is what the binary takes.
#![expect(clippy::unwrap_used, clippy::panic, reason = "that is how a test fails")]

mod compose;
mod dockerfile;
mod unit;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where the packaged limits file is on the machine it is installed on.
const INSTALLED: &str = "/etc/tidegate/tidegate.yaml";

fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The packaged limits file, here.
fn packaged() -> String {
    repository("packaging/etc/tidegate/tidegate.yaml").display().to_string()
}

fn tidegate(arguments: &[String]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.args(arguments).env_remove("TIDEGATE_ADMIN").env_remove("TIDEGATE_ADMIN_TOKEN").stdin(Stdio::null());
    command
}

/// Starts a packaged `serve` command line as it is, but for the path of the limits file and the
/// ports, and ends it once it listens.
fn starts(arguments: &[String]) {
    let mut arguments: Vec<String> = arguments
        .iter()
        .map(|argument| match argument.as_str() {
            INSTALLED => packaged(),
            address if address.ends_with(":8080") => "127.0.0.1:0".to_owned(),
            other => other.to_owned(),
        })
        .collect();
    assert!(arguments.contains(&packaged()), "{arguments:?}");
    if !arguments.iter().any(|argument| argument == "--listen") {
        arguments.extend(["--listen".to_owned(), "127.0.0.1:0".to_owned()]);
    }
    arguments.extend(["--admin".to_owned(), "127.0.0.1:0".to_owned()]);
    let mut server = tidegate(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let told = BufReader::new(server.stdout.take().unwrap()).read_line(&mut line);
    server.kill().unwrap();
    let ended = server.wait_with_output().unwrap();
    told.unwrap();
    assert!(line.starts_with("listening "), "{arguments:?}: {line:?} {}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn the_packaged_limits_file_is_well() {
    let checked = tidegate(&["check".into(), "--strict".into(), packaged()]).output().unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
