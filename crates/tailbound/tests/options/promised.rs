// SPDX-License-Identifier: MIT OR Apache-2.0
//! Verbs and options that were there stay, under their name or an alias, and go on taking a value, or none.
//!
//! A line of `promised.txt`: a verb (`tune apply`), or a verb and an option (`run --deadline=`, `run --force`; `=` where it
//! takes a value).

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, Command};

/// What the program starts itself as: no words of people.
const INTERNAL: [&str; 6] =
    ["action-guard", "load-worker", "peer", "trace-guard", "tune-guard", "tune-holder"];

#[test]
fn verbs_and_options_that_were_there_stay() {
    let mut now = BTreeSet::new();
    let command = tailbound::command();
    for verb in command.get_subcommands() {
        of_verb(verb, "", &mut now);
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    tailbound_testing::promised(&folder.join("tests/options/promised.txt"), &now);
}

/// A verb by all its names, and its options; those of a verb within a verb by its first name only.
fn of_verb(verb: &Command, above: &str, now: &mut BTreeSet<String>) {
    if verb.get_name() == "help" || (above.is_empty() && INTERNAL.contains(&verb.get_name())) {
        return;
    }
    for name in std::iter::once(verb.get_name()).chain(verb.get_all_aliases()) {
        now.insert(format!("{above}{name}"));
    }
    let above = format!("{above}{} ", verb.get_name());
    for arg in verb.get_arguments().filter(|arg| !arg.is_positional()) {
        let value = if arg.get_action().takes_values() { "=" } else { "" };
        now.extend(names(arg).into_iter().map(|name| format!("{above}{name}{value}")));
    }
    for verb in verb.get_subcommands() {
        of_verb(verb, &above, now);
    }
}

/// All spellings of an option.
fn names(arg: &Arg) -> Vec<String> {
    let long = arg.get_long().into_iter().chain(arg.get_all_aliases().unwrap_or_default());
    let short = arg.get_short().into_iter().chain(arg.get_all_short_aliases().unwrap_or_default());
    long.map(|l| format!("--{l}")).chain(short.map(|s| format!("-{s}"))).collect()
}
