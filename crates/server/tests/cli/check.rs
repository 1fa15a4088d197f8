//! `tidegate check`.

use serde_json::json;

use crate::process::{command, example, repository, tidegate, tidegate_reading};

/// Limits that are allowed and not meant: the second never refuses anything.
const SUSPECT: &str = "\
limits:
  - {name: everyone, per: [], rate: 10/min}
  - {name: shadow, per: [], rate: 20/min}
";

fn in_this_folder(arguments: &[&str]) -> crate::process::Ended {
    let folder = repository("crates/server/tests/cli");
    command().current_dir(folder).args(arguments).output().unwrap().into()
}

#[test]
fn every_fault_is_told_in_one_go() {
    let ended = in_this_folder(&["check", "faulty.yaml"]);
    assert_eq!((ended.code, ended.stderr.as_str()), (1, ""));
    insta::assert_snapshot!(ended.stdout);
}

#[test]
fn faults_as_json() {
    let ended = in_this_folder(&["check", "faulty.yaml", "--json"]);
    assert_eq!(ended.code, 1);
    let report = ended.json();
    assert_eq!(report["ok"], false);
    let file = &report["files"][0];
    assert_eq!((&file["file"], &file["ok"], &file["limits"]), (&json!("faulty.yaml"), &json!(false), &json!(null)));
    let faults = file["faults"].as_array().unwrap();
    assert!(faults.len() >= 6, "{faults:?}");
    assert_eq!((&faults[0]["line"], &faults[0]["column"]), (&json!(2), &json!(7)));
    assert!(faults.iter().all(|fault| fault["message"].is_string()));
    let in_text = in_this_folder(&["check", "faulty.yaml"]).stdout;
    assert_eq!(in_text.matches(": fault: ").count(), faults.len(), "text and JSON tell the same");
}

