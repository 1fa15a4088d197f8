//! A cluster's slot on its way from one master to another.

use super::cluster::Cluster;
use super::reply::Reply;
use super::server::Server;

/// A slot that two masters hold together: the old one answers for the keys that it still has, and
/// `ASK` for the others; a command with keys on both sides is answered `TRYAGAIN`.
#[derive(Debug)]
#[must_use = "the slot stays between two nodes until `finish`"]
pub struct Migration<'a> {
    cluster: &'a Cluster,
    slot: String,
    from: &'a Server,
    to: &'a Server,
}

/// How many keys are moved by one command.
const KEYS_AT_ONCE: &str = "100";

impl<'a> Migration<'a> {
    #[track_caller]
    pub(super) fn begin(cluster: &'a Cluster, slot: u16, from: &'a Server, to: &'a Server) -> Self {
        assert_ne!(from.port(), to.port(), "slot {slot} is there already");
        let slot = slot.to_string();
        to.cli(&["CLUSTER", "SETSLOT", &slot, "IMPORTING", &from.cluster_id()]);
        from.cli(&["CLUSTER", "SETSLOT", &slot, "MIGRATING", &to.cluster_id()]);
        Self { cluster, slot, from, to }
    }

    /// The master that the slot leaves.
    pub const fn from(&self) -> &'a Server {
        self.from
    }

    /// The master that the slot comes to.
    pub const fn to(&self) -> &'a Server {
        self.to
    }

    /// Moves one key.
    ///
    /// # Panics
    /// If a node refuses.
    #[track_caller]
    pub fn move_key(&self, key: &str) {
        self.migrate(&[Reply::Bulk(key.into())]);
    }

    /// Moves all keys of the slot.
    ///
    /// # Panics
    /// If a node refuses.
    #[track_caller]
    pub fn move_keys(&self) {
        loop {
            let keys = self.from.call(&["CLUSTER", "GETKEYSINSLOT", &self.slot, KEYS_AT_ONCE]);
            if keys.elements().is_empty() {
                break;
            }
            self.migrate(keys.elements());
        }
    }

    /// Gives the slot to its new master; returns when all nodes know.
    ///
    /// # Panics
    /// If keys are left, or the nodes do not agree after 30 s.
    #[track_caller]
    pub fn finish(self) {
        let id = self.to.cluster_id();
        // The new one first: it must not be told by the old one's gossip that the slot is nobody's.
        let others = self.cluster.masters().filter(|node| ![self.from.port(), self.to.port()].contains(&node.port()));
        for node in [self.to, self.from].into_iter().chain(others) {
            node.cli(&["CLUSTER", "SETSLOT", &self.slot, "NODE", &id]);
        }
        self.cluster.wait_until_agreed(self.slot.parse().expect("it was a slot"));
    }

    #[track_caller]
    fn migrate(&self, keys: &[Reply]) {
        let port = self.to.port().to_string();
        let mut command: Vec<&[u8]> = vec![b"MIGRATE", b"127.0.0.1", port.as_bytes(), b"", b"0", b"5000"];
        if let Some(password) = self.to.password() {
            command.extend([b"AUTH", password.as_bytes()]);
        }
        command.push(b"KEYS");
        for key in keys {
            let Reply::Bulk(key) = key else { panic!("a key is bytes: {key:?}") };
            command.push(key);
        }
        let reply = self.from.call(&command);
        assert!(!reply.is_error(), "keys cannot be moved: {reply}");
    }
}
