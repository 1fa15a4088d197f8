//! The server as a process of its own.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use crate::support::PATIENCE;

/// A process that is killed when the test ends.
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) stdout: BufReader<ChildStdout>,
    pub(crate) check: SocketAddr,
    pub(crate) admin: SocketAddr,
    pub(crate) first_line: String,
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn file(folder: &Path, text: &str) -> PathBuf {
    let path = folder.join("limits.yaml");
    std::fs::write(&path, text).unwrap();
    path
}

pub(crate) fn command(path: &Path, options: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.arg("serve").arg(path).args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]).args(options);
    command.env_remove("RUST_LOG").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(crate) fn start(path: &Path, options: &[&str]) -> Process {
    start_command(&mut command(path, options))
}

pub(crate) fn start_command(command: &mut Command) -> Process {
    let mut child = command.spawn().unwrap();
    let mut first_line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut first_line).unwrap();
    let addr = |name: &str| {
        let at = first_line.find(&format!("{name}=http://")).unwrap_or_else(|| panic!("{first_line}"));
        let rest = &first_line[at + name.len() + "=http://".len()..];
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (check, admin) = (addr("check"), addr("admin"));
    Process { child, stdout, check, admin, first_line }
}

impl Process {
    pub(crate) fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &pid]).status().unwrap().success());
    }

    /// The memory that it holds.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.child.id())).unwrap();
        // In pages of 4 KiB.
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Waits for the end: whether it ended well, and what it logged.
    pub(crate) async fn end(mut self) -> (bool, String) {
        let mut stderr = self.child.stderr.take().unwrap();
        let ended = tokio::task::spawn_blocking(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).unwrap();
            (self.child.wait().unwrap().success(), log)
        });
        tokio::time::timeout(PATIENCE, ended).await.expect("the process ends").unwrap()
    }
}
