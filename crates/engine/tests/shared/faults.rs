//! What can be wrong with a server, each with real servers and under load: whoever asks is answered, by the
//! limits' policies, and soon; what is wrong is told apart; and it heals by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tidegate::{Engine, Fault, Request};
use tidegate_testkit::servers::{AppendFsync, FaultProxy, Flavor, Replicated, Server};
use tokio::time::Instant;

use super::{engine, engine_at, until};

const LIMITS: &str = "
  - {name: agent, per: [org, agent], rate: 100000/day}
  - {name: org, per: [org], rate: 1000000/day}
  - {name: everyone, per: [], rate: 10000000/day}
";

/// Tasks that ask one after the other, and what became of it.
#[derive(Default)]
struct Load {
    stop: AtomicBool,
    answered: AtomicU64,
    refused: AtomicU64,
    /// The longest wait for an answer while the fault was known, in µs.
    longest_us: AtomicU64,
    /// How late a bare timer was at worst meanwhile, in µs: that much is the machine's.
    late_us: AtomicU64,
}

impl Load {
    /// Loads `engine` while `fault` makes, and unmakes, what is wrong.
    async fn under(engine: &Engine, fault: impl AsyncFnOnce(&Self)) -> Arc<Self> {
        let load = Arc::new(Self::default());
        let tasks: Vec<_> = (0..16_u32)
            .map(|task| {
                let (load, engine) = (Arc::clone(&load), engine.clone());
                tokio::spawn(async move { load.ask(&engine, task).await })
            })
            .collect();
        fault(&load).await;
        load.stop.store(true, Ordering::Relaxed);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(load.refused.load(Ordering::Relaxed), 0, "a healthy server would have refused nobody");
        load
    }

    async fn ask(&self, engine: &Engine, task: u32) {
        let (org, agent) = (format!("org-{}", task % 3), format!("agent-{task}"));
        let attributes = [("org", org.as_str()), ("agent", agent.as_str())];
        while !self.stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            let decision = engine.decide(&Request::new(&attributes)).await;
            let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
            self.longest_us.fetch_max(took_us, Ordering::Relaxed);
            self.answered.fetch_add(1, Ordering::Relaxed);
            self.refused.fetch_add(u64::from(!decision.allowed()), Ordering::Relaxed);
            let slept = Instant::now();
            tokio::time::sleep(Duration::from_millis(1)).await;
            let late_us = u64::try_from(slept.elapsed().as_micros()).unwrap_or(u64::MAX).saturating_sub(1_000);
            self.late_us.fetch_max(late_us, Ordering::Relaxed);
        }
    }

    /// Waits for so many more answers.
    async fn answers(&self, more: u64) {
        let wanted = self.answered.load(Ordering::Relaxed) + more;
        until("answers", async || self.answered.load(Ordering::Relaxed) >= wanted).await;
    }

    /// Waits until the engine knows of `fault`, and that nobody waits from then on.
    async fn until_known(&self, engine: &Engine, fault: impl Fn(Fault) -> bool) {
        until("the fault is known", async || engine.shared_store().unwrap().fault.is_some_and(&fault)).await;
        // Those on their way may still wait.
        self.answers(64).await;
        self.longest_us.store(0, Ordering::Relaxed);
        self.late_us.store(0, Ordering::Relaxed);
        self.answers(500).await;
        let [longest, late] = [&self.longest_us, &self.late_us].map(|us| us.load(Ordering::Relaxed));
        let longest = Duration::from_micros(longest.saturating_sub(late));
        assert!(longest < Duration::from_millis(40), "below the deadline: nobody waits for it, {longest:?}");
    }

    /// Waits until decisions are the server's again.
    async fn until_healed(&self, engine: &Engine) {
        let took = until("healed", async || engine.shared_store().unwrap().fault.is_none()).await;
        assert!(took < Duration::from_secs(2), "{took:?}");
        let before = degraded(engine);
        self.answers(200).await;
        assert_eq!(degraded(engine), before);
    }
}

fn degraded(engine: &Engine) -> u64 {
    engine.shared_store().unwrap().degraded.iter().map(|(_, count)| count).sum()
}

fn count(engine: &Engine, fault: Fault) -> u64 {
    let counts = engine.shared_store().unwrap().counts;
    counts.faults.iter().find(|(kind, _)| *kind == fault).unwrap().1
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_and_started_again() {
    let server = Server::builder(Flavor::Redis70).appendonly(AppendFsync::Always).start();
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        server.kill();
        load.until_known(&engine, |fault| matches!(fault, Fault::Refused | Fault::Disconnected)).await;
        server.restart();
        load.until_healed(&engine).await;
    })
    .await;
    assert!(engine.shared_store().unwrap().counts.connections <= 3, "no storm of connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn paused() {
    let server = Server::start(Flavor::Valkey91);
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        server.pause();
        load.until_known(&engine, |fault| fault == Fault::TimedOut).await;
        server.resume();
        load.until_healed(&engine).await;
    })
    .await;
    assert!(engine.shared_store().unwrap().counts.connections <= 4, "no storm of connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_scripts_flushed_again_and_again() {
    let server = Server::start(Flavor::Redis82);
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        for _ in 0..20 {
            load.answers(20).await;
            server.cli(&["SCRIPT", "FLUSH"]);
        }
    })
    .await;
    assert_eq!(degraded(&engine), 0, "nobody has noticed");
}

