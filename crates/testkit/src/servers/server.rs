//! One server.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::TempDir;

use super::builder::ServerBuilder;
use super::deadline::{DEADLINE, wait_for};
use super::flavor::Flavor;
use super::port::Port;
use super::process::Process;
use super::reply::{Connection, Reply};
use super::tls::TlsFiles;

/// A server of its own, on a port and in a folder of its own. Dropped, it is killed and its data
/// are gone.
#[derive(Debug)]
pub struct Server(Parts);

#[derive(Debug)]
pub(super) struct Parts {
    pub(super) flavor: Flavor,
    // Before the folder: fields are dropped in order.
    pub(super) process: Process,
    pub(super) port: Port,
    pub(super) socket: PathBuf,
    pub(super) folder: TempDir,
    pub(super) password: Option<String>,
    pub(super) users: Vec<User>,
    pub(super) unix_only: bool,
    pub(super) bus: Option<Port>,
    pub(super) tls: Option<TlsFiles>,
}

/// A user of the server beside `default`.
#[derive(Clone, Debug)]
pub(super) struct User {
    pub(super) name: String,
    pub(super) password: String,
}

impl Server {
    /// Starts one without persistence, and returns when it answers.
    ///
    /// # Panics
    /// If it is not installed or does not answer within 10 s.
    #[track_caller]
    pub fn start(flavor: Flavor) -> Self {
        Self::builder(flavor).start()
    }

    /// To set it up differently.
    pub const fn builder(flavor: Flavor) -> ServerBuilder {
        ServerBuilder::new(flavor)
    }

    /// Its product and version.
    pub const fn flavor(&self) -> Flavor {
        self.0.flavor
    }

    /// Its URL, for the user `default`: `redis://127.0.0.1:7000`, or `rediss` with TLS.
    pub fn url(&self) -> String {
        let credentials = self.0.password.as_ref().map(|password| format!(":{}@", percent_encoded(password)));
        if self.0.unix_only { self.unix_url() } else { self.tcp_url(&credentials.unwrap_or_default()) }
    }

    /// Its URL for another user, as given to [`ServerBuilder::acl_user`].
    ///
    /// # Panics
    /// If there is no such user.
    #[track_caller]
    pub fn url_as(&self, user: &str) -> String {
        let found = self.0.users.iter().find(|known| known.name == user);
        let User { name, password } = found.expect("the user was given to the builder");
        self.tcp_url(&format!("{}:{}@", percent_encoded(name), percent_encoded(password)))
    }

    /// The URL of its Unix socket, which every server has: `unix:///tmp/…`.
    pub fn unix_url(&self) -> String {
        let password = self.0.password.as_ref().map(|password| format!("?pass={}", percent_encoded(password)));
        format!("unix://{}{}", self.0.socket.display(), password.unwrap_or_default())
    }

    /// Its port on 127.0.0.1, the same after a restart.
    pub const fn port(&self) -> u16 {
        self.0.port.number()
    }

    /// Its certificates and those for its clients, if it speaks TLS.
    pub const fn tls(&self) -> Option<&TlsFiles> {
        self.0.tls.as_ref()
    }

    /// Its folder: data, log, configuration.
    pub fn folder(&self) -> &Path {
        self.0.folder.path()
    }

    /// The number of its process, another one after a restart.
    ///
    /// # Panics
    /// If it does not run.
    #[track_caller]
    pub fn pid(&self) -> u32 {
        self.0.process.pid().expect("the server runs")
    }

    /// Whether it has a process, paused or not.
    pub fn is_running(&self) -> bool {
        !self.0.process.has_ended()
    }

    /// Kills it (SIGKILL); returns when it is gone.
    pub fn kill(&self) {
        self.0.process.kill();
    }

    /// Stops it where it is (SIGSTOP): its connections stay open and nothing answers.
    ///
    /// # Panics
    /// If it does not run.
    #[track_caller]
    pub fn pause(&self) {
        self.0.process.pause();
    }

    /// Lets it go on after [`pause`](Self::pause).
    ///
    /// # Panics
    /// If it does not run.
    #[track_caller]
    pub fn resume(&self) {
        self.0.process.resume();
    }

