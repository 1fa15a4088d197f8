//! Counters as operators see them: listed by the page, the nearest to exhaustion first, and reset.

use std::collections::BTreeMap;

use tidegate::policy::{Condition, Test};
use tidegate::{
    Algorithm, Effect, Intervention, Rate, Span, UsageError, UsageItem, UsageOrder, UsagePage, UsageQuery, algorithm,
};
use tidegate_testkit::{Limiter, START, ready};

const NAMED: &str = "
store: { memory: { names: true } }
limits:
  - { name: agent, per: [org, agent], rate: 10/min }
  - { name: org, per: [org], rate: 100/min, algorithm: sliding_window }
  - { name: everyone, per: [], rate: 1000/min, algorithm: token_bucket }
";

fn all() -> UsageQuery {
    UsageQuery { limit: None, attributes: Vec::new(), cursor: None, items_max: 1_000, order: UsageOrder::Key }
}

fn of(limit: &str, attributes: &[(&str, &str)]) -> UsageQuery {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    UsageQuery { limit: Some(limit.into()), attributes, ..all() }
}

fn usage(limiter: &Limiter, query: &UsageQuery) -> Result<UsagePage, UsageError> {
    ready(limiter.engine.usage(query))
}

fn reset(limiter: &Limiter, limit: &str, attributes: &[(&str, &str)]) -> Result<u64, UsageError> {
    ready(limiter.engine.reset(limit, attributes))
}

/// `limit a/b: remaining of quota`.
fn shown(item: &UsageItem) -> String {
    let values: Vec<&str> = item.attributes.iter().map(|(_, value)| value.as_str()).collect();
    format!("{} {}: {} of {}", item.limit, values.join("/"), item.remaining, item.quota)
}

fn sorted(page: &UsagePage) -> Vec<String> {
    let mut lines: Vec<String> = page.items.iter().map(shown).collect();
    lines.sort();
    lines
}

#[test]
fn a_page_says_whose_counters_there_are_and_how_they_stand() {
    let limiter = Limiter::new(NAMED);
    limiter.ask_cost("org=acme agent=a1", 4);
    limiter.at_ms(20_000).ask_cost("org=acme agent=a2", 2);
    limiter.ask("org=beta");
    let page = usage(&limiter, &all()).unwrap();
    assert_eq!(page.next, None);
    let wanted = [
        "agent acme/a1: 6 of 10",
        "agent acme/a2: 8 of 10",
        "everyone : 997 of 1000",
        "org acme: 94 of 100",
        "org beta: 99 of 100",
    ];
    assert_eq!(sorted(&page), wanted);
    let acme = page.items.iter().find(|item| shown(item).starts_with("org acme")).unwrap();
    assert_eq!((&*acme.level, acme.unit.name()), ("org", "requests"));
    // The oldest of its requests leaves first.
    assert_eq!(acme.reset, Span::from_secs(40));
    assert_eq!(acme.attributes, [("org".into(), "acme".to_owned())]);
}

#[test]
fn pages_show_each_counter_once() {
    let limiter = Limiter::new(NAMED);
    for number in 0..137 {
        limiter.ask(&format!("org=o{} agent=a{number}", number % 10));
    }
    for items_max in [1, 7, 50, 147, 148, 1_000] {
        let mut seen = BTreeMap::new();
        let mut cursor = None;
        loop {
            let page = usage(&limiter, &UsageQuery { cursor, items_max, ..all() }).unwrap();
            assert!(page.items.len() <= items_max);
            page.items.iter().for_each(|item| *seen.entry(shown(item)).or_insert(0) += 1);
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen.len(), 137 + 10 + 1, "{items_max}");
        assert!(seen.values().all(|times| *times == 1), "{items_max}");
    }
}

