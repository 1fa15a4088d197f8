//! What counters are called in Redis.
//!
//! ```text
//! ratelimit:{acme}:agent:a1:minute     per: [org, agent], 600/min
//! ratelimit:{acme}:minute              per: [org]
//! ratelimit:global:minute              per: []
//! ratelimit:user:u7:30s~log            per: [user], a sliding_window of 30 s
//! ```
//!
//! A name is the prefix; the value of the slot attribute (`org`) in braces, which Redis Cluster takes
//! for the slot; the other attributes with their values; and what is counted: the window, and what
//! else sets the counter's format apart. Values are escaped so that none contains what separates.
//!
//! A limit that would have the same names as one before it in the file has `#` and its own name at the
//! end.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;

use sha2::{Digest, Sha256};
use tidegate_core::{Algorithm, Limit, PeriodKind, Span, Unit};

use crate::charge::{Key, LimitId};

/// Values longer than this, escaped, are named by their SHA-256.
const VALUE_BYTES_MAX: usize = 64;

/// Which keys share a slot of a Redis Cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Those with the same value of this attribute.
    Attribute(Arc<str>),
    /// All of them.
    Single,
}

/// The names of the installed limits' counters.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    shapes: HashMap<LimitId, Shape>,
}

/// What a cluster takes for the slot in a counter's name: what is in braces, or the whole of it.
pub(super) fn hash_tag(name: &str) -> Option<&str> {
    let inner = name.split_once('{')?.1.split_once('}')?.0;
    (!inner.is_empty()).then_some(inner)
}

/// Whether two counters are surely of one slot.
pub(super) fn same_slot(one: &str, other: &str) -> bool {
    hash_tag(one).is_some_and(|tag| hash_tag(other) == Some(tag))
}

/// How the counters of one limit are called.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Shape {
    /// Up to the first value.
    head: String,
    /// Which of the key's values is in braces.
    slot: Option<usize>,
    /// The other attributes' names, escaped, and which of the key's values they have.
    others: Vec<(String, usize)>,
    tail: String,
}

impl Names {
    /// The names of these limits, in the file's order. Limits that are another's overrides come after
    /// all others, so that an override for an hour renames nobody.
    pub(super) fn new(prefix: &str, slot: &Slot, limits: &[(LimitId, Arc<Limit>)]) -> Self {
        let mut shapes = HashMap::new();
        let mut taken = HashSet::new();
        let mut named = HashSet::new();
        let (own, overrides): (Vec<_>, Vec<_>) = limits.iter().partition(|(_, limit)| named.insert(&limit.name));
        for (id, limit) in own.into_iter().chain(overrides) {
            let mut shape = Shape::of(prefix, slot, limit);
            if !taken.insert(shape.clone()) {
                let _ = write!(shape.tail, "#{}", limit.name);
                taken.insert(shape.clone());
            }
            shapes.insert(*id, shape);
        }
        Self { shapes }
    }

    /// What the counter is called.
    pub(super) fn name(&self, limit: LimitId, key: &Key<'_>) -> Option<String> {
        let shape = self.shapes.get(&limit)?;
        let mut name = String::with_capacity(96);
        name.push_str(&shape.head);
        if let Some(at) = shape.slot {
            name.push_str(":{");
            escape(key.values.get(at).copied().unwrap_or(""), &mut name);
            name.push('}');
        }
        for (attribute, at) in &shape.others {
            name.push(':');
            name.push_str(attribute);
            name.push(':');
            escape(key.values.get(*at).copied().unwrap_or(""), &mut name);
        }
        name.push(':');
        name.push_str(&shape.tail);
        Some(name)
    }

    /// A pattern for SCAN that finds the limit's counters, and some others perhaps.
    pub(super) fn pattern(&self, limit: LimitId) -> Option<String> {
        let shape = self.shapes.get(&limit)?;
        let mut pattern = escape_pattern(&shape.head);
        if shape.slot.is_some() {
            pattern.push_str(":{*}");
        }
        for (attribute, _) in &shape.others {
            pattern.push(':');
            pattern.push_str(&escape_pattern(attribute));
            pattern.push_str(":*");
        }
        pattern.push(':');
        pattern.push_str(&escape_pattern(&shape.tail));
        Some(pattern)
    }

