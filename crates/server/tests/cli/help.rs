//! What `--help` teaches.

use crate::process::tidegate;

/// Every subcommand but `serve`, whose options are tested where the server is.
const SUBCOMMANDS: [&str; 12] = [
    "check",
    "explain",
    "init",
    "usage",
    "top",
    "block",
    "blocks",
    "unblock",
    "reset",
    "health",
    "schema",
    "completions",
];

#[test]
fn the_first_page() {
    let help = tidegate(&["--help"]);
    assert_eq!((help.code, help.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(help.stdout);
    let bare = tidegate(&[]);
    assert_eq!((bare.code, bare.stderr), (2, help.stdout), "without a subcommand, help is an error");
}

#[test]
fn every_subcommand_teaches() {
    for name in SUBCOMMANDS {
        let help = tidegate(&[name, "--help"]);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{name}");
        assert!(help.stdout.lines().all(|line| line.chars().count() <= 100), "{name} fits 100 characters");
        insta::assert_snapshot!(name, help.stdout);
    }
}

#[test]
fn the_list_of_subcommands_is_whole() {
    let listed = tidegate(&["--help"]).stdout;
    let commands = listed.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = commands.filter_map(|line| line.split_whitespace().next()).collect();
    let tested = ["serve", "help"].iter().chain(&SUBCOMMANDS);
    assert_eq!(names.len(), SUBCOMMANDS.len() + 2, "{names:?}");
    for name in tested {
        assert!(names.contains(name), "{name} is not in {names:?}");
    }
}

#[test]
fn examples_in_help_are_command_lines() {
    // What stands behind "Examples:" or "Begin:" is parsed with --help, which reads nothing else.
    for name in SUBCOMMANDS {
        let help = tidegate(&[name, "--help"]).stdout;
        for line in help.lines().filter_map(|line| line.strip_prefix("  tidegate ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let options = words.iter().filter(|word| word.starts_with("--")).map(|word| word.trim_end_matches('\''));
            let own = tidegate(&[words[0], "--help"]);
            assert_eq!(own.code, 0, "{line}");
            for option in options {
                assert!(own.stdout.contains(option), "{name} --help shows '{option}', which {} lacks", words[0]);
            }
        }
    }
}

#[test]
fn a_wrong_command_line_ends_with_2() {
    let wrong: [&[&str]; 8] = [
        &["chekc"],
        &["check"],
        &["explain", "x.yaml", "--attr", "org"],
        &["explain", "x.yaml", "--attr", "org=a", "--attr", "org=b"],
        &["explain", "x.yaml", "--cost", "-1"],
        &["top", "--interval", "1ms"],
        &["usage", "--admin", "https://example.com"],
        &["reset", "some-limit"],
    ];
    for arguments in wrong {
        let ended = tidegate(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (2, ""), "{arguments:?}");
        assert!(ended.stderr.starts_with("error: "), "{arguments:?}: {}", ended.stderr);
    }
    let told = tidegate(&["explain", "x.yaml", "--attr", "org=a", "--attr", "org=b"]).stderr;
    assert!(told.contains("the attribute 'org' is given twice"), "{told}");
}
