use super::*;

fn fault(text: &str) -> String {
    Json::parse(text).unwrap_err()
}

#[test]
fn values() {
    let text = r#"{"a": [null, true, 0, 18446744073709551615, -1, 1.5, 1e3, "x\ny"], "b": {}}"#;
    let Json::Object(members) = Json::parse(text).unwrap() else { panic!("an object") };
    assert_eq!(members[0].0, "a");
    let wanted = [
        Json::Null,
        Json::Bool(true),
        Json::Count(0),
        Json::Count(u64::MAX),
        Json::Number,
        Json::Number,
        Json::Number,
        Json::Text("x\ny".into()),
    ];
    assert_eq!(members[0].1, Json::List(wanted.into()));
    assert_eq!(members[1].1, Json::Object(Vec::new()));
}

#[test]
fn what_does_not_fit_64_bits_is_no_count() {
    for number in ["18446744073709551616", "-0", "1.0", "1e0", "99999999999999999999999999"] {
        assert_eq!(Json::parse(number), Ok(Json::Number), "{number}");
    }
}

#[test]
fn keys_stand_once() {
    assert_eq!(fault(r#"{"org": 1, "org": 2}"#), "the key 'org' stands twice at line 1 column 16");
    assert_eq!(fault(r#"{"org": 1, "\u006frg": 2}"#), "the key 'org' stands twice at line 1 column 21");
    assert!(Json::parse(r#"{"org": 1, "Org": 2, "a": {"org": 3}}"#).is_ok());
}

#[test]
fn bounds() {
    let nested = |levels| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert!(Json::parse(&nested(8)).is_ok());
    assert!(fault(&nested(9)).starts_with("nested more than 8 levels"));
    assert!(fault(&nested(100_000)).starts_with("nested more than 8 levels"));
    let keys = |count| {
        let keys: Vec<String> = (0..count).map(|key| format!("\"{key}\":0")).collect();
        format!("{{{}}}", keys.join(","))
    };
    assert!(Json::parse(&keys(64)).is_ok());
    assert!(fault(&keys(65)).starts_with("an object of more than 64 keys"));
    let items = |count: usize| format!("[{}]", vec!["0"; count].join(","));
    assert!(Json::parse(&items(1_000)).is_ok());
    assert!(fault(&items(1_001)).starts_with("a list of more than 1000"));
}

#[test]
fn no_json_at_all() {
    assert_eq!(fault(" \n"), "there is no JSON in it");
    assert!(fault("org=acme").starts_with("expected value at line 1 column 1"));
    assert!(fault("{} {}").starts_with("trailing characters at line 1 column 4"));
    assert!(fault(r#"{"a": "\ud800"}"#).contains("line 1 column"));
}

#[test]
fn places_are_named() {
    let root = At::Root;
    let (checks, odd) = (root.key("checks"), root.key("a\nb"));
    let third = checks.item(3);
    let attributes = third.key("attributes");
    assert_eq!(attributes.key("org").to_string(), "checks[3].attributes.org");
    assert_eq!(odd.key("c").to_string(), "'a\\nb'.c");
    assert_eq!(root.to_string(), "the body");
}

#[test]
fn members_are_known_and_typed() {
    let json = Json::parse(r#"{"attributes": {"n": 5}, "cost": -1}"#).unwrap();
    let root = At::Root;
    let [attributes, cost] = root.members(json.clone(), ["attributes", "cost"]).unwrap();
    let at = root.key("cost");
    let told = format!("{:?}", at.count(&cost.unwrap()).unwrap_err());
    assert!(told.contains("cost has to be a whole number from 0 to 18446744073709551615"), "{told}");
    let (_, value) = root.object(attributes.unwrap()).unwrap().remove(0);
    let told = format!("{:?}", root.key("n").text(value).unwrap_err());
    assert!(told.contains("n has to be a string, not a number; put it in quotes"), "{told}");
    let told = format!("{:?}", root.members(json, ["attributes", "costs"]).unwrap_err());
    assert!(told.contains("the body has the unknown key 'cost'; known are attributes, costs"), "{told}");
}
