//! The server: two listeners around one engine, from bound to drained.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tidegate::{Engine, Policy};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;

use crate::admin::{Door, OpenToAll};
use crate::bounds::{Bounds, LARGE_BATCHES_MAX, LARGE_BODIES_MAX};
use crate::http::{Listener, Readiness, Served, Shared, admin_router, bind, check_router};
use crate::metrics::Metrics;
use crate::reload::{LimitsFile, Reloader, Reloads};
use crate::shared_store;

/// How long the task that reloads is waited for at the end.
const RELOADS_WAIT: Duration = Duration::from_secs(1);

/// What a server is started with.
#[derive(Debug)]
pub struct Settings {
    /// Where checks are answered, `host:port`. None: as the policy has it.
    pub listen: Option<String>,
    /// Where operators are answered, `host:port`. None: as the policy has it.
    pub admin: Option<String>,
    /// The file that the policy came from, to be read anew when it changes. None: it never is.
    pub file: Option<LimitsFile>,
    /// How much of everything it takes.
    pub bounds: Bounds,
}

impl Settings {
    /// The policy's addresses, no file, the usual bounds.
    pub fn new() -> Self {
        Self { listen: None, admin: None, file: None, bounds: Bounds::default() }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self::new()
    }
}

/// Why a server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// An address cannot be listened on.
    #[error("{}", bind_sentence(.what, .addr, .source, .flag, .key))]
    Bind {
        /// Which listener.
        what: &'static str,
        /// Its address.
        addr: String,
        /// Why.
        source: io::Error,
        /// The option that changes the address.
        flag: &'static str,
        /// The key of the limits file that does.
        key: &'static str,
    },
    /// The admin listener would be open to everybody.
    #[error(transparent)]
    OpenToAll(#[from] OpenToAll),
}

fn bind_sentence(what: &str, addr: &str, source: &io::Error, flag: &str, key: &str) -> String {
    let why = match source.kind() {
        io::ErrorKind::AddrInUse => "the port is taken".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "this user may not take that port (below 1024 it takes a privilege)".to_owned()
        }
        io::ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => source.to_string(),
    };
    format!(
        "cannot listen on {addr} for {what}: {why}; choose another address with {flag} HOST:PORT \
         (port 0 takes a free one), or with '{key}' in the limits file"
    )
}

/// A server that is bound and not yet serving.
pub struct Server {
    shared: Arc<Shared>,
    check: TcpListener,
    admin: TcpListener,
    check_addr: SocketAddr,
    admin_addr: SocketAddr,
    reloader: Option<Reloader>,
}

impl Server {
    /// Makes an engine of `policy` and binds both listeners. Connections wait from here on, and are
    /// served once [`run`](Self::run) is polled.
    ///
    /// # Errors
    /// [`StartError`], which says what to change.
    pub async fn bind(policy: Policy, settings: Settings) -> Result<Self, StartError> {
        Self::bind_engine(Engine::new(policy), settings).await
    }

    /// [`bind`](Self::bind) around an engine that exists, on whatever clock.
    ///
    /// # Errors
    /// [`StartError`], which says what to change.
    pub async fn bind_engine(engine: Engine, settings: Settings) -> Result<Self, StartError> {
        let policy = engine.policy();
        let check_at = settings.listen.unwrap_or_else(|| policy.server.listen.clone());
        let admin_at = settings.admin.unwrap_or_else(|| policy.server.admin_addr.clone());
        let (check, check_addr) = listen(&check_at, "checks", "--listen", "listen").await?;
        let (admin, admin_addr) = listen(&admin_at, "operators", "--admin", "admin.addr").await?;
        let door = Door { addr: admin_addr };
        door.check(policy.server.admin_token.as_ref())?;
        let metrics = Metrics::new(&engine);
        metrics.reloads.loaded(engine.now());
        let (reloader, reloads) = settings.file.map(Reloader::new).unzip();
        let bounds = Arc::new(settings.bounds);
        let large_bodies = Semaphore::new(LARGE_BODIES_MAX);
        let large_batches = Arc::new(Semaphore::new(LARGE_BATCHES_MAX));
        let readiness = Readiness::default();
        let shared = Shared { engine, metrics, bounds, readiness, large_bodies, large_batches, door, reloads };
        Ok(Self { shared: Arc::new(shared), check, admin, check_addr, admin_addr, reloader })
    }

