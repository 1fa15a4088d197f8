//! Starting the binary, and what came of it.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The binary, in an environment that says nothing about it or about colours, 100 characters wide.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    for name in ["TIDEGATE_ADMIN", "TIDEGATE_ADMIN_TOKEN", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "RUST_LOG"] {
        command.env_remove(name);
    }
    command.env("COLUMNS", "100").env("USER", "tester").stdin(Stdio::null());
    command
}

/// How a process ended, and what it wrote.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Ended {
    fn from(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
        let code = output.status.code().expect("the process was not killed");
        Self { code, stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Ended {
    /// What it wrote on standard output, as JSON.
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// Runs the binary to its end.
pub(crate) fn tidegate(arguments: &[&str]) -> Ended {
    command().args(arguments).output().expect("the binary runs").into()
}

/// Runs the binary to its end with something on its standard input.
pub(crate) fn tidegate_reading(input: &str, arguments: &[&str]) -> Ended {
    let piped = command().args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut child = piped.expect("the binary runs");
    child.stdin.take().expect("it was piped").write_all(input.as_bytes()).expect("it reads");
    child.wait_with_output().expect("it ends").into()
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// An example, by its name.
pub(crate) fn example(name: &str) -> String {
    repository("examples").join(name).display().to_string()
}
