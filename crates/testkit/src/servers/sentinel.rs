//! A primary and two replicas that three Sentinels watch.

use std::time::Duration;

use super::builder::ServerBuilder;
use super::deadline::wait_long_for;
use super::flavor::Flavor;
use super::replicated::REPLICATION;
use super::server::Server;

/// What the Sentinels call what they watch.
const MASTER_NAME: &str = "tidegate";

/// How long a question to one of the Sentinels may take, before the next one is asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// Three servers and three Sentinels that hold a primary for dead after half a second without an
/// answer, if two of them say so.
#[derive(Debug)]
pub struct Sentinel {
    servers: Vec<Server>,
    sentinels: Vec<Server>,
}

impl Sentinel {
    /// Starts all six, and returns when every Sentinel knows all of them.
    ///
    /// # Panics
    /// If that takes longer than 30 s, or the server is not installed.
    #[track_caller]
    pub fn start(flavor: Flavor) -> Self {
        Self::start_with(flavor, |server| server)
    }

    /// As [`start`](Self::start), with servers that are set up differently; the Sentinels are open
    /// to all.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_with(flavor: Flavor, set_up: impl Fn(ServerBuilder) -> ServerBuilder) -> Self {
        let start = || set_up(Server::builder(flavor).lines(REPLICATION)).start();
        let servers = vec![start(), start(), start()];
        let [primary, replicas @ ..] = &servers[..] else { unreachable!("there are three") };
        // Sentinel asks a primary for its replicas every ten seconds only.
        for replica in replicas {
            replica.follow(primary);
        }
        let sentinels = (0..3).map(|_| sentinel(flavor, primary)).collect();
        let all = Self { servers, sentinels };
        all.wait_until_known();
        all
    }

    /// The name of the primary's group.
    pub const fn master_name(&self) -> &'static str {
        MASTER_NAME
    }

    /// The Sentinels' URLs.
    pub fn sentinel_urls(&self) -> Vec<String> {
        self.sentinels.iter().map(Server::url).collect()
    }

    /// The Sentinels.
    pub fn sentinels(&self) -> &[Server] {
        &self.sentinels
    }

    /// The primary and the replicas, whichever is which.
    pub fn servers(&self) -> &[Server] {
        &self.servers
    }

    /// The primary, as the Sentinels say.
    ///
    /// # Panics
    /// If none of them answers.
    #[track_caller]
    pub fn primary(&self) -> &Server {
        let question = ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER_NAME];
        let mut answers = self.sentinels.iter().filter_map(|sentinel| sentinel.call_within(PATIENCE, &question).ok());
        let answer = answers.next().expect("a Sentinel answers");
        let port = answer.elements().get(1).map(ToString::to_string).unwrap_or_default();
        self.servers.iter().find(|server| server.port().to_string() == port).expect("a primary is one of the servers")
    }

    /// Kills the primary (SIGKILL), which is returned. The others learn of it by themselves.
    ///
    /// # Panics
    /// As [`primary`](Self::primary).
    #[track_caller]
    pub fn kill_primary(&self) -> &Server {
        let primary = self.primary();
        primary.kill();
        primary
    }

    /// Waits until another server than `old` is the primary, for the Sentinels and for itself.
    ///
    /// # Panics
    /// If none is after 30 s.
    #[track_caller]
    pub fn wait_for_failover(&self, old: &Server) -> &Server {
        wait_long_for(
            || {
                let primary = self.primary();
                (primary.port() != old.port() && primary.info("role") == "master").then_some(primary)
            },
            || format!("no other primary; a Sentinel's log:\n{}", self.sentinels[0].log_tail()),
        )
    }

    #[track_caller]
    fn wait_until_known(&self) {
        for sentinel in &self.sentinels {
            let knows_all = || {
                let master = sentinel.cli(&["SENTINEL", "MASTER", MASTER_NAME]);
                let has = |name: &str, value: &str| master.contains(&format!("\n{name}\n{value}\n"));
                (has("num-slaves", "2") && has("num-other-sentinels", "2") && has("flags", "master")).then_some(())
            };
            wait_long_for(knows_all, || format!("a Sentinel does not know all:\n{}", sentinel.log_tail()));
        }
    }
}

#[track_caller]
fn sentinel(flavor: Flavor, primary: &Server) -> Server {
    let port = primary.port();
    let mut lines = vec![
        format!("sentinel monitor {MASTER_NAME} 127.0.0.1 {port} 2"),
        format!("sentinel down-after-milliseconds {MASTER_NAME} 500"),
        format!("sentinel failover-timeout {MASTER_NAME} 2000"),
        format!("sentinel parallel-syncs {MASTER_NAME} 2"),
    ];
    lines.extend(primary.password().map(|password| format!("sentinel auth-pass {MASTER_NAME} {password}")));
    let sentinel = Server::builder(flavor).lines(lines).args(&["--sentinel"]).start();
    // They tell each other of themselves and ask for replicas more often than every 2 s and 10 s.
    sentinel.cli(&["SENTINEL", "DEBUG", "PUBLISH-PERIOD", "100", "INFO-PERIOD", "200"]);
    sentinel
}
