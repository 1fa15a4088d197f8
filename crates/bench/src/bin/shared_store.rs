//! What the shared store costs, on one server and in one run: server processor time for a check of three
//! levels beside three counters that are not atomic together, checks a second beside what the server
//! itself can do, and the time of a single check beside a bare call.
//!
//! `shared_store [--rounds N] [--checks N]`
#![expect(clippy::print_stdout, reason = "a program that prints what it measured")]

use std::future::Future;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, anyhow, bail};
use futures_util::future::try_join_all;
use redis::aio::MultiplexedConnection;
use tidegate::{Engine, Request, config};
use tidegate_testkit::servers::{Flavor, Server};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::time::Instant;

const AGENTS: u64 = 10_000;
const ORGS: u64 = 100;
/// Checks whose time is taken one by one.
const SINGLE_CHECKS: u64 = 3_000;

fn main() -> Result<()> {
    let (mut rounds, mut checks) = (5_usize, 100_000_u64);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let value = arguments.next().context("an option needs a value");
        match argument.as_str() {
            "--rounds" => rounds = value?.parse()?,
            "--checks" => checks = value?.parse()?,
            _ => bail!("usage: shared_store [--rounds N] [--checks N]"),
        }
    }
    tokio::runtime::Runtime::new()?.block_on(run(rounds, checks))
}

async fn run(rounds: usize, checks: u64) -> Result<()> {
    let server = Server::start(Flavor::Redis70);
    println!("Redis {}; {rounds} rounds in turn, {checks} checks each; medians\n", Flavor::Redis70.version());
    for algorithm in ["fixed_window", "token_bucket", "sliding_counter", "sliding_window"] {
        let bench = Bench::new(&server, algorithm, checks).await?;
        println!("{algorithm}");
        bench.processor_time(rounds).await?;
        bench.single(rounds).await?;
        bench.throughput(rounds).await?;
    }
    Ok(())
}

struct Bench<'s> {
    server: &'s Server,
    engine: Engine,
    bare: MultiplexedConnection,
    checks: u64,
}

impl<'s> Bench<'s> {
    async fn new(server: &'s Server, algorithm: &str, checks: u64) -> Result<Self> {
        let text = format!(
            "store: {{backend: redis, redis: {{url: \"{}\", timeout_ms: 5000, deny_memory: false}}}}
limits:
  - {{name: agent, per: [org, agent], rate: 90000/min, algorithm: {algorithm}}}
  - {{name: org, per: [org], rate: 95000/min, algorithm: {algorithm}}}
  - {{name: everyone, per: [], rate: 100000/s, algorithm: {algorithm}}}
",
            server.url()
        );
        let loaded =
            config::parse(&text, &config::Source::named("bench.yaml")).map_err(|faults| anyhow!("{faults}"))?;
        let engine = Engine::new(loaded.policy);
        engine.connect().await.map_err(|fault| anyhow!("{}", fault.advice()))?;
        let bare = redis::Client::open(server.url())?.get_multiplexed_async_connection().await?;
        Ok(Self { server, engine, bare, checks })
    }

    /// Server processor time for a check, at some numbers of checks in flight.
    async fn processor_time(&self, rounds: usize) -> Result<()> {
        for (in_flight, aim) in [(1, ""), (8, " (aim 2.7)"), (64, ""), (256, " (aim 1.5)")] {
            let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
            for _ in 0..rounds {
                let three = self.processor_us(in_flight, |nth| self.three_counters(nth)).await?;
                let check = self.processor_us(in_flight, |nth| self.check(nth)).await?;
                ours.push(check);
                theirs.push(three);
                ratios.push(check / three);
            }
            println!(
                "  {in_flight:>3} in flight: {:5.2} us of server time a check, {:5.2} us three INCRBY + PEXPIRE NX: {:.2} x{aim}",
                median(ours),
                median(theirs),
                median(ratios)
            );
        }
        Ok(())
    }