    /// Starts it again, on the same port and in the same folder; one that runs is killed first.
    /// Returns when it answers, its data loaded.
    ///
    /// # Panics
    /// If it does not answer within 10 s, with the end of its log.
    #[track_caller]
    pub fn restart(&self) {
        self.0.process.start();
        wait_for(
            || {
                assert!(!self.0.process.has_ended(), "{} has ended:\n{}", self.0.flavor, self.log_tail());
                self.is_ready().then_some(())
            },
            || format!("{} does not answer after a restart:\n{}", self.0.flavor, self.log_tail()),
        );
    }

    /// Sends a command as `default` and gives the answer, which may be an error. On a connection of
    /// its own, over the Unix socket: also where clients must use TLS.
    ///
    /// # Panics
    /// If no answer comes within 10 s.
    #[track_caller]
    pub fn call<A: AsRef<[u8]>>(&self, command: &[A]) -> Reply {
        self.call_within(DEADLINE, command)
            .unwrap_or_else(|error| panic!("{}: {error}; its log:\n{}", self.0.flavor, self.log_tail()))
    }

    /// As [`call`](Self::call), for a server that may be paused or killed.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` if the time was over.
    pub fn call_within<A: AsRef<[u8]>>(&self, patience: Duration, command: &[A]) -> io::Result<Reply> {
        self.connect(patience)?.call(command)
    }

    /// As [`call`](Self::call), with the answer as text, an array's elements one a line.
    ///
    /// # Panics
    /// If the answer is an error, or does not come within 10 s.
    #[track_caller]
    pub fn cli(&self, command: &[&str]) -> String {
        let reply = self.call(command);
        assert!(!reply.is_error(), "{}: {command:?} is answered {reply}", self.0.flavor);
        reply.to_string()
    }

    /// One field of `INFO`, as text; empty if there is none of that name.
    ///
    /// # Panics
    /// As [`cli`](Self::cli).
    #[track_caller]
    pub fn info(&self, field: &str) -> String {
        let info = self.cli(&["INFO", "everything"]);
        let value = info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        value.unwrap_or_default().to_owned()
    }

    /// Whether it answers `PING` within `patience`.
    ///
    /// # Errors
    /// Those of the socket; `WouldBlock` if the time was over.
    pub fn ping(&self, patience: Duration) -> io::Result<()> {
        match self.call_within(patience, &["PING"])? {
            Reply::Simple(_) => Ok(()),
            reply => Err(io::Error::other(reply.to_string())),
        }
    }

    /// The last lines of its log.
    pub fn log_tail(&self) -> String {
        self.0.process.log_tail()
    }

    /// The processor time that its process has taken since it was started last, in all its threads.
    ///
    /// # Panics
    /// If it does not run.
    #[track_caller]
    pub fn cpu_time(&self) -> Duration {
        self.0.process.cpu_time()
    }

    pub(super) const fn of(parts: Parts) -> Self {
        Self(parts)
    }

    /// The port on which a cluster's nodes talk to each other.
    pub(super) fn bus_port(&self) -> Option<u16> {
        self.0.bus.as_ref().map(Port::number)
    }

    /// The password of the user `default`.
    pub(super) fn password(&self) -> Option<&str> {
        self.0.password.as_deref()
    }

    pub(super) const fn process(&self) -> &Process {
        &self.0.process
    }

    /// Whether it answers, and has loaded its data.
    pub(super) fn is_ready(&self) -> bool {
        self.ping(DEADLINE).is_ok()
    }

    fn connect(&self, patience: Duration) -> io::Result<Connection> {
        let mut connection = Connection::unix(&self.0.socket, patience)?;
        if let Some(password) = &self.0.password {
            let reply = connection.call(&["AUTH", password])?;
            if reply.is_error() {
                return Err(io::Error::other(reply.to_string()));
            }
        }
        Ok(connection)
    }

    fn tcp_url(&self, credentials: &str) -> String {
        let scheme = if self.0.tls.is_some() { "rediss" } else { "redis" };
        format!("{scheme}://{credentials}127.0.0.1:{}", self.port())
    }
}

/// As it may stand in a URL.
fn percent_encoded(text: &str) -> String {
    let encoded = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    });
    encoded.collect()
}
