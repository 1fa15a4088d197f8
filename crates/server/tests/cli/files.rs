//! `tidegate init`, `schema` and `completions`.

use std::fs;

use crate::process::{command, tidegate};

#[test]
fn init_writes_a_file_that_is_well_and_never_over_another() {
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| -> crate::process::Ended {
        command().current_dir(&folder).args(arguments).output().unwrap().into()
    };
    let written = run(&["init"]);
    assert_eq!((written.code, written.stderr.as_str()), (0, ""));
    assert_eq!(written.stdout, "tidegate.yaml is written. Next: tidegate check tidegate.yaml\n");
    let file = folder.path().join("tidegate.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), tidegate::config::STARTER);
    let checked = run(&["check", "--strict", "tidegate.yaml"]);
    assert_eq!(checked.code, 0, "{checked:?}");

    fs::write(&file, "mine").unwrap();
    let refused = run(&["init"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (1, ""));
    assert_eq!(refused.stderr, "tidegate: tidegate.yaml was not written: it is there already; --force replaces it\n");
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");

    assert_eq!(run(&["init", "--force", "--json"]).json()["written"], "tidegate.yaml");
    assert_eq!(fs::read_to_string(&file).unwrap(), tidegate::config::STARTER);
    assert_eq!(run(&["init", "-"]).stdout, tidegate::config::STARTER);
    assert_eq!(run(&["init", "no/such/folder/x.yaml"]).code, 1);
}

#[test]
fn the_schema_is_json() {
    let schema = tidegate(&["schema"]);
    assert_eq!(schema.code, 0);
    assert_eq!(schema.json(), serde_json::from_str::<serde_json::Value>(tidegate::config::SCHEMA).unwrap());
    assert!(schema.json()["properties"]["limits"].is_object());
}

#[test]
fn completions_know_every_subcommand() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = tidegate(&["completions", shell]);
        assert_eq!((script.code, script.stderr.as_str()), (0, ""), "{shell}");
        for word in ["serve", "explain", "unblock", "attr"] {
            assert!(script.stdout.contains(word), "{shell} completes {word}");
        }
    }
    assert_eq!(tidegate(&["completions", "tcsh"]).code, 2);
}

#[test]
fn a_bash_completion_script_is_one() {
    let script = tidegate(&["completions", "bash"]).stdout;
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), script).unwrap();
    let parsed = std::process::Command::new("bash").arg("-n").arg(file.path()).output().unwrap();
    assert!(parsed.status.success(), "{}", String::from_utf8_lossy(&parsed.stderr));
}
