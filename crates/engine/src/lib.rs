//! Tidegate: a rate limiter and quota engine for AI gateways.
//!
//! One [`Engine`] decides, atomically, whether a [`Request`] may pass a whole hierarchy of limits:
//! agent, org and everyone; user, tenant and tool; rates and calendar quotas. A denied request
//! consumes nothing at any level.
//!
//! ```
//! use tidegate::{Engine, Request, config};
//!
//! let loaded = config::parse(
//!     "limits: [{ name: per-agent, per: [agent], rate: 2/min }]",
//!     &config::Source::named("limits.yaml"),
//! )?;
//! let engine = Engine::new(loaded.policy);
//! let request = Request::new(&[("agent", "a1")]);
//! assert!(engine.decide_now(&request)?.allowed());
//! assert!(engine.decide_now(&request)?.allowed());
//! let denied = engine.decide_now(&request)?;
//! assert_eq!(denied.refused_by().map(|state| state.limit.name.to_string()).as_deref(), Some("per-agent"));
//! assert!(denied.retry_after().is_some());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Layout
//! - [`config`]: the limits file, from text to a [`Policy`], with every fault at its place.
//! - [`policy`]: what a limits file says, typed.
//! - `plan`: a policy made ready to decide by; `current`: the one in force.
//! - [`engine`]: the [`Engine`]; `asked`: a request on its way through it; [`decision`]: what it answers; [`explain`]: why.
//! - [`usage`]: counters, for operators; [`intervention`]: blocks and overrides with an end.
//! - [`any_store`]: the stores to choose among; `fallback`: what stands in for a shared one; [`clock`]: the only clock.

pub mod any_store;
mod asked;
pub mod clock;
pub mod config;
mod current;
pub mod decision;
pub mod engine;
pub mod explain;
pub mod fallback;
pub mod intervention;
mod plan;
pub mod policy;
pub mod usage;

pub use clock::Clock;
pub use decision::{Decision, Degraded, LimitState};
pub use engine::{Engine, LimitCounts, NotLocal, Reloaded, Together};
pub use explain::{Explained, Explanation, Numbers, Outcome, UnusedAttribute};
pub use fallback::SharedStoreHealth;
pub use intervention::{ActiveIntervention, Effect, Intervention, InterventionError, InterventionId};
pub use policy::Policy;
pub use tidegate_core::{
    Algorithm, AlgorithmError, CivilPeriod, Cost, Limit, Mode, PeriodError, PeriodKind, Rate, RateError, Request, Span,
    Standing, Timestamp, Unit, Verdict, algorithm,
};
pub use tidegate_store::{Fault, RedisCounts, StoreError, StoreStats};
pub use usage::{UsageError, UsageItem, UsageOrder, UsagePage, UsageQuery};
