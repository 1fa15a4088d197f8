//! Limits and charges to test with.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{Algorithm, CivilPeriod, Cost, Limit, Mode, PeriodKind, Rate, Span, Standing, Timestamp, Unit};
use tidegate_store::{At, Batch, Charge, Key, LimitId, Op, Store};

/// The first instant of an hour (and so of a minute), in 2027.
pub const START: Timestamp = Timestamp::from_secs(1_800_000_000);

/// Longer than anything here is remembered.
pub const LONG: Span = Span::from_secs(2 * 3_600);

/// The counting rules, each with one period: an hour for the calendar, a minute for the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `fixed_window`.
    FixedWindow,
    /// `sliding_window`.
    SlidingWindow,
    /// `sliding_counter`.
    SlidingCounter,
    /// `token_bucket`.
    TokenBucket,
    /// A civil hour.
    Calendar,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::FixedWindow, Self::SlidingWindow, Self::SlidingCounter, Self::TokenBucket, Self::Calendar];

    /// The rule of this kind that admits `capacity` at once.
    pub fn rule(self, capacity: u64) -> Algorithm {
        let minutely = Rate::new(capacity, 60).unwrap();
        match self {
            Self::FixedWindow => Algorithm::FixedWindow(FixedWindow::new(minutely).unwrap()),
            Self::SlidingWindow => Algorithm::SlidingWindow(SlidingWindow::new(minutely).unwrap()),
            Self::SlidingCounter => Algorithm::SlidingCounter(SlidingCounter::new(minutely).unwrap()),
            // One rate for all, so that every capacity reads the states of every other.
            Self::TokenBucket if capacity > 0 => {
                Algorithm::TokenBucket(TokenBucket::new(Rate::new(7, 60).unwrap(), Some(capacity)).unwrap())
            }
            Self::TokenBucket => Algorithm::TokenBucket(TokenBucket::new(minutely, None).unwrap()),
            Self::Calendar => {
                Algorithm::Calendar(Calendar::new(capacity, CivilPeriod::new(PeriodKind::Hour, "UTC", None).unwrap()))
            }
        }
    }
}

/// A limit that a store is to know.
#[derive(Clone, Debug)]
pub struct Known {
    /// Its number.
    pub id: LimitId,
    /// The limit.
    pub limit: Arc<Limit>,
}

impl Known {
    /// The limit with number `id` whose counters are named by `per`.
    pub fn new(id: u32, per: &[&str], algorithm: Algorithm) -> Self {
        let per: Vec<Arc<str>> = per.iter().map(|name| Arc::from(*name)).collect();
        let limit = Limit {
            name: format!("limit-{id}").into(),
            level: Limit::level_of(&per, &algorithm),
            per,
            unit: Unit::Requests,
            mode: Mode::Enforce,
            algorithm,
        };
        Self { id: LimitId(id), limit: Arc::new(limit) }
    }

    /// An enforced charge that takes `units`.
    pub fn take<'a>(&'a self, values: &[&'a str], units: u64) -> Charge<'a> {
        Charge {
            limit: self.id,
            key: Key::of(values),
            algorithm: &self.limit.algorithm,
            cost: Cost::new(units),
            mode: Mode::Enforce,
            op: Op::Take,
        }
    }

    /// An enforced charge that asks for `units`.
    pub fn peek<'a>(&'a self, values: &[&'a str], units: u64) -> Charge<'a> {
        Charge { op: Op::Peek, ..self.take(values, units) }
    }

    /// How a counter stands.
    pub async fn standing(&self, store: &impl Store, values: &[&str], now: Timestamp) -> Standing {
        charge(store, &[self.peek(values, 0)], now).await.rows[0].standing
    }

    /// What can still be taken from a counter.
    pub async fn remaining(&self, store: &impl Store, values: &[&str], now: Timestamp) -> u64 {
        self.standing(store, values, now).await.remaining
    }
}

/// The same charge, permissive.
pub fn permissive(charge: Charge<'_>) -> Charge<'_> {
    Charge { mode: Mode::Permissive, ..charge }
}

/// Installs these limits and no others.
pub fn install(store: &impl Store, limits: &[&Known]) {
    let limits: Vec<_> = limits.iter().map(|known| (known.id, Arc::clone(&known.limit))).collect();
    store.install(&limits);
}

/// Charges a batch of installed limits.
pub async fn charge(store: &impl Store, batch: &[Charge<'_>], now: Timestamp) -> Batch {
    store.charge(batch, At::Given(now)).await.unwrap()
}

/// Runs a future of a store that never waits for anything but the processor.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(done) = future.as_mut().poll(&mut context) {
            return done;
        }
        std::thread::yield_now();
    }
}
