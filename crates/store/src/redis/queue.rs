//! Requests on their way to the server: one call each while few are on their way, several in a call when
//! many are.
//!
//! At most four calls are under way at a time. A request that finds a place free goes at once, alone. The
//! others wait in line, and each call that ends takes the next up to 32 of them along, first come first
//! served: the wait added is at most the time that one call takes, for each 128 in front.
//!
//! In a cluster a call has the counters of one slot only: the first in line takes along those behind it that
//! are of its slot, and more calls are under way at a time, as there are more servers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::Value;
use tidegate_core::Timestamp;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use super::call::{Ask, Call, REQUESTS_MAX, Reply};
use super::fault::Fault;
use super::link::Link;
use super::script::CHARGE;
use super::tally::Tally;

/// Calls under way at a time.
const CALLS_MAX: usize = 4;
/// The same in a cluster.
const CALLS_MAX_IN_CLUSTER: usize = 16;
/// How many of those in line are looked at for one call in a cluster.
const LOOK_MAX: usize = 256;
/// Requests that wait at most; more are refused at once, as by a server that does not answer.
const WAITING_MAX: usize = 65_536;

/// What the script said of one request.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) now: Timestamp,
    pub(super) admitted: bool,
    pub(super) found: Vec<u64>,
}

/// Why a request has no answer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Failure {
    Fault(Fault),
    /// The server's clock shows this, which is in none of the periods that the request named.
    OtherPeriod(Timestamp),
}

/// The line in front of the server.
#[derive(Debug)]
pub(super) struct Queue {
    link: Arc<Link>,
    calls_max: usize,
    /// Whether a call may have the counters of one slot only.
    by_slot: bool,
    line: Mutex<Line>,
}

#[derive(Debug, Default)]
struct Line {
    calls: usize,
    waiting: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    ask: Ask,
    deadline: Instant,
    answer: oneshot::Sender<Result<Answer, Failure>>,
}

impl Queue {
    /// A line in front of the link's server, or of a cluster.
    pub(super) fn new(link: Arc<Link>, by_slot: bool) -> Self {
        let calls_max = if by_slot { CALLS_MAX_IN_CLUSTER } else { CALLS_MAX };
        Self { link, calls_max, by_slot, line: Mutex::default() }
    }

    /// Asks the server, by its own clock.
    pub(super) async fn ask(self: &Arc<Self>, ask: Ask, deadline: Instant) -> Result<Answer, Failure> {
        let receiver = {
            let mut line = self.line();
            if line.calls < self.calls_max {
                line.calls += 1;
                None
            } else if line.waiting.len() < WAITING_MAX {
                let (sender, receiver) = oneshot::channel();
                line.waiting.push_back(Waiting { ask: ask.clone(), deadline, answer: sender });
                Some(receiver)
            } else {
                return Err(Failure::Fault(Fault::TimedOut));
            }
        };
        let Some(receiver) = receiver else {
            // Whoever drops this future lets the next ones go.
            let place = Place { queue: self };
            let answer = self.call_alone(&ask, deadline).await;
            drop(place);
            return answer;
        };
        match timeout_at(deadline, receiver).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) | Err(_) => Err(Failure::Fault(Fault::TimedOut)),
        }
    }

    /// Asks the server by a given clock, past the line: for tests.
    pub(super) async fn ask_at(
        &self,
        ask: &Ask,
        now: Timestamp,
        keep_ms: u64,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let mut call = Call::default();
        call.push(ask);
        let (now, keep_ms) = (now.as_micros().to_string(), keep_ms.to_string());
        let clock = Some([now.as_bytes(), keep_ms.as_bytes()]);
        let reply = run(&self.link, &call, clock, deadline).await?;
        answer(&reply, 0, 0, ask)
    }

    async fn call_alone(&self, ask: &Ask, deadline: Instant) -> Result<Answer, Failure> {
        let mut call = Call::default();
        call.push(ask);
        let reply = run(&self.link, &call, None, deadline).await?;
        answer(&reply, 0, 0, ask)
    }

    /// Takes those who have waited longest along, until nobody waits.
    async fn serve(self: Arc<Self>) {
        let place = Place { queue: &self };
        loop {
            let group = if self.by_slot { self.line().next_of_slot() } else { self.line().next_group() };
            let Some(deadline) = group.iter().map(|one| one.deadline).max() else { break };
            let mut call = Call::default();
            for one in &group {
                call.push(&one.ask);
            }
            let reply = run(&self.link, &call, None, deadline).await;
            let mut from = 0;
            for (nth, one) in group.into_iter().enumerate() {
                let own = match &reply {
                    Ok(reply) => answer(reply, nth, from, &one.ask),
                    Err(failure) => Err(*failure),
                };
                from += one.ask.numbers;
                // Whoever has given up is charged all the same: its call was on the way.
                let _ = one.answer.send(own);
            }
        }
        drop(place);
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        // Nothing in here can panic half-way.
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// The next up to 32 who still wait.
    fn next_group(&mut self) -> Vec<Waiting> {
        let mut group = Vec::new();
        while group.len() < REQUESTS_MAX {
            let Some(next) = self.waiting.pop_front() else { break };
            if !next.answer.is_closed() {
                group.push(next);
            }
        }
        group
    }

    /// The first who still waits, and up to 31 of those close behind whose counters are of its slot. The
    /// others keep their order.
    fn next_of_slot(&mut self) -> Vec<Waiting> {
        let mut group: Vec<Waiting> = Vec::new();
        let mut passed = Vec::new();
        while group.len() < REQUESTS_MAX && passed.len() < LOOK_MAX {
            let Some(next) = self.waiting.pop_front() else { break };
            if next.answer.is_closed() {
                continue;
            }
            if group.first().is_none_or(|first| first.ask.slot() == next.ask.slot()) {
                group.push(next);
            } else {
                passed.push(next);
            }
        }
        for one in passed.into_iter().rev() {
            self.waiting.push_front(one);
        }
        group
    }
}

