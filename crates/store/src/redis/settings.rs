//! Where the server is and how it is spoken to.

use std::sync::Arc;
use std::time::Duration;

use redis::cluster::{ClusterClient, ClusterClientBuilder};
use redis::io::tcp::TcpSettings;
use redis::sentinel::{SentinelClient, SentinelClientBuilder, SentinelServerType};
use redis::{
    AsyncConnectionConfig, Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, RedisError,
    TlsCertificates, TlsMode,
};
use tokio::sync::Mutex;

use super::keys::Slot;
use super::link::CONNECT_MOST;
use super::node::Wire;

/// How often a cluster's client asks again: for a slot that has moved, it asks where it is now.
const CLUSTER_RETRIES: u32 = 3;
/// The longest wait, in ms, before it does; a call has a deadline of its own.
const CLUSTER_RETRY_MS_MAX: u64 = 10;

/// The shared store's settings.
#[derive(Clone, Debug)]
pub struct RedisSettings {
    address: Address,
    server: Server,
    prefix: String,
    /// How long a call may take.
    pub timeout: Duration,
    /// Which keys share a slot of a cluster.
    pub slot: Slot,
    /// Whether a refusal that holds until a known instant is remembered, and not asked again until then.
    pub deny_memory: bool,
}

/// Where the server is.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// `redis://[user:password@]host[:port][/database]`, `rediss://…` for TLS, or
    /// `redis+unix:///path?db=…&user=…&pass=…`. A `?protocol=resp3` asks for RESP3. With sentinels the host is
    /// the name by which they know the primary.
    pub url: String,
    /// The sentinels that know which server is the primary: `redis://[user:password@]host[:port]` each.
    pub sentinels: Vec<String>,
    /// Some servers of a cluster, in the place of `url`: any one of them knows the others.
    pub cluster: Vec<String>,
    /// Whom to trust and who to be, with `rediss://`.
    pub tls: Tls,
}

/// Certificates, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// Who has to have signed the server's certificate. None: whom the system trusts.
    pub ca: Option<String>,
    /// The certificate that the client shows, and its key.
    pub client: Option<(String, String)>,
}

/// Why these are no settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RedisSettingsError {
    /// Not an address.
    #[error("it is not the address of a Redis ({0}); an example: redis://127.0.0.1:6379/0")]
    Url(String),
    /// Not the address of a sentinel.
    #[error("'{0}' is not the address of a sentinel; an example: redis://127.0.0.1:26379")]
    Sentinel(String),
    /// Not the address of a server of a cluster.
    #[error("'{0}' is not the address of a server of a cluster; an example: redis://127.0.0.1:6379")]
    Node(String),
    /// The servers of a cluster do not fit together, or it is said twice where the server is.
    #[error("{0}")]
    Cluster(&'static str),
    /// Certificates for a connection without TLS.
    #[error("certificates need TLS: write rediss:// in the url")]
    NoTls,
    /// Certificates that cannot be read.
    #[error("the certificates are not PEM, or do not belong together ({0})")]
    Certificates(String),
    /// A prefix with letters that mean something in a key.
    #[error("it may have letters, digits and -._: only, and at most 64 of them")]
    Prefix,
}

impl RedisSettings {
    /// The defaults, for the server at this url; see [`Address::url`].
    ///
    /// # Errors
    /// [`RedisSettingsError::Url`].
    pub fn new(url: &str) -> Result<Self, RedisSettingsError> {
        Self::at(Address { url: url.to_owned(), ..Address::default() })
    }

