//! What happened at the server, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::fault::Fault;

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) connections: AtomicU64,
    pub(super) calls: AtomicU64,
    pub(super) requests: AtomicU64,
    pub(super) mended: AtomicU64,
    pub(super) refunds: AtomicU64,
    pub(super) refunds_lost: AtomicU64,
    faults: [AtomicU64; Fault::ALL.len()],
}

/// What happened at the server since the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisCounts {
    /// Connections made.
    pub connections: u64,
    /// Calls of the charging script.
    pub calls: u64,
    /// Requests in those calls: several where many were on their way at a time.
    pub requests: u64,
    /// Refusals that needed no call, since an earlier one said until when they hold.
    pub denied_from_memory: u64,
    /// Counters found broken (of another type, or without an expiry) and made anew.
    pub mended: u64,
    /// Calls that gave back, in a cluster, what a request took before another server refused it.
    pub refunds: u64,
    /// Of those that were due, the ones without an answer: perhaps too much is counted.
    pub refunds_lost: u64,
    /// Calls and connections that failed, by kind.
    pub faults: Vec<(Fault, u64)>,
}

impl Tally {
    pub(super) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    pub(super) fn fault(&self, fault: Fault) {
        if let Some(at) = Fault::ALL.iter().position(|known| *known == fault) {
            Self::add(&self.faults[at], 1);
        }
    }

    pub(super) fn counts(&self) -> RedisCounts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        RedisCounts {
            connections: read(&self.connections),
            calls: read(&self.calls),
            requests: read(&self.requests),
            denied_from_memory: 0,
            mended: read(&self.mended),
            refunds: read(&self.refunds),
            refunds_lost: read(&self.refunds_lost),
            faults: Fault::ALL.into_iter().zip(self.faults.iter().map(read)).collect(),
        }
    }
}
