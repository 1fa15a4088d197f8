//! From the tree to a [`Policy`]: every fault of the file is told, none stops the reading of the
//! rest.

mod cost;
mod counting;
mod limit;
mod settings;
mod when;

use std::collections::HashMap;

pub(crate) use limit::{OverridePlaces, RulePlaces};
pub(crate) use settings::{is_ip, is_loopback};

use super::fault::{Finding, Findings};
use super::place::Place;
use super::raw::{FILE, Group};
use super::scalar;
use super::tree::Node;
use crate::policy::{OnFailure, Policy, Rule};
use tidegate_core::Mode;

/// How many limits a file may have. More of the same kind are overrides of one limit.
pub(crate) const LIMITS_MAX: usize = 1_000;
/// The words for [`Mode`].
pub(crate) const MODES: [(&str, Mode); 3] =
    [("enforce", Mode::Enforce), ("permissive", Mode::Permissive), ("disabled", Mode::Disabled)];

/// What was read, with the places that warnings point to. Whole only if there was no fault.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) policy: Policy,
    /// One for each rule of the policy.
    pub(crate) rules: Vec<RulePlaces>,
    /// The key `limits`.
    pub(crate) limits: Place,
    /// The file's own `mode`.
    pub(crate) mode: Place,
    /// The value of `admin.addr`.
    pub(crate) admin_addr: Place,
}

/// Reads the tree of a limits file.
pub(crate) fn policy(root: &Node<'_>, findings: &mut Findings) -> Draft {
    let mut draft = Draft {
        policy: Policy::default(),
        rules: Vec::new(),
        limits: root.place,
        mode: root.place,
        admin_addr: root.place,
    };
    let Some(file) = Group::read(root, &FILE, "the file", findings) else { return draft };
    if let Some(mode) = file.value("mode") {
        draft.mode = mode.place;
        draft.policy.mode = scalar::choice(mode, "mode", &MODES, &[], findings).unwrap_or_default();
    }
    draft.policy.headers = settings::headers(&file, findings);
    let on_failure;
    (draft.policy.store, on_failure) = settings::store(&file, findings);
    (draft.policy.server, draft.admin_addr) = settings::server(&file, findings);
    draft.limits = file.key_place("limits");
    match file.value("limits") {
        Some(limits) => {
            (draft.policy.rules, draft.rules) = rules(limits, on_failure, findings);
        }
        None => findings.push(
            Finding::new(root.place, "the file has no 'limits'")
                .hint("add a list of limits, each with name, per and rate"),
        ),
    }
    draft
}

fn rules(limits: &Node<'_>, on_failure: Option<OnFailure>, findings: &mut Findings) -> (Vec<Rule>, Vec<RulePlaces>) {
    let hint = "write each limit as an item: '- name: …'";
    let items = scalar::list(limits, "limits", hint, findings).unwrap_or_default();
    if let Some(item) = items.get(LIMITS_MAX) {
        findings.push(
            Finding::new(item.place, format!("the file has {} limits, {LIMITS_MAX} are the most", items.len()))
                .hint("give one limit 'overrides' instead of writing one limit for each customer"),
        );
    }
    let mut names = HashMap::new();
    let read = items.iter().take(LIMITS_MAX).zip(1..);
    read.filter_map(|(item, number)| limit::rule(item, number, on_failure, &mut names, findings)).unzip()
}