    /// The time of one check after the other, beside the same bare call.
    async fn single(&self, rounds: usize) -> Result<()> {
        let call = self.recorded_call().await?;
        let mut bare = redis::Cmd::new();
        for argument in &call {
            bare.arg(argument.as_slice());
        }
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (mut checks, mut calls) = (Vec::new(), Vec::new());
            for nth in 0..SINGLE_CHECKS {
                let began = Instant::now();
                self.check(nth).await?;
                checks.push(began.elapsed().as_secs_f64() * 1e6);
                let began = Instant::now();
                bare.query_async::<redis::Value>(&mut self.bare.clone()).await?;
                calls.push(began.elapsed().as_secs_f64() * 1e6);
            }
            let (check, call) = (median(checks), median(calls));
            ours.push(check);
            theirs.push(call);
            ratios.push(check / call);
        }
        println!(
            "  one by one: p50 {:.0} us a check, {:.0} us the bare EVALSHA: {:.2} x (aim 1.5)",
            median(ours),
            median(theirs),
            median(ratios)
        );
        Ok(())
    }

    /// Checks a second at 64 in flight, beside bare calls.
    async fn throughput(&self, rounds: usize) -> Result<()> {
        let call = self.recorded_call().await?;
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..rounds {
            let bare = self.bare_calls(&call).await?;
            let began = Instant::now();
            self.all(64, |nth| self.check(nth)).await?;
            let own = self.checks as f64 / began.elapsed().as_secs_f64();
            ours.push(own);
            theirs.push(bare);
            ratios.push(own / bare);
        }
        println!(
            "  64 in flight: {:.0} checks/s, {:.0}/s of the same bare EVALSHA over 64 connections: {:.2} (aim 0.6)\n",
            median(ours),
            median(theirs),
            median(ratios)
        );
        Ok(())
    }

    /// The call that a check makes, as the server sees it.
    async fn recorded_call(&self) -> Result<Vec<Vec<u8>>> {
        let mut monitor = TcpStream::connect(("127.0.0.1", self.server.port()))?;
        monitor.write_all(b"MONITOR\r\n")?;
        let mut lines = BufReader::new(monitor).lines();
        lines.next().context("no answer to MONITOR")??;
        self.check(1).await?;
        for line in lines {
            let line = line?;
            if line.contains("EVALSHA") && !line.contains("lua]") {
                return Ok(monitored(&line));
            }
        }
        bail!("the server ended");
    }

    /// Calls a second over 64 connections with one call in flight each, as redis-benchmark makes them; that
    /// program itself cannot send the call, which has zero bytes in it.
    async fn bare_calls(&self, call: &[Vec<u8>]) -> Result<f64> {
        let mut bytes = format!("*{}\r\n", call.len()).into_bytes();
        for argument in call {
            bytes.extend_from_slice(format!("${}\r\n", argument.len()).as_bytes());
            bytes.extend_from_slice(argument);
            bytes.extend_from_slice(b"\r\n");
        }
        let (each, bytes) = (self.checks / 64, Arc::new(bytes));
        let mut connections = Vec::new();
        for _ in 0..64 {
            let connection = tokio::net::TcpStream::connect(("127.0.0.1", self.server.port())).await?;
            connection.set_nodelay(true)?;
            connections.push(connection);
        }
        let began = Instant::now();
        let running = connections.into_iter().map(|connection| {
            let bytes = Arc::clone(&bytes);
            async move { tokio::spawn(calls(connection, bytes, each)).await? }
        });
        try_join_all(running).await?;
        Ok((each * 64) as f64 / began.elapsed().as_secs_f64())
    }

    /// Server processor time for one of these, in µs.
    async fn processor_us<F: Future<Output = Result<()>>>(
        &self,
        in_flight: u64,
        one: impl Fn(u64) -> F,
    ) -> Result<f64> {
        let before = self.server.cpu_time();
        self.all(in_flight, one).await?;
        Ok((self.server.cpu_time() - before).as_secs_f64() * 1e6 / self.checks as f64)
    }

    async fn all<F: Future<Output = Result<()>>>(&self, in_flight: u64, one: impl Fn(u64) -> F) -> Result<()> {
        let next = AtomicU64::new(0);
        let worker = async || {
            loop {
                let nth = next.fetch_add(1, Ordering::Relaxed);
                if nth >= self.checks {
                    return Ok::<(), anyhow::Error>(());
                }
                one(nth).await?;
            }
        };
        try_join_all((0..in_flight).map(|_| worker())).await.map(drop)
    }

    async fn check(&self, nth: u64) -> Result<()> {
        let (org, agent) = names(nth);
        let decision = self.engine.decide(&Request::new(&[("org", &org), ("agent", &agent)])).await;
        if decision.degraded().is_some() {
            bail!("a check that the server did not decide: {:?}", self.engine.shared_store());
        }
        Ok(())
    }

    /// Three counters in one pipeline, not atomic together.
    async fn three_counters(&self, nth: u64) -> Result<()> {
        let (org, agent) = names(nth);
        let agent = format!("bare:{{{org}}}:agent:{agent}:minute");
        let keys = [agent, format!("bare:{{{org}}}:minute"), "bare:global:minute".into()];
        let mut pipeline = redis::pipe();
        for key in keys {
            pipeline.cmd("INCRBY").arg(&key).arg(1).cmd("PEXPIRE").arg(&key).arg(60_000).arg("NX");
        }
        pipeline.query_async::<redis::Value>(&mut self.bare.clone()).await?;
        Ok(())
    }
}

