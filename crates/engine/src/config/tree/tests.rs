use super::*;
use crate::config::secret::Source;

fn outcome(text: &str) -> (String, Vec<String>) {
    let source = Source::with_lookup("f", NoLookup);
    let mut findings = Findings::default();
    let root = read(text, &mut References::new(&source), &mut findings);
    let shown = root.map(|node| show(&node)).unwrap_or_default();
    let (found, _) = findings.finish(text);
    (shown, found.iter().map(|finding| finding.line_of("f")).collect())
}

struct NoLookup;

impl crate::config::secret::Lookup for NoLookup {
    fn variable(&self, name: &str) -> std::io::Result<Option<String>> {
        Ok(name.strip_prefix("HAS_").map(str::to_owned))
    }

    fn file(&self, _: &std::path::Path, _: usize) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// The tree as one line: every value with its place.
fn show(node: &Node<'_>) -> String {
    let at = format!("@{}:{}", node.place.line, node.place.column);
    match &node.kind {
        Kind::Scalar(scalar) => format!("{}{at}", scalar.text()),
        Kind::Broken => format!("!{at}"),
        Kind::List(items) => {
            let items: Vec<_> = items.iter().map(|item| show(item)).collect();
            format!("[{}]{at}", items.join(" "))
        }
        Kind::Map(entries) => {
            let entries: Vec<_> = entries
                .iter()
                .map(|entry| {
                    format!("{}@{}:{}={}", entry.key, entry.place.line, entry.place.column, show(&entry.value))
                })
                .collect();
            format!("{{{}}}{at}", entries.join(" "))
        }
    }
}

fn tree(text: &str) -> String {
    let (tree, faults) = outcome(text);
    assert_eq!(faults, Vec::<String>::new(), "{text}");
    tree
}

fn faults(text: &str) -> Vec<String> {
    outcome(text).1
}

#[test]
fn every_key_and_value_knows_its_place() {
    assert_eq!(
        tree("limits:\n  - name: a\n    per: [org, \"agent\"]\n"),
        "{limits@1:1=[{name@2:5=a@2:11 per@3:5=[org@3:11 agent@3:16]@3:10}@2:5]@2:3}@1:1"
    );
}

#[test]
fn json_is_yaml() {
    assert_eq!(tree("{\"a\": [1, {\"b\": null}]}"), "{a@1:2=[1@1:8 {b@1:12=null@1:17}@1:11]@1:7}@1:1");
}

#[test]
fn line_breaks_of_windows_and_a_byte_order_mark_change_nothing() {
    let lines = "a: 1\nb:\n  - x\n";
    assert_eq!(tree(&lines.replace('\n', "\r\n")), tree(lines));
    // The mark itself is taken off before (config::text).
}

#[test]
fn columns_count_characters() {
    assert_eq!(tree("{ä: ö, ü: x}"), "{ä@1:2=ö@1:5 ü@1:8=x@1:11}@1:1");
}

#[test]
fn a_repeated_key_is_told_with_both_places_and_reading_goes_on() {
    assert_eq!(
        outcome("a: 1\nb: 2\na: 3\n\"a\": 4\n"),
        (
            "{a@1:1=1@1:4 b@2:1=2@2:4}@1:1".into(),
            vec![
                "f:3:1: the key 'a' is given twice, first at 1:1; remove one of them".into(),
                "f:4:1: the key 'a' is given twice, first at 1:1; remove one of them".into(),
            ]
        )
    );
}

#[test]
fn an_alias_stands_for_its_value() {
    assert_eq!(
        tree("a: &x [1]\nb: *x\n"),
        "{a@1:1=[1@1:7]@1:7 b@2:1=[1@1:7]@1:7}@1:1".replace("1@1:7]@1:7", "1@1:8]@1:7")
    );
}

#[test]
fn aliases_tags_and_merge_keys_that_cannot_be_followed_are_told() {
    assert_eq!(
        faults(
            "a: *gone\nb: !!int 1\nc: &c [*c]\nd:\n  <<: {x: 1}\n*gone : 1\n[1]: 2\n? {a: 1}\n: 2\ne: &e 1\n*e : 3\n"
        ),
        [
            "f:1:4: there is no anchor '&gone' before this '*gone'; put a value that begins with '*' in quotes",
            "f:2:4: the tag '!!int' is not allowed; remove it; put the value in quotes if it has to be text",
            "f:3:8: this alias stands inside the value that it stands for",
            "f:5:3: merge keys ('<<') are not supported; write the keys out, or give the whole value an anchor and use it with '*'",
            "f:6:1: there is no anchor '&gone' before this '*gone'; put a value that begins with '*' in quotes",
            "f:7:1: a key has to be a word, not a list or a group of keys; put text with [ or { in quotes",
            "f:8:3: a key has to be a word, not a list or a group of keys; put text with [ or { in quotes",
            "f:11:1: a key has to be a word, not an alias",
        ]
    );
}

#[test]
fn a_second_document_is_refused() {
    assert_eq!(
        faults("---\na: 1\n---\nb: 2\n"),
        ["f:3:1: a second document begins here; a limits file is one document: remove the '---' line"]
    );
}

#[test]
fn an_empty_file_is_told() {
    for text in ["", "\n\n", "# only a comment\n", "---\n...\n"] {
        let (_, faults) = outcome(text);
        assert!(faults.len() <= 1, "{faults:?}");
    }
    assert_eq!(faults("# nothing\n"), ["f: the file is empty; `tidegate init` writes one to start from"]);
}

#[test]
fn a_billion_laughs_cost_nothing() {
    let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 10].join(", ");
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    let faults = faults(&text);
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("holds more than 500000 values"), "{faults:?}");
}

