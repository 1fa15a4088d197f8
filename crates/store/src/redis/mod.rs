//! The store that a fleet shares: Redis 7.0 or later, or Valkey.
//!
//! One script checks and charges every limit of a request in one round trip, by the server's clock.
//!
//! # Layout
//! - `lua/charge.lua`, `lua/reset.lua`: what runs on the server; `script` sends it there.
//! - `keys`: what counters are called.
//! - `call`: the numbers that cross to the script and back.
//! - `replay`: the rows of a batch, from what the script found.
//! - `queue`: several requests in one call when many are on their way.
//! - `denied`: refusals that hold until a known instant, remembered.
//! - `link`: the connection, and its making again; `node`: what it is to, a server or a cluster's;
//!   `settings`: where they are.
//! - `split`: a request whose counters are on several servers of a cluster; `refund`: what it gives back.
//! - `fault`: what can be wrong with a server, told apart.
//! - `heartbeat`: how many instances share the server.
//! - `page`: the listing; `tally`: counts for operators.

mod call;
mod denied;
mod fault;
mod heartbeat;
mod keys;
mod link;
mod node;
mod page;
mod queue;
mod refund;
mod replay;
mod script;
mod settings;
mod split;
mod tally;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use tidegate_core::{Limit, Timestamp};
use tokio::time::{Instant, timeout_at};

pub use fault::Fault;
pub use keys::Slot;
pub use settings::{Address, RedisSettings, RedisSettingsError, Tls};
pub use tally::RedisCounts;

use crate::charge::{At, Batch, Charge, Key, LimitId};
use crate::store::{CounterPage, PageQuery, Store, StoreError, StoreStats};
use call::Ask;
use denied::Denied;
use keys::Names;
use link::{Link, Status};
use page::was_live;
use queue::{Answer, Failure, Queue};

/// How long counters are kept that are charged at a given instant.
const GIVEN_KEEP_MS: u64 = 60_000;
/// A request whose calendar periods were guessed wrong is asked once more, by the server's clock.
const ASKS_MAX: usize = 3;

/// Counters on a server that others use too.
#[derive(Debug)]
pub struct RedisStore {
    settings: RedisSettings,
    installed: RwLock<Arc<Installed>>,
    link: Arc<Link>,
    queue: Arc<Queue>,
    denied: Arc<Denied>,
    /// The server's clock minus ours, in µs, as last seen.
    ahead_us: AtomicI64,
}

#[derive(Debug, Default)]
struct Installed {
    limits: HashMap<LimitId, Arc<Limit>>,
    names: Names,
}