#[test]
fn a_page_has_1_to_1000_items() {
    let limiter =
        Limiter::new("store: { memory: { names: true } }\nlimits: [{ name: user, per: [user], rate: 5/min }]");
    for number in 0..1_200 {
        limiter.ask(&format!("user=u{number}"));
    }
    let first = usage(&limiter, &UsageQuery { items_max: usize::MAX, ..all() }).unwrap();
    assert_eq!(first.items.len(), 1_000);
    let second = usage(&limiter, &UsageQuery { items_max: usize::MAX, cursor: first.next, ..all() }).unwrap();
    assert_eq!((second.items.len(), second.next), (200, None));
    assert_eq!(usage(&limiter, &UsageQuery { items_max: 0, ..all() }).unwrap().items.len(), 1);
    let nearest = UsageQuery { items_max: usize::MAX, order: UsageOrder::NearestFirst, ..all() };
    assert_eq!(usage(&limiter, &nearest).unwrap().items.len(), 1_000);
}

#[test]
fn attributes_choose_counters() {
    let limiter = Limiter::new(NAMED);
    for who in ["org=acme agent=a1", "org=acme agent=a2", "org=beta agent=a1"] {
        limiter.ask(who);
    }
    let agents = |attributes: &[(&str, &str)]| sorted(&usage(&limiter, &of("agent", attributes)).unwrap());
    assert_eq!(agents(&[]).len(), 3);
    assert_eq!(agents(&[("org", "acme")]), ["agent acme/a1: 9 of 10", "agent acme/a2: 9 of 10"]);
    assert_eq!(agents(&[("agent", "a1")]), ["agent acme/a1: 9 of 10", "agent beta/a1: 9 of 10"]);
    assert_eq!(agents(&[("agent", "a1"), ("org", "beta")]), ["agent beta/a1: 9 of 10"]);
    assert_eq!(agents(&[("org", "gamma")]), [""; 0]);
    // Without a limit: of every limit that has the attribute.
    let beta = UsageQuery { attributes: vec![("org".into(), "beta".into())], ..all() };
    assert_eq!(sorted(&usage(&limiter, &beta).unwrap()), ["agent beta/a1: 9 of 10", "org beta: 99 of 100"]);
    let of_no_limit = UsageQuery { attributes: vec![("user".into(), "u1".into())], ..all() };
    assert!(usage(&limiter, &of_no_limit).unwrap().items.is_empty());
}

#[test]
fn the_nearest_to_exhaustion_come_first_on_one_page() {
    let limiter = Limiter::new(NAMED);
    for (who, cost) in [("org=acme agent=a1", 9), ("org=acme agent=a2", 2), ("org=beta agent=b1", 5)] {
        limiter.ask_cost(who, cost);
    }
    let query = UsageQuery { order: UsageOrder::NearestFirst, items_max: 4, ..all() };
    let page = usage(&limiter, &query).unwrap();
    let lines: Vec<String> = page.items.iter().map(shown).collect();
    let wanted = ["agent acme/a1: 1 of 10", "agent beta/b1: 5 of 10", "agent acme/a2: 8 of 10", "org acme: 89 of 100"];
    assert_eq!(lines, wanted);
    assert_eq!(page.next, None);
    let of_org = UsageQuery { order: UsageOrder::NearestFirst, ..of("org", &[]) };
    let lines: Vec<String> = usage(&limiter, &of_org).unwrap().items.iter().map(shown).collect();
    assert_eq!(lines, ["org acme: 89 of 100", "org beta: 95 of 100"]);
}

#[test]
fn what_has_expired_is_not_shown() {
    let limiter = Limiter::new(NAMED);
    limiter.ask("org=acme agent=a1");
    limiter.at_ms(60_000);
    limiter.ask("org=beta agent=b1");
    assert!(sorted(&usage(&limiter, &all()).unwrap()).iter().all(|line| !line.contains("acme")));
    limiter.engine.tidy();
    assert_eq!(usage(&limiter, &all()).unwrap().items.len(), 3);
}

