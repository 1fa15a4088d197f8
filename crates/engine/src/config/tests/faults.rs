use super::*;

#[test]
fn twelve_mistakes() {
    let text = include_str!("twelve_mistakes.yaml");
    let faults = parse(text, &source()).unwrap_err();
    assert_eq!((faults.faults.len(), faults.omitted), (12, 0), "{faults}");
    insta::assert_snapshot!("twelve_mistakes", faults.with_snippets());
    insta::assert_snapshot!("twelve_mistakes_json", serde_json::to_string_pretty(&faults).unwrap());
}

/// What is said about one mistake at a time: the text of the file, then the faults.
fn told(texts: &[String]) -> String {
    let told: Vec<_> = texts
        .iter()
        .map(|text| format!("{}\n  => {}\n", text.trim_end(), faults(text).replace('\n', "\n  => ")))
        .collect();
    told.join("\n")
}

#[test]
fn faults_of_the_file_and_its_settings() {
    let limits = "limits: []\n";
    let texts: Vec<String> =
        ["[]", "just text", "mode: enforce", "limits:", "limits: 5", "limits: {name: a}", "limits: [5, [], ~]"]
            .into_iter()
            .map(str::to_owned)
            .chain(
                [
                    "limit: []",
                    "prices: {}",
                    "identity: {}",
                    "upstreams: []",
                    "routes: []",
                    "rls: {}",
                    "version: 1",
                    "limits: []",
                    "mode: Enforce",
                    "mode: [enforce]",
                    "listen: localhost",
                    "listen: 127.0.0.1:99999",
                    "listen: 127.0.0.256:80",
                    "listen: :80",
                    "listen: {}",
                    "listen: 127.0.0.1:9090",
                    "admin: 127.0.0.1:9090",
                    "admin: {adr: 'x:1', token: ''}",
                    "admin: {token: two words}",
                    "admin: {token: }",
                    "admin: {token: \"${NONE}\"}",
                    "admin: {token: \"file:/gone\"}",
                    "headers: {ietf: yes, x_ratelimit: \"true\", retry_after: 2, reset: seconds}",
                    "headers: {x-ratelimit: true}",
                    "store: {backend: redis}",
                    "store: {backend: postgres}",
                    "store: {redis: {url: x}, durable: {path: x}}",
                    "store: {backend: redis, redis: {prefix: a, timeout_ms: 0, slot: agent}}",
                    "store: {backend: redis, redis: {url: \"redis://127.0.0.1\", prefix: \"a{b}\"}, on_failure: drop}",
                    "store: {backend: redis, redis: {url: \"http://user:hunter2@x/\"}}",
                    "store: {redis: {uri: \"redis://127.0.0.1\"}}",
                    "store: {backend: redis, redis: {url: \"redis://main\", sentinels: [\"http://user:hunter2@x\", 5]}}",
                    "store: {backend: redis, redis: {url: \"redis://main\", sentinels: [\"http://user:hunter2@x\"]}}",
                    "store: {backend: redis, redis: {cluster: []}}",
                    "store: {backend: redis, redis: {cluster: [\"http://user:hunter2@x\"]}}",
                    "store: {backend: redis, redis: {cluster: [\"redis://x/1\"]}}",
                    "store: {backend: redis, redis: {cluster: [\"redis://:a@x\", \"redis://:b@y\"]}}",
                    "store: {backend: redis, redis: {url: \"redis://x\", cluster: [\"redis://x\"]}}",
                    "store: {backend: redis, redis: {url: \"redis://x\", tls: {ca: \"-----BEGIN X\"}}}",
                    "store: {backend: redis, redis: {url: \"rediss://x\", tls: {ca: /etc/ca.pem, cert: \"-----BEGIN X\"}}}",
                    "store: {backend: redis, redis: {url: \"rediss://x\", tls: {cert: \"-----BEGIN X\"}}}",
                    "store: {backend: redis, redis: {url: \"rediss://x\", tls: {cert: \"-----BEGIN X\", key: \"-----BEGIN X\"}}}",
                    "store: {memory: {max_keys: 0, at_cap: drop, names: 1}}",
                    "store: {memory: {max_keys: 1e6}}",
                    "store: {memory: {max_keys: \"1000\"}}",
                    "store: {memory: {max_keys: \"${OCTAL}\"}}",
                    "store: {memory: {max_keys: \"${RATE}\"}}",
                    "store: memory",
                ]
                .into_iter()
                .map(|line| format!("{line}\n{limits}")),
            )
            .collect();
    insta::assert_snapshot!("file_and_settings", told(&texts));
}

