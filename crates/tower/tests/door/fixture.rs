//! Engines made from limits files, at a known time.

use http::HeaderMap;
use tidegate::config::{self, Source};
use tidegate::{Clock, Decision, Engine, Policy, Request, Timestamp};

/// 20 seconds into a minute.
pub(crate) const NOW: Timestamp = Timestamp::from_secs(1_700_000_000);
/// When that minute ends.
pub(crate) const MINUTE_END_SECS: u64 = 1_700_000_040;

/// An agent may send 3 requests a minute, its org 5, everyone together 100.
pub(crate) const THREE_LEVELS: &str = "
limits:
  - { name: agent-minute, per: [org, agent], rate: 3/min }
  - { name: org-minute, per: [org], rate: 5/min }
  - { name: everyone, per: [], rate: 100/min }
";

pub(crate) fn policy(limits_file: &str) -> Policy {
    config::parse(limits_file, &Source::named("limits.yaml")).unwrap().policy
}

/// An engine whose clock stands at [`NOW`].
pub(crate) fn engine(limits_file: &str) -> (Engine, Clock) {
    let clock = Clock::manual(NOW);
    (Engine::with_clock(policy(limits_file), clock.clone()), clock)
}

/// Takes `cost` from the limits of a request with these attributes.
pub(crate) fn take(engine: &Engine, attributes: &[(&str, &str)], cost: u64) -> Decision {
    engine.decide_now(&Request::new(attributes).with_cost(tidegate::Cost::new(cost))).unwrap()
}

/// Every limit header, as it goes over the wire: `name: value` lines, sorted by name.
pub(crate) fn limit_headers(headers: &HeaderMap) -> Vec<String> {
    let mut found: Vec<(&str, &str)> = headers
        .iter()
        .filter(|(name, _)| name.as_str().contains("ratelimit") || *name == "retry-after")
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    found.sort_unstable();
    found.into_iter().map(|(name, value)| format!("{name}: {value}")).collect()
}
