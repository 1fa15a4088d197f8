//! The smoke run: every contender, every scenario, each figure there and possible.

#![expect(clippy::expect_used, reason = "a test that does not find what it needs has failed")]

use serde_json::Value;
use std::collections::HashSet;
use std::process::{Command, Output};

fn bench(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tidegate-bench")).args(arguments).output().expect("the benchmark starts")
}

fn json(arguments: &[&str]) -> Value {
    let output = bench(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON on standard output")
}

fn rows<'v>(report: &'v Value, section: &str) -> &'v [Value] {
    report[section].as_array().expect("a list of rows")
}

fn contenders(rows: &[Value]) -> HashSet<&str> {
    rows.iter().map(|row| row["contender"].as_str().expect("a name")).collect()
}

#[test]
fn a_quick_run_measures_everyone_everywhere() {
    let report = json(&["--quick", "--json"]);

    let decisions = rows(&report, "decisions");
    let everyone = contenders(decisions);
    for name in ["tidegate", "limitador", "governor", "throttlecrab"] {
        assert!(everyone.iter().any(|contender| contender.starts_with(name)), "{name} is missing");
    }
    let scenarios: HashSet<String> = decisions
        .iter()
        .map(|row| format!("{} {} {} {}", row["contender"], row["keys"], row["path"], row["threads"]))
        .collect();
    assert_eq!(scenarios.len(), decisions.len(), "a scenario was measured twice");
    assert_eq!(decisions.len(), everyone.len() * 2 * 3 * 2, "kinds of keys, paths, thread counts");
    for row in decisions {
        let [least, median, most] = ["ns_min", "ns", "ns_max"].map(|field| row[field].as_f64().expect("a number"));
        assert!(least > 1.0 && least <= median && median <= most, "{row}");
    }

    let memory = rows(&report, "memory");
    for algorithm in ["fixed_window", "token_bucket", "sliding_window", "sliding_counter"] {
        assert!(contenders(memory).contains(format!("tidegate, {algorithm}").as_str()), "{algorithm} is missing");
    }
    for row in memory {
        // A key of 13 bytes and its count cannot be had for less than a few bytes, whatever stands for the key.
        assert!(row["bytes_per_key"].as_f64().expect("a number") > 4.0, "{row}");
    }

    let pauses = rows(&report, "pauses");
    assert_eq!(contenders(pauses), everyone);
    for row in pauses {
        for timed in ["decisions", "bare_loop"] {
            let [count, p50, worst] =
                ["count", "p50_ns", "max_ns"].map(|field| row[timed][field].as_u64().expect("a count"));
            assert!(count > 0 && p50 <= worst, "{row}");
        }
    }
}

#[test]
fn a_part_runs_alone_and_prints_a_table() {
    let output = bench(&["--quick", "--only", "memory"]);
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    assert!(text.contains("Bytes for each agent"), "{text}");
    assert!(text.contains("say nothing about speed"), "a smoke run has to say so: {text}");
    assert!(!text.contains("Nanoseconds"), "{text}");
}

#[test]
fn arguments_it_does_not_know_are_refused() {
    for arguments in
        [&["--fast"][..], &["--rounds", "4"], &["--only", "speed"], &["--contender", "nobody"], &["--rounds"]]
    {
        let output = bench(arguments);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).contains("usage:"), "{arguments:?}");
    }
}
