//! How a server is set up.

use std::fs;

use super::deadline::wait_for;
use super::flavor::Flavor;
use super::port::Port;
use super::process::Process;
use super::server::{Parts, Server, User};
use super::tls::{ClientCertificates, TlsFiles};

/// How many ports are tried: each was free a moment before.
const PORTS_TRIED: usize = 5;

/// How a server is to be set up: alone and open, without persistence, unless something else is
/// said.
#[derive(Debug)]
pub struct ServerBuilder {
    flavor: Flavor,
    arguments: Vec<String>,
    /// Lines of the configuration file, which the server may write anew.
    lines: Vec<String>,
    password: Option<String>,
    users: Vec<User>,
    unix_only: bool,
    is_cluster_node: bool,
    tls: Option<ClientCertificates>,
}

/// When the append-only file is made safe: `appendfsync`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendFsync {
    /// Before a write is answered.
    Always,
    /// Once a second.
    EverySecond,
    /// When the system likes.
    Never,
}

impl ServerBuilder {
    pub(super) const fn new(flavor: Flavor) -> Self {
        Self {
            flavor,
            arguments: Vec::new(),
            lines: Vec::new(),
            password: None,
            users: Vec::new(),
            unix_only: false,
            is_cluster_node: false,
            tls: None,
        }
    }

    /// Further arguments of the command line: `&["--maxmemory", "10mb"]`. They hold after a restart,
    /// too, whatever `CONFIG REWRITE` wrote.
    #[must_use]
    pub fn args(mut self, arguments: &[&str]) -> Self {
        self.arguments.extend(arguments.iter().map(|&argument| argument.to_owned()));
        self
    }

    /// A password for the user `default`.
    #[must_use]
    pub fn password(mut self, password: &str) -> Self {
        self.password = Some(password.to_owned());
        self
    }

    /// Another user, with rules as in `~* +@all`; [`Server::url_as`] is its URL.
    #[must_use]
    pub fn acl_user(mut self, name: &str, password: &str, rules: &str) -> Self {
        self.lines.push(format!("user {name} on >{password} {rules}"));
        self.users.push(User { name: name.to_owned(), password: password.to_owned() });
        self
    }

    /// No TCP at all: [`Server::url`] is that of the Unix socket, which every server has.
    #[must_use]
    pub const fn unix_socket(mut self) -> Self {
        self.unix_only = true;
        self
    }

    /// TLS and nothing else on the port, with certificates that are made for it
    /// ([`Server::tls`]).
    ///
    /// # Panics
    /// If the server is not built with TLS ([`Flavor::has_tls`]).
    #[must_use]
    #[track_caller]
    pub fn tls(mut self, client_certificates: ClientCertificates) -> Self {
        assert!(self.flavor.has_tls(), "{} is not built with TLS; Redis70 is", self.flavor);
        self.tls = Some(client_certificates);
        self
    }

    /// Keeps an append-only file: `kill` and `restart` find the data again.
    #[must_use]
    pub fn appendonly(mut self, fsync: AppendFsync) -> Self {
        let fsync = match fsync {
            AppendFsync::Always => "always",
            AppendFsync::EverySecond => "everysec",
            AppendFsync::Never => "no",
        };
        self.lines.extend(["appendonly yes".to_owned(), format!("appendfsync {fsync}")]);
        self
    }

    /// A second port, for the other nodes of a cluster.
    #[must_use]
    pub(super) const fn cluster(mut self) -> Self {
        self.is_cluster_node = true;
        self
    }

    /// Lines of the configuration file.
    #[must_use]
    pub(super) fn lines<L: Into<String>>(mut self, lines: impl IntoIterator<Item = L>) -> Self {
        self.lines.extend(lines.into_iter().map(Into::into));
        self
    }

    /// Starts it, and returns when it answers.
    ///
    /// # Panics
    /// If it does not within 10 s, with the end of its log.
    #[track_caller]
    pub fn start(self) -> Server {
        for _ in 0..PORTS_TRIED {
            let server = self.create();
            server.process().start();
            if server.answers_or_port_is_taken() {
                return server;
            }
        }
        panic!("{PORTS_TRIED} ports were free and taken a moment later");
    }

    /// A folder with a configuration file, a port, and nothing that runs.
    #[track_caller]
    fn create(&self) -> Server {
        let folder = tempfile::Builder::new().prefix("tidegate-").tempdir().expect("a temporary folder can be made");
        let port = Port::reserve();
        let bus = self.is_cluster_node.then(Port::reserve);
        let socket = folder.path().join("socket");
        let tls = self.tls.map(|_| TlsFiles::make(folder.path()));
        let mut lines = self.connection_lines(port.number(), tls.as_ref());
        lines.extend(bus.iter().map(|bus| format!("cluster-port {}", bus.number())));
        lines.extend([
            format!("unixsocket {}", socket.display()),
            format!("dir {}", folder.path().display()),
            "save \"\"".to_owned(),
            // DEBUG SLEEP and its like.
            "enable-debug-command yes".to_owned(),
        ]);
        lines.extend(self.lines.iter().cloned());
        let configuration = folder.path().join("server.conf");
        fs::write(&configuration, lines.join("\n") + "\n").expect("the configuration can be written");
        let mut arguments = vec![configuration.display().to_string()];
        arguments.extend(self.arguments.iter().cloned());
        Server::of(Parts {
            flavor: self.flavor,
            process: Process::new(self.flavor.program(), arguments, folder.path().join("log")),
            port,
            socket,
            folder,
            password: self.password.clone(),
            users: self.users.clone(),
            unix_only: self.unix_only,
            bus,
            tls,
        })
    }

    /// Where it listens, and to whom.
    fn connection_lines(&self, port: u16, tls: Option<&TlsFiles>) -> Vec<String> {
        let plain_port = if self.unix_only || tls.is_some() { 0 } else { port };
        // Without a password, protected mode would refuse all but the loopback addresses; it listens
        // on nothing else.
        let mut lines = vec!["bind 127.0.0.1".to_owned(), format!("port {plain_port}"), "protected-mode no".to_owned()];
        if let Some(password) = &self.password {
            // The second is for its primary, which has the same one.
            lines.extend([format!("requirepass {password}"), format!("masterauth {password}")]);
        }
        if let Some(files) = tls {
            let asks = if self.tls == Some(ClientCertificates::Required) { "yes" } else { "no" };
            lines.extend([
                format!("tls-port {port}"),
                format!("tls-ca-cert-file {}", files.ca().display()),
                format!("tls-cert-file {}", files.server_certificate().display()),
                format!("tls-key-file {}", files.server_key().display()),
                format!("tls-auth-clients {asks}"),
            ]);
        }
        lines
    }
}

impl Server {
    /// Waits until it answers, or has ended as another has its port.
    #[track_caller]
    fn answers_or_port_is_taken(&self) -> bool {
        wait_for(
            || {
                if self.process().has_ended() {
                    let log = self.log_tail();
                    assert!(log.contains("in use"), "{} has ended:\n{log}", self.flavor());
                    return Some(false);
                }
                self.is_ready().then_some(true)
            },
            || format!("{} does not answer:\n{}", self.flavor(), self.log_tail()),
        )
    }
}
