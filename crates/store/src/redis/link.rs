//! The connection to the server: made, watched and made again in the background, so that no request
//! waits for more than its deadline, and none at all while the server is known to be away.

use std::sync::{Arc, Once, Weak};
use std::time::Duration;

use foldhash::fast::RandomState;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, RedisError};
use std::hash::BuildHasher;
use tokio::sync::{Notify, watch};
use tokio::time::{Instant, sleep, timeout};

use super::fault::Fault;
use super::script::{CHARGE, RESET, send};
use super::settings::Server;
use super::tally::Tally;

/// The first wait before a connection is tried again; doubled each time, and shifted by up to a half.
const RETRY_FIRST: Duration = Duration::from_millis(50);
/// The longest such wait: a server that comes back is noticed within two seconds.
const RETRY_MOST: Duration = Duration::from_millis(1_000);
/// How long making a connection may take.
const CONNECT_MOST: Duration = Duration::from_millis(1_000);

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
    pub(super) inner: MultiplexedConnection,
    number: u64,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Connection({})", self.number)
    }
}

impl Link {
    /// A link that connects when it is first asked for its connection.
    pub(super) fn new(server: Server, deadline: Duration) -> Self {
        let (status, _) = watch::channel(Status::Starting);
        let (tally, suspected, keeper) = (Tally::default(), Notify::new(), Once::new());
        Self { shared: Arc::new(Shared { server, deadline, status, tally, suspected, keeper }) }
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
        match tokio::time::timeout_at(deadline, known).await.map(|known| known.map(|known| known.clone())) {
            Ok(Ok(Status::Up(connection))) => Ok(connection),
            Ok(Ok(Status::Down(fault))) => Err(fault),
            _ => Err(Fault::TimedOut),
        }
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

    /// Says that a call on this connection went wrong. After a timeout the keeper looks whether the
    /// server still answers; anything else ends the connection.
    pub(super) fn report(&self, connection: &Connection, fault: Fault) {
        let shared = &self.shared;
        shared.tally.fault(fault);
        if fault != Fault::TimedOut {
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

    async fn connect(&self, number: u64) -> Result<Connection, Fault> {
        let making = async {
            let client = self.server.client().await?;
            // The deadline is ours: each call has its own, whatever the connection's.
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(CONNECT_MOST))
                .set_response_timeout(Some(CONNECT_MOST));
            let mut inner = client.get_multiplexed_async_connection_with_config(&config).await?;
            CHARGE.load(&mut inner).await?;
            RESET.load(&mut inner).await?;
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

/// Returns when the connection is no longer the present one.
async fn watch_over(shared: &Weak<Shared>, mut connection: Connection) {
    loop {
        let Some(link) = shared.upgrade() else { return };
        // A link that is dropped leaves nobody to tell, so look now and then.
        let _ = timeout(Duration::from_secs(1), link.suspected.notified()).await;
        if !matches!(&*link.status.borrow(), Status::Up(present) if present.number == connection.number) {
            return;
        }
        let ping = redis::cmd("PING");
        let answer = timeout(link.deadline, send(&mut connection.inner, &ping));
        let fault = match answer.await {
            Ok(Ok(_)) => continue,
            Ok(Err(error)) => Fault::from(&error),
            Err(_) => Fault::TimedOut,
        };
        link.end(connection.number, fault);
        return;
    }
}

/// Between half of it and one and a half of it, so that a fleet does not come back all at once.
fn jittered(wait: Duration) -> Duration {
    let random = RandomState::default().hash_one(Instant::now().elapsed());
    wait.mul_f64(0.5 + (random % 1024) as f64 / 1024.0)
}
