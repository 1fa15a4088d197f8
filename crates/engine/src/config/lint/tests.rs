use crate::config::tests::{limit, warnings};

/// The warnings of two limits.
fn two(one: &str, other: &str) -> Vec<String> {
    warnings(&format!("limits:\n  - {{ name: a, {one} }}\n  - {{ name: b, {other} }}\n"))
        .into_iter()
        .filter(|warning| !warning.contains("meets no limit"))
        .collect()
}

#[track_caller]
fn useless(one: &str, other: &str, which: &str) {
    let warnings = two(one, other);
    let beginning = format!("limit '{which}' ");
    let [warning] = &warnings[..] else { panic!("{one} / {other}: {warnings:?}") };
    assert!(
        warning.contains(&beginning) && (warning.contains("can never be what stops") || warning.contains("shadowed")),
        "{one} / {other}: {warning}"
    );
}

#[track_caller]
fn both_matter(one: &str, other: &str) {
    assert_eq!(two(one, other), Vec::<String>::new(), "{one} / {other}");
}

#[test]
fn a_limit_that_can_never_trip() {
    useless("per: [org, agent], rate: 1000/min", "per: [org], rate: 600/min", "a");
    useless("per: [org], rate: 600/min", "per: [org, agent], rate: 1000/min", "b");
    useless("per: [org, agent], rate: 600/min", "per: [org], rate: 600/min", "a");
    useless("per: [org], rate: 600/min", "per: [], rate: 600/min", "a");
    useless("per: [org], rate: 600/min, when: {tool: x}", "per: [org], rate: 600/min", "a");
    useless("per: [org], rate: 600/min, when: {tool: x}", "per: [org], rate: 600/min, when: {tool: [x, y]}", "a");
    both_matter("per: [org, agent], rate: 60/min", "per: [org], rate: 600/min");
    both_matter("per: [org, agent], rate: 1000/min", "per: [team], rate: 600/min");
    both_matter("per: [agent], rate: 1000/min", "per: [org], rate: 600/min");
    both_matter("per: [org], rate: 1000/min", "per: [org], rate: 600/min, when: {tool: x}");
    both_matter("per: [org], rate: 1000/min, when: {tool: y}", "per: [org], rate: 600/min, when: {tool: x}");
}

#[test]
fn a_shadowed_limit() {
    let warnings = two("per: [org], rate: 600/min", "per: [org], rate: 600/min");
    assert_eq!(
        warnings,
        ["limits.yaml:3:34: limit 'b' is shadowed by 'a' (2:13), which counts the same and allows no more; \
          lower its numbers, or remove it"]
    );
    useless("per: [org], rate: 900/min", "per: [org], rate: 600/min", "a");
    useless("per: [org, agent], rate: 60/min", "per: [agent, org], rate: 60/min", "b");
}

#[test]
fn windows_of_different_length() {
    useless("per: [org], rate: 1000/min", "per: [org], rate: 600/h", "a");
    useless("per: [org], rate: 1000/min", "per: [], rate: 600/2min", "a");
    // 600 in each hour are 14,400 in a day of 24 of them.
    useless("per: [org], rate: 14400/d", "per: [org], rate: 600/h", "a");
    both_matter("per: [org], rate: 14399/d", "per: [org], rate: 600/h");
    // Windows that are not aligned to each other: 90 s can touch three minutes.
    useless("per: [org], rate: 1800/90s", "per: [org], rate: 600/min", "a");
    both_matter("per: [org], rate: 1799/90s", "per: [org], rate: 600/min");
    both_matter("per: [org], rate: 601/90s", "per: [org], rate: 600/2min");
}

#[test]
fn algorithms_that_differ() {
    let sliding = "algorithm: sliding_window";
    let bucket = "algorithm: token_bucket";
    let counter = "algorithm: sliding_counter";
    useless(&format!("per: [], rate: 60/min, {sliding}"), &format!("per: [], rate: 60/h, {sliding}"), "a");
    useless("per: [], rate: 60/min", &format!("per: [], rate: 60/min, {sliding}"), "a");
    // Two aligned windows can meet in one sliding one.
    useless(&format!("per: [], rate: 120/30s, {sliding}"), "per: [], rate: 60/min", "a");
    both_matter(&format!("per: [], rate: 119/30s, {sliding}"), "per: [], rate: 60/min");
    // A bucket admits its burst and what it refills meanwhile.
    useless("per: [], rate: 160/min", &format!("per: [], rate: 60/min, burst: 100, {bucket}"), "a");
    both_matter("per: [], rate: 159/min", &format!("per: [], rate: 60/min, burst: 100, {bucket}"));
    useless(
        &format!("per: [], rate: 2/s, burst: 9, {bucket}"),
        &format!("per: [], rate: 1/s, burst: 9, {bucket}"),
        "a",
    );
    both_matter(&format!("per: [], rate: 2/s, burst: 8, {bucket}"), &format!("per: [], rate: 1/s, burst: 9, {bucket}"));
    both_matter(
        &format!("per: [], rate: 1/s, burst: 10, {bucket}"),
        &format!("per: [], rate: 2/s, burst: 9, {bucket}"),
    );
    both_matter(&format!("per: [], rate: 1000/s, {bucket}"), "per: [], rate: 1/s");
    useless(&format!("per: [], rate: 60/min, {counter}"), &format!("per: [], rate: 60/min, {counter}"), "b");
    useless("per: [], rate: 60/min", &format!("per: [], rate: 60/min, {counter}"), "a");
    useless(&format!("per: [], rate: 60/min, {counter}"), "per: [], rate: 60/min", "b");
    both_matter(&format!("per: [], rate: 61/min, {counter}"), "per: [], rate: 60/min");
}