impl Installed {
    /// What the server is asked. `now` is what its clock is thought to show.
    fn ask(&self, batch: &[Charge<'_>], now: Timestamp) -> Result<Ask, StoreError> {
        let mut ask = Ask::default();
        for charge in batch {
            let name = self.names.name(charge.limit, &charge.key);
            ask.push(charge, name.ok_or(StoreError::UnknownLimit(charge.limit))?, now);
        }
        Ok(ask)
    }

    /// Whether each charge is of a limit that is known, with a rule that reads its counters.
    fn knows(&self, batch: &[Charge<'_>]) -> Result<(), StoreError> {
        for charge in batch {
            let own = self.limits.get(&charge.limit).ok_or(StoreError::UnknownLimit(charge.limit))?;
            if !own.algorithm.has_layout_of(charge.algorithm) {
                return Err(StoreError::WrongLayout(charge.limit));
            }
        }
        Ok(())
    }
}

impl RedisStore {
    /// A store on the server at these settings. It connects when it is first asked for something, within
    /// a tokio runtime.
    pub fn new(settings: RedisSettings) -> Self {
        let denied = Arc::new(Denied::new());
        let link = Arc::new(Link::new(&settings, Arc::clone(&denied)));
        let queue = Arc::new(Queue::new(Arc::clone(&link), settings.is_cluster()));
        Self { settings, installed: RwLock::default(), link, queue, denied, ahead_us: AtomicI64::new(0) }
    }

    /// Begins to connect, and waits until the first connection was made or could not be.
    ///
    /// # Errors
    /// The [`Fault`], if it could not; it is tried again in the background.
    pub async fn connected(&self) -> Result<(), Fault> {
        match self.link.settled().await {
            Status::Up(_) => Ok(()),
            Status::Down(fault) => Err(fault),
            Status::Starting => Err(Fault::TimedOut),
        }
    }

    /// What is wrong with the server, if that is known.
    pub fn fault(&self) -> Option<Fault> {
        match self.link.status() {
            Status::Down(fault) => Some(fault),
            Status::Up(_) | Status::Starting => None,
        }
    }

    /// What happened since the start.
    pub fn counts(&self) -> RedisCounts {
        RedisCounts { denied_from_memory: self.denied.hits(), ..self.link.tally().counts() }
    }

    /// How many instances shared the server when it last answered, at least 1.
    pub fn instances(&self) -> u64 {
        self.link.heartbeat().instances()
    }

    /// What the counter of this limit and key is called; none if the limit is not installed.
    pub fn counter_name(&self, limit: LimitId, key: &Key<'_>) -> Option<String> {
        self.installed().names.name(limit, key)
    }

    fn installed(&self) -> Arc<Installed> {
        Arc::clone(&self.installed.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Asks the server about a batch that is not empty.
    async fn ask(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        let installed = self.installed();
        installed.knows(batch)?;
        let sent = Instant::now();
        let deadline = sent + self.settings.timeout;
        let mut now = self.server_time(at);
        for _ in 0..ASKS_MAX {
            let ask = installed.ask(batch, now)?;
            let question = self.remembers(at).then(|| (ask.question(), self.denied.epoch()));
            if let Some(refusal) = question.as_ref().and_then(|(question, _)| self.denied.refusal(question, sent)) {
                return Ok(refusal);
            }
            match self.send(ask, at, deadline).await {
                Ok(Answer { now, admitted, found }) => {
                    self.learn(at, now);
                    let answer = replay::replay(batch, &found, now, admitted);
                    let answer = answer.ok_or(StoreError::Unavailable(Fault::Protocol))?;
                    if let Some((question, epoch)) = question {
                        self.denied.remember(question, batch, &answer, sent, epoch);
                    }
                    return Ok(answer);
                }
                Err(Failure::Fault(fault)) => return Err(StoreError::Unavailable(fault)),
                Err(Failure::OtherPeriod(server)) => {
                    self.learn(at, server);
                    now = server;
                }
            }
        }
        Err(StoreError::Unavailable(Fault::Protocol))
    }

    /// Asks the server, by whichever clock.
    async fn send(&self, ask: Ask, at: At, deadline: Instant) -> Result<Answer, Failure> {
        match at {
            At::Given(now) => self.queue.ask_at(&ask, now, GIVEN_KEEP_MS, deadline).await,
            At::Backend { .. } => self.queue.ask(ask, deadline).await,
        }
    }

    /// Whether refusals are remembered: of questions by the server's clock, unless that is switched off. Where
    /// requests give back what they took, no refusal is sure to hold.
    fn remembers(&self, at: At) -> bool {
        self.settings.deny_memory && !self.settings.is_split() && matches!(at, At::Backend { .. })
    }

    /// What the server's clock shows about now.
    fn server_time(&self, at: At) -> Timestamp {
        match at {
            At::Given(now) => now,
            At::Backend { local } => {
                Timestamp::from_micros(local.as_micros().saturating_add_signed(self.ahead_us.load(Ordering::Relaxed)))
            }
        }
    }

    fn learn(&self, at: At, server: Timestamp) {
        if let At::Backend { local } = at {
            let ahead = server.as_micros() as i64 - local.as_micros() as i64;
            self.ahead_us.store(ahead, Ordering::Relaxed);
        }
    }
}

impl Store for RedisStore {
    /// Counters of limits that are no longer named are left to their expiry: others may use them.
    fn install(&self, limits: &[(LimitId, Arc<Limit>)]) {
        let names = Names::new(self.settings.prefix(), &self.settings.slot, limits);
        let limits = limits.iter().map(|(id, limit)| (*id, Arc::clone(limit))).collect();
        *self.installed.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(Installed { limits, names });
        self.denied.clear();
    }

    async fn charge(&self, batch: &[Charge<'_>], at: At) -> Result<Batch, StoreError> {
        if batch.is_empty() {
            return Ok(Batch { admitted: true, rows: Default::default(), at: self.server_time(at) });
        }
        if self.settings.is_split() {
            return split::ask(self, batch, at).await;
        }
        self.ask(batch, at).await
    }

    async fn reset(&self, limit: LimitId, key: &Key<'_>, at: At) -> Result<bool, StoreError> {
        let installed = self.installed();
        let (Some(own), Some(name)) = (installed.limits.get(&limit), installed.names.name(limit, key)) else {
            return Err(StoreError::UnknownLimit(limit));
        };
        let deadline = Instant::now() + self.settings.timeout;
        let now = match at {
            At::Given(now) => now.as_micros().to_string(),
            At::Backend { .. } => String::new(),
        };
        let unavailable = StoreError::Unavailable;
        let mut connection = self.link.connection(deadline).await.map_err(unavailable)?;
        let (keys, arguments) = ([name], [now.as_bytes()]);
        let running = script::RESET.run(&mut connection.inner, &keys, &arguments);
        let fault = match timeout_at(deadline, running).await {
            Ok(Ok(value)) => {
                self.denied.clear();
                self.link.tell_reset(&mut connection, deadline).await;
                return was_live(&own.algorithm, value).ok_or(unavailable(Fault::Protocol));
            }
            Ok(Err(error)) => Fault::from(&error),
            Err(_) => Fault::TimedOut,
        };
        self.link.report(&connection, fault);
        Err(unavailable(fault))
    }

    async fn page(&self, query: &PageQuery<'_>, at: At) -> Result<CounterPage, StoreError> {
        page::page(self, query, at).await
    }

    /// Nothing: how full the server is, it says itself.
    fn stats(&self) -> StoreStats {
        StoreStats::default()
    }
}
