//! How much of everything the server takes, and how long it waits.

use std::time::Duration;

/// The bounds of both listeners. [`Bounds::default`] is what `tidegate serve` uses; tests shorten
/// the waits.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// From the first byte a connection may send (or from the end of the answer before) until a
    /// request's headers are complete; so also how long an idle connection is kept.
    pub headers_wait: Duration,
    /// From the end of a request's headers until its body is complete, not counting the wait for a
    /// place; so also how long a large body, or a large batch, waits for its place.
    pub body_wait: Duration,
    /// How long a client may leave an answer unread before the connection is cut.
    pub write_wait: Duration,
    /// At the end: how long `/readyz` says 503 while connections are still accepted, so that load
    /// balancers notice.
    pub drain_delay: Duration,
    /// At the end, after `drain_delay`: how long requests in flight may take to finish.
    pub drain_wait: Duration,
    /// Connections of the check listener at one time; those above get a 503 and are closed.
    pub connections_max: usize,
    /// Connections of the admin listener at one time; those above get a 503 and are closed.
    pub admin_connections_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            headers_wait: Duration::from_secs(30),
            body_wait: Duration::from_secs(10),
            write_wait: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
            drain_wait: Duration::from_secs(20),
            connections_max: 10_000,
            admin_connections_max: 256,
        }
    }
}

/// The largest request body, in bytes.
pub const BODY_BYTES_MAX: usize = 1024 * 1024;
/// Up to this size, in bytes, a body is read at once; a larger one waits for a place.
pub const SMALL_BODY_BYTES_MAX: usize = 16 * 1024;
/// The slowest that a larger body may come once it has its place, in bytes a second.
pub const LARGE_BODY_BYTES_PER_SEC_MIN: usize = 64 * 1024;
/// How far behind that it may fall: a larger body that stalls gives its place up after so long.
pub const LARGE_BODY_LAG_MAX: Duration = Duration::from_secs(1);
/// Larger bodies that are in memory at one time.
pub const LARGE_BODIES_MAX: usize = 32;
/// Batches of more checks times limits than this are large: they take turns.
pub const SMALL_BATCH_ROWS_MAX: usize = 256;
/// Large batches that are decided, or whose answers have not been taken by their clients, at one
/// time.
pub const LARGE_BATCHES_MAX: usize = 32;
/// The most checks times limits of one batch: an answer says of each check how each limit stands.
pub const BATCH_ROWS_MAX: usize = 20_000;
/// Checks in one batch.
pub const BATCH_CHECKS_MAX: usize = 1_000;
/// Attributes of one check.
pub const ATTRIBUTES_MAX: usize = 64;
/// The longest name of an attribute, in bytes.
pub const NAME_BYTES_MAX: usize = 128;
/// The longest value of an attribute, in bytes.
pub const VALUE_BYTES_MAX: usize = 8 * 1024;