#[test]
fn calendar_limits() {
    useless("per: [], quota: 10_000_000, period: month", "per: [], rate: 10/min", "a");
    both_matter("per: [], quota: 100_000, period: month", "per: [], rate: 10/min");
    useless("per: [], quota: 5000, period: day", "per: [], quota: 3000, period: month", "a");
    useless("per: [], quota: 3100, period: month", "per: [], quota: 100, period: day", "a");
    both_matter("per: [], quota: 3099, period: month", "per: [], quota: 100, period: day");
    both_matter("per: [], quota: 5000, period: day", "per: [], quota: 3000, period: month, timezone: Asia/Tokyo");
    useless("per: [], quota: 9, period: month", "per: [], quota: 9, period: month", "b");
    both_matter("per: [], quota: 9, period: month", "per: [], quota: 9, period: month, anchor_day: 2");
    both_matter("per: [], rate: 100/min", "per: [], quota: 50, period: day");
}

#[test]
fn what_tells_two_limits_apart() {
    let lower = "per: [org], rate: 600/min";
    for other in [
        "per: [org], rate: 900/min, missing: deny",
        "per: [org], rate: 900/min, missing: {value: none}",
        "per: [org], rate: 900/min, cost: 2",
        "per: [org], rate: 900/min, cost: {by: {tool: {x: 5}}}",
        "per: [org], rate: 900/min, overrides: [{when: {org: x}, rate: 60/min}]",
        "per: [org], rate: 900/min, mode: permissive",
    ] {
        both_matter(lower, other);
    }
    both_matter("per: [org], rate: 900/min", "per: [org], rate: 600/min, mode: permissive");
    both_matter("per: [org], rate: 900/min", "per: [org], rate: 600/min, overrides: [{when: {org: x}, rate: 901/min}]");
    useless(
        "per: [org], rate: 900/min",
        "per: [org], rate: 600/min, overrides: [{when: {org: x}, rate: 800/min}]",
        "a",
    );
    useless("per: [org], rate: 900/min, missing: {value: none}", "per: [], rate: 600/min", "a");
    both_matter("per: [org], rate: 900/min, missing: deny", "per: [], rate: 600/min");
    useless("per: [org], rate: 900/min, missing: deny", "per: [org], rate: 600/min, missing: deny", "a");
    useless("per: [org], rate: 900/min", "per: [org], rate: 600/min, missing: deny", "a");
    useless("per: [org], rate: 900/min", "per: [org], rate: 600/min, cost: 3", "a");
    assert_eq!(
        warnings("mode: permissive\nlimits: [{name: a, per: [], rate: 9/s}, {name: b, per: [], rate: 9/s}]").len(),
        1
    );
}

#[test]
fn warnings_about_one_limit() {
    let told: Vec<String> = [
        "per: []\nrate: 5/s\nmode: disabled",
        "per: []\nrate: 0/s",
        "per: []\nrate: 0/s\nmode: permissive",
        "per: []\nrate: 0/s\nwhen: {tool: x}",
        "per: []\nquota: 0\nperiod: day",
        "per: []\nrate: 5/s\nmissing: deny",
        "per: []\nrate: 5/s\nmissing: {value: x}",
        "per: [org]\nrate: 5/s\nwhen: {org: {absent: true}}",
        "per: [org]\nrate: 5/s\nwhen: {org: {absent: true}}\nmissing: deny",
        "per: [org]\nrate: 5/s\nwhen: {org: {absent: true}}\nmissing: {value: x}",
        "per: []\nrate: 5/s\ncost: 0",
        "per: []\nrate: 5/s\ncost: {base: 0, by: {tool: {x: 0}}}",
        "per: []\nrate: 5/s\ncost: {base: 0, by: {tool: {x: 1}}}",
        "per: []\nrate: 5/s\ncost: 6",
        "per: []\nrate: 5/s\ncost: {base: 6, by: {tool: {x: 7, y: 5}}}",
        "per: []\nrate: 5/s\ncost: 6\noverrides: [{when: {org: x}, rate: 6/s}]",
        "per: []\nrate: 10/h\nburst: 241\nalgorithm: token_bucket",
        "per: []\nrate: 10/h\nburst: 240\nalgorithm: token_bucket",
        "per: []\nrate: 100/7d\nalgorithm: token_bucket",
        "per: []\nrate: 10001/min\nalgorithm: sliding_window",
        "per: []\nrate: 10000/min\nalgorithm: sliding_window",
        "per: [org]\nrate: 5/s",
        "per: [org]\nrate: 5/s\nmissing: deny",
        "per: []\nrate: 5/s\nwhen: {tool: x}",
        "per: []\nrate: 5/s\nwhen: {tool: {absent: true}}",
    ]
    .iter()
    .map(|lines| told(&limit(lines)))
    .collect();
    insta::assert_snapshot!("one_limit", told.join("\n"));
}

