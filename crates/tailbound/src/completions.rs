// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a shell may complete the values of options with: names of the catalogues, files, folders.
//!
//! Laid over the definition of the command line for the completions only: what is parsed stays
//! free text (`hackbench:groups=4`). The placeholder of an option (`LOADS`, `RUN`) says what it takes.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, Command, CommandFactory as _, ValueHint};
use tailbound_core::plan::{Clock, Means, Observe, StopRule};
use tailbound_cyclictest::{ShellOption, ValueNeed};

/// Kernels by the names that most people start from; `lab kernel ls` has all.
const KERNELS: [&str; 6] =
    ["debian:stock", "debian:rt", "debian:6.1", "debian:6.1-rt", "debian:6.12", "debian:6.12-rt"];
const POLICIES: [&str; 6] = ["fifo:95", "fifo:50", "rr:50", "other", "batch", "deadline:"];
const CLASSES: [&str; 4] = ["hard", "safe", "95", "best-effort"];

/// The command line with the values that a shell may offer.
pub(crate) fn command() -> Command {
    // Before the whole is built: options that come later have no number of values, and the generators panic.
    let mut command = crate::cli::Cli::command().mut_subcommand("cyclictest", of_cyclictest);
    command.build();
    with_values(command)
}

/// The verb that takes any words, with the options that they may be.
fn of_cyclictest(verb: Command) -> Command {
    let option = |o: ShellOption| {
        let arg = Arg::new(o.long).long(o.long).help(o.about);
        let arg = o.short.map_or(arg.clone(), |short| arg.short(short));
        match o.value {
            None => arg.action(ArgAction::SetTrue),
            Some((name, need)) => {
                let least = usize::from(need == ValueNeed::Required);
                arg.value_name(name).num_args(least..=1)
            }
        }
    };
    verb.args(tailbound_cyclictest::shell_options().map(option))
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
        "RUN" | "FILE" | "PATH" | "RUN|TRACE|PID" | "RUN|FILE.toml|PID" => ValueHint::FilePath,
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
        ("cyclictest", _) => Vec::new(),
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
        (_, "NAME|FILE") => tailbound_series::campaign::shipped_names(),
        ("import", "FORMAT") => tailbound_import::Format::ALL.iter().map(|f| f.name()).collect(),
        ("import", "UNIT") => vec!["ns", "us", "ms", "s"],
        _ => Vec::new(),
    }
}
