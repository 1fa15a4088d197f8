//! The connection to the server: made, watched and made again in the background, so that no request
//! waits for more than its deadline, and none at all while the server is known to be away.

use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use foldhash::fast::RandomState;
use redis::{AsyncConnectionConfig, RedisError, Value};
use std::hash::BuildHasher;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::call::Call;
use super::denied::Denied;
use super::fault::Fault;
use super::heartbeat::Heartbeat;
use super::node::Wire;
use super::script::{CHARGE, HEARTBEAT, REFUND, RESET, send};
use super::settings::{RedisSettings, Server};
use super::tally::Tally;

/// The first wait before a connection is tried again; doubled each time, and shifted by up to a half.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// The longest such wait: a server that comes back is noticed within two seconds.
const RETRY_MOST: Duration = Duration::from_millis(1_000);
/// How long the number of resets is kept after the last one.
const RESETS_KEPT_SECS: i64 = 86_400;
/// How often others' resets are looked for.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long making a connection may take.
pub(super) const CONNECT_MOST: Duration = Duration::from_millis(1_000);

/// A connection that heals.
#[derive(Debug)]
pub(super) struct Link {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: Server,
    deadline: Duration,
    status: watch::Sender<Status>,
    tally: Tally,
    /// Tells the keeper to look at the connection.
    suspected: Notify,
    keeper: Once,
    resets_key: String,
    denied: Arc<Denied>,
    heartbeat: Heartbeat,
}

#[derive(Clone, Debug)]
pub(super) enum Status {
    /// The first connection is being made.
    Starting,
    /// It works, as far as is known.
    Up(Connection),
    /// It does not; it is tried again in the background.
    Down(Fault),
}

/// A connection, and which one since the start.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) inner: Wire,
    number: u64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.number)
    }
}

impl Link {
    /// A link that connects when it is first asked for its connection.
    /// It tells `denied` when somebody has reset a counter.
    pub(super) fn new(settings: &RedisSettings, denied: Arc<Denied>) -> Self {
        let (status, _) = watch::channel(Status::Starting);
        let (server, deadline, resets_key) = (settings.server().clone(), settings.timeout, settings.resets_key());
        let (tally, suspected, keeper) = (Tally::default(), Notify::new(), Once::new());
        let heartbeat = Heartbeat::new(settings.prefix());
        let shared = Shared { server, deadline, status, tally, suspected, keeper, resets_key, denied, heartbeat };
        Self { shared: Arc::new(shared) }
    }

    /// Starts the keeper, once, on the caller's runtime. It ends when the link is dropped.
    fn start(&self) {
        self.shared.keeper.call_once(|| drop(tokio::spawn(keep(Arc::downgrade(&self.shared)))));
    }

    /// The connection. While the first is being made, waits for it until `deadline`.
    pub(super) async fn connection(&self, deadline: Instant) -> Result<Connection, Fault> {
        match &*self.shared.status.borrow() {
            Status::Up(connection) => return Ok(connection.clone()),
            Status::Down(fault) => return Err(*fault),
            Status::Starting => self.start(),
        }
        let mut status = self.shared.status.subscribe();
        let known = status.wait_for(|status| !matches!(status, Status::Starting));
        match timeout_at(deadline, known).await.map(|known| known.map(|known| known.clone())) {
            Ok(Ok(Status::Up(connection))) => Ok(connection),
            Ok(Ok(Status::Down(fault))) => Err(fault),
            _ => Err(Fault::TimedOut),
        }
    }

    /// How many share the server.
    pub(super) fn heartbeat(&self) -> &Heartbeat {
        &self.shared.heartbeat
    }

    /// What happened so far.
    pub(super) fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// How it is.
    pub(super) fn status(&self) -> Status {
        self.shared.status.borrow().clone()
    }

    /// Waits until the first connection was made, or could not be.
    pub(super) async fn settled(&self) -> Status {
        self.start();
        let mut status = self.shared.status.subscribe();
        let known = status.wait_for(|status| !matches!(status, Status::Starting)).await;
        known.map_or(Status::Starting, |known| known.clone())
    }

    /// Tells all who share the server that a counter was reset. Whoever misses it goes on refusing until the
    /// refusal's own end.
    pub(super) async fn tell_reset(&self, connection: &mut Connection, deadline: Instant) {
        let key = &self.shared.resets_key;
        let (grow, end) = (redis::Cmd::incr(key, 1), redis::Cmd::expire(key, RESETS_KEPT_SECS));
        for command in [grow, end] {
            let _ = timeout_at(deadline, send(&mut connection.inner, &command)).await;
        }
    }

