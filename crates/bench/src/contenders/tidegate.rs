//! Tidegate: three limits in a limits file, one call that decides by all of them.
//!
//! The file is parsed as a user's would be and leaves everything else at its default, so the engine reads the system's
//! clock and has its thread that tidies up. A decision begins with the request's attributes as text: finding the rules
//! that apply and hashing the keys are part of it. An agent's key is the pair of organisation and agent, where the
//! others get by with the agent.

use super::Contender;
use crate::limits::{Limits, Rate};
use crate::workload::Call;
use anyhow::Result;
use tidegate::{Engine, Request, config};

/// One engine that holds the three limits.
pub(crate) struct Tidegate {
    engine: Engine,
}

impl Tidegate {
    /// An engine on a new store with these limits, counted by one algorithm for agents and by another for the other two.
    ///
    /// # Errors
    /// The faults of the limits file, if there are any.
    pub(crate) fn new(limits: &Limits, [agent, others]: [&str; 2]) -> Result<Self> {
        let file = [
            "limits:".to_owned(),
            limit("agent", "[org, agent]", limits.agent, agent),
            limit("org", "[org]", limits.org, others),
            limit("everyone", "[]", limits.global, others),
        ];
        let loaded = config::parse(&file.join("\n"), &config::Source::named("bench.yaml"))?;
        Ok(Self { engine: Engine::new(loaded.policy) })
    }
}

impl Contender for Tidegate {
    type Scratch = ();

    fn decide(&self, (): &mut (), call: Call<'_>) -> bool {
        let attributes = [("agent", call.agent), ("org", call.org)];
        self.engine.decide_now(&Request::new(&attributes)).is_ok_and(|decision| decision.allowed())
    }
}

fn limit(name: &str, per: &str, rate: Rate, algorithm: &str) -> String {
    let Rate { count, window, token } = rate;
    let rate = match algorithm {
        "token_bucket" => format!("rate: 1/{}s, burst: {count}", token.as_secs()),
        _ => format!("rate: {count}/{}s", window.as_secs()),
    };
    format!("  - {{ name: {name}, per: {per}, {rate}, algorithm: {algorithm} }}")
}
