use serde_json::{Value, json};

use super::*;
use crate::config::fault::Findings;
use crate::config::raw::{ADMIN, COST, FILE, HEADERS, Keys, LIMIT, MEMORY, MISSING, OVERRIDE, REDIS, STORE, TEST, TLS};
use crate::config::secret::References;
use crate::config::tree::{Kind, Node};

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

/// The file as a reader of YAML 1.2 sees it, references and all.
fn as_json(text: &str) -> Value {
    fn value(node: &Node<'_>) -> Value {
        match &node.kind {
            Kind::List(items) => items.iter().map(|item| value(item)).collect(),
            Kind::Map(entries) => {
                Value::Object(entries.iter().map(|entry| (entry.key.to_string(), value(&entry.value))).collect())
            }
            Kind::Scalar(scalar) if scalar.is_null() => Value::Null,
            Kind::Scalar(scalar) if scalar.is_plain() => match &*scalar.written {
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                text => serde_json::from_str(text).ok().filter(Value::is_number).unwrap_or_else(|| json!(text)),
            },
            Kind::Scalar(scalar) => json!(scalar.written),
            Kind::Broken => panic!("a value that cannot be read"),
        }
    }
    let mut findings = Findings::default();
    let source = source();
    let root = crate::config::tree::read(text, &mut References::new(&source), &mut findings);
    value(&root.expect("a tree"))
}

fn fits(text: &str) -> bool {
    jsonschema::validator_for(&schema()).unwrap().is_valid(&as_json(text))
}

#[test]
fn the_schema_has_the_keys_that_the_parser_has() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    let places: [(&str, &Keys); 12] = [
        ("", &FILE),
        ("/properties/admin", &ADMIN),
        ("/properties/headers", &HEADERS),
        ("/properties/store", &STORE),
        ("/properties/store/properties/memory", &MEMORY),
        ("/properties/store/properties/redis", &REDIS),
        ("/properties/store/properties/redis/properties/tls", &TLS),
        ("/$defs/limit", &LIMIT),
        ("/$defs/limit/properties/cost/anyOf/1", &COST),
        ("/$defs/override", &OVERRIDE),
        ("/$defs/test/anyOf/2", &TEST),
        ("/$defs/limit/properties/missing/anyOf/2", &MISSING),
    ];
    let mut groups_checked = 0;
    for (pointer, keys) in places {
        let group = schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
        let mut in_schema: Vec<&str> = group["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        let mut known = keys.known.to_vec();
        in_schema.sort_unstable();
        known.sort_unstable();
        assert_eq!(in_schema, known, "{pointer}");
        assert_eq!(group["additionalProperties"], json!(false), "{pointer}");
        groups_checked += 1;
    }
    let closed = SCHEMA.matches("\"additionalProperties\": false").count();
    assert_eq!(closed, groups_checked, "a group of the schema is not compared here");
}

#[test]
fn the_schema_has_the_words_that_the_parser_has() {
    let schema = schema();
    let words = |pointer: &str| -> Vec<String> {
        serde_json::from_value(schema.pointer(pointer).unwrap_or_else(|| panic!("{pointer}")).clone()).unwrap()
    };
    for (pointer, lines) in [
        ("/$defs/mode/anyOf/0/enum", "rate: 1/s\nmode: WORD"),
        ("/$defs/limit/properties/period/anyOf/0/enum", "quota: 1\nperiod: WORD"),
        ("/$defs/limit/properties/unit/anyOf/0/enum", "rate: 1/s\nunit: WORD"),
        ("/$defs/limit/properties/missing/anyOf/0/enum", "rate: 1/s\nmissing: WORD"),
        ("/$defs/limit/properties/algorithm/anyOf/0/enum", "rate: 1/s\nalgorithm: WORD"),
    ] {
        for word in words(pointer) {
            let lines = if word == "calendar" { "quota: 1\nperiod: day\nalgorithm: WORD" } else { lines };
            let text = limit(&format!("per: []\n{}", lines.replace("WORD", &word)));
            loaded(&text);
            assert!(fits(&text), "{text}");
        }
    }
}

#[test]
fn valid_files_fit() {
    for text in [
        STARTER,
        "limits: []",
        "limits: []\nadmin: {addr: 'a.b:1', token: '${ADMIN_TOKEN}'}\nlisten: ${LISTEN:-0.0.0.0:1}\n",
        "limits: [{name: a, per: [], rate: '${RATE}', burst: '${COUNT}', algorithm: token_bucket}]",
        "limits: [{name: a, per: [], quota: 1_000, period: week, anchor_day: 7, timezone: Asia/Tokyo}]",
        "limits: [{name: a, per: [x], rate: 1/s, when: {a: b, c: [d], e: {prefix: f}, g: {absent: true}}, missing: {value: v}}]",
        "limits: [{name: a, per: [x], rate: 1/s, cost: {by: {tool: {x: 5}}}, overrides: [{when: {x: y}, rate: 5/s}]}]",
        "limits: [{name: a, per: [x], rate: 1/s, cost: 5, order: -5, mode: disabled, level: z, missing: deny}]",
        "limits: []\nstore: {backend: memory, memory: {max_keys: 1_000, at_cap: deny, names: true}}\nmode: permissive",
    ] {
        loaded(text);
        let schema = schema();
        let validator = jsonschema::validator_for(&schema).unwrap();
        let json = as_json(text);
        let errors: Vec<String> =
            validator.iter_errors(&json).map(|error| format!("{error} at {}", error.instance_path())).collect();
        assert_eq!(errors, Vec::<String>::new(), "{text}");
    }
}