    /// The defaults, for the server at this address.
    ///
    /// # Errors
    /// [`RedisSettingsError`], but for the prefix.
    pub fn at(address: Address) -> Result<Self, RedisSettingsError> {
        Ok(Self {
            server: Server::new(&address)?,
            address,
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

    /// Whether the server is a cluster.
    pub const fn is_cluster(&self) -> bool {
        matches!(self.server, Server::Cluster(_))
    }

    /// Whether one request's counters may be on several servers.
    pub(super) fn is_split(&self) -> bool {
        self.is_cluster() && self.slot != Slot::Single
    }

    pub(super) const fn server(&self) -> &Server {
        &self.server
    }
}

impl PartialEq for RedisSettings {
    fn eq(&self, other: &Self) -> bool {
        let Self { address, server: _, prefix, timeout, slot, deny_memory } = self;
        (address, prefix, timeout, slot, deny_memory)
            == (&other.address, &other.prefix, &other.timeout, &other.slot, &other.deny_memory)
    }
}

impl Eq for RedisSettings {}

impl std::fmt::Debug for Address {
    /// Without passwords and keys.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (sentinels, nodes) = (self.sentinels.len(), self.cluster.len());
        f.debug_struct("Address").field("sentinels", &sentinels).field("cluster", &nodes).finish_non_exhaustive()
    }
}

/// A server, or who knows where it is.
#[derive(Clone)]
pub(super) enum Server {
    /// At a fixed address.
    Alone(Arc<Client>),
    /// Where the sentinels say.
    Sentinel(Arc<Mutex<SentinelClient>>),
    /// Many, of which each has some of the slots.
    Cluster(Arc<ClusterClient>),
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Alone(_) => "Alone",
            Self::Sentinel(_) => "Sentinel",
            Self::Cluster(_) => "Cluster",
        })
    }
}

impl Server {
    fn new(address: &Address) -> Result<Self, RedisSettingsError> {
        if !address.cluster.is_empty() {
            return cluster(address).map(|client| Self::Cluster(Arc::new(client)));
        }
        let info = info(&address.url).map_err(RedisSettingsError::Url)?;
        let certificates = certificates(&info, &address.tls)?;
        if address.sentinels.is_empty() {
            let client = match certificates {
                Some(certificates) => Client::build_with_tls(info, certificates),
                None => Client::open(info),
            };
            return client
                .map(|client| Self::Alone(Arc::new(client)))
                .map_err(|error| RedisSettingsError::Certificates(why(&error)));
        }
        let client = sentinel(&info, certificates, &address.sentinels)?;
        Ok(Self::Sentinel(Arc::new(Mutex::new(client))))
    }

    /// Connects to the server that takes writes.
    pub(super) async fn connect(&self, config: &AsyncConnectionConfig) -> Result<Wire, RedisError> {
        let client = match self {
            Self::Alone(client) => Client::clone(client),
            // One at a time asks the sentinels; only the link does.
            Self::Sentinel(client) => client.lock().await.async_get_client().await?,
            Self::Cluster(client) => return client.get_async_connection().await.map(Wire::Cluster),
        };
        client.get_multiplexed_async_connection_with_config(config).await.map(Wire::Alone)
    }
}

/// What a url says, with small packets sent at once.
fn info(url: &str) -> Result<ConnectionInfo, String> {
    let info = url.into_connection_info().map_err(|error| why(&error))?;
    Ok(info.set_tcp_settings(TcpSettings::default().set_nodelay(true)))
}

/// The library's words without what it quotes: that may be the password.
fn why(error: &RedisError) -> String {
    error.detail().filter(|detail| !detail.contains('@')).unwrap_or("unreadable").to_owned()
}

fn certificates(info: &ConnectionInfo, tls: &Tls) -> Result<Option<TlsCertificates>, RedisSettingsError> {
    if !matches!(info.addr(), ConnectionAddr::TcpTls { .. }) {
        return if *tls == Tls::default() { Ok(None) } else { Err(RedisSettingsError::NoTls) };
    }
    // The provider of the process is whoever came first; it is only needed that there is one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if *tls == Tls::default() {
        return Ok(None);
    }
    let client = tls.client.as_ref().map(|(certificate, key)| ClientTlsConfig {
        client_cert: certificate.clone().into_bytes(),
        client_key: key.clone().into_bytes(),
    });
    Ok(Some(TlsCertificates { client_tls: client, root_cert: tls.ca.clone().map(String::into_bytes) }))
}

