//! The three limits of every decision, and the states in which they are measured.

use serde::Serialize;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Long enough that no window ends while the benchmark runs.
const MONTH: Duration = Duration::from_secs(30 * 24 * 60 * 60);
/// More than a run asks of one key.
const UNREACHABLE: Rate = Rate { count: 100_000_000, window: MONTH, token: Duration::from_secs(20) };
/// More than a run asks of one among many keys. A token takes so long to come back that a key which has called once is
/// kept for as long as the laps take: with tokens that come back at once, the table would be empty most of the time.
const UNREACHABLE_FOR_MANY: Rate = Rate { count: 10_000_000, window: MONTH, token: Duration::from_secs(200) };

/// So many requests: in a window, or out of a bucket of that many tokens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    /// Requests, at least 1.
    pub(crate) count: u32,
    /// The window, in whole seconds.
    pub(crate) window: Duration,
    /// The time in which a bucket gets one token back, in whole seconds.
    pub(crate) token: Duration,
}

/// One limit a level, most specific first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// For each agent.
    pub(crate) agent: Rate,
    /// For each organisation.
    pub(crate) org: Rate,
    /// For everyone together.
    pub(crate) global: Rate,
}

/// What happens to a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Path {
    /// All three levels have room, and all three count it.
    Admit,
    /// The agent has spent its quota: the first level refuses.
    RejectAgent,
    /// Everyone together has spent the global quota: the last level refuses.
    RejectGlobal,
}

impl Path {
    /// All paths, in the order in which they are run.
    pub(crate) const ALL: [Self; 3] = [Self::Admit, Self::RejectAgent, Self::RejectGlobal];

    /// The path's name in the table.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Admit => "admit",
            Self::RejectAgent => "reject (agent exhausted)",
            Self::RejectGlobal => "reject (global exhausted)",
        }
    }

    /// The limits that lead to this path once each of `agents` agents has called [`Path::calls_to_fill`] times and
    /// one of them has called on until it was refused.
    pub(crate) fn limits(self, agents: u32) -> Limits {
        let each = if agents > 1 { UNREACHABLE_FOR_MANY } else { UNREACHABLE };
        let admit = Limits { agent: each, org: each, global: UNREACHABLE };
        match self {
            Self::Admit => admit,
            // Two, not one: throttlecrab 0.4 keeps no state for a burst of one, and so never refuses it.
            Self::RejectAgent => Limits { agent: Rate { count: 2, window: MONTH, token: MONTH / 2 }, ..admit },
            Self::RejectGlobal => {
                let global = Rate { count: agents.max(1_000), window: MONTH, token: Duration::from_secs(1_000) };
                Limits { global, ..admit }
            }
        }
    }

    /// How often each agent calls before the measurement, so that every key exists.
    pub(crate) fn calls_to_fill(self) -> u32 {
        match self {
            Self::Admit | Self::RejectGlobal => 1,
            Self::RejectAgent => 2,
        }
    }
}

/// Limits as somebody might have them, with a window that does not end while keys are counted.
pub(crate) fn ordinary() -> Limits {
    let agent = Rate { count: 1_000, window: DAY, token: Duration::from_secs(86) };
    Limits { agent, org: UNREACHABLE, global: UNREACHABLE }
}

/// Limits that nothing here reaches, and whose idle keys expire after `period` while others are inserted.
pub(crate) fn short_lived(period: Duration) -> Limits {
    let rate = Rate { count: UNREACHABLE.count, window: period, token: period };
    Limits { agent: rate, org: rate, global: rate }
}