#[test]
fn warnings_about_overrides() {
    let told: Vec<String> = [
        "when: {org: a}, overrides: [{when: {org: b}, rate: 6/s}]",
        "when: {org: {prefix: a}}, overrides: [{when: {tool: x, org: {prefix: b}}, rate: 6/s}]",
        "when: {org: {prefix: a}}, overrides: [{when: {org: ab}, rate: 6/s}]",
        "overrides: [{when: {org: {absent: true}}, rate: 6/s}]",
        "missing: {value: x}, overrides: [{when: {org: {absent: true}}, rate: 6/s}]",
        "overrides: [{when: {org: [a, b]}, rate: 6/s}, {when: {org: a, tool: x}, rate: 7/s}]",
        "overrides: [{when: {org: a, tool: x}, rate: 6/s}, {when: {org: a}, rate: 7/s}]",
        "overrides: [{when: {org: a}, rate: 0/s}]",
        "overrides: [{when: {orgg: a}, rate: 6/s}]",
        "overrides: [{when: {tier: gold}, rate: 6/s}]",
    ]
    .iter()
    .map(|keys| {
        told(&format!(
            "limits:\n  - {{ name: all, per: [], rate: 9/s }}\n  - {{ name: a, per: [org], rate: 5/s, {keys} }}\n"
        ))
    })
    .collect();
    insta::assert_snapshot!("overrides", told.join("\n"));
}

#[test]
fn warnings_about_the_file() {
    let limits = "limits: [{name: a, per: [], rate: 5/s}]";
    let told: Vec<String> = [
        "limits: []".to_owned(),
        format!("mode: permissive\n{limits}"),
        format!("mode: disabled\n{limits}"),
        format!("admin: {{addr: '0.0.0.0:9090'}}\n{limits}"),
        format!("admin: {{addr: 'ops.example:9090'}}\n{limits}"),
        format!("admin: {{addr: '0.0.0.0:9090', token: hunter2}}\n{limits}"),
        format!("admin: {{addr: '0.0.0.0:9090', token: '${{ADMIN_TOKEN}}'}}\n{limits}"),
        format!("admin: {{addr: 'localhost:9091'}}\n{limits}"),
        format!("admin: {{addr: '[::1]:9091'}}\n{limits}"),
        "limits: [{name: a, per: [org, agent], rate: 5/s}, {name: b, per: [], rate: 9/s, when: {tool: x}}]".to_owned(),
        "limits: [{name: a, per: [org], rate: 5/s}, {name: b, per: [], rate: 9/s, mode: disabled}]".to_owned(),
    ]
    .iter()
    .map(|text| told(text))
    .collect();
    insta::assert_snapshot!("file", told.join("\n"));
}

fn told(text: &str) -> String {
    let warnings = warnings(text);
    let shown = if warnings.is_empty() { "no warning".to_owned() } else { warnings.join("\n  => ") };
    format!("{}\n  => {shown}\n", text.trim_end())
}

#[test]
fn what_a_cluster_gives_up() {
    let file = |redis: &str| {
        warnings(&format!(
            "store: {{backend: redis, redis: {{{redis}}}}}\nlimits:\n  \
             - {{name: everyone, per: [], rate: 100/min}}\n  \
             - {{name: org, per: [org], rate: 10/min}}\n  \
             - {{name: off, per: [user], rate: 10/min, mode: disabled}}\n"
        ))
        .into_iter()
        .filter(|warning| warning.contains("cluster"))
        .collect::<Vec<_>>()
    };
    assert_eq!(
        file("cluster: ['redis://x']"),
        ["limits.yaml:3:12: in a cluster limit 'everyone' is charged after the org's limits, in a call of its own: \
          it never admits too much, but may refuse for a moment what another request is giving back; \
          slot: single is exact, on one server of the cluster"]
    );
    assert_eq!(file("cluster: ['redis://x'], slot: single"), Vec::<String>::new());
    assert_eq!(file("url: 'redis://x'"), Vec::<String>::new());
}
