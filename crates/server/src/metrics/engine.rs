//! What the engine counts, read when somebody scrapes.

use std::fmt;
use std::sync::Arc;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use tidegate::{Effect, Engine, LimitCounts, SharedStoreHealth};

/// So many limits have labels of their own; the others are added up as `other`.
const LIMITS_MAX: usize = 200;
/// The labels of limits that have none of their own.
const OTHER: &str = "other";

/// Reads an engine's own counts.
pub(super) struct EngineCollector {
    engine: Engine,
}

impl EngineCollector {
    pub(super) fn new(engine: Engine) -> Self {
        Self { engine }
    }
}

impl fmt::Debug for EngineCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineCollector")
    }
}

impl Collector for EngineCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        encode_limits(&bounded(self.engine.limit_counts()), &mut encoder)?;
        encode_store(&self.engine, &mut encoder)?;
        encode_shared_store(&self.engine, &mut encoder)?;
        encode_interventions(&self.engine, &mut encoder)
    }
}

/// At most [`LIMITS_MAX`] limits, and the sum of the others.
fn bounded(mut counts: Vec<LimitCounts>) -> Vec<LimitCounts> {
    if counts.len() <= LIMITS_MAX {
        return counts;
    }
    let others = counts.split_off(LIMITS_MAX);
    let (name, level): (Arc<str>, Arc<str>) = (OTHER.into(), OTHER.into());
    let other = LimitCounts { name, level, refused: 0, would_refuse: 0, missing: 0 };
    counts.push(others.iter().fold(other, |sum, one| LimitCounts {
        refused: sum.refused.saturating_add(one.refused),
        would_refuse: sum.would_refuse.saturating_add(one.would_refuse),
        missing: sum.missing.saturating_add(one.missing),
        ..sum
    }));
    counts
}

fn encode_limits(counts: &[LimitCounts], encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let help = "Requests that a limit refused as the first that did (mode enforce), \
                or would have refused (mode permissive)";
    let mut refusals = encoder.encode_descriptor("limit_refusals", help, None, MetricType::Counter)?;
    for limit in counts {
        for (mode, count) in [("enforce", limit.refused), ("permissive", limit.would_refuse)] {
            let labels = [("limit", &*limit.name), ("level", &*limit.level), ("mode", mode)];
            ConstCounter::new(count).encode(refusals.encode_family(&labels)?)?;
        }
    }
    let help = "Requests that a limit did not count because they lack an attribute of its per";
    let mut missing = encoder.encode_descriptor("limit_missing_attribute", help, None, MetricType::Counter)?;
    for limit in counts {
        let labels = [("limit", &*limit.name), ("level", &*limit.level)];
        ConstCounter::new(limit.missing).encode(missing.encode_family(&labels)?)?;
    }
    Ok(())
}

fn encode_store(engine: &Engine, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let stats = engine.store_stats();
    for (name, help, value) in [
        ("store_keys", "Counters that the store keeps", stats.keys),
        ("store_keys_max", "The most counters that the store keeps", stats.keys_max),
        ("store_bytes", "Bytes that the counters take", stats.bytes),
    ] {
        let gauge = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX)).encode(gauge)?;
    }
    let help = "Charges that found the store full";
    let at_cap = encoder.encode_descriptor("store_at_cap", help, None, MetricType::Counter)?;
    ConstCounter::new(stats.at_cap_total).encode(at_cap)
}

/// How the shared store is, where there is one.
fn encode_shared_store(engine: &Engine, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let Some(SharedStoreHealth { fault, counts, instances, degraded }) = engine.shared_store() else { return Ok(()) };
    let help = "Whether the shared store answers: 1, or 0 while limits decide by their on_failure";
    let up = encoder.encode_descriptor("shared_store_up", help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::from(fault.is_none())).encode(up)?;
    let help = "Instances that shared it when it last answered";
    let gauge = encoder.encode_descriptor("shared_store_instances", help, None, MetricType::Gauge)?;
    ConstGauge::new(i64::try_from(instances).unwrap_or(i64::MAX)).encode(gauge)?;
    for (name, help, count) in [
        ("shared_store_connections", "Connections made to the shared store", counts.connections),
        ("shared_store_calls", "Calls of the script that charges", counts.calls),
        ("shared_store_requests", "Requests in those calls", counts.requests),
        ("shared_store_denied_from_memory", "Refusals that needed no call", counts.denied_from_memory),
        ("shared_store_mended", "Counters that were found broken and made anew", counts.mended),
        ("shared_store_refunds", "Calls that gave back what another server of a cluster refused", counts.refunds),
        ("shared_store_refunds_lost", "Of those that were due, the ones without an answer", counts.refunds_lost),
    ] {
        let counter = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(count).encode(counter)?;
    }
    let help = "Calls and connections that failed, by kind";
    let mut faults = encoder.encode_descriptor("shared_store_faults", help, None, MetricType::Counter)?;
    for (fault, count) in counts.faults {
        ConstCounter::new(count).encode(faults.encode_family(&[("kind", fault.name())])?)?;
    }
    let help = "Decisions made without the shared store, by how";
    let mut decisions = encoder.encode_descriptor("degraded_decisions", help, None, MetricType::Counter)?;
    for (how, count) in degraded {
        ConstCounter::new(count).encode(decisions.encode_family(&[("how", how.name())])?)?;
    }
    Ok(())
}

fn encode_interventions(engine: &Engine, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
    let active = engine.interventions();
    let blocks = active.iter().filter(|active| matches!(active.intervention.effect, Effect::Block)).count();
    let help = "Blocks and overrides in force";
    let mut gauges = encoder.encode_descriptor("interventions", help, None, MetricType::Gauge)?;
    for (effect, count) in [("block", blocks), ("override", active.len() - blocks)] {
        let gauge = ConstGauge::new(i64::try_from(count).unwrap_or(i64::MAX));
        gauge.encode(gauges.encode_family(&[("effect", effect)])?)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_bounded_and_nothing_is_lost() {
        let counts = |number: usize| LimitCounts {
            name: format!("l{number}").into(),
            level: "agent".into(),
            refused: 1,
            would_refuse: 2,
            missing: 3,
        };
        let all = bounded((0..250).map(counts).collect());
        assert_eq!(all.len(), 201);
        let other = &all[200];
        assert_eq!((&*other.name, other.refused, other.would_refuse, other.missing), ("other", 50, 100, 150));
        assert_eq!(bounded((0..200).map(counts).collect()).len(), 200);
    }
}
