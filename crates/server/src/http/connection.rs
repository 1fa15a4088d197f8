//! One connection: HTTP/1.1 with every bound set.

use std::future::Future;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;

use super::write_deadline::WriteDeadline;
use crate::bounds::Bounds;

/// Header lines of a request.
const HEADERS_MAX: usize = 100;
/// Bytes of a request's line and headers.
const HEADER_BYTES_MAX: usize = 32 * 1024;
/// Bytes that are buffered of a connection.
const BUFFER_BYTES_MAX: usize = 64 * 1024;

/// Serves a connection until either side closes it, or `watcher` tells it to finish.
pub(crate) fn serve(
    stream: TcpStream,
    router: Router,
    bounds: &Bounds,
    watcher: Watcher,
) -> impl Future<Output = ()> + Send + use<> {
    // A refusal by the system costs latency, not correctness.
    let _ = stream.set_nodelay(true);
    let io = TokioIo::new(WriteDeadline::new(stream, bounds.write_wait));
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(bounds.headers_wait)
        .max_headers(HEADERS_MAX)
        .max_header_size(HEADER_BYTES_MAX)
        .max_buf_size(BUFFER_BYTES_MAX)
        // A client that says that it sends nothing more still waits for its answer. One that is gone
        // is noticed when the answer is written, which has a deadline.
        .half_close(true)
        .serve_connection(io, TowerToHyperService::new(router));
    let served = watcher.watch(connection);
    async move {
        // What a client does wrong on its own connection is counted nowhere and ends only that.
        if let Err(error) = served.await {
            tracing::debug!(%error, "a connection ended early");
        }
    }
}