#[test]
fn every_example_fits() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut checked = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // A limit of 0 is worth a word, also where it is meant.
        let warnings: Vec<_> = warnings(&text).into_iter().filter(|warning| !warning.contains(" is 0: ")).collect();
        assert_eq!(warnings, Vec::<String>::new(), "{}", path.display());
        assert!(fits(&text), "{}", path.display());
        checked += 1;
    }
    assert!(checked > 0, "no example in {}", folder.display());
}

#[test]
fn bad_files_fit_neither() {
    for text in [
        "[]",
        "limit: []",
        "mode: enforce",
        "limits: {}",
        "limits: []\nprices: {}",
        "limits: []\nmode: enforced",
        "limits: []\nlisten: localhost",
        "limits: []\nlisten: 8080",
        "limits: []\nadmin: {adr: 'x:1'}",
        "limits: []\nadmin: {token: ''}",
        "limits: []\nheaders: {ietf: 1}",
        "limits: []\nheaders: {reset: seconds}",
        "limits: []\nstore: {backend: postgres}",
        "limits: []\nstore: {redis: {url: 5}}",
        "limits: []\nstore: {redis: {timeout_ms: 0}}",
        "limits: []\nstore: {redis: {url: 'redis://x', prefix: 'a{b}'}}",
        "limits: []\nstore: {redis: {slot: agent}}",
        "limits: []\nstore: {on_failure: drop}",
        "limits: []\nstore: {redis: {url: 'redis://x', sentinels: 'redis://y'}}",
        "limits: []\nstore: {redis: {cluster: 'redis://y'}}",
        "limits: []\nstore: {redis: {url: 'rediss://x', tls: {ca: 5}}}",
        "limits: []\nstore: {memory: {max_keys: 0}}",
        "limits: []\nstore: {memory: {at_cap: drop}}",
        "limits: [{per: [], rate: 1/s}]",
        "limits: [{name: a, rate: 1/s}]",
        "limits: [{name: a b, per: [], rate: 1/s}]",
        "limits: [{name: 5, per: [], rate: 1/s}]",
        "limits: [{name: a, per: org, rate: 1/s}]",
        "limits: [{name: a, per: [org, org], rate: 1/s}]",
        "limits: [{name: a, per: [5], rate: 1/s}]",
        "limits: [{name: a, per: []}]",
        "limits: [{name: a, per: [], rate: 60}]",
        "limits: [{name: a, per: [], rate: x/s}]",
        "limits: [{name: a, per: [], rate: 1/s, quota: 5, period: day}]",
        "limits: [{name: a, per: [], rate: 1/s, period: day}]",
        "limits: [{name: a, per: [], quota: 5}]",
        "limits: [{name: a, per: [], period: day}]",
        "limits: [{name: a, per: [], quota: 1.5, period: day}]",
        "limits: [{name: a, per: [], quota: -1, period: day}]",
        "limits: [{name: a, per: [], quota: '5', period: day}]",
        "limits: [{name: a, per: [], quota: 5, period: fortnight}]",
        "limits: [{name: a, per: [], quota: 5, period: day, algorithm: token_bucket}]",
        "limits: [{name: a, per: [], quota: 5, period: month, anchor_day: 32}]",
        "limits: [{name: a, per: [], rate: 1/s, timezone: UTC}]",
        "limits: [{name: a, per: [], rate: 1/s, algorithm: calendar}]",
        "limits: [{name: a, per: [], rate: 1/s, algorithm: concurrency}]",
        "limits: [{name: a, per: [], rate: 1/s, burst: 5}]",
        "limits: [{name: a, per: [], rate: 1/s, unit: usd}]",
        "limits: [{name: a, per: [], rate: 1/s, on_failure: shut}]",
        "limits: [{name: a, per: [], rate: 1/s, mode: on}]",
        "limits: [{name: a, per: [], rate: 1/s, order: 1.5}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {}}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {x: 5}}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {x: []}}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {x: {prefix: a, glob: b}}}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {x: {absent: false}}}]",
        "limits: [{name: a, per: [], rate: 1/s, when: {'a b': x}}]",
        "limits: [{name: a, per: [], rate: 1/s, cost: -1}]",
        "limits: [{name: a, per: [], rate: 1/s, cost: {by: {tool: 5}}}]",
        "limits: [{name: a, per: [], rate: 1/s, missing: anonymous}]",
        "limits: [{name: a, per: [], rate: 1/s, missing: {value: ''}}]",
        "limits: [{name: a, per: [], rate: 1/s, overrides: [{rate: 5/s}]}]",
        "limits: [{name: a, per: [], rate: 1/s, overrides: [{when: {x: y}}]}]",
    ] {
        faults(text);
        assert!(!fits(text), "the schema lets pass: {text}");
    }
}
