//! An engine at a clock that the test sets, asked in few words.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tidegate::config::{self, Source};
use tidegate::{Clock, Cost, Decision, Engine, Policy, Request, Timestamp};

/// Where a test's time begins, unless it says otherwise: 1 March 2026, midnight UTC, a Sunday. Every
/// window of whole seconds that divides a day begins here too.
pub const START: Timestamp = Timestamp::from_secs(1_772_323_200);

/// An engine in memory and its clock.
#[derive(Clone, Debug)]
pub struct Limiter {
    /// The engine.
    pub engine: Engine,
    /// Its clock: stands still until it is set.
    pub clock: Clock,
}

impl Limiter {
    /// An engine with this limits file, at [`START`].
    ///
    /// # Panics
    /// If the file has a fault.
    pub fn new(limits_file: &str) -> Self {
        Self::with_policy(policy(limits_file))
    }

    /// An engine with this policy, at [`START`].
    pub fn with_policy(policy: Policy) -> Self {
        let clock = Clock::manual(START);
        Self { engine: Engine::with_clock(policy, clock.clone()), clock }
    }

    /// Sets the clock to so many milliseconds after [`START`].
    pub fn at_ms(&self, ms: u64) -> &Self {
        self.clock.set(Timestamp::from_micros(START.as_micros() + ms * 1_000));
        self
    }

    /// Asks for a request of cost 1. `who` holds its attributes: `org=acme agent=a1`.
    pub fn ask(&self, who: &str) -> Decision {
        self.ask_cost(who, 1)
    }

    /// Asks for a request of this cost.
    ///
    /// # Panics
    /// If `who` is not pairs of name and value.
    #[expect(clippy::panic, reason = "a test that says this wrong has to end")]
    pub fn ask_cost(&self, who: &str, cost: u64) -> Decision {
        let request = attributes(who);
        match self.engine.decide_now(&Request::new(&request).with_cost(Cost::new(cost))) {
            Ok(decision) => decision,
            Err(error) => panic!("the store is in this process: {error}"),
        }
    }

    /// How many of so many requests in a row are admitted.
    pub fn admitted(&self, who: &str, requests: usize) -> usize {
        (0..requests).filter(|_| self.ask(who).allowed()).count()
    }

    /// What is left of each limit that applies, by the limit's name. Takes nothing.
    pub fn remaining(&self, who: &str) -> BTreeMap<String, u64> {
        let peeked = self.ask_cost(who, 0);
        peeked.limits().map(|state| (state.limit.name.to_string(), state.remaining)).collect()
    }

    /// What is left of one limit. Takes nothing.
    ///
    /// # Panics
    /// If the limit does not apply to the request.
    #[expect(clippy::panic, reason = "a test that says this wrong has to end")]
    pub fn remaining_of(&self, limit: &str, who: &str) -> u64 {
        match self.remaining(who).get(limit) {
            Some(remaining) => *remaining,
            None => panic!("limit '{limit}' does not apply to '{who}'"),
        }
    }

    /// Puts another limits file in place.
    ///
    /// # Panics
    /// If the file has a fault.
    pub fn reload(&self, limits_file: &str) -> tidegate::Reloaded {
        self.engine.reload(policy(limits_file))
    }
}

/// What a limits file says.
///
/// # Panics
/// If it has a fault.
#[expect(clippy::panic, reason = "a test whose own file is wrong has to end")]
pub fn policy(limits_file: &str) -> Policy {
    match config::parse(limits_file, &Source::named("limits.yaml")) {
        Ok(loaded) => loaded.policy,
        Err(faults) => panic!("the test's limits file is wrong:\n{faults}"),
    }
}

/// The attributes in `org=acme agent=a1`.
///
/// # Panics
/// If it is anything else.
#[expect(clippy::panic, reason = "a test that says this wrong has to end")]
pub fn attributes(who: &str) -> Vec<(&str, &str)> {
    let pair = |text| match str::split_once(text, '=') {
        Some(pair) => pair,
        None => panic!("'{text}' is not a name and a value"),
    };
    who.split_whitespace().map(pair).collect()
}

/// What a future is that needs no waiting, as everything in memory is.
///
/// # Panics
/// If it has to be waited for.
#[expect(clippy::panic, reason = "a test that says this wrong has to end")]
pub fn ready<T>(future: impl Future<Output = T>) -> T {
    let mut context = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut context) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("the store in this process made its caller wait"),
    }
}
