// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first page, the verbs under their questions, the probes in their groups; and the spellings of before.

use std::process::Command as Program;

use clap::Command;

/// Columns of a page, where it may be wide.
const WIDTH_MAX: usize = 100;

/// What the program says, in columns enough.
#[expect(clippy::disallowed_methods, reason = "a child of the test, waited for at once")]
fn says(words: &[&str]) -> String {
    let mut program = Program::new(env!("CARGO_BIN_EXE_tailbound"));
    let out = program.args(words).env("COLUMNS", "200").output().expect("the program");
    String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned()
}

/// Does the whole definition understand this line?
fn understood(line: &str) {
    let parsed = tailbound::command().try_get_matches_from(line.split(' '));
    assert!(parsed.is_ok(), "{line}: {:?}", parsed.err().map(|e| e.to_string()));
}

#[test]
fn every_verb_and_probe_stands_in_one_group() {
    let command = tailbound::command();
    let measure = command.find_subcommand("measure").expect("a verb");
    for (command, words) in [(&command, &["--help"][..]), (measure, &["measure", "--help"])] {
        let text = says(words);
        // A verb begins in the third column, and the lines of its text further on.
        let entry =
            |l: &'_ str| l.strip_prefix("  ").filter(|l| !l.starts_with(' ')).map(str::to_owned);
        let mut placed: Vec<String> = text
            .lines()
            .filter_map(entry)
            .filter_map(|l| Some(l.split(' ').next()?.to_owned()))
            .collect();
        placed.sort_unstable();
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut verbs: Vec<&str> = visible
            .map(Command::get_name)
            .filter(|n| placed.iter().any(|p| p == n) || *n != "help")
            .collect();
        verbs.sort_unstable();
        assert_eq!(placed, verbs, "{text}");
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH_MAX), "{text}");
    }
}

#[test]
fn old_spellings_are_understood() {
    for (old, new) in [
        ("interruptions -c 1", "irqs -c 1"),
        ("tasks a.jsonl", "response a.jsonl"),
        ("capture -o b.tar.gz", "check capture -o b.tar.gz"),
        ("hunt --resume x", "lab hunt --resume x"),
        ("bisect kernels a b", "lab bisect kernels a b"),
    ] {
        understood(&format!("tailbound {old}"));
        understood(&format!("tailbound {new}"));
    }
}

#[test]
fn the_first_commands_are_understood() {
    let text = says(&[]);
    let commands: Vec<&str> = text.lines().filter_map(|l| l.strip_prefix("  tailbound ")).collect();
    assert_eq!(commands.len(), 6, "{text}");
    for line in commands {
        let words = line.split("  ").next().unwrap_or_default();
        understood(&format!("tailbound {words}"));
    }
    assert!(text.lines().all(|l| l.chars().count() <= WIDTH_MAX), "{text}");
}

#[test]
fn options_of_probes_are_no_flags_of_plans() {
    let command = tailbound::command();
    let measure = command.find_subcommand("measure").expect("a verb");
    for kind in tailbound_probe::catalogue::CATALOGUE {
        let probe = measure.find_subcommand(kind.name).expect("a probe");
        let flags: Vec<&str> = probe.get_arguments().filter_map(clap::Arg::get_long).collect();
        for option in kind.options {
            let same = flags.iter().filter(|flag| **flag == option.name).count();
            assert_eq!(same, 1, "{} --{}", kind.name, option.name);
        }
    }
}