fn sentinel(
    primary: &ConnectionInfo,
    certificates: Option<TlsCertificates>,
    urls: &[String],
) -> Result<SentinelClient, RedisSettingsError> {
    let (ConnectionAddr::Tcp(name, _) | ConnectionAddr::TcpTls { host: name, .. }) = primary.addr() else {
        return Err(RedisSettingsError::Url("with sentinels the host is the name of the primary".into()));
    };
    let sentinel = |url: &String| info(url).map_err(|_| RedisSettingsError::Sentinel(shown(url)));
    let sentinels = urls.iter().map(sentinel).collect::<Result<Vec<_>, _>>()?;
    let addresses = sentinels.iter().map(|info| info.addr().clone());
    let broken = |error: RedisError| RedisSettingsError::Certificates(why(&error));
    let mut builder = SentinelClientBuilder::new(addresses, name, SentinelServerType::Master).map_err(broken)?;
    let own = primary.redis_settings();
    builder = builder.set_client_to_redis_db(own.db()).set_client_to_redis_protocol(own.protocol());
    builder = builder.set_client_to_redis_tcp_settings(TcpSettings::default().set_nodelay(true));
    if let Some(user) = own.username() {
        builder = builder.set_client_to_redis_username(user);
    }
    if let Some(password) = own.password() {
        builder = builder.set_client_to_redis_password(password);
    }
    if matches!(primary.addr(), ConnectionAddr::TcpTls { .. }) {
        builder = builder.set_client_to_redis_tls_mode(TlsMode::Secure);
    }
    if let Some(certificates) = certificates {
        builder = builder.set_client_to_redis_certificates(certificates);
    }
    // All sentinels have one user and password.
    if let Some(user) = sentinels.iter().find_map(|info| info.redis_settings().username()) {
        builder = builder.set_client_to_sentinel_username(user);
    }
    if let Some(password) = sentinels.iter().find_map(|info| info.redis_settings().password()) {
        builder = builder.set_client_to_sentinel_password(password);
    }
    builder.build().map_err(broken)
}

fn cluster(address: &Address) -> Result<ClusterClient, RedisSettingsError> {
    if !address.url.is_empty() || !address.sentinels.is_empty() {
        return Err(RedisSettingsError::Cluster("with a cluster there is neither a url nor sentinels"));
    }
    let node = |url: &String| info(url).map_err(|_| RedisSettingsError::Node(shown(url)));
    let nodes = address.cluster.iter().map(node).collect::<Result<Vec<_>, _>>()?;
    if nodes.iter().any(|node| node.redis_settings().db() != 0) {
        return Err(RedisSettingsError::Cluster("a cluster has no numbered databases: end the urls after the port"));
    }
    let certificates = nodes.first().map(|node| certificates(node, &address.tls)).transpose()?.flatten();
    let mut builder = ClusterClientBuilder::new(nodes)
        .retries(CLUSTER_RETRIES)
        .min_retry_wait(1)
        .max_retry_wait(CLUSTER_RETRY_MS_MAX)
        .connection_timeout(CONNECT_MOST)
        .response_timeout(CONNECT_MOST)
        .tcp_settings(TcpSettings::default().set_nodelay(true));
    let with_certificates = certificates.is_some();
    if let Some(certificates) = certificates {
        builder = builder.certs(certificates);
    }
    builder.build().map_err(|error| {
        if with_certificates {
            return RedisSettingsError::Certificates(why(&error));
        }
        RedisSettingsError::Cluster("the urls of a cluster differ in more than the address: write them alike")
    })
}

/// The part of a url that holds no password.
fn shown(url: &str) -> String {
    url.rsplit('@').next().unwrap_or_default().chars().take(64).collect()
}
