//! A primary and its replica.

use std::sync::atomic::{AtomicBool, Ordering};

use super::builder::ServerBuilder;
use super::deadline::wait_for;
use super::flavor::Flavor;
use super::server::Server;

/// What lets a replica be in sync at once: the servers otherwise wait 5 s for more replicas.
pub(super) const REPLICATION: [&str; 2] = ["repl-diskless-sync-delay 0", "repl-ping-replica-period 1"];

/// Two servers, one a replica of the other.
#[derive(Debug)]
pub struct Replicated {
    servers: [Server; 2],
    /// Whether the second one is the primary.
    is_swapped: AtomicBool,
}

impl Replicated {
    /// Starts both, and returns when the replica is in sync.
    ///
    /// # Panics
    /// If it is not after 10 s, or the server is not installed.
    #[track_caller]
    pub fn start(flavor: Flavor) -> Self {
        Self::start_with(flavor, |server| server)
    }

    /// As [`start`](Self::start), with servers that are set up differently.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_with(flavor: Flavor, set_up: impl Fn(ServerBuilder) -> ServerBuilder) -> Self {
        let start = || set_up(Server::builder(flavor).lines(REPLICATION)).start();
        let both = Self { servers: [start(), start()], is_swapped: AtomicBool::new(false) };
        both.replica().follow(both.primary());
        both
    }

    /// The one that takes writes.
    pub fn primary(&self) -> &Server {
        &self.servers[usize::from(self.is_swapped.load(Ordering::SeqCst))]
    }

    /// The one that refuses them with `READONLY`.
    pub fn replica(&self) -> &Server {
        &self.servers[usize::from(!self.is_swapped.load(Ordering::SeqCst))]
    }

    /// Makes the replica the primary, and the primary its replica. What the old primary answers
    /// after the replica has caught up and before it knows is lost, as it is outside of tests.
    /// Connections stay open: whoever writes on one to the old primary now gets `READONLY`.
    ///
    /// # Panics
    /// If the replica does not catch up, or the old primary does not follow, within 10 s.
    #[track_caller]
    pub fn promote(&self) {
        let (old, new) = (self.primary(), self.replica());
        let written = offset(old);
        wait_for(|| (offset(new) >= written).then_some(()), || "the replica does not catch up".to_owned());
        new.cli(&["REPLICAOF", "NO", "ONE"]);
        self.is_swapped.fetch_not(Ordering::SeqCst);
        old.follow(new);
    }
}

impl Server {
    /// Makes it a replica of another; returns when it is in sync.
    #[track_caller]
    pub(super) fn follow(&self, primary: &Self) {
        self.cli(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
        self.wait_in_sync();
    }

    /// Returns when this replica is in sync with its primary.
    #[track_caller]
    pub(super) fn wait_in_sync(&self) {
        wait_for(
            || (self.info("master_link_status") == "up").then_some(()),
            || format!("the replica is not in sync:\n{}", self.log_tail()),
        );
    }
}

/// How much of the primary's writes a server has, in bytes.
#[track_caller]
fn offset(server: &Server) -> u64 {
    let field = if server.info("role") == "slave" { "slave_repl_offset" } else { "master_repl_offset" };
    server.info(field).parse().expect("an offset is a number")
}
