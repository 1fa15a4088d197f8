//! How many instances share the server: each says every now and then that it is there. For limits that
//! divide themselves among the instances while the server is away.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::quality::RandomState;
use redis::aio::ConnectionLike;
use redis::{RedisError, Value};

use super::script::HEARTBEAT;

/// This instance's part in it.
#[derive(Debug)]
pub(super) struct Heartbeat {
    key: String,
    /// A name that no other instance has.
    name: String,
    instances: AtomicU64,
}

impl Heartbeat {
    pub(super) fn new(prefix: &str) -> Self {
        let random = RandomState::default();
        let name = format!("{:016x}{:016x}", random.hash_one(std::process::id()), random.hash_one("instance"));
        Self { key: format!("{prefix}:instances"), name, instances: AtomicU64::new(1) }
    }

    /// Instances at the last beat, at least 1.
    pub(super) fn instances(&self) -> u64 {
        self.instances.load(Ordering::Relaxed)
    }

    /// Says that this instance is there, and learns how many are.
    pub(super) async fn beat(&self, connection: &mut impl ConnectionLike) -> Result<(), RedisError> {
        let found = HEARTBEAT.run(connection, &[&self.key], &[self.name.as_bytes()]).await?;
        if let Value::Int(instances) = found {
            self.instances.store(u64::try_from(instances).unwrap_or(1).max(1), Ordering::Relaxed);
        }
        Ok(())
    }
}
