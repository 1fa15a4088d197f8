//! What one check costs the server: sends `/v1/check` over kept connections for some seconds, and
//! tells requests a second, waiting times, and processor time of the server for each request.
//!
//!     tidegate serve examples/quickstart.yaml --listen 127.0.0.1:8080 &
//!     cargo run --release -p tidegate-server --example load -- 127.0.0.1:8080 $! 5 8
//!
//! Arguments: address, process id of the server, seconds (5), connections (8).

use std::io::Write as _;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Agents that the requests come from, in turn.
const AGENTS: usize = 10_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let addr: SocketAddr = arguments.next().context("the first argument is the server's address")?.parse()?;
    let pid: u32 = arguments.next().context("the second argument is the server's process id")?.parse()?;
    let secs: u64 = arguments.next().unwrap_or_else(|| "5".into()).parse()?;
    let connections: usize = arguments.next().unwrap_or_else(|| "8".into()).parse()?;

    let (cpu_before, begun) = (cpu_time(pid)?, Instant::now());
    let until = begun + Duration::from_secs(secs);
    let clients: Vec<_> =
        (0..connections).map(|number| tokio::spawn(client(addr, number, connections, until))).collect();
    let mut waits_us = Vec::new();
    for client in clients {
        waits_us.extend(client.await??);
    }
    let (elapsed, cpu) = (begun.elapsed(), cpu_time(pid)?.saturating_sub(cpu_before));
    waits_us.sort_unstable();
    let count = waits_us.len();
    let at = |share: usize| waits_us.get(count * share / 1_000).copied().unwrap_or_default();
    writeln!(
        std::io::stdout(),
        "{count} requests, {:.0}/s over {connections} connections; wait p50 {} µs, p99 {} µs, p99.9 {} µs; \
         server {:.1} µs of processor time a request",
        count as f64 / elapsed.as_secs_f64(),
        at(500),
        at(990),
        at(999),
        cpu.as_secs_f64() * 1e6 / count.max(1) as f64,
    )?;
    Ok(())
}

/// Sends one request after the other; the wait of each in microseconds.
async fn client(addr: SocketAddr, number: usize, stride: usize, until: Instant) -> anyhow::Result<Vec<u32>> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let mut waits_us = Vec::new();
    let mut agent = number;
    let mut answer = vec![0; 16 * 1024];
    loop {
        agent = (agent + stride) % AGENTS;
        let body = format!(r#"{{"attributes": {{"org": "acme", "agent": "a{agent}"}}, "cost": 1}}"#);
        let request = format!(
            "POST /v1/check HTTP/1.1\r\nHost: {addr}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let sent = Instant::now();
        if sent >= until {
            return Ok(waits_us);
        }
        stream.write_all(request.as_bytes()).await?;
        read_answer(&mut stream, &mut answer).await?;
        waits_us.push(u32::try_from(sent.elapsed().as_micros())?);
    }
}

/// Reads one whole answer.
async fn read_answer(stream: &mut TcpStream, answer: &mut [u8]) -> anyhow::Result<()> {
    let mut read = 0;
    loop {
        let more = stream.read(answer.get_mut(read..).context("the answer is too long")?).await?;
        anyhow::ensure!(more > 0, "the server closed the connection");
        read += more;
        let text = std::str::from_utf8(answer.get(..read).unwrap_or_default())?;
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let known = head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 429");
        anyhow::ensure!(known, "an unexpected answer: {head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        if body.len() >= length.context("an answer without a length")?.parse::<usize>()? {
            return Ok(());
        }
    }
}

/// The processor time that a process has taken, in user and system mode.
fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).context("the server's process is not there")?;
    // The name stands in parentheses and may hold blanks; behind it follow fields 3 and on.
    let (_, fields) = stat.rsplit_once(')').context("an unreadable /proc/PID/stat")?;
    let ticks = |field: usize| fields.split_whitespace().nth(field - 3).and_then(|text| text.parse::<u64>().ok());
    let ticks = ticks(14).zip(ticks(15)).context("an unreadable /proc/PID/stat")?;
    // USER_HZ is 100 on every Linux that Rust runs on.
    Ok(Duration::from_millis((ticks.0 + ticks.1) * 10))
}