#[test]
fn without_names_a_whole_key_can_be_shown_and_nothing_listed() {
    let limiter = Limiter::new(NAMED.replace("names: true", "names: false").as_str());
    limiter.ask_cost("org=acme agent=a1", 4);
    let whole = of("agent", &[("agent", "a1"), ("org", "acme")]);
    assert_eq!(sorted(&usage(&limiter, &whole).unwrap()), ["agent acme/a1: 6 of 10"]);
    // One that was never made stands at its whole quota.
    assert_eq!(sorted(&usage(&limiter, &of("org", &[("org", "new")])).unwrap()), ["org new: 100 of 100"]);
    assert_eq!(sorted(&usage(&limiter, &of("everyone", &[])).unwrap()), ["everyone : 996 of 1000"]);
    for query in [all(), of("agent", &[("org", "acme")]), of("agent", &[])] {
        let error = usage(&limiter, &query).unwrap_err();
        assert!(error.to_string().contains("store.memory.names"), "{error}");
    }
    // To look makes no counter.
    assert_eq!(limiter.engine.store_stats().keys, 3);
}

#[test]
fn calendar_counters_always_know_whose_they_are() {
    let limiter = Limiter::new("limits: [{ name: month, per: [org], quota: 100, period: month }]");
    limiter.ask_cost("org=acme", 3);
    assert_eq!(sorted(&usage(&limiter, &all()).unwrap()), ["month acme: 97 of 100"]);
    assert_eq!(reset(&limiter, "month", &[]).unwrap(), 1);
    assert_eq!(limiter.remaining_of("month", "org=acme"), 100);
}

#[test]
fn what_is_wrong_with_a_query_is_told() {
    let limiter = Limiter::new(NAMED);
    limiter.ask("org=acme agent=a1");
    let message = |query: &UsageQuery| usage(&limiter, query).unwrap_err().to_string();
    assert_eq!(message(&of("nothing", &[])), "there is no limit 'nothing' in force");
    let wrong = message(&of("agent", &[("user", "u1")]));
    assert_eq!(wrong, "limit 'agent' is not counted per 'user' (it is per: org, agent)");
    for cursor in ["", ".", "x", "9.", "-1.", "0.zz", "0.1-2-3", "1e0.", "\u{0}"] {
        let result = usage(&limiter, &UsageQuery { cursor: Some(cursor.into()), ..all() });
        assert!(matches!(result, Err(UsageError::Store(_))), "{cursor:?}: {result:?}");
    }
    assert!(matches!(reset(&limiter, "nothing", &[]), Err(UsageError::UnknownLimit(_))));
    assert!(matches!(reset(&limiter, "org", &[("agent", "a1")]), Err(UsageError::UnknownAttribute { .. })));
}

#[test]
fn a_reset_forgets_what_it_names_and_nothing_else() {
    let limiter = Limiter::new(NAMED);
    for who in ["org=acme agent=a1", "org=acme agent=a2", "org=beta agent=a1"] {
        limiter.ask_cost(who, 2);
    }
    assert_eq!(reset(&limiter, "agent", &[("org", "acme"), ("agent", "a1")]).unwrap(), 1);
    assert_eq!(reset(&limiter, "agent", &[("org", "acme"), ("agent", "a1")]).unwrap(), 0);
    let left = [("agent".into(), 10), ("everyone".into(), 994), ("org".into(), 96)];
    assert_eq!(limiter.remaining("org=acme agent=a1"), left.into());
    assert_eq!(limiter.remaining_of("agent", "org=acme agent=a2"), 8);

    // Some attributes: every counter that has them.
    assert_eq!(reset(&limiter, "agent", &[("agent", "a1")]).unwrap(), 1);
    assert_eq!(limiter.remaining_of("agent", "org=beta agent=a1"), 10);
    assert_eq!(limiter.remaining_of("agent", "org=acme agent=a2"), 8);
    // None: all of the limit's.
    assert_eq!(reset(&limiter, "org", &[]).unwrap(), 2);
    assert_eq!(limiter.remaining_of("org", "org=acme"), 100);
    assert_eq!(limiter.remaining_of("everyone", ""), 994);
}

