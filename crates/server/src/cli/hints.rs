//! What to try on a server that has just started: requests that its own policy allows and denies.
//!
//! They are tried on an engine of the same policy first, so what is promised happens.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use tidegate::policy::{Condition, Policy, Rule, Test};
use tidegate::{Clock, Cost, Engine, Mode, Request, Timestamp};

/// The most requests in a row that a hint asks for.
const IN_A_ROW_MAX: usize = 60;
/// Limits tried until one gives a hint.
const RULES_TRIED_MAX: usize = 50;

/// Lines to paste into a shell.
pub(crate) fn text(policy: &Policy, check: SocketAddr, admin: SocketAddr, now: Timestamp) -> String {
    let url = format!("http://{}/v1/check", reachable(check));
    let admin = reachable(admin);
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = match find(policy, now) {
        Some(trial) => write_trial(&mut text, &trial, &url),
        None => writeln!(text, "\nTry a request:\n\n  curl -si {url} -d '{{\"attributes\": {{}}}}'"),
    };
    let token = policy.server.admin_token.as_ref().map_or("", |_| " -H 'Authorization: Bearer <admin.token>'");
    let _ = writeln!(
        text,
        "\nWhat was decided so far:\n\n  curl -s{token} http://{admin}/metrics | grep tidegate_decisions\n"
    );
    text
}

fn write_trial(text: &mut String, trial: &Trial, url: &str) -> std::fmt::Result {
    let body = shell_quoted(&trial.body());
    let Trial { in_a_row, limit, .. } = trial;
    writeln!(text, "\nTry a request that passes:\n\n  curl -si {url} -d {body}")?;
    writeln!(text, "\nTry {in_a_row} in a row, of which limit '{limit}' refuses the last (429):\n")?;
    writeln!(text, "  for i in $(seq {in_a_row}); do curl -s -o /dev/null -w '%{{http_code}}\\n' {url} -d {body}; done")
}

/// Requests of which the first passes and the last does not.
#[derive(Debug)]
struct Trial {
    attributes: BTreeMap<String, String>,
    cost: u64,
    in_a_row: usize,
    limit: String,
}

impl Trial {
    fn body(&self) -> String {
        let attributes = serde_json::json!(self.attributes);
        match self.cost {
            1 => format!("{{\"attributes\": {attributes}}}"),
            cost => format!("{{\"attributes\": {attributes}, \"cost\": {cost}}}"),
        }
    }
}

/// A trial that meets the smallest limit that a caller can run into.
fn find(policy: &Policy, now: Timestamp) -> Option<Trial> {
    let mut rules: Vec<&Rule> = policy.rules.iter().filter(|rule| refuses(rule, policy)).collect();
    rules.sort_by_key(|rule| rule.limit.capacity());
    rules.into_iter().take(RULES_TRIED_MAX).find_map(|rule| {
        let attributes = meeting(rule)?;
        // A large limit is met in a few requests by a larger cost.
        let capacity = rule.limit.capacity();
        let cost = if capacity < IN_A_ROW_MAX as u64 { 1 } else { capacity.div_ceil(5) };
        attempt(policy, attributes, cost, now)
    })
}

fn refuses(rule: &Rule, policy: &Policy) -> bool {
    rule.limit.capacity() > 0 && rule.limit.mode.or_milder(policy.mode) == Mode::Enforce
}

fn attempt(policy: &Policy, attributes: BTreeMap<String, String>, cost: u64, now: Timestamp) -> Option<Trial> {
    let engine = Engine::with_clock(policy.clone(), Clock::manual(now));
    let pairs: Vec<(&str, &str)> = attributes.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let request = Request::new(&pairs).with_cost(Cost::new(cost));
    let decisions = (1..=IN_A_ROW_MAX).map_while(|number| Some((number, engine.decide_now(&request).ok()?)));
    let mut denied = decisions.skip_while(|(_, decision)| decision.allowed());
    let (in_a_row, decision) = denied.next().filter(|(number, _)| *number > 1)?;
    let limit = decision.refused_by()?.limit.name.to_string();
    Some(Trial { attributes, cost, in_a_row, limit })
}

/// Attributes of a request that the rule applies to, if some can be made up.
fn meeting(rule: &Rule) -> Option<BTreeMap<String, String>> {
    let mut attributes = BTreeMap::new();
    for Condition { attribute, test } in &rule.when {
        let value = match test {
            Test::Equals(value) => value.clone(),
            Test::In(values) => values.first()?.clone(),
            Test::Prefix(prefix) => format!("{prefix}1"),
            Test::Glob(glob) => glob.pattern().replace(['*', '?'], "1"),
            Test::Absent => continue,
        };
        attributes.insert(attribute.to_string(), value);
    }
    for attribute in &rule.limit.per {
        attributes.entry(attribute.to_string()).or_insert_with(|| made_up(attribute));
    }
    let passes =
        |condition: &Condition| condition.test.passes(attributes.get(&*condition.attribute).map(String::as_str));
    rule.when.iter().all(passes).then_some(attributes)
}

fn made_up(attribute: &str) -> String {
    match attribute {
        "org" | "tenant" => "acme".into(),
        "agent" => "a1".into(),
        "user" => "alice".into(),
        "tool" => "search".into(),
        other => format!("{other}-1"),
    }
}

/// The address to use from this machine.
fn reachable(addr: SocketAddr) -> SocketAddr {
    match addr.ip() {
        ip if ip.is_unspecified() => SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), addr.port()),
        _ => addr,
    }
}

fn shell_quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use tidegate::config::{Source, parse};

    use super::*;

    fn hints(limits: &str) -> String {
        let policy = parse(limits, &Source::named("limits.yaml")).unwrap().policy;
        let (check, admin) = ("0.0.0.0:8080".parse().unwrap(), "127.0.0.1:9090".parse().unwrap());
        text(&policy, check, admin, Timestamp::from_secs(1_700_000_000))
    }

    #[test]
    fn the_smallest_limit_is_met() {
        let text = hints("limits: [{name: o, per: [org], rate: 600/min}, {name: a, per: [org, agent], rate: 5/min}]");
        let body = r#"'{"attributes": {"agent":"a1","org":"acme"}}'"#;
        assert!(text.contains(&format!("curl -si http://127.0.0.1:8080/v1/check -d {body}")), "{text}");
        assert!(text.contains("Try 6 in a row, of which limit 'a' refuses the last (429)"), "{text}");
    }

    #[test]
    fn a_large_limit_is_met_by_a_larger_cost() {
        let text = hints("limits: [{name: big, per: [user], when: {tool: {prefix: it's}}, rate: 100000/min}]");
        assert!(text.contains(r#""cost": 20000"#) && text.contains("Try 6 in a row"), "{text}");
        assert!(text.contains(r#"{"tool":"it'\''s1","user":"alice"}"#), "{text}");
    }

    #[test]
    fn nothing_is_promised_where_nothing_refuses() {
        let text =
            hints("limits: [{name: a, per: [org], rate: 5/min, mode: permissive}, {name: z, per: [], rate: 0/min}]");
        assert!(!text.contains("in a row"), "{text}");
    }
}
