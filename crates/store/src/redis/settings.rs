//! Where the server is and how it is spoken to.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, RedisError};

use super::keys::Slot;

/// The shared store's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisSettings {
    /// Where the server is: `redis://[user:password@]host[:port][/database]`, `rediss://` for TLS,
    /// `redis+unix:///path?db=0&user=…&pass=…`.
    pub url: String,
    /// What every key begins with: letters, digits and `-._:`.
    pub prefix: String,
    /// How long a call may take, 1 ms to 10 s.
    pub timeout: Duration,
    /// Which keys share a slot of a cluster.
    pub slot: Slot,
}

impl RedisSettings {
    /// The defaults, for the server at `url`.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "ratelimit".into(),
            timeout: Duration::from_millis(50),
            slot: Slot::Attribute(Arc::from("org")),
        }
    }
}

/// A server, or what knows where it is.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// At a fixed address.
    Alone(Client),
}

impl Server {
    pub(super) fn new(settings: &RedisSettings) -> Result<Self, RedisError> {
        Client::open(settings.url.as_str()).map(Self::Alone)
    }

    /// A client of the server that takes writes.
    pub(super) async fn client(&self) -> Result<Client, RedisError> {
        match self {
            Self::Alone(client) => Ok(client.clone()),
        }
    }
}
