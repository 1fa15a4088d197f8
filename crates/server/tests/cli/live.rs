//! A running server, for commands that ask one.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use tempfile::TempDir;

use crate::process::command;

/// A server on free ports, ended when it is dropped.
pub(crate) struct Live {
    process: Child,
    check: String,
    pub(crate) admin: String,
    // The limits file lives as long as the server watches it.
    _folder: TempDir,
}

impl Live {
    /// Starts a server on these limits, and waits until it listens.
    pub(crate) fn serving(limits: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("limits.yaml");
        std::fs::write(&file, limits).unwrap();
        let mut process = command()
            .arg("serve")
            .arg(&file)
            .args(["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--json", "--log-level", "error"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let url = |name: &str| told["listening"][name].as_str().unwrap().to_owned();
        Self { process, check: url("check"), admin: url("admin"), _folder: folder }
    }

    /// The status of a check with these attributes.
    pub(crate) fn check(&self, attributes: &serde_json::Value) -> u16 {
        let body = serde_json::json!({ "attributes": attributes }).to_string();
        let host = self.check.strip_prefix("http://").unwrap();
        let mut stream = TcpStream::connect(host).unwrap();
        write!(
            stream,
            "POST /v1/check HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer.split(' ').nth(1).unwrap().parse().unwrap()
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
