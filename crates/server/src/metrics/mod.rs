//! What the server counts, for Prometheus.
//!
//! Requests touch handles that were made at the start, never a label. What the engine counts by
//! itself (each limit's refusals, the store's size) is read when somebody scrapes.

mod engine;

use std::fmt;
use std::time::Duration;

use http::StatusCode;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tidegate::{Decision, Engine, Timestamp};
// Monotonic, and stands still in tests that pause time.
use tokio::time::Instant;

type Labels = [(&'static str, &'static str); 1];

/// The upper bounds of the latency histogram, in seconds.
const LATENCY_BOUNDS: [f64; 12] = [5e-6, 10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 5e-3, 25e-3, 0.1, 1.0];

/// The server's metrics.
pub(crate) struct Metrics {
    registry: Registry,
    decisions: Outcomes,
    responses: [Counter; 4],
    check_seconds: Histogram,
    batch_seconds: Histogram,
    /// Reloads of the limits file.
    pub(crate) reloads: ReloadMetrics,
    /// Connections of the check listener.
    pub(crate) check_connections: ConnectionMetrics,
    /// Connections of the admin listener.
    pub(crate) admin_connections: ConnectionMetrics,
}

#[derive(Clone)]
struct Outcomes {
    allowed: Counter,
    would_refuse: Counter,
    refused: Counter,
    peeked: Counter,
}

impl Metrics {
    /// All at zero, and what `engine` counts.
    pub(crate) fn new(engine: &Engine) -> Self {
        let mut registry = Registry::with_prefix("tidegate");
        let decisions: Family<Labels, Counter> = Family::default();
        let help =
            "Decisions: allowed, would_refuse (allowed, but a permissive limit is over), refused, peeked (cost 0)";
        registry.register("decisions", help, decisions.clone());
        let outcome = |name| decisions.get_or_create_owned(&[("outcome", name)]);

        let responses: Family<Labels, Counter> = Family::default();
        registry.register("http_responses", "Answers over HTTP, by class of status", responses.clone());
        let class = |name| responses.get_or_create_owned(&[("class", name)]);

        let seconds: Family<Labels, Histogram> = Family::new_with_constructor(|| Histogram::new(LATENCY_BOUNDS));
        let help = "From the end of a request's headers until its answer is ready, in seconds";
        registry.register("request_seconds", help, seconds.clone());
        let route = |name| seconds.get_or_create_owned(&[("route", name)]);

        registry.register("build", "The version that runs", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
        registry.register_collector(Box::new(engine::EngineCollector::new(engine.clone())));
        let connections = ConnectionFamilies::new(&mut registry);
        Self {
            decisions: Outcomes {
                allowed: outcome("allowed"),
                would_refuse: outcome("would_refuse"),
                refused: outcome("refused"),
                peeked: outcome("peeked"),
            },
            responses: [class("2xx"), class("3xx"), class("4xx"), class("5xx")],
            check_seconds: route("check"),
            batch_seconds: route("batch"),
            reloads: ReloadMetrics::new(&mut registry),
            check_connections: connections.of("check"),
            admin_connections: connections.of("admin"),
            registry,
        }
    }

    /// Counts a decision. A peek (cost 0) decides nothing.
    pub(crate) fn decided(&self, decision: &Decision, peeked: bool) {
        let outcomes = &self.decisions;
        let outcome = if peeked {
            &outcomes.peeked
        } else if !decision.allowed() {
            &outcomes.refused
        } else if decision.limits().any(|state| state.refused) {
            &outcomes.would_refuse
        } else {
            &outcomes.allowed
        };
        outcome.inc();
    }

    /// Counts an answer.
    pub(crate) fn answered(&self, status: StatusCode) {
        let class = usize::from(status.as_u16() / 100).saturating_sub(2);
        if let Some(counter) = self.responses.get(class) {
            counter.inc();
        }
    }

    /// Measures one `/v1/check` until it is dropped.
    pub(crate) fn check_timer(&self) -> Timer<'_> {
        Timer { begun: Instant::now(), seconds: &self.check_seconds }
    }

    /// Measures one `/v1/check/batch` until it is dropped.
    pub(crate) fn batch_timer(&self) -> Timer<'_> {
        Timer { begun: Instant::now(), seconds: &self.batch_seconds }
    }

    /// All of it as OpenMetrics text.
    pub(crate) fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// Measures from when it was made until it is dropped.
pub(crate) struct Timer<'a> {
    begun: Instant,
    seconds: &'a Histogram,
}

impl Drop for Timer<'_> {
    fn drop(&mut self) {
        let taken: Duration = self.begun.elapsed();
        self.seconds.observe(taken.as_secs_f64());
    }
}

/// Reloads of the limits file.
#[derive(Clone, Debug)]
pub(crate) struct ReloadMetrics {
    success: Counter,
    failure: Counter,
    last_success: Gauge,
    file_refused: Gauge,
}

impl ReloadMetrics {
    fn new(registry: &mut Registry) -> Self {
        let reloads: Family<Labels, Counter> = Family::default();
        registry.register("reloads", "Times the limits file was read anew", reloads.clone());
        let (last_success, file_refused) = (Gauge::default(), Gauge::default());
        let help = "When the limits in force were read, in seconds since the Unix epoch";
        registry.register("limits_loaded_timestamp_seconds", help, last_success.clone());
        let help = "1 while the limits file on disk is refused and the limits before it stay in force";
        registry.register("limits_file_refused", help, file_refused.clone());
        let result = |name| reloads.get_or_create_owned(&[("result", name)]);
        Self { success: result("success"), failure: result("failure"), last_success, file_refused }
    }

    /// The limits were read at the start.
    pub(crate) fn loaded(&self, at: Timestamp) {
        self.last_success.set(i64::try_from(at.as_micros() / 1_000_000).unwrap_or(i64::MAX));
        self.file_refused.set(0);
    }

    /// The limits were read anew.
    pub(crate) fn succeeded(&self, at: Timestamp) {
        self.success.inc();
        self.loaded(at);
    }

    /// The file was refused.
    pub(crate) fn failed(&self) {
        self.failure.inc();
        self.file_refused.set(1);
    }
}

struct ConnectionFamilies {
    open: Family<Labels, Gauge>,
    accepted: Family<Labels, Counter>,
    refused: Family<Labels, Counter>,
}

impl ConnectionFamilies {
    fn new(registry: &mut Registry) -> Self {
        let families = Self { open: Family::default(), accepted: Family::default(), refused: Family::default() };
        registry.register("connections", "Open connections", families.open.clone());
        registry.register("connections_accepted", "Connections accepted", families.accepted.clone());
        let help = "Connections closed at once because all were in use";
        registry.register("connections_refused", help, families.refused.clone());
        families
    }

    fn of(&self, listener: &'static str) -> ConnectionMetrics {
        let labels = [("listener", listener)];
        ConnectionMetrics {
            open: self.open.get_or_create_owned(&labels),
            accepted: self.accepted.get_or_create_owned(&labels),
            refused: self.refused.get_or_create_owned(&labels),
        }
    }
}

/// Connections of one listener.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionMetrics {
    open: Gauge,
    /// Connections accepted.
    pub(crate) accepted: Counter,
    /// Connections closed because all were in use.
    pub(crate) refused: Counter,
}

impl ConnectionMetrics {
    /// One more is open, until this is dropped.
    pub(crate) fn open(&self) -> OpenConnection {
        self.open.inc();
        OpenConnection(self.open.clone())
    }
}

/// One open connection.
pub(crate) struct OpenConnection(Gauge);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.dec();
    }
}