#[test]
fn faults_of_a_limit() {
    let texts: Vec<String> = [
        "",
        "per: []",
        "rate: 60/min",
        "per: org\nrate: 60/min",
        "per: [org, org]\nrate: 60/min",
        "per: [1, \"\", \"a b\", [x]]\nrate: 60/min",
        "per: []\nrate: 60/min\nlevel: two words",
        "per: []\nrate: 60/min\nlevel:",
        "per: []\nrate: 60/min\nname: b",
        "per: []\nrate: 60/min\nperr: []\nzzz: 1",
        "per: []\nrate: 60/min\non_failure: open\nshare: fair\nreserve: none\non_expiry: charge",
        "per: []\nrate: 60",
        "per: []\nrate: 60 / fortnight",
        "per: []\nrate: \"60/mim\"",
        "per: []\nrate: -5/min",
        "per: []\nrate: 1.5/min",
        "per: []\nrate: 60/0s",
        "per: []\nrate: 60/400d",
        "per: []\nrate: 99999999999999999999/s",
        "per: []\nrate: [60, min]",
        "per: []\nrate: \"${COUNT}\"",
        "per: []\nrate: 60/min\nquota: 5\nperiod: day",
        "per: []\nrate: 60/min\nperiod: day",
        "per: []\nquota: 5",
        "per: []\nperiod: day",
        "per: []\nquota: 5\nperiod: fortnight",
        "per: []\nquota: 1.5\nperiod: dya",
        "per: []\nquota: 9007199254740992\nperiod: day",
        "per: []\nquota: 010\nperiod: day",
        "per: []\nquota: \"5\"\nperiod: day",
        "per: []\nquota: 0x10\nperiod: day",
        "per: []\nrate: 60/min\nburst: 5",
        "per: []\nrate: 60/min\nalgorithm: token_buket\nburst: 5",
        "per: []\nrate: 60/min\nalgorithm: token_bucket\nburst: 0",
        "per: []\nrate: 60/min\nalgorithm: token_bucket\nburst: -1",
        "per: []\nrate: 1/d\nalgorithm: token_bucket\nburst: 9007199254740991",
        "per: []\nrate: 9007199254740991/s\nalgorithm: token_bucket",
        "per: []\nrate: 60/min\nalgorithm: concurrency",
        "per: []\nrate: 60/min\nalgorithm: calendar",
        "per: []\nrate: 3000000000/min",
        "per: []\nrate: 100001/min\nalgorithm: sliding_window",
        "per: []\nquota: 5\nperiod: day\nalgorithm: token_bucket\nburst: 3",
        "per: []\nrate: 60/min\ntimezone: UTC\nanchor_day: 1",
        "per: []\nquota: 5\nperiod: month\ntimezone: Berlin",
        "per: []\nquota: 5\nperiod: month\ntimezone: Middle/Earth\nanchor_day: 32",
        "per: []\nquota: 5\nperiod: week\nanchor_day: 8",
        "per: []\nquota: 5\nperiod: day\nanchor_day: 2",
        "per: []\nrate: 60/min\nunit: usd",
        "per: []\nrate: 60/min\nunit: token",
        "per: []\nrate: 60/min\nunit: [requests]",
        "per: []\nrate: 60/min\nmode: on",
        "per: []\nrate: 60/min\norder: first",
        "per: []\nrate: 60/min\norder: -9999999999",
    ]
    .into_iter()
    .map(limit)
    .collect();
    insta::assert_snapshot!("limit", told(&texts));
}

#[test]
fn faults_of_conditions_costs_and_overrides() {
    let texts: Vec<String> = [
        "when: {}",
        "when: search",
        "when: {org: 1}",
        "when: {org: true, tool: ~}",
        "when: {org: []}",
        "when: {org: [a, 2]}",
        "when: {\"two words\": x}",
        "when: {org: {prefx: a}}",
        "when: {org: {prefix: a, glob: b}}",
        "when: {org: {}}",
        "when: {org: {absent: false}}",
        "when: {org: {absent: yes}}",
        "when: {org: {prefix: 5}}",
        "cost: free",
        "cost: -1",
        "cost: 0.5",
        "cost: {base: -1, by: {tool: {search: x}}}",
        "cost: {bas: 1}",
        "cost: {by: {tool: 5}}",
        "cost: {by: [tool]}",
        "missing: dney",
        "missing: anonymous",
        "missing: {value: ''}",
        "missing: {}",
        "missing: [deny]",
        "overrides: {when: {org: a}, rate: 5/min}",
        "overrides: [{rate: 5/min}]",
        "overrides: [{when: {org: a}}]",
        "overrides: [{when: {org: a}, quota: 5}]",
        "overrides: [{when: {org: a}, burst: 5}]",
        "overrides: [{when: {org: a}, rate: 5/mim, mode: enforce}]",
        "overrides: [{when: {org: a}, rate: 3000000000/min}]",
    ]
    .into_iter()
    .map(|lines| limit(&format!("per: []\nrate: 60/min\n{lines}")))
    .chain([
        limit("per: []\nquota: 5\nperiod: day\noverrides: [{when: {org: a}, rate: 5/min, burst: 3}]"),
        limit("per: []\nrate: 60/mim\noverrides: [{when: {org: a}, rate: 5/mim, burst: x}]"),
    ])
    .collect();
    insta::assert_snapshot!("conditions_costs_overrides", told(&texts));
}

