use tidegate_core::algorithm::{Calendar, FixedWindow, SlidingCounter, SlidingWindow, TokenBucket};
use tidegate_core::{CivilPeriod, Mode, Rate};

use super::*;

fn limit(name: &str, per: &[&str], algorithm: Algorithm) -> Arc<Limit> {
    let per: Vec<Arc<str>> = per.iter().map(|attribute| Arc::from(*attribute)).collect();
    let level = Limit::level_of(&per, &algorithm);
    Arc::new(Limit { name: name.into(), level, per, unit: Unit::Requests, mode: Mode::Enforce, algorithm })
}

fn rate(text: &str) -> Rate {
    text.parse().unwrap()
}

fn fixed(text: &str) -> Algorithm {
    Algorithm::FixedWindow(FixedWindow::new(rate(text)).unwrap())
}

fn calendar(kind: PeriodKind, zone: &str, anchor_day: Option<u64>) -> Algorithm {
    Algorithm::Calendar(Calendar::new(5, CivilPeriod::new(kind, zone, anchor_day).unwrap()))
}

fn org() -> Slot {
    Slot::Attribute("org".into())
}

/// The names of these limits, each with the same values.
fn names(slot: &Slot, limits: &[(Arc<Limit>, &[&str])]) -> Vec<String> {
    let installed: Vec<_> = (0..).map(LimitId).zip(limits.iter().map(|(limit, _)| Arc::clone(limit))).collect();
    let names = Names::new("ratelimit", slot, &installed);
    let name = |(id, (_, values)): (u32, &(Arc<Limit>, &[&str]))| names.name(LimitId(id), &Key::of(values)).unwrap();
    (0..).zip(limits).map(name).collect()
}

#[test]
fn the_literal_names() {
    let minute = || fixed("600/min");
    let found = names(
        &org(),
        &[
            (limit("agent-minute", &["org", "agent"], minute()), &["acme", "a1"]),
            (limit("org-minute", &["org"], minute()), &["acme"]),
            (limit("everyone", &[], minute()), &[]),
            (limit("user", &["user"], fixed("10/30s")), &["u7"]),
            (limit("agent-first", &["agent", "org"], fixed("10/h")), &["a1", "acme"]),
        ],
    );
    let expected = [
        "ratelimit:{acme}:agent:a1:minute",
        "ratelimit:{acme}:minute",
        "ratelimit:global:minute",
        "ratelimit:user:u7:30s",
        "ratelimit:{acme}:agent:a1:hour",
    ];
    assert_eq!(found, expected);
}

#[test]
fn what_is_stored_otherwise_is_called_otherwise() {
    let sixty = rate("60/min");
    let found = names(
        &org(),
        &[
            (limit("a", &["org"], fixed("60/min")), &["acme"]),
            (limit("b", &["org"], Algorithm::SlidingWindow(SlidingWindow::new(sixty).unwrap())), &["acme"]),
            (limit("c", &["org"], Algorithm::SlidingCounter(SlidingCounter::new(sixty).unwrap())), &["acme"]),
            (limit("d", &["org"], Algorithm::TokenBucket(TokenBucket::new(sixty, None).unwrap())), &["acme"]),
            (limit("e", &["org"], Algorithm::TokenBucket(TokenBucket::new(rate("7/min"), None).unwrap())), &["acme"]),
            (limit("f", &["org"], fixed("9/day")), &["acme"]),
            (limit("g", &["org"], calendar(PeriodKind::Day, "UTC", None)), &["acme"]),
            (limit("h", &["org"], calendar(PeriodKind::Month, "UTC", None)), &["acme"]),
            (limit("i", &["org"], calendar(PeriodKind::Month, "Europe/Berlin", Some(15))), &["acme"]),
            (limit("j", &["org"], fixed("61/min")), &["acme"]),
        ],
    );
    let expected = [
        "ratelimit:{acme}:minute",
        "ratelimit:{acme}:minute~log",
        "ratelimit:{acme}:minute~counter",
        "ratelimit:{acme}:bucket~1000000.1",
        "ratelimit:{acme}:bucket~60000000.7",
        "ratelimit:{acme}:day",
        "ratelimit:{acme}:day~calendar",
        "ratelimit:{acme}:month",
        "ratelimit:{acme}:month~Europe/Berlin~15",
        "ratelimit:{acme}:minute#j",
    ];
    assert_eq!(found, expected);
}

#[test]
fn an_override_renames_nobody() {
    let (base, own) = (limit("base", &["org"], fixed("60/min")), limit("base", &["org"], fixed("900/h")));
    let hourly = limit("hourly", &["org"], fixed("5000/h"));
    let found = names(&org(), &[(base, &["acme"]), (own, &["acme"]), (hourly, &["acme"])]);
    assert_eq!(found, ["ratelimit:{acme}:minute", "ratelimit:{acme}:hour#base", "ratelimit:{acme}:hour"]);
}

#[test]
fn one_slot_for_all_has_one_tag() {
    let minute = || fixed("600/min");
    let (agent, all) = (limit("a", &["org", "agent"], minute()), limit("b", &[], minute()));
    let found = names(&Slot::Single, &[(agent, &["acme", "a1"]), (all, &[])]);
    assert_eq!(found, ["{ratelimit}:org:acme:agent:a1:minute", "{ratelimit}:global:minute"]);
}

/// Values that have undone keys elsewhere, long ones, and what an escape looks like.
fn tricky() -> Vec<String> {
    let mut values: Vec<String> = [
        "",
        " ",
        "a",
        ":",
        "::",
        "{",
        "}",
        "{}",
        "{a}",
        "a:b",
        "a\nb",
        "\0",
        "*",
        "?",
        "[a]",
        "\\",
        "%",
        "%3A",
        "%e",
        "%h",
        "global",
        "minute",
        "a~log",
        "a#b",
        "\u{e9}",
        "e\u{301}",
        "acme}:agent:a1",
        "acme:agent",
    ]
    .map(str::to_owned)
    .into();
    values.extend(["x".repeat(64), "x".repeat(65), "x".repeat(1 << 20), format!("{}y", "x".repeat(1 << 20))]);
    values.push(format!("%h{}", escaped(&"x".repeat(65)).trim_start_matches("%h")));
    values
}

#[test]
fn no_value_reaches_anothers_counter_and_each_is_found_in_its_name() {
    let limits = [
        (LimitId(0), limit("both", &["org", "agent"], fixed("1/s"))),
        (LimitId(1), limit("user", &["user"], fixed("1/s"))),
    ];
    for slot in [org(), Slot::Single] {
        let names = Names::new("ratelimit", &slot, &limits);
        let mut seen = HashSet::new();
        for one in tricky() {
            for two in tricky() {
                let name = names.name(LimitId(0), &Key::of(&[&one, &two])).unwrap();
                assert!(name.is_ascii() && name.len() < 256 && !name.contains(['\n', '\0', ' ', '*', '?']), "{name}");
                if slot == org() {
                    let tag = name.split(['{', '}']).nth(1).unwrap();
                    assert!(!tag.is_empty() && name.matches(['{', '}']).count() == 2, "{name}");
                }
                let found = names.values(LimitId(0), &name).unwrap();
                for (value, found) in [&one, &two].into_iter().zip(&found) {
                    assert!(found == value || (value.len() > 20 && found.starts_with("%h")), "{name}");
                }
                assert_eq!(names.values(LimitId(1), &name), None);
                assert!(seen.insert(name), "{one:.20?} and {two:.20?}");
            }
        }
        for value in tricky() {
            assert!(seen.insert(names.name(LimitId(1), &Key::of(&[&value])).unwrap()));
        }
    }
}