/// A place among the calls under way. Given up, it goes to those who wait.
struct Place<'q> {
    queue: &'q Arc<Queue>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut line = self.queue.line();
        if line.waiting.is_empty() {
            line.calls -= 1;
            return;
        }
        drop(line);
        // Outside a runtime nobody waits.
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(Arc::clone(self.queue).serve())),
            Err(_) => self.queue.line().calls -= 1,
        }
    }
}

async fn run(link: &Link, call: &Call, clock: Option<[&[u8]; 2]>, deadline: Instant) -> Result<Reply, Failure> {
    let tally = link.tally();
    let mut connection = link.connection(deadline).await.map_err(Failure::Fault)?;
    Tally::add(&tally.calls, 1);
    Tally::add(&tally.requests, call.requests());
    let blob = call.blob();
    let arguments: [&[u8]; 3] = match clock {
        Some([now, keep_ms]) => [now, &blob, keep_ms],
        None => [b"", &blob, b""],
    };
    let arguments = if clock.is_some() { &arguments[..] } else { &arguments[..2] };
    let running = CHARGE.run(&mut connection.inner, &call.names, arguments);
    let fault = match timeout_at(deadline, running).await {
        Ok(Ok(value)) => match numbers(value).as_deref() {
            Some([-1, now]) => {
                return Err(Failure::OtherPeriod(Timestamp::from_micros(now.unsigned_abs())));
            }
            Some(numbers) => match Reply::new(numbers) {
                Some(reply) => {
                    Tally::add(&tally.mended, reply.mended);
                    return Ok(reply);
                }
                None => Fault::Protocol,
            },
            None => Fault::Protocol,
        },
        Ok(Err(error)) => Fault::from(&error),
        Err(_) => Fault::TimedOut,
    };
    link.report(&connection, fault);
    Err(Failure::Fault(fault))
}

fn numbers(value: Value) -> Option<Vec<i64>> {
    let Value::Array(values) = value else { return None };
    values
        .into_iter()
        .map(|value| match value {
            Value::Int(number) => Some(number),
            _ => None,
        })
        .collect()
}

fn answer(reply: &Reply, nth: usize, from: usize, ask: &Ask) -> Result<Answer, Failure> {
    let found = reply.found(from, ask.numbers).ok_or(Failure::Fault(Fault::Protocol))?;
    Ok(Answer { now: reply.now, admitted: reply.admits(nth), found: found.to_vec() })
}
