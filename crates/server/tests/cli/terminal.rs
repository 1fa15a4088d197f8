//! A terminal to run the binary on.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::OwnedFd;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// A process on a terminal of 90 × 12 characters, and what it has drawn.
pub(crate) struct OnTerminal {
    process: Child,
    master: File,
    pub(crate) drawn: String,
}

impl OnTerminal {
    /// Starts `command` there.
    pub(crate) fn run(mut command: Command) -> Self {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        tcsetwinsize(&master, Winsize { ws_row: 12, ws_col: 90, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap();
        let end = || -> Stdio {
            let file = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
            Stdio::from(OwnedFd::from(file))
        };
        // Without COLUMNS: the terminal itself says how wide it is.
        let command = command.env_remove("COLUMNS").env("TERM", "xterm-256color");
        let process = command.stdin(end()).stdout(end()).stderr(end()).spawn().unwrap();
        Self { process, master: File::from(master), drawn: String::new() }
    }

    /// Reads until `wanted` has been drawn.
    pub(crate) fn wait_for(&mut self, wanted: &str) {
        while !self.drawn.contains(wanted) {
            assert!(self.read_some(), "the process ended before it drew {wanted:?}: {:?}", self.drawn);
        }
    }

    /// As if Ctrl-C was pressed.
    pub(crate) fn interrupt(&self) {
        let pid = Pid::from_child(&self.process);
        kill_process(pid, Signal::INT).unwrap();
    }

    /// Reads to the end; the exit code.
    pub(crate) fn end(&mut self) -> i32 {
        while self.read_some() {}
        self.process.wait().unwrap().code().expect("the process was not killed")
    }

    /// Reads what comes next; false at the end.
    pub(crate) fn read_some(&mut self) -> bool {
        let mut bytes = [0; 4_096];
        match self.master.read(&mut bytes) {
            Ok(0) => false,
            Ok(read) => {
                self.drawn.push_str(&String::from_utf8_lossy(&bytes[..read]));
                true
            }
            // Linux says EIO once nobody holds the other end.
            Err(error) if error.kind() == ErrorKind::Interrupted => true,
            Err(_) => false,
        }
    }
}

impl Drop for OnTerminal {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