    /// Says that a call on this connection went wrong. After a timeout the keeper looks whether the
    /// server still answers, and a slot on its way is one of many; anything else ends the connection.
    pub(super) fn report(&self, connection: &Connection, fault: Fault) {
        let shared = &self.shared;
        shared.tally.fault(fault);
        // One key's contents or one slot's place say nothing of the connection.
        if !matches!(fault, Fault::TimedOut | Fault::Moved | Fault::Protocol) {
            shared.end(connection.number, fault);
        }
        shared.suspected.notify_one();
    }
}

impl Shared {
    /// Ends the connection of this number, if it is still the present one.
    fn end(&self, number: u64, fault: Fault) {
        self.status.send_if_modified(|status| match status {
            Status::Up(present) if present.number == number => {
                *status = Status::Down(fault);
                true
            }
            _ => false,
        });
    }

    /// Says that this instance is there. Whether every server answers, and the number of resets.
    async fn look(&self, wire: &mut Wire) -> Result<Value, RedisError> {
        if matches!(wire, Wire::Cluster(_)) {
            wire.send_to_all(&redis::cmd("PING")).await?;
        }
        self.heartbeat.beat(wire).await?;
        send(wire, &redis::Cmd::get(&self.resets_key)).await
    }

    async fn connect(&self, number: u64) -> Result<Connection, Fault> {
        let making = async {
            // The deadline is ours: each call has its own, whatever the connection's.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_MOST))
                .set_response_timeout(Some(CONNECT_MOST));
            let mut inner = self.server.connect(&config).await?;
            CHARGE.load(&mut inner).await?;
            RESET.load(&mut inner).await?;
            HEARTBEAT.load(&mut inner).await?;
            if matches!(inner, Wire::Cluster(_)) {
                REFUND.load(&mut inner).await?;
            }
            // A replica and a full server take scripts, but do not run them.
            CHARGE.run(&mut inner, &[&self.resets_key], &[b"", &Call::default().blob()]).await?;
            Ok::<_, RedisError>(inner)
        };
        match timeout(CONNECT_MOST, making).await {
            Ok(Ok(inner)) => Ok(Connection { inner, number }),
            Ok(Err(error)) => Err(Fault::from(&error)),
            Err(_) => Err(Fault::TimedOut),
        }
    }
}

/// Makes the connection, watches it, and makes it again.
async fn keep(shared: Weak<Shared>) {
    let (mut number, mut wait) = (0, RETRY_FIRST);
    loop {
        let Some(link) = shared.upgrade() else { return };
        number += 1;
        match link.connect(number).await {
            Ok(connection) => {
                wait = RETRY_FIRST;
                Tally::add(&link.tally.connections, 1);
                link.status.send_replace(Status::Up(connection.clone()));
                link.denied.clear();
                drop(link);
                watch_over(&shared, connection).await;
            }
            Err(fault) => {
                link.tally.fault(fault);
                link.status.send_replace(Status::Down(fault));
                drop(link);
                sleep(jittered(wait)).await;
                wait = (wait * 2).min(RETRY_MOST);
            }
        }
    }
}

/// Returns when the connection is no longer the present one. Looks at it when a call has gone wrong, and
/// now and then to say that this instance is there, and for resets by others.
async fn watch_over(shared: &Weak<Shared>, mut connection: Connection) {
    let mut resets = None;
    loop {
        let Some(link) = shared.upgrade() else { return };
        let fault = match timeout(link.deadline, link.look(&mut connection.inner)).await {
            Ok(Ok(value)) => {
                if resets.is_some_and(|before| before != value) {
                    link.denied.clear();
                }
                resets = Some(value);
                None
            }
            Ok(Err(error)) => Some(Fault::from(&error)),
            Err(_) => Some(Fault::TimedOut),
        };
        if let Some(fault) = fault {
            link.tally.fault(fault);
            link.end(connection.number, fault);
            return;
        }
        let _ = timeout(LOOK_EVERY, link.suspected.notified()).await;
        if !matches!(&*link.status.borrow(), Status::Up(present) if present.number == connection.number) {
            return;
        }
    }
}

/// Between half of it and one and a half of it, so that a fleet does not come back all at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::default().hash_one(Instant::now().elapsed());
    wait.mul_f64(0.5 + (random % 1024) as f64 / 1024.0)
}