    /// The values in a counter's name; none if it is not one of the limit's. A value that was hashed
    /// stays so.
    pub(super) fn values(&self, limit: LimitId, name: &str) -> Option<Vec<String>> {
        let shape = self.shapes.get(&limit)?;
        let mut rest = name.strip_prefix(&shape.head)?;
        let mut values = vec![String::new(); shape.others.len() + usize::from(shape.slot.is_some())];
        if let Some(at) = shape.slot {
            let (value, after) = rest.strip_prefix(":{")?.split_once('}')?;
            *values.get_mut(at)? = unescape(value)?;
            rest = after;
        }
        for (attribute, at) in &shape.others {
            let inner = rest.strip_prefix(':')?.strip_prefix(attribute.as_str())?.strip_prefix(':')?;
            let end = inner.find(':')?;
            *values.get_mut(*at)? = unescape(&inner[..end])?;
            rest = &inner[end..];
        }
        (rest.strip_prefix(':')? == shape.tail).then_some(values)
    }
}

impl Shape {
    fn of(prefix: &str, slot: &Slot, limit: &Limit) -> Self {
        let at = match slot {
            Slot::Attribute(attribute) => limit.per.iter().position(|name| name == attribute),
            Slot::Single => None,
        };
        let others = limit.per.iter().enumerate().filter(|(index, _)| Some(*index) != at);
        let others = others.map(|(index, name)| (escaped(name), index)).collect();
        let head = match slot {
            Slot::Attribute(_) => prefix.to_owned(),
            Slot::Single => format!("{{{prefix}}}"),
        };
        let head = if limit.per.is_empty() { format!("{head}:global") } else { head };
        Self { head, slot: at, others, tail: tail(limit) }
    }
}

/// What is counted, and in which format.
fn tail(limit: &Limit) -> String {
    let mut tail = match &limit.algorithm {
        Algorithm::FixedWindow(_) => window(limit.window()),
        Algorithm::SlidingWindow(_) => format!("{}~log", window(limit.window())),
        Algorithm::SlidingCounter(_) => format!("{}~counter", window(limit.window())),
        Algorithm::TokenBucket(rule) => {
            let (token_ticks, ticks_per_us) = rule.unit();
            format!("bucket~{token_ticks}.{ticks_per_us}")
        }
        Algorithm::Calendar(rule) => {
            let civil = rule.civil();
            let mut tail = civil.kind().name().to_owned();
            if matches!(civil.kind(), PeriodKind::Hour | PeriodKind::Day) {
                tail.push_str("~calendar");
            }
            if civil.zone_name() != "UTC" {
                let _ = write!(tail, "~{}", civil.zone_name());
            }
            if civil.anchor_day() != 1 {
                let _ = write!(tail, "~{}", civil.anchor_day());
            }
            tail
        }
    };
    if limit.unit != Unit::Requests {
        let _ = write!(tail, "_{}", limit.unit);
    }
    tail
}

fn window(window: Span) -> String {
    const WORDS: [(u64, &str); 4] = [(1, "second"), (60, "minute"), (3_600, "hour"), (86_400, "day")];
    let word = WORDS.iter().find(|(secs, _)| Span::from_secs(*secs) == window);
    word.map_or_else(|| window.to_string(), |(_, word)| (*word).to_owned())
}

fn escaped(value: &str) -> String {
    let mut out = String::new();
    escape(value, &mut out);
    out
}

/// Percent-encodes all but letters, digits and `-._@+/=`; no two values come out the same. What never
/// follows a `%` there marks the others: `%e` is the empty value, `%h` a long value's hash.
fn escape(value: &str, out: &mut String) {
    if value.is_empty() {
        out.push_str("%e");
        return;
    }
    let began = out.len();
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._@+/=".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
        if out.len() - began > VALUE_BYTES_MAX {
            out.truncate(began);
            out.push_str("%h");
            for byte in Sha256::digest(value.as_bytes()) {
                let _ = write!(out, "{byte:02x}");
            }
            return;
        }
    }
}

fn unescape(text: &str) -> Option<String> {
    if text == "%e" {
        return Some(String::new());
    }
    if text.starts_with("%h") {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

/// What SCAN takes for itself.
fn escape_pattern(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        if "*?[]\\^".contains(letter) {
            out.push('\\');
        }
        out.push(letter);
    }
    out
}

#[cfg(test)]
mod tests;