#[test]
fn a_rate_fault_points_at_its_character() {
    for (text, column) in [
        ("rate: 60/mim", 14),
        ("rate:   60 / mim", 18),
        ("rate: \"60/mim\"", 15),
        ("rate: 60", 13),
        ("rate: x/min", 11),
    ] {
        let told = faults(&limit(&format!("per: []\n{text}")));
        assert!(told.starts_with(&format!("limits.yaml:4:{column}: ")), "{text}: {told}");
    }
}

#[test]
fn no_message_shows_a_secret() {
    let texts = [
        "admin: {token: \"${SHORT}\", addr: 5}\nlimits: []\n",
        "admin: {addr: bad, token: hunter2 and more}\nlimits: []\n",
        "admin: {addr: bad, token: hunter2é}\nlimits: []\n",
        "admin:\n  token: hunter2\n  token: hunter2\nlimits: []\n",
        "admin: {token: hunter2, addr: [}\nlimits: []\n",
        "admin: {token: [hunter2]}\nlimits: []\n",
        "admins: {token: hunter2}\nlimits: []\n",
        "listen: \"${SHORT}\"\nmode: \"${SHORT}\"\nlimits: [{name: \"${SHORT} x\", per: [\"${SHORT} x\"], rate: \"${SHORT}\", burst: \"${SHORT}\", missing: \"${SHORT}\", timezone: \"${SHORT}\"}]\n",
        "limits: [{name: \"${SHORT}\", per: []}, {name: \"${SHORT}\", per: [], quota: 5, period: day, timezone: \"${SHORT}\", when: {a: {glob: \"${SHORT}\", prefix: x}}}]\n",
    ];
    for text in texts {
        let faults = parse(text, &source()).unwrap_err();
        let shown = faults.with_snippets();
        assert!(!shown.contains("hunter2"), "{shown}");
        assert!(!format!("{faults:?}").contains("hunter2"), "{faults:?}");
    }
}

#[test]
fn what_is_no_text_is_told() {
    let told = |bytes: &[u8]| parse_bytes(bytes, &source()).unwrap_err().to_string();
    assert_eq!(
        told(b"limits:\n  - n\xe4me: a\n"),
        "limits.yaml:2:6: the byte 0xe4 is not UTF-8 text; save the file as UTF-8"
    );
    assert_eq!(told(b"\xff\xfel\0i\0"), "limits.yaml: the file is UTF-16 text; save it as UTF-8");
    let large = vec![b'#'; FILE_BYTES_MAX + 1];
    let sentence = "limits.yaml: the file is larger than 4 MiB; split it, or write 'overrides' and lists more tersely";
    assert_eq!(told(&large), sentence);
    assert_eq!(faults(&String::from_utf8(large).unwrap()), sentence);
}

#[test]
fn bounds_of_lists_are_told() {
    let many = |count: usize, item: &dyn Fn(usize) -> String| (0..count).map(item).collect::<Vec<_>>().join(", ");
    let limits = many(1_001, &|n| format!("{{name: l{n}, per: [], rate: 1/s}}"));
    assert!(faults(&format!("limits: [{limits}]")).contains("the file has 1001 limits, 1000 are the most"));
    for (lines, sentence) in [
        (format!("per: [{}]", many(17, &|n| format!("a{n}"))), "'per' names 17 attributes, 16 are the most"),
        (format!("when: {{{}}}", many(33, &|n| format!("a{n}: x"))), "'when' names 33 attributes, 32 are the most"),
        (
            format!("when: {{a: [{}]}}", many(10_001, &|n| format!("v{n}"))),
            "'a' lists 10001 values, 10000 are the most",
        ),
        (format!("when: {{a: {}}}", "x".repeat(1_025)), "'a' has 1025 bytes, 1024 are the most"),
        (format!("when: {{a: {{glob: {}}}}}", "x".repeat(257)), "'glob' has 257 bytes, 256 are the most"),
        (format!("cost: {{by: {{{}}}}}", many(17, &|n| format!("a{n}: {{x: 1}}"))), "'by' names 17 attributes"),
        (
            format!("cost: {{by: {{a: {{{}}}}}}}", many(10_001, &|n| format!("v{n}: 1"))),
            "'by' for 'a' names 10001 values",
        ),
        (
            format!("overrides: [{}]", many(100_001, &|n| format!("{{when: {{a: v{n}}}, rate: 1/s}}"))),
            "limit 'a' has 100001 overrides, 100000 are the most",
        ),
    ] {
        let rest = if lines.starts_with("per") { "rate: 1/s" } else { "per: []\nrate: 1/s" };
        let told = faults(&limit(&format!("{rest}\n{lines}")));
        assert!(told.contains(sentence), "{}", &told[..told.len().min(500)]);
    }
}

#[test]
fn a_hundred_faults_are_told_and_the_rest_counted() {
    let keys: String = (0..150).map(|n| format!("k{n}: 1\n")).collect();
    let told = faults(&format!("{keys}limits: []\n"));
    assert_eq!(told.lines().count(), 101);
    assert!(told.ends_with("limits.yaml: and 50 more"), "{told}");
}
