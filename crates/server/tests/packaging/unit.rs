//! packaging/tidegate.service

use crate::{INSTALLED, read, starts};

/// The settings of a unit file, in their order: section, key, value.
fn settings() -> Vec<(String, String, String)> {
    let mut section = String::new();
    let mut settings = Vec::new();
    for line in read("packaging/tidegate.service").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name.to_owned();
        } else {
            let (key, value) =
                line.split_once('=').unwrap_or_else(|| panic!("neither a section nor a setting: {line}"));
            settings.push((section.clone(), key.to_owned(), value.to_owned()));
        }
    }
    settings
}

fn service(key: &str) -> String {
    let mut values = settings().into_iter().filter(|(section, own, _)| section == "Service" && own == key);
    let (_, _, value) = values.next().unwrap_or_else(|| panic!("[Service] has no {key}"));
    assert!(values.next().is_none(), "{key} stands twice");
    value
}

#[test]
fn what_it_starts_is_what_the_binary_takes() {
    let command = service("ExecStart");
    let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
    assert_eq!(
        (words[0].as_str(), words[1].as_str(), words[2].as_str()),
        ("/usr/local/bin/tidegate", "serve", INSTALLED)
    );
    starts(&words[1..]);
}

#[test]
fn it_outlasts_the_drain_and_reloads_by_signal() {
    assert_eq!(service("ExecReload"), "/bin/kill -HUP $MAINPID");
    let command = service("ExecStart");
    let drain: u32 = command.split("--drain-wait ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let stop: u32 = service("TimeoutStopSec").parse().unwrap();
    assert!(stop > drain, "systemd would kill it {stop} s into a drain of {drain} s");
}

#[test]
fn it_is_shut_in() {
    for (key, value) in [
        ("Type", "exec"),
        ("Restart", "on-failure"),
        ("DynamicUser", "yes"),
        ("ProtectSystem", "strict"),
        ("ProtectHome", "yes"),
        ("NoNewPrivileges", "yes"),
        ("CapabilityBoundingSet", ""),
        ("MemoryDenyWriteExecute", "yes"),
        ("RestrictNamespaces", "yes"),
    ] {
        assert_eq!(service(key), value, "{key}");
    }
    let writable = ["ReadWritePaths", "StateDirectory", "LogsDirectory", "CacheDirectory"];
    let found = settings().into_iter().find(|(_, key, _)| writable.contains(&key.as_str()));
    assert_eq!(found, None, "the server writes no file");
}

#[test]
fn each_setting_is_of_its_section() {
    for (section, key, _) in settings() {
        let known: &[&str] = match section.as_str() {
            "Unit" => &["Description", "After", "Wants", "StartLimitIntervalSec", "StartLimitBurst"],
            "Install" => &["WantedBy"],
            "Service" => continue,
            other => panic!("a unit of a service has no section [{other}]"),
        };
        assert!(known.contains(&key.as_str()), "[{section}] {key}");
    }
}
