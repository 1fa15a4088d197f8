//! What limits give up where their counters are on several servers of a cluster.

use crate::config::fault::{Finding, Findings};
use crate::config::parse::Draft;
use crate::policy::{Rule, StoreSettings};
use tidegate_core::Mode;
use tidegate_store::Slot;

/// Tells each limit that is charged in a call of its own.
pub(super) fn warn(draft: &Draft, findings: &mut Findings) {
    let StoreSettings::Shared(store) = &draft.policy.store else { return };
    let Slot::Attribute(attribute) = &store.redis.slot else { return };
    if !store.redis.is_cluster() || draft.policy.mode == Mode::Disabled {
        return;
    }
    let live = |rule: &Rule| rule.limit.mode != Mode::Disabled;
    let has_slot = |rule: &Rule| rule.limit.per.contains(attribute);
    let rules = &draft.policy.rules;
    for (at, (rule, places)) in rules.iter().zip(&draft.rules).enumerate() {
        let beside_another = rules.iter().enumerate().any(|(other, rule)| other != at && live(rule));
        if !live(rule) || has_slot(rule) || !beside_another {
            continue;
        }
        let message = format!(
            "in a cluster limit '{}' is charged after the {attribute}'s limits, in a call of its own: it never admits \
             too much, but may refuse for a moment what another request is giving back",
            rule.limit.name
        );
        findings.push(Finding::new(places.name, message).hint("slot: single is exact, on one server of the cluster"));
    }
}