    /// Where checks are answered.
    pub fn check_addr(&self) -> SocketAddr {
        self.check_addr
    }

    /// Where operators are answered.
    pub fn admin_addr(&self) -> SocketAddr {
        self.admin_addr
    }

    /// The engine that decides.
    pub fn engine(&self) -> &Engine {
        &self.shared.engine
    }

    /// To read the limits file anew; none where the policy did not come from a file.
    pub fn reloads(&self) -> Option<Reloads> {
        self.shared.reloads.clone()
    }

    #[cfg(test)]
    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Serves until `stop`, then drains: `/readyz` says 503, answers close their connections, the check
    /// listener stops accepting and finishes what is in flight or has arrived, then the admin listener does; both within `drain_wait`.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) {
        let Self { shared, check, admin, reloader, .. } = self;
        // What each part is told when it is to end: until when it may go on.
        let (check_stop, check_stopped) = oneshot::channel();
        let (admin_stop, admin_stopped) = oneshot::channel();
        let (reloads_stop, reloads_stopped) = oneshot::channel();
        let check = check_listener(check, &shared).serve(told(check_stopped));
        let admin = admin_listener(admin, &shared).serve(told(admin_stopped));
        // A task of its own: a fault in it leaves the limits in force, and the listeners running.
        let reloads = reloader.map(|reloader| {
            let run = reloader.run(Arc::clone(&shared), async move {
                let _ = told(reloads_stopped).await;
            });
            tokio::spawn(run)
        });
        let watch = tokio::spawn(shared_store::watch(shared.engine.clone()));
        let ends = async {
            stop.await;
            shared.readiness.drain();
            tokio::time::sleep(shared.bounds.drain_delay).await;
            let until = Instant::now() + shared.bounds.drain_wait;
            // The other ends are held below.
            let _ = check_stop.send(until);
            until
        };
        let serves = async {
            let ((), until) = tokio::join!(check, ends);
            // Probes and operators see the draining to its end.
            let _ = admin_stop.send(until);
            let _ = reloads_stop.send(until);
        };
        tokio::join!(serves, admin);
        watch.abort();
        if let Some(reloads) = reloads {
            // It ends at its next await; a fault in it, or a file system that does not answer, is no
            // reason not to end.
            let _ = tokio::time::timeout(RELOADS_WAIT, reloads).await;
        }
    }
}

async fn listen(
    addr: &str,
    what: &'static str,
    flag: &'static str,
    key: &'static str,
) -> Result<(TcpListener, SocketAddr), StartError> {
    let bound = async {
        let listener = bind(addr).await?;
        let at = listener.local_addr()?;
        Ok((listener, at))
    };
    bound.await.map_err(|source| StartError::Bind { what, addr: addr.to_owned(), source, flag, key })
}

fn check_listener(socket: TcpListener, shared: &Arc<Shared>) -> Listener {
    let served = Served {
        router: check_router(shared),
        connections_max: shared.bounds.connections_max,
        bounds: Arc::clone(&shared.bounds),
        metrics: shared.metrics.check_connections.clone(),
        tells_peer: false,
    };
    Listener { socket, served }
}

fn admin_listener(socket: TcpListener, shared: &Arc<Shared>) -> Listener {
    let served = Served {
        router: admin_router(shared),
        connections_max: shared.bounds.admin_connections_max,
        bounds: Arc::clone(&shared.bounds),
        metrics: shared.metrics.admin_connections.clone(),
        tells_peer: true,
    };
    Listener { socket, served }
}

/// What the other end says; where it is gone without a word, everything ends now.
async fn told(other_end: oneshot::Receiver<Instant>) -> Instant {
    other_end.await.unwrap_or_else(|_| Instant::now())
}
