use std::time::Duration;

use proptest::prelude::*;

use super::*;

/// Parses, and looks at everything that the answer can show. The answer itself does not matter.
fn survives(bytes: &[u8]) {
    match parse_bytes(bytes, &source()) {
        Ok(loaded) => {
            for warning in &loaded.warnings {
                assert!(!warning.line_of("f").contains('\n'));
            }
        }
        Err(faults) => {
            assert!(!faults.faults.is_empty() && faults.faults.len() <= 100);
            for fault in &faults.faults {
                let line = fault.line_of("f");
                assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
                let snippet = fault.snippet().unwrap_or("");
                assert!(!snippet.contains(|c: char| c.is_control() && c != '\n'), "{snippet:?}");
            }
            let places: Vec<_> = faults.faults.iter().map(|fault| (fault.line, fault.column)).collect();
            assert!(places.is_sorted(), "{places:?}");
        }
    }
}

/// A quarter of the largest file: quadratic work would show.
const SIZE: usize = FILE_BYTES_MAX / 4;
const FULL: &str = include_str!("../starter.yaml");

/// Words that mean something to the reader.
fn word() -> impl Strategy<Value = String> {
    let words = [
        "limits:",
        "- name: a",
        "per: []",
        "rate: 60/min",
        "when:",
        "{",
        "}",
        "[",
        "]",
        ",",
        ": ",
        "- ",
        "\n",
        "\n  ",
        "\n    ",
        "\t",
        "&a ",
        "*a",
        "!!str ",
        "<<: ",
        "|\n",
        ">\n",
        "\"",
        "'",
        "#",
        "${A}",
        "${COUNT}",
        "$${",
        "file:/run/token",
        "---\n",
        "...\n",
        "? ",
        "\u{feff}",
        "\u{0}",
        "é",
        "\r\n",
        "~",
        "010",
        "quota: 5",
        "period: day",
        "overrides:",
        "cost:",
        "%YAML 1.2\n",
    ];
    prop::sample::select(words.to_vec()).prop_map(str::to_owned)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survives(&bytes);
    }

    #[test]
    fn any_text(text in "\\PC{0,200}") {
        survives(text.as_bytes());
    }

    #[test]
    fn any_words(words in prop::collection::vec(word(), 0..60)) {
        survives(words.concat().as_bytes());
    }

    #[test]
    fn a_valid_file_with_a_part_cut_out(start in 0..FULL.len(), length in 0..200_usize) {
        let bytes = FULL.as_bytes();
        let end = (start + length).min(bytes.len());
        survives(&[&bytes[..start], &bytes[end..]].concat());
    }

    #[test]
    fn a_valid_file_with_something_put_in(at in 0..=FULL.len(), words in prop::collection::vec(word(), 1..6)) {
        let bytes = FULL.as_bytes();
        survives(&[&bytes[..at], words.concat().as_bytes(), &bytes[at..]].concat());
    }

    #[test]
    fn a_valid_file_with_bytes_changed(changes in prop::collection::vec((0..FULL.len(), any::<u8>()), 1..5)) {
        let mut bytes = FULL.as_bytes().to_vec();
        for (at, byte) in changes {
            bytes[at] = byte;
        }
        survives(&bytes);
    }
}

#[test]
fn large_files_take_their_time_and_no_more() {
    let fill = |unit: &str, begin: &str, end: &str| format!("{begin}{}{end}", unit.repeat((SIZE - 200) / unit.len()));
    let begin = "limits:\n  - name: a\n    per: [org]\n    rate: 1/s\n";
    let numbered = |unit: &dyn Fn(usize) -> String, begin: &str, end: &str| {
        let mut text = begin.to_owned();
        for n in 0.. {
            let next = unit(n);
            if text.len() + next.len() + end.len() > SIZE {
                break;
            }
            text.push_str(&next);
        }
        text + end
    };
    let files = [
        fill("[", "", ""),
        fill("a: ", "", ""),
        fill("- ", "", ""),
        fill("- a\n", "", ""),
        fill("a, ", "[", "]"),
        fill("a", "", ""),
        fill("a ", "", ""),
        fill("a\n", "a: ", ""),
        fill("a: 1\n", "", ""),
        fill("#\n", "", ""),
        fill("# ", "", ""),
        fill("\n", "", ""),
        fill("${", "a: \"", "\""),
        fill("${A}", "a: \"", "\""),
        fill("${COUNT}", "a: \"", "\""),
        fill("- file:/run/token\n", "", ""),
        fill("*a ", "", ""),
        fill("- &a x\n", "", ""),
        fill("- *a\n", "- &a [x, x, x, x]\n", ""),
        fill("!t ", "", ""),
        fill("- !t x\n", "", ""),
        fill("\"", "", ""),
        fill("'", "", ""),
        fill("%", "", ""),
        fill("? ", "", ""),
        fill("?\n", "", ""),
        fill(": ", "", ""),
        fill("{", "", ""),
        fill("{}", "", ""),
        fill("\t", "a:\n", ""),
        fill(" ", "a:", "x"),
        fill("---\n", "", ""),
        fill("\u{feff}", "", ""),
        numbered(&|n| format!("k{n}: 1\n"), "limits: []\n", ""),
        numbered(&|n| format!("      - {{when: {{org: v{n}}}, rate: 1/s}}\n"), &format!("{begin}    overrides:\n"), ""),
        numbered(&|n| format!("v{n}, "), &format!("{begin}    when: {{org: ["), "]}\n"),
        numbered(&|n| format!("  - {{name: n{n}, per: [a{n}], rate: 1/s}}\n"), "limits:\n", ""),
        numbered(&|n| format!("  - {{name: n, per: [org], rate: {n}/mim}}\n"), "limits:\n", ""),
        limits_with_long_lists(),
    ];
    for text in files {
        #[expect(clippy::disallowed_methods, reason = "how long the work takes is what is tested")]
        let started = std::time::Instant::now();
        survives(text.as_bytes());
        let took = started.elapsed();
        let shown: String = text.chars().take(40).collect();
        assert!(took < Duration::from_secs(10), "{took:?} for {shown:?}");
    }
}

/// Limits whose conditions take long to compare with each other.
fn limits_with_long_lists() -> String {
    let values: Vec<String> = (0..400).map(|n| format!("v{n}")).collect();
    let values = values.join(", ");
    (0..1_000).fold(String::from("limits:\n"), |text, n| {
        text + &format!("  - {{name: n{n}, per: [], rate: 1/s, when: {{a: [{values}, w{n}]}}}}\n")
    })
}
