//! A connection with faults: what lies between a client and a server.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use super::port::Port;
use super::tunnel::{self, Faults};

/// Between clients and a port of 127.0.0.1: passes bytes on, late, not at all, or to nobody. It
/// runs on a thread of its own, so it goes on while the test's blocks; what is asked of it has
/// happened when the call returns.
#[derive(Debug)]
pub struct FaultProxy {
    port: Port,
    /// Its thread has them, too, for a cut.
    faults: Arc<watch::Sender<Faults>>,
    orders: mpsc::UnboundedSender<Order>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    accepted: AtomicU64,
    open: AtomicUsize,
}

/// What the proxy's thread is asked for. Each is acknowledged.
#[derive(Debug)]
enum Order {
    Cut(oneshot::Sender<()>),
    Refuse(oneshot::Sender<()>),
    Accept(oneshot::Sender<()>),
}

impl FaultProxy {
    /// Starts one without faults in front of a port of 127.0.0.1, whether a server is there or not.
    ///
    /// # Panics
    /// If its port is taken.
    #[track_caller]
    pub fn start(target_port: u16) -> Self {
        let port = Port::reserve();
        let faults = Arc::new(watch::Sender::new(Faults::default()));
        let counts = Arc::new(Counts::default());
        let (orders, received) = mpsc::unbounded_channel();
        let work = Work {
            port: port.number(),
            target_port,
            faults: Arc::clone(&faults),
            counts: Arc::clone(&counts),
            connections: JoinSet::new(),
        };
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
        let listener = runtime.block_on(work.listen());
        let thread = thread::spawn(move || runtime.block_on(work.run(listener, received)));
        Self { port, faults, orders, counts, thread: Some(thread) }
    }

    /// Its port on 127.0.0.1.
    pub const fn port(&self) -> u16 {
        self.port.number()
    }

    /// `redis://127.0.0.1:7000`, with the proxy's port.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port())
    }

    /// Makes every round trip longer, half of it each way. As on a long line, bytes that follow
    /// each other are each as late, and none waits for the one before it to arrive.
    pub fn set_latency(&self, latency: Duration) {
        self.faults.send_modify(|faults| faults.latency = latency);
    }

    /// Holds everything back, the end of a connection, too: a peer that is gone and has not said
    /// so. Connections are accepted and nothing comes.
    pub fn stall(&self) {
        self.faults.send_modify(|faults| faults.is_stalled = true);
    }

    /// Lets what was held back go on.
    pub fn flow(&self) {
        self.faults.send_modify(|faults| faults.is_stalled = false);
    }

    /// Ends all connections at once, with a reset to both sides. New ones are accepted.
    ///
    /// # Panics
    /// If its thread has panicked.
    #[track_caller]
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Refuses new connections; those that are open go on.
    ///
    /// # Panics
    /// As [`cut`](Self::cut).
    #[track_caller]
    pub fn refuse(&self) {
        self.order(Order::Refuse);
    }

    /// Accepts connections again.
    ///
    /// # Panics
    /// As [`cut`](Self::cut).
    #[track_caller]
    pub fn accept(&self) {
        self.order(Order::Accept);
    }

    /// How many connections it has accepted.
    pub fn accepted(&self) -> u64 {
        self.counts.accepted.load(Ordering::SeqCst)
    }

    /// How many connections are open.
    pub fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    #[track_caller]
    fn order(&self, order: impl FnOnce(oneshot::Sender<()>) -> Order) {
        let (done, is_done) = oneshot::channel();
        self.orders.send(order(done)).expect("the proxy's thread runs");
        // A runtime's thread must not block on tokio's own channel; on another thread it may.
        thread::scope(|scope| scope.spawn(|| is_done.blocking_recv()).join())
            .expect("waiting does not fail")
            .expect("the proxy's thread answers");
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        // Without a sender the thread ends.
        self.orders = mpsc::unbounded_channel().0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the proxy's thread works on.
struct Work {
    port: u16,
    target_port: u16,
    faults: Arc<watch::Sender<Faults>>,
    counts: Arc<Counts>,
    connections: JoinSet<()>,
}

impl Work {
    async fn run(mut self, listener: Listener, mut orders: mpsc::UnboundedReceiver<Order>) {
        let mut listener = Some(listener);
        loop {
            let accepted = async {
                match &listener {
                    Some(listener) => listener.0.accept().await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                Ok((client, _)) = accepted => self.connect(client),
                Some(_) = self.connections.join_next() => {}
                order = orders.recv() => match order {
                    None => break,
                    Some(Order::Cut(done)) => {
                        self.faults.send_modify(|faults| faults.cuts += 1);
                        while self.connections.join_next().await.is_some() {}
                        let _ = done.send(());
                    }
                    Some(Order::Refuse(done)) => {
                        listener = None;
                        let _ = done.send(());
                    }
                    Some(Order::Accept(done)) => {
                        if listener.is_none() {
                            listener = Some(self.listen().await);
                        }
                        let _ = done.send(());
                    }
                },
            }
        }
    }

    async fn listen(&self) -> Listener {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).await;
        Listener(listener.expect("the proxy's port was reserved"))
    }

    fn connect(&mut self, client: TcpStream) {
        self.counts.accepted.fetch_add(1, Ordering::SeqCst);
        let open = Open::one_more(&self.counts);
        let (target_port, faults) = (self.target_port, self.faults.subscribe());
        // Before it runs: a cut that comes first is a cut of this one, too.
        let cuts_before = faults.borrow().cuts;
        self.connections.spawn(async move {
            let _open = open;
            tunnel::pass(client, target_port, faults, cuts_before).await;
        });
    }
}

/// Dropped, it refuses connections at once.
struct Listener(TcpListener);

impl Drop for Listener {
    fn drop(&mut self) {
        // Closing alone would not do: a process that is just being started from another thread has a
        // copy of this socket, until it becomes another program.
        let _ = rustix::net::shutdown(&self.0, rustix::net::Shutdown::Both);
    }
}

/// A connection that is counted as open.
struct Open(Arc<Counts>);

impl Open {
    fn one_more(counts: &Arc<Counts>) -> Self {
        counts.open.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(counts))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::SeqCst);
    }
}