/// One call after the other. The answer is an array of integers, a line each.
async fn calls(connection: tokio::net::TcpStream, bytes: Arc<Vec<u8>>, count: u64) -> Result<()> {
    let (reader, mut writer) = connection.into_split();
    let mut reader = tokio::io::BufReader::new(reader);
    let mut line = String::new();
    for _ in 0..count {
        writer.write_all(&bytes).await?;
        line.clear();
        reader.read_line(&mut line).await?;
        let numbers: u64 = line.trim_start_matches('*').trim().parse().with_context(|| line.clone())?;
        for _ in 0..numbers {
            line.clear();
            reader.read_line(&mut line).await?;
        }
    }
    Ok(())
}

fn names(nth: u64) -> (String, String) {
    // Neighbours in time are strangers.
    let agent = nth.wrapping_mul(7_919) % AGENTS;
    (format!("org-{}", agent % ORGS), format!("agent-{agent}"))
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// The arguments in a line of MONITOR: quoted, with C's escapes.
fn monitored(line: &str) -> Vec<Vec<u8>> {
    let mut arguments = Vec::new();
    let mut bytes = line.bytes().skip_while(|byte| *byte != b'"').peekable();
    while bytes.next() == Some(b'"') {
        let mut argument = Vec::new();
        while let Some(byte) = bytes.next() {
            match (byte, if byte == b'\\' { bytes.next() } else { None }) {
                (b'"', _) => break,
                (_, Some(b'x')) => {
                    let digits: Vec<u8> = bytes.by_ref().take(2).collect();
                    let text = String::from_utf8_lossy(&digits).into_owned();
                    argument.push(u8::from_str_radix(&text, 16).unwrap_or(0));
                }
                (_, Some(b'n')) => argument.push(b'\n'),
                (_, Some(b'r')) => argument.push(b'\r'),
                (_, Some(b't')) => argument.push(b'\t'),
                (_, Some(b'a')) => argument.push(7),
                (_, Some(b'b')) => argument.push(8),
                (_, Some(escaped)) => argument.push(escaped),
                (plain, None) => argument.push(plain),
            }
        }
        arguments.push(argument);
        while bytes.peek() == Some(&b' ') {
            bytes.next();
        }
    }
    arguments
}