#[tokio::test(flavor = "multi_thread")]
async fn out_of_memory() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        server.cli(&["CONFIG", "SET", "maxmemory", "1"]);
        load.until_known(&engine, |fault| fault == Fault::OutOfMemory).await;
        server.cli(&["CONFIG", "SET", "maxmemory", "0"]);
        load.until_healed(&engine).await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn demoted_to_a_replica() {
    let pair = Replicated::start(Flavor::Redis70);
    let engine = engine(pair.primary(), LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        pair.promote();
        load.until_known(&engine, |fault| matches!(fault, Fault::ReadOnly | Fault::Loading)).await;
        pair.promote();
        load.until_healed(&engine).await;
    })
    .await;
}

/// A proxy in front of the server. It has a runtime of its own.
async fn proxy(server: &Server) -> FaultProxy {
    let port = server.port();
    tokio::task::spawn_blocking(move || FaultProxy::start(port)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_a_slow_network() {
    let server = Server::start(Flavor::Redis70);
    let proxy = proxy(&server).await;
    let engine = engine_at(&proxy.url(), LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        proxy.set_latency(Duration::from_millis(200));
        load.until_known(&engine, |fault| fault == Fault::TimedOut).await;
        proxy.set_latency(Duration::ZERO);
        load.until_healed(&engine).await;
    })
    .await;
    assert!(proxy.accepted() <= 12, "no storm of connections: {}", proxy.accepted());
    tokio::task::spawn_blocking(move || drop(proxy)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn half_open() {
    let server = Server::start(Flavor::Redis70);
    let proxy = proxy(&server).await;
    let engine = engine_at(&proxy.url(), LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        proxy.stall();
        load.until_known(&engine, |fault| fault == Fault::TimedOut).await;
        proxy.flow();
        load.until_healed(&engine).await;
    })
    .await;
    assert!(proxy.accepted() <= 12, "no storm of connections: {}", proxy.accepted());
    tokio::task::spawn_blocking(move || drop(proxy)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn its_connections_cut_again_and_again() {
    let server = Server::start(Flavor::Redis70);
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        for _ in 0..10 {
            load.answers(20).await;
            let connections = engine.shared_store().unwrap().counts.connections;
            server.cli(&["CLIENT", "KILL", "TYPE", "normal"]);
            until("back", async || engine.shared_store().unwrap().counts.connections > connections).await;
        }
        load.until_healed(&engine).await;
    })
    .await;
    assert!(engine.shared_store().unwrap().counts.connections <= 21, "no storm of connections");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_that_is_put_right() {
    let server = Server::builder(Flavor::Redis70).password("right").start();
    let engine = engine_at(&format!("redis://:wrong@127.0.0.1:{}", server.port()), LIMITS);
    Load::under(&engine, async |load| {
        load.until_known(&engine, |fault| fault == Fault::Unauthenticated).await;
        server.cli(&["CONFIG", "SET", "requirepass", "wrong"]);
        load.until_healed(&engine).await;
    })
    .await;
    assert!(count(&engine, Fault::Unauthenticated) > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_with_a_long_script() {
    let server = Server::builder(Flavor::Redis70).args(&["--busy-reply-threshold", "10"]).start();
    let engine = engine(&server, LIMITS);
    Load::under(&engine, async |load| {
        load.answers(100).await;
        let port = server.port();
        let busy = std::thread::spawn(move || endless_script(port));
        load.until_known(&engine, |fault| matches!(fault, Fault::Busy | Fault::TimedOut)).await;
        server.cli(&["SCRIPT", "KILL"]);
        busy.join().unwrap();
        load.until_healed(&engine).await;
    })
    .await;
}

/// Keeps the server busy until somebody kills the script.
fn endless_script(port: u16) {
    use std::io::{Read, Write};
    let mut connection = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
    connection.write_all(b"*3\r\n$4\r\nEVAL\r\n$17\r\nwhile true do end\r\n$1\r\n0\r\n").unwrap();
    let _ = connection.read(&mut [0; 64]);
}

#[tokio::test(flavor = "multi_thread")]
async fn down_from_the_start() {
    let server = Server::start(Flavor::Redis70);
    server.kill();
    let engine = engine(&server, LIMITS);
    assert_eq!(engine.connect().await, Err(Fault::Refused));
    Load::under(&engine, async |load| {
        load.until_known(&engine, |fault| fault == Fault::Refused).await;
        server.restart();
        load.until_healed(&engine).await;
    })
    .await;
}
