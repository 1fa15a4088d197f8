//! A cluster of three masters, each with a replica if wanted.

use std::time::Duration;

use super::builder::ServerBuilder;
use super::deadline::wait_long_for;
use super::flavor::Flavor;
use super::migration::Migration;
use super::replicated::REPLICATION;
use super::reply::Reply;
use super::server::Server;

/// How many slots a cluster has.
pub const SLOTS: u16 = 16_384;

const MASTERS: usize = 3;

/// How long a question to one of the nodes may take, before the next one is asked.
const PATIENCE: Duration = Duration::from_millis(500);

/// Three masters with a third of the slots each, that hold a node for dead after a second without
/// an answer.
#[derive(Debug)]
pub struct Cluster {
    nodes: Vec<Server>,
}

impl Cluster {
    /// Starts three masters without replicas; returns when all slots are served, after some two
    /// seconds that a node waits before it serves.
    ///
    /// # Panics
    /// If that takes longer than 30 s, or the server is not installed.
    #[track_caller]
    pub fn start(flavor: Flavor) -> Self {
        Self::start_with(flavor, false, |server| server)
    }

    /// As [`start`](Self::start), with a replica for each master.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_with_replicas(flavor: Flavor) -> Self {
        Self::start_with(flavor, true, |server| server)
    }

    /// As [`start`](Self::start), with or without replicas and with nodes that are set up
    /// differently.
    ///
    /// # Panics
    /// As [`start`](Self::start).
    #[track_caller]
    pub fn start_with(flavor: Flavor, has_replicas: bool, set_up: impl Fn(ServerBuilder) -> ServerBuilder) -> Self {
        let count = if has_replicas { 2 * MASTERS } else { MASTERS };
        let start = |_| set_up(Server::builder(flavor).cluster().lines(REPLICATION).lines(SETTINGS)).start();
        let cluster = Self { nodes: (0..count).map(start).collect() };
        cluster.share_slots();
        cluster.introduce();
        cluster.make_replicas();
        cluster.wait_until_whole();
        cluster
    }

    /// The nodes' URLs, those of the first masters first.
    pub fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(Server::url).collect()
    }

    /// All nodes: those that were masters at first, then their replicas in the same order.
    pub fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    /// The slot of a key.
    ///
    /// # Panics
    /// If no node answers.
    #[track_caller]
    pub fn slot_of(&self, key: &str) -> u16 {
        let slot = self.ask(&["CLUSTER", "KEYSLOT", key]).to_string();
        slot.parse().expect("a slot is a number")
    }

    /// The node that serves a slot, by what the first node that runs knows.
    ///
    /// # Panics
    /// If no node answers or none serves the slot.
    #[track_caller]
    pub fn master_of(&self, slot: u16) -> &Server {
        let port = master_port(&self.ask(&["CLUSTER", "SLOTS"]), slot).expect("each slot has a master");
        self.nodes.iter().find(|node| i64::from(node.port()) == port).expect("a master is one of the nodes")
    }

    /// Kills the node that serves a slot (SIGKILL), which is returned. The others learn of it by
    /// themselves.
    ///
    /// # Panics
    /// As [`master_of`](Self::master_of).
    #[track_caller]
    pub fn kill_master(&self, slot: u16) -> &Server {
        let master = self.master_of(slot);
        master.kill();
        master
    }

    /// Waits until all nodes that run know another node than `old` to serve the slot, and serve
    /// themselves.
    ///
    /// # Panics
    /// If they do not after 30 s.
    #[track_caller]
    pub fn wait_for_failover(&self, slot: u16, old: &Server) -> &Server {
        wait_long_for(
            || (self.agree(slot) && self.master_of(slot).port() != old.port()).then(|| self.master_of(slot)),
            || format!("no other master of slot {slot}; a node's log:\n{}", self.nodes[0].log_tail()),
        )
    }

    /// Moves a slot with its keys to another master; returns when all nodes know.
    ///
    /// # Panics
    /// If they do not after 30 s, or a node refuses.
    #[track_caller]
    pub fn migrate_slot(&self, slot: u16, to: &Server) {
        let migration = self.begin_migration(slot, to);
        migration.move_keys();
        migration.finish();
    }

    /// Begins to move a slot: from now on its master answers `ASK` for keys that it has not.
    ///
    /// # Panics
    /// If a node refuses.
    #[track_caller]
    pub fn begin_migration<'a>(&'a self, slot: u16, to: &'a Server) -> Migration<'a> {
        Migration::begin(self, slot, self.master_of(slot), to)
    }

    /// Returns when all nodes that run serve, and name the same master of a slot.
    #[track_caller]
    pub(super) fn wait_until_agreed(&self, slot: u16) {
        wait_long_for(|| self.agree(slot).then_some(()), || format!("the nodes do not agree on slot {slot}"));
    }

    /// The nodes that run and are masters.
    pub(super) fn masters(&self) -> impl Iterator<Item = &Server> {
        self.nodes.iter().filter(|node| node.is_running() && node.info("role") == "master")
    }

    #[track_caller]
    fn share_slots(&self) {
        let each = usize::from(SLOTS).div_ceil(MASTERS);
        for (index, node) in self.nodes[..MASTERS].iter().enumerate() {
            let (first, end) = (index * each, usize::min((index + 1) * each, usize::from(SLOTS)));
            node.cli(&["CLUSTER", "ADDSLOTSRANGE", &first.to_string(), &(end - 1).to_string()]);
            // Epochs of their own from the beginning: nothing to settle between them.
            node.cli(&["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()]);
        }
    }

    /// Makes every node known to every other one.
    #[track_caller]
    fn introduce(&self) {
        for (index, node) in self.nodes.iter().enumerate() {
            for other in &self.nodes[index + 1..] {
                let bus = other.bus_port().expect("a node has a port for the others").to_string();
                node.cli(&["CLUSTER", "MEET", "127.0.0.1", &other.port().to_string(), &bus]);
            }
        }
        for node in &self.nodes {
            let known = || (knows(node) == self.nodes.len()).then_some(());
            wait_long_for(known, || format!("the nodes do not meet:\n{}", node.log_tail()));
        }
    }

    #[track_caller]
    fn make_replicas(&self) {
        let (masters, replicas) = self.nodes.split_at(MASTERS);
        for (master, replica) in masters.iter().zip(replicas) {
            replica.cli(&["CLUSTER", "REPLICATE", &master.cluster_id()]);
        }
        for replica in replicas {
            wait_long_for(
                || (replica.info("role") == "slave").then_some(()),
                || format!("a node does not become a replica:\n{}", replica.log_tail()),
            );
            replica.wait_in_sync();
        }
    }

    /// Waits until every node serves, and every node knows each one's role.
    #[track_caller]
    fn wait_until_whole(&self) {
        let replicas = self.nodes.len() - MASTERS;
        for node in &self.nodes {
            let is_whole = || {
                let nodes = node.cli(&["CLUSTER", "NODES"]);
                let followers = nodes.lines().filter(|line| line.contains("slave")).count();
                (serves(node) && followers == replicas).then_some(())
            };
            wait_long_for(is_whole, || format!("the cluster is not whole:\n{}", node.log_tail()));
        }
    }

    /// Whether all nodes that run serve, and name the same master of a slot.
    #[track_caller]
    fn agree(&self, slot: u16) -> bool {
        let mut running = self.nodes.iter().filter(|node| node.is_running());
        let named = self.master_of(slot).port();
        running.all(|node| {
            let slots = node.call(&["CLUSTER", "SLOTS"]);
            serves(node) && master_port(&slots, slot) == Some(i64::from(named))
        })
    }

    /// The answer of the first node that gives one.
    #[track_caller]
    fn ask(&self, question: &[&str]) -> Reply {
        let running = self.nodes.iter().filter(|node| node.is_running());
        let mut answers = running.filter_map(|node| node.call_within(PATIENCE, question).ok());
        answers.next().expect("a node answers")
    }
}

/// A second without an answer, and a replica takes over, however old its data are. Replicas stay
/// with their masters.
const SETTINGS: [&str; 4] = [
    "cluster-enabled yes",
    "cluster-node-timeout 1000",
    "cluster-replica-validity-factor 0",
    "cluster-allow-replica-migration no",
];

impl Server {
    /// A cluster's name for the node.
    #[track_caller]
    pub(super) fn cluster_id(&self) -> String {
        self.cli(&["CLUSTER", "MYID"])
    }
}

/// How many nodes a node knows and has shaken hands with, itself included.
#[track_caller]
fn knows(node: &Server) -> usize {
    let nodes = node.cli(&["CLUSTER", "NODES"]);
    nodes.lines().filter(|line| !line.contains("handshake") && line.contains("connected")).count()
}

#[track_caller]
fn serves(node: &Server) -> bool {
    node.cli(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
}

/// The port of a slot's master in an answer to `CLUSTER SLOTS`: rows of first slot, last slot,
/// master (address, port, …), replicas.
fn master_port(slots: &Reply, slot: u16) -> Option<i64> {
    let holds = |row: &&Reply| match row.elements() {
        [Reply::Integer(first), Reply::Integer(last), ..] => (*first..=*last).contains(&i64::from(slot)),
        _ => false,
    };
    match slots.elements().iter().find(holds)?.elements().get(2)?.elements().get(1)? {
        Reply::Integer(port) => Some(*port),
        _ => None,
    }
}
