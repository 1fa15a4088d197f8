//! packaging/Dockerfile

use crate::{read, starts, tidegate};

/// The instructions of the last stage: the image itself. Continued lines are not used.
fn instructions() -> Vec<(String, String)> {
    let text = read("packaging/Dockerfile");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let all: Vec<(String, String)> = lines
        .map(|line| line.split_once(' ').unwrap_or_else(|| panic!("no instruction: {line}")))
        .map(|(instruction, rest)| (instruction.to_owned(), rest.to_owned()))
        .collect();
    let last = all.iter().rposition(|(instruction, _)| instruction == "FROM").unwrap();
    all[last..].to_vec()
}

fn one(wanted: &str) -> String {
    let of_kind: Vec<String> =
        instructions().into_iter().filter(|(instruction, _)| instruction == wanted).map(|(_, rest)| rest).collect();
    assert_eq!(of_kind.len(), 1, "{wanted}: {of_kind:?}");
    of_kind[0].clone()
}

fn words(json: &str) -> Vec<String> {
    serde_json::from_str(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

#[test]
fn what_it_starts_is_what_the_binary_takes() {
    assert_eq!(words(&one("ENTRYPOINT")), ["tidegate"]);
    let arguments = words(&one("CMD"));
    assert_eq!(arguments[..2], ["serve", "/etc/tidegate/tidegate.yaml"]);
    let listen = arguments.iter().skip_while(|argument| *argument != "--listen").nth(1).unwrap();
    assert_eq!(listen.as_str(), format!("0.0.0.0:{}", one("EXPOSE")));
    starts(&arguments);
}

#[test]
fn its_probe_is_a_command_that_the_binary_has() {
    let probe = one("HEALTHCHECK");
    let (_, command) = probe.split_once("CMD ").unwrap();
    let words = words(command);
    assert_eq!(words[0], "tidegate");
    let mut with_help = words[1..].to_vec();
    with_help.push("--help".to_owned());
    let help = tidegate(&with_help).output().unwrap();
    assert!(help.status.success(), "{words:?}");
}

#[test]
fn it_does_not_run_as_root() {
    let user = one("USER");
    let (uid, gid) = user.split_once(':').unwrap();
    assert!(uid.parse::<u32>().unwrap() > 0 && gid.parse::<u32>().unwrap() > 0, "{user}");
    let order: Vec<String> = instructions().into_iter().map(|(instruction, _)| instruction).collect();
    let at = |wanted: &str| order.iter().position(|instruction| instruction == wanted).unwrap();
    assert!(at("USER") < at("ENTRYPOINT"));
}

#[test]
fn the_context_holds_what_is_copied() {
    let ignored = read("packaging/Dockerfile.dockerignore");
    for needed in ["!Cargo.toml", "!Cargo.lock", "!crates", "!packaging/etc"] {
        assert!(ignored.lines().any(|line| line == needed), "{needed}");
    }
    // The workspace has members outside crates/ too, and cargo reads the manifest of each.
    let manifest = read("Cargo.toml");
    let (_, members) = manifest.split_once("members = [").unwrap();
    let members = members.split(']').next().unwrap();
    for member in members.split(',').map(|member| member.trim().trim_matches('"')).filter(|member| !member.is_empty()) {
        let folder = member.split('/').next().unwrap();
        assert!(ignored.lines().any(|line| line == format!("!{folder}")), "{member} is not in the build's context");
    }
}
