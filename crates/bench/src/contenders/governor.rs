//! governor: one keyed limiter a level, three separate checks, each with a clock reading of its own.
//!
//! A level that refuses ends the decision, and what the levels before it counted stays counted. The key is a `String`
//! as in its documentation, but written into a buffer that is used again: the fastest way from borrowed text.

use super::Contender;
use crate::limits::{Limits, Rate};
use crate::workload::Call;
use anyhow::{Context, Result};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;

/// Three limiters, most specific first.
pub(crate) struct Governor {
    agents: DefaultKeyedRateLimiter<String>,
    orgs: DefaultKeyedRateLimiter<String>,
    global: DefaultDirectRateLimiter,
}

impl Governor {
    /// Empty limiters on the default store (a dashmap) and the default clock (quanta).
    ///
    /// # Errors
    /// If a rate is outside of what governor accepts.
    pub(crate) fn new(limits: &Limits) -> Result<Self> {
        Ok(Self {
            agents: RateLimiter::keyed(quota(limits.agent)?),
            orgs: RateLimiter::keyed(quota(limits.org)?),
            global: RateLimiter::direct(quota(limits.global)?),
        })
    }
}

impl Contender for Governor {
    type Scratch = String;

    fn decide(&self, key: &mut String, call: Call<'_>) -> bool {
        key.clear();
        key.push_str(call.agent);
        if self.agents.check_key(key).is_err() {
            return false;
        }
        key.clear();
        key.push_str(call.org);
        self.orgs.check_key(key).is_ok() && self.global.check().is_ok()
    }
}

fn quota(rate: Rate) -> Result<Quota> {
    let burst = NonZeroU32::new(rate.count).context("governor: a rate of 0 cannot be given")?;
    Ok(Quota::with_period(rate.token).context("governor: a token has to take some time")?.allow_burst(burst))
}