#[test]
fn many_are_reset_by_the_page() {
    let limiter =
        Limiter::new("store: { memory: { names: true } }\nlimits: [{ name: user, per: [user], rate: 5/min }]");
    for number in 0..2_500 {
        limiter.ask(&format!("user=u{number}"));
    }
    assert_eq!(reset(&limiter, "user", &[]).unwrap(), 2_500);
    assert_eq!(limiter.remaining_of("user", "user=u7"), 5);
    assert!(usage(&limiter, &all()).unwrap().items.is_empty());
}

#[test]
fn overridden_numbers_are_shown_and_each_counter_once() {
    let limiter = Limiter::new(
        "
store: { memory: { names: true } }
limits:
  - { name: window, per: [org], rate: 10/min, overrides: [{ when: { org: acme }, rate: 20/min }] }
  - name: bucket
    per: [org]
    rate: 60/min
    burst: 10
    algorithm: token_bucket
    overrides: [{ when: { org: acme }, rate: 600/min, burst: 50 }]
",
    );
    limiter.ask_cost("org=acme", 2);
    limiter.ask_cost("org=beta", 2);
    let wanted = ["bucket acme: 48 of 50", "bucket beta: 8 of 10", "window acme: 18 of 20", "window beta: 8 of 10"];
    assert_eq!(sorted(&usage(&limiter, &all()).unwrap()), wanted);
    let acme = of("bucket", &[("org", "acme")]);
    assert_eq!(sorted(&usage(&limiter, &acme).unwrap()), ["bucket acme: 48 of 50"]);

    // For a time acme has a bucket like everyone's; the counter that it leaves is no longer shown.
    let own = algorithm::TokenBucket::new(Rate::new(60, 60).unwrap(), Some(10)).unwrap();
    let intervention = Intervention {
        when: vec![Condition { attribute: "org".into(), test: Test::Equals("acme".into()) }],
        effect: Effect::Override { limit: "bucket".into(), algorithm: Algorithm::TokenBucket(own) },
        expires_at: START.after(Span::from_secs(60)),
        reason: String::new(),
        by: String::new(),
    };
    limiter.engine.intervene(intervention).unwrap();
    limiter.ask_cost("org=acme", 3);
    let of_bucket = usage(&limiter, &of("bucket", &[])).unwrap();
    assert_eq!(sorted(&of_bucket), ["bucket acme: 7 of 10", "bucket beta: 8 of 10"]);
    assert_eq!(reset(&limiter, "bucket", &[("org", "acme")]).unwrap(), 2);
}

#[test]
fn a_counter_kept_apart_by_more_than_its_key_is_shown_too() {
    let limiter = Limiter::new(
        "
store: { memory: { names: true } }
limits:
  - name: bucket
    per: [org]
    rate: 60/min
    burst: 10
    algorithm: token_bucket
    overrides: [{ when: { plan: pro }, rate: 600/min, burst: 50 }]
",
    );
    limiter.ask_cost("org=acme", 2);
    limiter.ask_cost("org=acme plan=pro", 5);
    let both = ["bucket acme: 45 of 50", "bucket acme: 8 of 10"];
    assert_eq!(sorted(&usage(&limiter, &all()).unwrap()), both);
    assert_eq!(sorted(&usage(&limiter, &of("bucket", &[("org", "acme")])).unwrap()), both);
    // A key that only the one or the other has been asked for.
    limiter.ask_cost("org=beta plan=pro", 5);
    let beta = ["bucket beta: 10 of 10", "bucket beta: 45 of 50"];
    assert_eq!(sorted(&usage(&limiter, &of("bucket", &[("org", "beta")])).unwrap()), beta);
    assert_eq!(sorted(&usage(&limiter, &of("bucket", &[("org", "gamma")])).unwrap()), ["bucket gamma: 10 of 10"]);
    assert_eq!(reset(&limiter, "bucket", &[("org", "acme")]).unwrap(), 2);
    assert_eq!(limiter.remaining_of("bucket", "org=acme plan=pro"), 50);
}
