//! Watches the shared store and tells the log: once when it is lost, now and then while it is away, and
//! once when it is back.

use std::time::Duration;

use tidegate::{Engine, Fault};
use tokio::time::{Instant, MissedTickBehavior, interval};

/// How often it is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How often an outage that goes on is told again.
const TELL_AGAIN_EVERY: Duration = Duration::from_secs(60);

/// Connects to the shared store, if the engine has one, and goes on watching it for ever.
pub(crate) async fn watch(engine: Engine) {
    if engine.shared_store().is_none() {
        return;
    }
    let began = Instant::now();
    if engine.connect().await.is_ok() {
        tracing::info!(milliseconds = began.elapsed().as_millis() as u64, "connected to the shared store");
    }
    let mut ticks = interval(LOOK_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut outage: Option<Outage> = None;
    loop {
        ticks.tick().await;
        let Some(health) = engine.shared_store() else { return };
        let degraded = health.degraded.iter().map(|(_, count)| count).sum();
        outage = match (outage, health.fault) {
            (None, None) => None,
            (None, Some(fault)) => {
                told_lost(fault);
                Some(Outage { since: Instant::now(), told: Instant::now(), fault, degraded })
            }
            (Some(outage), None) => {
                let (seconds, decisions) = (outage.since.elapsed().as_secs(), degraded - outage.degraded);
                tracing::info!(
                    seconds,
                    decisions,
                    "the shared store is back; decisions were made without it meanwhile"
                );
                None
            }
            (Some(outage), Some(fault)) => {
                if outage.fault != fault || outage.told.elapsed() >= TELL_AGAIN_EVERY {
                    told_lost(fault);
                    Some(Outage { told: Instant::now(), fault, ..outage })
                } else {
                    Some(outage)
                }
            }
        }
    }
}

struct Outage {
    since: Instant,
    told: Instant,
    fault: Fault,
    /// Decisions made without the store until it began.
    degraded: u64,
}

fn told_lost(fault: Fault) {
    tracing::error!(
        fault = fault.name(),
        "the shared store does not answer: {}; limits decide by their on_failure until it is back",
        fault.advice()
    );
}
