// SPDX-License-Identifier: MIT OR Apache-2.0
//! The help of the program and of `measure`: verbs under the questions that they answer, probes in groups, and six
//! commands to begin with.
//!
//! What a verb does is said by its definition (`cli`); here is only where it stands.

use clap::Command;
use tailbound_report::table::wrap;

use crate::cli_color::ColorChoice;
use crate::say;

/// Most columns that are used, as in the help of a verb.
const WIDTH_MAX: usize = 100;
/// Columns of a verb's name.
const INDENT: usize = 16;

/// A question, or what its verbs have in common, and the verbs.
struct Group {
    title: &'static str,
    /// Their names, separated by spaces.
    verbs: &'static str,
}

const GROUPS: [Group; 8] = [
    Group { title: "How late can it be?", verbs: "run measure cyclictest box board bound plan" },
    Group { title: "Why?", verbs: "blame watch hot irqs response" },
    Group { title: "What would make it better?", verbs: "check tune load" },
    Group { title: "Which system should I take?", verbs: "lab compare decide" },
    Group { title: "Does it stay so?", verbs: "history" },
    Group { title: "Many machines, many years", verbs: "monitor store serve fleet agent campaign" },
    Group { title: "Run files", verbs: "show report import export sign verify" },
    Group { title: "This program", verbs: "completions help" },
];

const PROBES: [Group; 6] = [
    Group { title: "Timers", verbs: "cyclic sweep deadline periodic-load fixed-work clocks" },
    Group { title: "What takes time from a CPU", verbs: "busy hwlat queue nmi" },
    Group {
        title: "From one thread to another",
        verbs: "signal futex pi-futex condvar semaphore sysv-semaphore mqueue \
            pipe socket eventfd epoll io-uring barrier ptrace",
    },
    Group {
        title: "Priorities and their inheritance",
        verbs: "pi pi-process prio-wake prio-preempt sched-football rt-migrate",
    },
    Group { title: "From outside", verbs: "answer-gpio answer-udp answer-uart" },
    Group { title: "Throughput", verbs: "benchmark" },
];

/// Each question, or what its verbs have in common, with its verbs.
pub fn questions() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    GROUPS.iter().map(|group| (group.title, group.verbs.split_whitespace().collect()))
}

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

/// The help that `words` ask for, where it is one of those here. `command` makes the whole command line, built.
pub(crate) fn asked(words: &[String], command: fn() -> Command) -> Option<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let is_measure = match words.as_slice() {
        ["--help" | "-h" | "help"] => false,
        ["measure", "--help" | "-h" | "help"] | ["help", "measure"] => true,
        _ => return None,
    };
    let command = command();
    match is_measure {
        true => command.find_subcommand("measure").map(of_measure),
        false => Some(of_program(&command)),
    }
}

/// All verbs, each under its question.
fn of_program(command: &Command) -> String {
    let mut text = begin(command, "tailbound <COMMAND>");
    text.push_str(&listed(command, &GROUPS));
    text.push_str(
        "\nOptions of a command: tailbound <COMMAND> --help; version: tailbound --version\n",
    );
    if let Some(after) = command.get_after_help() {
        text.push_str(&format!("\n{}\n", wrap(&after.to_string(), width(), "").join("\n")));
    }
    text
}

/// All probes, in groups.
fn of_measure(command: &Command) -> String {
    let mut text = begin(command, "tailbound measure <PROBE>");
    text.push_str(&listed(command, &PROBES));
    text.push_str("\nOptions of a probe: tailbound measure <PROBE> --help\n");
    text
}

fn width() -> usize {
    say::style(ColorChoice::Never).width.clamp(INDENT + 20, WIDTH_MAX)
}

/// What it is, and how it is called.
fn begin(command: &Command, usage: &str) -> String {
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string);
    let paragraphs = about.iter().flat_map(|a| a.split("\n\n"));
    let mut lines: Vec<String> = Vec::new();
    for paragraph in paragraphs {
        lines.extend(wrap(paragraph, width(), ""));
        lines.push(String::new());
    }
    lines.push(format!("Usage: {usage}\n"));
    lines.join("\n")
}

/// The verbs of each group, with what they do.
fn listed(command: &Command, groups: &[Group]) -> String {
    let mut text = String::new();
    for group in groups {
        let verbs = group.verbs.split_whitespace().filter_map(|v| command.find_subcommand(v));
        let verbs: Vec<&Command> = verbs.filter(|v| !v.is_hide_set()).collect();
        if verbs.is_empty() {
            continue;
        }
        text.push_str(&format!("\n{}\n", group.title));
        for verb in verbs {
            let does = verb.get_about().map(ToString::to_string).unwrap_or_default();
            for (i, line) in wrap(&does, width() - INDENT - 2, "").iter().enumerate() {
                let name = if i == 0 { verb.get_name() } else { "" };
                text.push_str(&format!("  {name:<INDENT$}{line}\n"));
            }
        }
    }
    text
}
