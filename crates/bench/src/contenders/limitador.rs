//! limitador: three limits in one namespace, one call that checks and updates all of them.
//!
//! Its request is a `Context` made of a map of owned strings; making it is part of a decision, since no two requests
//! share one (it takes a little under half of the time). The store is its in-memory one, with room for every key so that
//! it never evicts.

use super::Contender;
use crate::limits::{Limits, Rate};
use crate::workload::Call;
use anyhow::Result;
use limitador::RateLimiter;
use limitador::limit::{Context, Expression, Limit, Namespace};
use std::collections::HashMap;

/// One limiter that holds the three limits.
pub(crate) struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

impl Limitador {
    /// An empty limiter in memory with room for `keys` agents and more.
    ///
    /// # Errors
    /// If limitador does not accept one of the attribute names.
    pub(crate) fn new(limits: &Limits, keys: usize) -> Result<Self> {
        let limiter = RateLimiter::new((keys + keys / 10 + 10_000) as u64);
        limiter.add_limit(limit(limits.agent, Some("agent"))?);
        limiter.add_limit(limit(limits.org, Some("org"))?);
        limiter.add_limit(limit(limits.global, None)?);
        Ok(Self { limiter, namespace: "bench".into() })
    }
}

impl Contender for Limitador {
    type Scratch = ();

    fn decide(&self, (): &mut (), call: Call<'_>) -> bool {
        let attributes =
            HashMap::from([("agent".to_owned(), call.agent.to_owned()), ("org".to_owned(), call.org.to_owned())]);
        let context = Context::from(attributes);
        self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1).is_ok_and(|result| !result.limited)
    }
}

fn limit(rate: Rate, per: Option<&str>) -> Result<Limit> {
    let variables = per.map(Expression::parse).transpose()?;
    Ok(Limit::new("bench", u64::from(rate.count), rate.window.as_secs(), [], variables))
}
