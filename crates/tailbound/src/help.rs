// SPDX-License-Identifier: MIT OR Apache-2.0
//! The help of the program itself: its verbs under the questions that they answer, and six commands to begin with.
//!
//! Context: COLD. What a verb does is said by its definition (`cli`); here is only where it stands.

use clap::Command;
use tailbound_report::table::wrap;

/// Columns of a terminal that nobody asked, and most that are used.
const WIDTH: (usize, usize) = (80, 100);
/// Columns in front of what a verb does.
const INDENT: usize = 15;

/// A question, and the verbs that answer it.
struct Group {
    question: &'static str,
    verbs: &'static [&'static str],
}

const GROUPS: [Group; 8] = [
    Group { question: "How late can it be?", verbs: &["run", "measure", "bound", "plan"] },
    Group { question: "Why?", verbs: &["blame", "watch", "hot", "irqs", "response"] },
    Group { question: "What would make it better?", verbs: &["check", "tune", "load"] },
    Group { question: "Which system should I take?", verbs: &["lab", "compare", "decide"] },
    Group { question: "Does it stay so?", verbs: &["history"] },
    Group {
        question: "Many machines, many years",
        verbs: &["monitor", "store", "serve", "fleet", "agent", "campaign"],
    },
    Group {
        question: "Run files",
        verbs: &["show", "report", "import", "export", "sign", "verify"],
    },
    Group { question: "This program", verbs: &["completions", "help"] },
];

/// Commands to begin with: what is typed, and what it does.
const FIRST: [(&str, &str); 6] = [
    ("tailbound run -D 1m -L hackbench", "measure this machine under load: verdict and report"),
    ("tailbound run -D 20s --blame", "the same, and name what made wake-ups late"),
    ("tailbound check", "find what is wrong for real-time work, and the fix"),
    ("tailbound tune plan -c 1", "show what tuning would change"),
    ("tailbound lab run -k debian:6.12-rt", "measure another kernel, in virtual time"),
    ("tailbound compare a.jsonl b.jsonl", "compare two systems"),
];

/// What is printed where nothing was asked.
pub(crate) fn first() -> String {
    let mut text =
        "How late can this machine be? Real time is not fast: it is bounded.\n\n".to_owned();
    for (words, what) in FIRST {
        text.push_str(&format!("  {words:<36}  {what}\n"));
    }
    text.push_str("\nAll commands: tailbound --help\n");
    text
}

/// Is the help of the program itself asked for, not that of a verb?
pub(crate) fn is_of_program(words: &[String]) -> bool {
    matches!(words, [word] if ["--help", "-h", "help"].contains(&word.as_str()))
}

/// All verbs, each under its question. `command` is the whole command line, built.
pub(crate) fn of_program(command: &Command) -> String {
    let width = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).unwrap_or(WIDTH.0);
    let width = width.clamp(INDENT + 20, WIDTH.1);
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let paragraphs = about.iter().flat_map(|a| a.split("\n\n"));
    let mut text =
        paragraphs.map(|p| wrap(p, width, "").join("\n")).collect::<Vec<_>>().join("\n\n");
    text.push_str("\n\nUsage: tailbound <COMMAND>\n");
    for group in &GROUPS {
        let verbs: Vec<&Command> = group
            .verbs
            .iter()
            .filter_map(|v| command.find_subcommand(v))
            .filter(|v| !v.is_hide_set())
            .collect();
        if verbs.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", group.question));
        for verb in verbs {
            let does = verb.get_about().map(ToString::to_string).unwrap_or_default();
            for (i, line) in wrap(&does, width - INDENT, "").iter().enumerate() {
                let name = if i == 0 { verb.get_name() } else { "" };
                text.push_str(&format!("  {name:<width$}{line}\n", width = INDENT - 2));
            }
        }
    }
    text.push_str(
        "\nOptions of a command: tailbound <COMMAND> --help; version: tailbound --version\n",
    );
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n{}\n", wrap(&after.to_string(), width, "").join("\n")));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn every_verb_stands_under_one_question() {
        let command = crate::command();
        let mut placed: Vec<&str> = GROUPS.iter().flat_map(|g| g.verbs.iter().copied()).collect();
        placed.sort_unstable();
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut verbs: Vec<&str> = visible.map(Command::get_name).collect();
        verbs.sort_unstable();
        assert_eq!(placed, verbs);
        let text = of_program(&command);
        for verb in verbs {
            assert!(text.contains(&format!("\n  {verb} ")), "{verb}: {text}");
        }
        assert!(text.lines().all(|l| l.chars().count() <= WIDTH.1), "{text}");
    }

    #[test]
    fn old_spellings_are_understood() {
        for (old, new) in [
            ("interruptions -c 1", "irqs -c 1"),
            ("tasks a.jsonl", "response a.jsonl"),
            ("capture -o b.tar.gz", "check capture -o b.tar.gz"),
            #[cfg(feature = "lab")]
            ("hunt --resume x", "lab hunt --resume x"),
            #[cfg(feature = "lab")]
            ("bisect kernels a b", "lab bisect kernels a b"),
        ] {
            for line in [old, new] {
                let words = std::iter::once("tailbound").chain(line.split(' '));
                let parsed = crate::cli::Cli::try_parse_from(words);
                assert!(parsed.is_ok(), "{line}: {:?}", parsed.err().map(|e| e.to_string()));
            }
        }
    }

    #[test]
    fn the_first_commands_are_understood() {
        for (words, _) in FIRST {
            let parsed = crate::cli::Cli::try_parse_from(words.split(' '));
            assert!(parsed.is_ok(), "{words}: {:?}", parsed.err().map(|e| e.to_string()));
        }
        assert!(first().lines().all(|l| l.chars().count() <= 100));
    }
}