#[test]
fn nesting_is_bounded_also_through_aliases() {
    for text in ["[".repeat(1_000), "{a: ".repeat(1_000), "- ".repeat(1_000)] {
        let faults = faults(&text);
        assert!(faults.len() == 1 && faults[0].contains("nested more than 64 deep"), "{faults:?}");
    }
    let mut text = String::from("a0: &a0 [x]\n");
    for level in 1..70 {
        text.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert!(faults(&text)[0].contains("nested more than 64 deep"));
}

#[test]
fn references_are_replaced_and_told_at_their_place() {
    assert_eq!(tree("a: ${HAS_x}y\n"), "{a@1:1=xy@1:4}@1:1");
    assert_eq!(
        faults("a: \"<${B}> ${C}\"\nb: |\n  ${D}\n"),
        [
            "f:1:6: the environment variable 'B' is not set; set it, or give a default with ${B:-default}",
            "f:1:12: the environment variable 'C' is not set; set it, or give a default with ${C:-default}",
            "f:3:3: the environment variable 'D' is not set; set it, or give a default with ${D:-default}",
        ]
    );
}

#[test]
fn what_is_not_yaml_is_told_in_words() {
    let texts = [
        "limits:\n\t- name: a\n",
        "limits:\n  - name: a\n\tper: [b]\n",
        "a: \"open\n",
        "a: [1, 2\n",
        "a: {b: 1, c\nd: 2\n",
        "a: b: c\n",
        "limits:\n  - name: a\n   per: b\n",
        "limits:\n  - name: a\n   - name: b\n",
        "a: @x\n",
        "a: `x`\n",
        "a: \"x\" y\n",
        "a: \"\\q\"\n",
        "a: ]\n",
        "a: [1}\n",
        "name:x\nper: y\n",
        "per: [${A}]\n",
        "when: {org: ${ORG}}\n",
        "a: \u{1}\n",
        "a: x\u{0}y\n",
        "%YAML 9.9\n---\na: 1\n",
        "limits: |\n x\n y\nz",
    ];
    let told: Vec<String> = texts.iter().map(|text| format!("{text:?}\n{}\n", faults(text).join("\n"))).collect();
    insta::assert_snapshot!("not_yaml", told.join("\n"));
}
