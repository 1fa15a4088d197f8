//! Where the server is and how it is spoken to.

use std::sync::Arc;
use std::time::Duration;

use redis::{Client, RedisError};

use super::keys::Slot;

/// The shared store's settings.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    url: String,
    server: Server,
    prefix: String,
    /// How long a call may take.
    pub timeout: Duration,
    /// Which keys share a slot of a cluster.
    pub slot: Slot,
    /// Whether a refusal that holds until a known instant is remembered, and not asked again until then.
    pub deny_memory: bool,
}

/// Why these are no settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisSettingsError {
    /// Not an address.
    #[error("it is not the address of a Redis ({0}); an example: redis://127.0.0.1:6379/0")]
    Url(String),
    /// A prefix with letters that mean something in a key.
    #[error("it may have letters, digits and -._: only, and at most 64 of them")]
    Prefix,
}

impl RedisSettings {
    /// The defaults, for the server at `redis://[user:password@]host[:port][/database]`, `rediss://…` for
    /// TLS, or `redis+unix:///path?db=…&user=…&pass=…`. A `?protocol=resp3` asks for RESP3.
    ///
    /// # Errors
    /// [`RedisSettingsError::Url`].
    pub fn new(url: &str) -> Result<Self, RedisSettingsError> {
        // The library's own words may hold the password.
        let why = |error: RedisError| error.detail().unwrap_or("unreadable").to_owned();
        let client = Client::open(url).map_err(|error| RedisSettingsError::Url(why(error)))?;
        Ok(Self {
            url: url.to_owned(),
            server: Server::Alone(client),
            prefix: "ratelimit".into(),
            timeout: Duration::from_millis(50),
            slot: Slot::Attribute(Arc::from("org")),
            deny_memory: true,
        })
    }

    /// With what every key begins: `ratelimit`, if nothing else is said.
    ///
    /// # Errors
    /// [`RedisSettingsError::Prefix`].
    pub fn with_prefix(self, prefix: &str) -> Result<Self, RedisSettingsError> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
        if prefix.is_empty() || prefix.len() > 64 || !prefix.bytes().all(is_plain) {
            return Err(RedisSettingsError::Prefix);
        }
        Ok(Self { prefix: prefix.to_owned(), ..self })
    }

    /// With what every key begins.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The key of a number that grows with each reset, so that others forget what they remember.
    pub(super) fn resets_key(&self) -> String {
        format!("{}:resets", self.prefix)
    }

    pub(super) const fn server(&self) -> &Server {
        &self.server
    }
}

impl PartialEq for RedisSettings {
    fn eq(&self, other: &Self) -> bool {
        let Self { url, server: _, prefix, timeout, slot, deny_memory } = self;
        (url, prefix, timeout, slot, deny_memory)
            == (&other.url, &other.prefix, &other.timeout, &other.slot, &other.deny_memory)
    }
}

impl Eq for RedisSettings {}

/// A server, or what knows where it is.
#[derive(Clone, Debug)]
pub(super) enum Server {
    /// At a fixed address.
    Alone(Client),
}

impl Server {
    /// A client of the server that takes writes.
    pub(super) async fn client(&self) -> Result<Client, RedisError> {
        match self {
            Self::Alone(client) => Ok(client.clone()),
        }
    }
}
