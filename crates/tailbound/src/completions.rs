// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shell may complete the values of options with: names of the catalogues, files, folders.
//!
//! Laid over the definition of the command line for the completions only: what is parsed stays
//! free text (`hackbench:groups=4`). The placeholder of an option (`LOADS`, `RUN`) says what it takes.

use clap::builder::PossibleValuesParser;
use clap::{Arg, Command, ValueHint};
use tailbound_core::plan::{Clock, Means, Observe, StopRule};

use crate::cmd;

/// Kernels by the names that most people start from; `lab kernel ls` has all.
const KERNELS: [&str; 6] =
    ["debian:stock", "debian:rt", "debian:6.1", "debian:6.1-rt", "debian:6.12", "debian:6.12-rt"];
const POLICIES: [&str; 6] = ["fifo:95", "fifo:50", "rr:50", "other", "batch", "deadline:"];
const CLASSES: [&str; 4] = ["hard", "safe", "95", "best-effort"];

/// The command line with the values that a shell may offer.
pub(crate) fn command() -> Command {
    with_values(crate::command())
}

fn with_values(command: Command) -> Command {
    let verb = command.get_name().to_owned();
    command.mut_args(|arg| offer(&verb, arg)).mut_subcommands(with_values)
}

/// `arg` of `verb` with its values.
fn offer(verb: &str, arg: Arg) -> Arg {
    let named = |arg: &Arg| arg.get_value_names().and_then(|n| n.first()).map(ToString::to_string);
    if !arg.get_possible_values().is_empty() || !arg.get_action().takes_values() {
        return arg;
    }
    let Some(placeholder) = named(&arg) else { return arg };
    let hint = match placeholder.as_str() {
        "RUN" | "FILE" | "PATH" => ValueHint::FilePath,
        "RUN|FOLDER" => ValueHint::AnyPath,
        "DIR" | "FOLDER" => ValueHint::DirPath,
        "CMD" => ValueHint::CommandString,
        "PROGRAM" => ValueHint::CommandName,
        _ => ValueHint::Unknown,
    };
    if hint != ValueHint::Unknown {
        return arg.value_hint(hint);
    }
    match values(verb, &placeholder) {
        none if none.is_empty() => arg,
        some => arg.value_parser(PossibleValuesParser::new(some)),
    }
}

/// What `placeholder` of `verb` stands for.
fn values(verb: &str, placeholder: &str) -> Vec<&'static str> {
    let loads = || tailbound_load::CATALOGUE.iter().map(|kind| kind.name);
    match (verb, placeholder) {
        ("benchmark", "NAME[:OPTIONS]") | (_, "BENCHMARKS") => {
            tailbound_load::BENCHMARKS.iter().map(|kind| kind.name).collect()
        }
        (_, "NAME[:OPTIONS]") => loads().collect(),
        (_, "LOADS") => loads().chain(["none"]).collect(),
        (_, "PROBE[:OPTIONS]") => tailbound_probe::CATALOGUE.iter().map(|kind| kind.name).collect(),
        (_, "CLOCK") => Clock::WORDS.to_vec(),
        (_, "CALL") => Means::asked().collect(),
        (_, "HOW" | "TRACER") => {
            std::iter::once("auto").chain(Observe::WORDS.iter().copied()).collect()
        }
        (_, "RULE") => StopRule::WORDS.to_vec(),
        (_, "CLASS") => CLASSES.to_vec(),
        (_, "POLICY") => POLICIES.to_vec(),
        (_, "KERNEL" | "KERNELS") => KERNELS.to_vec(),
        (_, "NAME|FILE") => cmd::campaigns(),
        ("import", "FORMAT") => tailbound_import::Format::ALL.iter().map(|f| f.name()).collect(),
        ("import", "UNIT") => vec!["ns", "us", "ms", "s"],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words after `option` in the completions of bash for `verb`.
    fn offered(shell: clap_complete::Shell) -> String {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command(), "tailbound", &mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn names_of_the_catalogues_are_offered_in_every_shell() {
        for shell in
            [clap_complete::Shell::Bash, clap_complete::Shell::Zsh, clap_complete::Shell::Fish]
        {
            let text = offered(shell);
            for name in [
                "hackbench",
                "pi-futex",
                "openmetrics",
                "altenberg-2016",
                "timerlat",
                "nanosleep-relative",
                "6.12-rt",
            ] {
                assert!(text.contains(name), "{name} in the completions of {shell}");
            }
        }
    }

    /// Fails unless the help of each option of `command` names every word that it may be.
    fn named_in_help(command: &Command) {
        let verb = command.get_name();
        for arg in command.get_arguments() {
            let Some(placeholder) = arg.get_value_names().and_then(|n| n.first()) else { continue };
            // Long lists, and examples of many more, stand elsewhere.
            if ["KERNEL", "KERNELS", "POLICY", "NAME|FILE"].contains(&placeholder.as_str()) {
                continue;
            }
            let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string);
            let below = command.get_after_help().map(ToString::to_string);
            let help = format!("{} {}", help.unwrap_or_default(), below.unwrap_or_default());
            if help.contains("load --help`") || help.contains("measure --help`") {
                continue;
            }
            for word in values(verb, placeholder) {
                assert!(help.contains(word), "the help of {verb} {arg} lacks {word}: {help}");
            }
        }
        command.get_subcommands().for_each(named_in_help);
    }

    #[test]
    fn help_names_every_word_of_a_list() {
        named_in_help(&crate::command());
    }

    #[test]
    fn every_value_that_is_offered_is_accepted_by_what_reads_it() {
        for policy in POLICIES.iter().filter(|p| !p.ends_with(':')) {
            policy.parse::<tailbound_core::Policy>().unwrap();
        }
        for class in CLASSES {
            class.parse::<tailbound_core::requirement::Class>().unwrap();
        }
        for kernel in KERNELS {
            kernel.parse::<tailbound_lab::KernelName>().unwrap();
        }
    }
}
