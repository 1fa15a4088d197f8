//! One connection's bytes on their way, both ways.

use std::net::Ipv4Addr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until};

/// What happens to bytes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Faults {
    /// Added to a round trip.
    pub(super) latency: Duration,
    /// Nothing is passed on.
    pub(super) is_stalled: bool,
    /// How often all connections have been cut.
    pub(super) cuts: u64,
}

/// How much is read at once.
const CHUNK: usize = 16 * 1024;

/// How many chunks may be under way. Beyond that the sender has to wait.
const CHUNKS: usize = 1_024;

/// Connects to the port and passes bytes on until both sides have ended, or a cut beyond
/// `cuts_before`: then both are reset. Where nobody listens, the client's connection ends.
pub(super) async fn pass(mut client: TcpStream, target_port: u16, faults: watch::Receiver<Faults>, cuts_before: u64) {
    let mut cuts = faults.clone();
    let cut = async {
        // Without a sender the proxy is being dropped, and this connection with it.
        let _ = cuts.wait_for(|faults| faults.cuts != cuts_before).await;
    };
    tokio::pin!(cut);
    let connect = async {
        let server = TcpStream::connect((Ipv4Addr::LOCALHOST, target_port)).await;
        if server.is_err() {
            // That nobody is there is held back as all else.
            wait_until_it_flows(&mut faults.clone()).await;
        }
        server.ok()
    };
    let server = tokio::select! {
        server = connect => server,
        () = &mut cut => None,
    };
    let Some(mut server) = server else { return };
    for stream in [&client, &server] {
        // A connection that is gone already is found to be so when it is read.
        let _ = stream.set_nodelay(true);
    }
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let is_cut = tokio::select! {
        _ = async {
            tokio::join!(one_way(from_client, to_server, faults.clone()), one_way(from_server, to_client, faults))
        } => false,
        () = cut => true,
    };
    if is_cut {
        // Closed with this set, a connection is reset.
        let _ = client.set_zero_linger();
        let _ = server.set_zero_linger();
    }
}

async fn one_way(mut from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin, faults: watch::Receiver<Faults>) {
    let (sender, mut under_way) = mpsc::channel::<(Instant, Vec<u8>)>(CHUNKS);
    let latency = faults.clone();
    let read = async move {
        let mut chunk = vec![0; CHUNK];
        while let Ok(length @ 1..) = from.read(&mut chunk).await {
            let due = Instant::now() + latency.borrow().latency / 2;
            if sender.send((due, chunk[..length].to_vec())).await.is_err() {
                break;
            }
        }
    };
    let write = async move {
        let mut faults = faults;
        while let Some((due, bytes)) = under_way.recv().await {
            sleep_until(due).await;
            wait_until_it_flows(&mut faults).await;
            if to.write_all(&bytes).await.is_err() {
                return;
            }
        }
        wait_until_it_flows(&mut faults).await;
        // Nothing more comes: says so to the other side, which may still have something to say.
        let _ = to.shutdown().await;
    };
    tokio::join!(read, write);
}

async fn wait_until_it_flows(faults: &mut watch::Receiver<Faults>) {
    // As above.
    let _ = faults.wait_for(|faults| !faults.is_stalled).await;
}
