//! What can be wrong with a Redis, told apart.

use redis::{ErrorKind, RedisError, ServerErrorKind};

/// Why a call got no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// No answer within the deadline. Whether something was taken is not known.
    TimedOut,
    /// Nobody listens there, or the name is not known.
    Refused,
    /// The connection broke. Whether something was taken is not known.
    Disconnected,
    /// The password or the user is wrong, or missing (NOAUTH, WRONGPASS).
    Unauthenticated,
    /// The user may not do what is needed (NOPERM).
    Forbidden,
    /// The server's memory is full, and its policy is to refuse (OOM).
    OutOfMemory,
    /// The server is a replica (READONLY), or has no master (MASTERDOWN).
    ReadOnly,
    /// The server is reading its data (LOADING).
    Loading,
    /// The server is busy with a long script (BUSY).
    Busy,
    /// The cluster does not serve the slot (CLUSTERDOWN).
    ClusterDown,
    /// The slot is elsewhere, and moving (MOVED, ASK, TRYAGAIN, CROSSSLOT).
    Moved,
    /// An answer that is not one of this protocol or of our scripts.
    Protocol,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 12] = [
        Self::TimedOut,
        Self::Refused,
        Self::Disconnected,
        Self::Unauthenticated,
        Self::Forbidden,
        Self::OutOfMemory,
        Self::ReadOnly,
        Self::Loading,
        Self::Busy,
        Self::ClusterDown,
        Self::Moved,
        Self::Protocol,
    ];

    /// The word in metrics and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TimedOut => "timed_out",
            Self::Refused => "refused",
            Self::Disconnected => "disconnected",
            Self::Unauthenticated => "unauthenticated",
            Self::Forbidden => "forbidden",
            Self::OutOfMemory => "out_of_memory",
            Self::ReadOnly => "read_only",
            Self::Loading => "loading",
            Self::Busy => "busy",
            Self::ClusterDown => "cluster_down",
            Self::Moved => "moved",
            Self::Protocol => "protocol",
        }
    }

    /// What an operator can do about it.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::TimedOut => "it does not answer in time: is it overloaded, paused, or far away?",
            Self::Refused => "nobody answers at store.redis.url: is it running, and is the address right?",
            Self::Disconnected => "the connection broke",
            Self::Unauthenticated => "the user or password in store.redis.url is wrong",
            Self::Forbidden => "the ACL user needs +@read +@write +@scripting +@connection +time on the prefix's keys",
            Self::OutOfMemory => "its memory is full: raise maxmemory",
            Self::ReadOnly => "it is a replica: point store.redis.url at the primary or use Sentinel",
            Self::Loading => "it is loading its data",
            Self::Busy => "it is busy with a long script",
            Self::ClusterDown => "the cluster does not serve all slots",
            Self::Moved => "the cluster is moving slots",
            Self::Protocol => "it answered something unexpected: is it Redis 7.0 or later, or Valkey?",
        }
    }
}

impl From<&RedisError> for Fault {
    fn from(error: &RedisError) -> Self {
        match error.kind() {
            ErrorKind::AuthenticationFailed => Self::Unauthenticated,
            ErrorKind::Server(kind) => match kind {
                ServerErrorKind::BusyLoading => Self::Loading,
                ServerErrorKind::Moved
                | ServerErrorKind::Ask
                | ServerErrorKind::TryAgain
                | ServerErrorKind::CrossSlot => Self::Moved,
                ServerErrorKind::ClusterDown => Self::ClusterDown,
                ServerErrorKind::MasterDown | ServerErrorKind::ReadOnly => Self::ReadOnly,
                ServerErrorKind::NoPerm => Self::Forbidden,
                // From within a script the server says it in words only.
                _ if error.detail().is_some_and(|detail| detail.contains("can't run this command")) => Self::Forbidden,
                _ => Self::Protocol,
            },
            ErrorKind::Extension => match error.code() {
                Some("OOM") => Self::OutOfMemory,
                Some("BUSY") => Self::Busy,
                Some("NOAUTH" | "WRONGPASS") => Self::Unauthenticated,
                _ => Self::Protocol,
            },
            ErrorKind::ClusterConnectionNotFound => Self::ClusterDown,
            ErrorKind::MasterNameNotFoundBySentinel | ErrorKind::NoValidReplicasFoundBySentinel => Self::Refused,
            ErrorKind::Io if error.is_timeout() => Self::TimedOut,
            ErrorKind::Io if error.is_connection_refusal() => Self::Refused,
            ErrorKind::Io if error.is_connection_dropped() => Self::Disconnected,
            ErrorKind::Io => Self::Refused,
            _ if error.is_connection_dropped() => Self::Disconnected,
            _ => Self::Protocol,
        }
    }
}
