//! A listening socket: bound with a long backlog, accepting up to a number of connections at once.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::{Extension, Router};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::connection;
use crate::admin::Peer;
use crate::bounds::Bounds;
use crate::metrics::ConnectionMetrics;

/// How many connections the system queues before they are accepted.
const BACKLOG: u32 = 4096;
/// How long at the end, at most, connections go on as before: what their clients sent before is
/// read, and answered, meanwhile.
const GRACE: Duration = Duration::from_millis(100);
/// How long accepting rests when the system has no descriptor or memory for another connection.
const EXHAUSTED_REST: Duration = Duration::from_millis(100);
/// How often the log says that no connection can be accepted.
const WARNED_EVERY: Duration = Duration::from_secs(10);
/// What a connection above the cap is told.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/problem+json\r\n\
content-length: 155\r\nconnection: close\r\nretry-after: 1\r\n\r\n\
{\"type\":\"about:blank\",\"title\":\"Service Unavailable\",\"status\":503,\"detail\":\"all connections of this listener are in use; reuse connections, or retry later\"}";

/// Binds `addr` (`host:port`; port 0 takes a free one) and listens.
///
/// # Errors
/// Where the name has no address, or the system refuses the address.
pub(crate) async fn bind(addr: &str) -> io::Result<TcpListener> {
    let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
    for addr in tokio::net::lookup_host(addr).await? {
        match bind_one(addr) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn bind_one(addr: SocketAddr) -> io::Result<TcpListener> {
    let socket = if addr.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Else a restart fails for a minute while old connections are in TIME_WAIT.
    socket.set_reuseaddr(true)?;
    socket.bind(addr)?;
    socket.listen(BACKLOG)
}

/// A socket with what serves its connections.
pub(crate) struct Listener {
    pub(crate) socket: TcpListener,
    pub(crate) served: Served,
}

/// What serves connections.
pub(crate) struct Served {
    pub(crate) router: Router,
    pub(crate) connections_max: usize,
    pub(crate) bounds: Arc<Bounds>,
    pub(crate) metrics: ConnectionMetrics,
    /// Whether handlers are told who asks.
    pub(crate) tells_peer: bool,
}

impl Listener {
    /// Serves until `stop`, which says until when, at most, what is in flight may go on.
    pub(crate) async fn serve(self, stop: impl Future<Output = Instant>) {
        let Self { socket, served } = self;
        let mut acceptor = Acceptor { socket, rests_until: None, warned_at: None };
        let mut open = Open { graceful: GracefulShutdown::new(), connections: JoinSet::new() };
        let mut stop = pin!(stop);
        let drained_until = loop {
            tokio::select! {
                until = &mut stop => break until,
                Some(_) = open.connections.join_next(), if !open.connections.is_empty() => {}
                (stream, peer) = acceptor.accept() => open.take(stream, peer, &served),
            }
        };
        for (stream, peer) in acceptor.waiting() {
            open.take(stream, peer, &served);
        }
        open.drain(drained_until).await;
    }
}

/// The connections that are open.
struct Open {
    graceful: GracefulShutdown,
    connections: JoinSet<()>,
}

impl Open {
    /// Serves one more, or refuses it where there are too many.
    fn take(&mut self, stream: TcpStream, peer: SocketAddr, served: &Served) {
        let Served { router, connections_max, bounds, metrics, tells_peer } = served;
        if self.connections.len() >= *connections_max {
            metrics.refused.inc();
            refuse(&stream);
            return;
        }
        metrics.accepted.inc();
        let open = metrics.open();
        let router = if *tells_peer { router.clone().layer(Extension(Peer(peer))) } else { router.clone() };
        let connection = connection::serve(stream, router, bounds, self.graceful.watcher());
        self.connections.spawn(async move {
            connection.await;
            drop(open);
        });
    }

    /// Lets them finish until `until`, then cuts what is left. An idle connection is closed after a
    /// grace only: its next request may have arrived, and not have been read yet.
    async fn drain(self, until: Instant) {
        let Self { graceful, mut connections } = self;
        let grace = async { while connections.join_next().await.is_some() {} };
        // Over at once where there are none.
        let _ = tokio::time::timeout_at(until.min(Instant::now() + GRACE), grace).await;
        let drained = async {
            graceful.shutdown().await;
            while connections.join_next().await.is_some() {}
        };
        if tokio::time::timeout_at(until, drained).await.is_err() {
            tracing::warn!(cut = connections.len(), "connections still busy at the drain deadline are cut");
        }
        connections.shutdown().await;
    }
}

/// A socket, and what it remembers between two calls of which the first may be dropped.
struct Acceptor {
    socket: TcpListener,
    rests_until: Option<Instant>,
    warned_at: Option<Instant>,
}

impl Acceptor {
    /// The next connection. An error belongs to one connection, or passes: it never ends the
    /// listener.
    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        loop {
            if let Some(until) = self.rests_until {
                tokio::time::sleep_until(until).await;
                self.rests_until = None;
            }
            match self.socket.accept().await {
                Ok(accepted) => return accepted,
                Err(error) if belongs_to_one_connection(&error) => {}
                Err(error) => self.rest(&error),
            }
        }
    }

    /// Accepts no more, and closes the socket: the connections that the system has already queued.
    /// Their clients take them for open, and may have sent a request.
    fn waiting(self) -> Vec<(TcpStream, SocketAddr)> {
        let mut waiting = Vec::new();
        let Ok(socket) = self.socket.into_std() else { return waiting };
        // No more than the queue holds, however fast it fills.
        for _ in 0..BACKLOG {
            match socket.accept() {
                Ok((stream, peer)) => {
                    let stream = stream.set_nonblocking(true).and_then(|()| TcpStream::from_std(stream));
                    waiting.extend(stream.map(|stream| (stream, peer)));
                }
                Err(error) if belongs_to_one_connection(&error) => {}
                // It would have to wait, or it cannot.
                Err(_) => break,
            }
        }
        waiting
    }

    fn rest(&mut self, error: &io::Error) {
        self.rests_until = Some(Instant::now() + EXHAUSTED_REST);
        if self.warned_at.is_none_or(|at| at.elapsed() >= WARNED_EVERY) {
            self.warned_at = Some(Instant::now());
            tracing::warn!(%error, "no connection can be accepted; trying again every {EXHAUSTED_REST:?}");
        }
    }
}

fn belongs_to_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

/// Says 503 as far as the socket takes it at once, and closes.
fn refuse(stream: &TcpStream) {
    // The client may be gone already; there is nothing to do about it.
    let _ = stream.try_write(FULL);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_above_the_cap_is_well_formed() {
        let text = std::str::from_utf8(FULL).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(&format!("content-length: {}\r\n", body.len())), "{}", body.len());
        let problem: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(problem["status"], 503);
    }
}
