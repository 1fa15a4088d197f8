//! The keys of a limits file, and how a group of keys is read.
//!
//! The tables here are the one list of what the file may say; the JSON Schema is kept equal to
//! them by a test. A key that belongs to a later version of tidegate is refused by its name.

use super::fault::{Finding, Findings, quoted};
use super::place::Place;
use super::suggest::did_you_mean;
use super::tree::{Entry, Kind, Node};

/// The keys that a group may have.
#[derive(Debug)]
pub(crate) struct Keys {
    /// Those that are read.
    pub(crate) known: &'static [&'static str],
    /// Those that the file format has and this version does not.
    pub(crate) later: &'static [&'static str],
    /// What such a group looks like.
    pub(crate) example: &'static str,
}

/// The file itself.
pub(crate) const FILE: Keys = Keys {
    known: &["listen", "admin", "mode", "headers", "limits", "store"],
    later: &["prices", "identity", "upstreams", "routes", "rls"],
    example: "limits: [{name: everyone, per: [], rate: 1000/min}]",
};
/// `admin`.
pub(crate) const ADMIN: Keys = Keys { known: &["addr", "token"], later: &[], example: "admin: {addr: 127.0.0.1:9090}" };
/// `headers`.
pub(crate) const HEADERS: Keys =
    Keys { known: &["x_ratelimit", "ietf", "retry_after", "reset"], later: &[], example: "headers: {ietf: true}" };
/// `store`.
pub(crate) const STORE: Keys = Keys {
    known: &["backend", "memory", "redis", "on_failure"],
    later: &["durable"],
    example: "store: {backend: memory}",
};
/// `store.memory`.
pub(crate) const MEMORY: Keys =
    Keys { known: &["max_keys", "at_cap", "names"], later: &[], example: "memory: {max_keys: 1_000_000}" };
/// `store.redis`.
pub(crate) const REDIS: Keys = Keys {
    known: &["url", "sentinels", "cluster", "tls", "prefix", "timeout_ms", "slot", "deny_memory"],
    later: &[],
    example: "redis: {url: \"redis://127.0.0.1:6379/0\"}",
};
/// `store.redis.tls`.
pub(crate) const TLS: Keys =
    Keys { known: &["ca", "cert", "key"], later: &[], example: "tls: {ca: \"file:/etc/tidegate/ca.pem\"}" };
/// An item of `limits`.
pub(crate) const LIMIT: Keys = Keys {
    known: &[
        "name",
        "level",
        "per",
        "rate",
        "quota",
        "period",
        "burst",
        "algorithm",
        "unit",
        "when",
        "cost",
        "overrides",
        "mode",
        "missing",
        "on_failure",
        "share",
        "order",
        "timezone",
        "anchor_day",
    ],
    later: &["reserve", "on_expiry"],
    example: "- {name: everyone, per: [], rate: 1000/min}",
};
/// `cost`.
pub(crate) const COST: Keys =
    Keys { known: &["base", "by"], later: &[], example: "cost: {base: 1, by: {tool: {search: 5}}}" };
/// An item of `overrides`.
pub(crate) const OVERRIDE: Keys =
    Keys { known: &["when", "rate", "quota", "burst"], later: &[], example: "- {when: {org: acme}, rate: 6000/min}" };
/// A condition that is a group.
pub(crate) const TEST: Keys =
    Keys { known: &["prefix", "glob", "absent"], later: &[], example: "tool: {prefix: search}" };
/// `missing`, where it is a group.
pub(crate) const MISSING: Keys = Keys { known: &["value"], later: &[], example: "missing: {value: anonymous}" };

/// A group of keys, each of which is one that the group may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'n, 't> {
    /// Where it begins.
    pub(crate) place: Place,
    entries: &'n [Entry<'t>],
}

impl<'n, 't> Group<'n, 't> {
    /// Reads `node` as a group of `keys`; `whose` says in messages which group it is. Keys that it
    /// may not have are told and left aside.
    pub(crate) fn read(node: &'n Node<'t>, keys: &Keys, whose: &str, findings: &mut Findings) -> Option<Self> {
        let entries = entries(node, whose, &format!("write {}", keys.example), findings)?;
        for entry in entries.iter().filter(|entry| !keys.known.contains(&&*entry.key)) {
            findings.push(unknown_key(entry, keys, whose, findings.is_full()));
        }
        Some(Self { place: node.place, entries })
    }

    /// The value of `key`, if it is there.
    pub(crate) fn value(&self, key: &str) -> Option<&'n Node<'t>> {
        self.entry(key).map(|entry| &*entry.value)
    }

    /// The place of `key`, or of the whole group if it is not there.
    pub(crate) fn key_place(&self, key: &str) -> Place {
        self.entry(key).map_or(self.place, |entry| entry.place)
    }

    /// The place of the value of `key`, or of the whole group if it is not there.
    pub(crate) fn value_place(&self, key: &str) -> Place {
        self.value(key).map_or(self.place, |value| value.place)
    }

    /// How many keys it has, those included that it may not have.
    pub(crate) fn key_count(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, key: &str) -> Option<&'n Entry<'t>> {
        self.entries.iter().find(|entry| entry.key == key)
    }
}

/// The keys and values of `node`, whatever the keys are.
pub(crate) fn entries<'n, 't>(
    node: &'n Node<'t>,
    whose: &str,
    hint: &str,
    findings: &mut Findings,
) -> Option<&'n [Entry<'t>]> {
    match &node.kind {
        Kind::Map(entries) => Some(entries),
        Kind::Broken => None,
        _ => {
            let message = format!("{whose} has to be a group of keys, not {}", node.describe());
            findings.push(Finding::new(node.place, message).hint(hint));
            None
        }
    }
}

fn unknown_key(entry: &Entry<'_>, keys: &Keys, whose: &str, told_anyway: bool) -> Finding {
    let key = &*entry.key;
    if keys.later.contains(&key) {
        return Finding::new(entry.place, format!("'{key}' is not built into this version of tidegate"))
            .hint("remove it");
    }
    let finding = Finding::new(entry.place, format!("unknown key {} in {whose}", quoted(key)));
    if told_anyway {
        return finding;
    }
    let suggestion = did_you_mean(key, keys.known.iter().copied());
    finding.hint(suggestion.unwrap_or_else(|| format!("its keys: {}", keys.known.join(", "))))
}
