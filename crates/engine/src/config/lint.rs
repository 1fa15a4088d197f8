//! What a file may say and cannot mean: warnings, each of which can be proved from the file alone.
//!
//! A warning is given only where it always holds, whatever requests come. Overrides and blocks that
//! an operator sets at run time are not in the file and not in the proof.

mod cluster;
mod conditions;
mod pairs;
mod rule;

use super::fault::{Finding, Findings};
use super::parse::{Draft, is_ip, is_loopback};
use crate::policy::{Missing, Rule, Test};
use conditions::Steps;
use tidegate_core::Mode;

/// The fewest characters of a token that takes too long to guess.
const TOKEN_CHARS_MIN: usize = 16;

/// Finds what is allowed and cannot be meant.
pub(crate) fn warn(draft: &Draft, findings: &mut Findings) {
    file_mode(draft, findings);
    admin(draft, findings);
    let mut steps = Steps::default();
    for (rule, places) in draft.policy.rules.iter().zip(&draft.rules) {
        rule::warn(&draft.policy, rule, places, &mut steps, findings);
    }
    if draft.policy.mode == Mode::Enforce {
        pairs::warn(draft, &mut steps, findings);
        all_skipped(draft, findings);
    }
    cluster::warn(draft, findings);
}

fn file_mode(draft: &Draft, findings: &mut Findings) {
    match draft.policy.mode {
        Mode::Enforce => {}
        Mode::Permissive => findings.push(
            Finding::new(draft.mode, "the file's mode is permissive: no limit refuses anything")
                .hint("write mode: enforce once the limits are right"),
        ),
        Mode::Disabled => findings.push(
            Finding::new(draft.mode, "the file's mode is disabled: no limit counts or refuses anything")
                .hint("write mode: enforce, or remove it"),
        ),
    }
}

fn admin(draft: &Draft, findings: &mut Findings) {
    let server = &draft.policy.server;
    match &server.admin_token {
        // Which address a name has is for the machine to say that serves.
        None if !is_loopback(&server.admin_addr) => {
            let message = "other machines can reach the admin listener, and it asks for no token: nothing serves it so";
            let finding = Finding::new(draft.admin_addr, message).hint("set admin.token, or listen on 127.0.0.1");
            findings.push(if is_ip(&server.admin_addr) { finding.stopping_server() } else { finding });
        }
        Some(token) if token.reveal().len() < TOKEN_CHARS_MIN => findings.push(
            Finding::new(draft.admin_addr, format!("the admin token is shorter than {TOKEN_CHARS_MIN} characters"))
                .hint("use a longer one, for example the output of `openssl rand -hex 32`"),
        ),
        _ => {}
    }
}

/// A request can come without any attribute; then every limit that asks for one is skipped.
fn all_skipped(draft: &Draft, findings: &mut Findings) {
    let rules = &draft.policy.rules;
    if rules.is_empty() {
        findings.push(
            Finding::new(draft.limits, "the file has no limit, so every request passes")
                .hint("add one: {name: everyone, per: [], rate: 1000/min}"),
        );
        return;
    }
    let live = || rules.iter().filter(|rule| rule.limit.mode != Mode::Disabled);
    if live().next().is_none() || live().any(meets_bare_request) {
        return;
    }
    let mut names: Vec<&str> = live()
        .flat_map(|rule| rule.limit.per.iter().chain(rule.when.iter().map(|condition| &condition.attribute)))
        .map(AsRef::as_ref)
        .collect();
    names.sort_unstable();
    names.dedup();
    let plural = if names.len() == 1 { "" } else { "s" };
    let more = if names.len() > 8 { ", …" } else { "" };
    names.truncate(8);
    let message = format!("a request without the attribute{plural} {}{more} meets no limit at all", names.join(", "));
    findings.push(Finding::new(draft.limits, message).hint("add a limit with per: [], or give one missing: deny"));
}

/// Whether a request without attributes meets this limit.
fn meets_bare_request(rule: &Rule) -> bool {
    let counted = rule.limit.per.is_empty() || rule.missing != Missing::Skip;
    counted && rule.when.iter().all(|condition| condition.test == Test::Absent)
}

#[cfg(test)]
mod tests;