#[test]
fn warnings_fail_only_when_strict() {
    let mild = tidegate_reading(SUSPECT, &["check", "-"]);
    assert_eq!(mild.code, 0, "{mild:?}");
    assert!(mild.stdout.starts_with("<stdin>:3:"), "{}", mild.stdout);
    assert!(mild.stdout.contains(": warning: "), "{}", mild.stdout);
    assert!(mild.stdout.ends_with("<stdin>: ok (2 limits, 1 warning)\n"), "{}", mild.stdout);

    let strict = tidegate_reading(SUSPECT, &["check", "--strict", "-"]);
    assert_eq!(strict.code, 1, "{strict:?}");
    assert!(strict.stdout.ends_with("<stdin>: not ok (2 limits, 1 warning)\n"), "{}", strict.stdout);

    let report = tidegate_reading(SUSPECT, &["check", "--strict", "-", "--json"]);
    assert_eq!((report.code, &report.json()["ok"]), (1, &json!(false)));
    assert_eq!(report.json()["files"][0]["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn several_files_are_all_checked() {
    let good = example("quickstart.yaml");
    let bad = repository("crates/server/tests/cli/faulty.yaml").display().to_string();
    let ended = tidegate(&["check", &bad, &good]);
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.contains(&format!("{good}: ok (4 limits, 0 warnings)\n")), "{}", ended.stdout);
    assert!(ended.stdout.ends_with("1 file well, 1 with something to correct\n"), "{}", ended.stdout);
}

#[test]
fn a_file_that_is_not_there() {
    let ended = tidegate(&["check", "no/such/limits.yaml"]);
    assert_eq!(ended.code, 1);
    assert!(ended.stdout.starts_with("no/such/limits.yaml: fault: the file cannot be read: "), "{}", ended.stdout);
    assert!(ended.stdout.contains("`tidegate init` writes one"), "{}", ended.stdout);
}

#[test]
fn every_example_passes() {
    let mut names: Vec<String> = std::fs::read_dir(repository("examples"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".yaml"))
        .collect();
    names.sort();
    assert!(names.len() >= 5, "{names:?}");
    for name in &names {
        let ended = tidegate(&["check", &example(name), "--json"]);
        assert_eq!(ended.code, 0, "{ended:?}");
        let warnings = ended.json()["files"][0]["warnings"].as_array().unwrap().clone();
        assert!(warnings.is_empty(), "{name}: {warnings:?}");
    }
}

#[test]
fn piped_output_has_no_escape_codes() {
    let ended = in_this_folder(&["check", "faulty.yaml"]);
    assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
    let forced = command().env("CLICOLOR_FORCE", "1").args(["check", &example("quickstart.yaml")]).output().unwrap();
    assert!(String::from_utf8_lossy(&forced.stdout).contains('\u{1b}'), "colours can be asked for");
}

#[test]
fn what_the_file_says_cannot_act_on_the_terminal() {
    let file = "limits: [{name: \"a\\u001b[2Jb\", per: [\"x\\u001b[31m\"], rate: 1/min}]";
    let ended = tidegate_reading(file, &["check", "-"]);
    assert_eq!(ended.code, 1, "{ended:?}");
    assert!(!ended.stdout.contains('\u{1b}'), "{}", ended.stdout);
}

#[test]
fn what_serve_would_refuse_is_a_fault() {
    let limits = "limits: [{name: all, per: [], rate: 9/min}]\n";
    let open = format!("{limits}admin: {{addr: '0.0.0.0:0'}}\nlisten: '127.0.0.1:0'\n");
    let checked = tidegate_reading(&open, &["check", "-"]);
    assert_eq!(checked.code, 1, "{checked:?}");
    assert!(checked.stdout.starts_with("<stdin>:2:15: fault: other machines can reach"), "{}", checked.stdout);
    assert!(checked.stdout.ends_with("<stdin>: 1 fault\n"), "{}", checked.stdout);
    let report = tidegate_reading(&open, &["check", "-", "--json"]).json();
    let file = &report["files"][0];
    assert_eq!((&report["ok"], &file["ok"], &file["warnings"]), (&json!(false), &json!(false), &json!([])));
    assert_eq!(file["faults"].as_array().unwrap().len(), 1);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    std::fs::write(&path, &open).unwrap();
    let served = tidegate(&["serve", path.to_str().unwrap()]);
    assert_eq!(served.code, 1);
    assert!(served.stderr.contains("no token guards it"), "{}", served.stderr);
    // Both listeners on one port.
    for (listen, admin) in [("0.0.0.0:9090", "127.0.0.1:9090"), ("localhost:9090", "127.0.0.1:9090")] {
        let same = format!("{limits}listen: '{listen}'\nadmin: {{addr: '{admin}'}}\n");
        assert_eq!(tidegate_reading(&same, &["check", "-"]).code, 1, "{listen} {admin}");
    }
    let guarded = open.replace("0:0'}", "0:0', token: a-token-of-some-length}");
    assert_eq!(tidegate_reading(&guarded, &["check", "--strict", "-"]).code, 0);
}

#[test]
fn the_limits_of_the_readme_are_well() {
    let readme = std::fs::read_to_string(repository("README.md")).unwrap();
    let from = readme.find("    limits:\n      - name: agent-minute").unwrap();
    let block: Vec<&str> = readme[from..].lines().take_while(|line| line.starts_with("    ")).collect();
    assert!(block.len() > 20, "{block:?}");
    let limits: String = block.iter().map(|line| format!("{}\n", &line[4..])).collect();
    let checked = tidegate_reading(&limits, &["check", "--strict", "-"]);
    assert_eq!(checked.code, 0, "{checked:?}");
}

#[test]
fn a_month_is_no_rate() {
    for (rate, wanted) in [
        ("5/month", "a month is a period of the calendar: write quota: 5 and period: month in place of 'rate'"),
        ("1000 / Weeks", "write quota: 1000 and period: week in place of 'rate'"),
        ("5/y", "write quota: 5 and period: year in place of 'rate'"),
    ] {
        let limits = format!("limits: [{{name: all, per: [], rate: {rate}}}]");
        let checked = tidegate_reading(&limits, &["check", "-"]);
        assert_eq!(checked.code, 1);
        assert!(checked.stdout.contains(wanted), "{}", checked.stdout);
    }
}
