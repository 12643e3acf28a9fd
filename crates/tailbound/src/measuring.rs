// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command lines of the two verbs that measure, `run` and `measure PROBE`, parsed without a definition of all other verbs.
//!
//! Context: SETUP. To define every verb, and to give that back, was a quarter of the time until a measurement begins. Only where all is
//! well: whatever is refused here, and every help, is parsed again with the whole definition ([`crate::cli::Cli`]), and the words are its.

use std::ffi::OsString;

use clap::{ArgMatches, Args as _, Command, Error, FromArgMatches as _};
use tailbound_probe::catalogue;

use crate::cli::{Cli, Command as Verb, Measure};
use crate::cli_probe;
use crate::cli_run::RunArgs;
use crate::lazy::Lazy;

/// None: it is for the whole definition to say what it is.
pub(crate) fn parsed(words: &[OsString]) -> Option<Cli> {
    type Read = fn(&ArgMatches) -> Result<Verb, Error>;
    let (verb, read): (Command, Read) = match words.get(1)?.to_str()? {
        "run" => (RunArgs::augment_args(Command::new("run")), |m| {
            Lazy::from_arg_matches(m).map(Verb::Run)
        }),
        "measure" => {
            let kind = catalogue::kind(words.get(2)?.to_str()?).ok()?;
            let measure = Command::new("measure").subcommand(cli_probe::command(kind));
            (measure, |m| Measure::from_arg_matches(m).map(Verb::Measure))
        }
        _ => return None,
    };
    // As `Cli` has it.
    let all = Command::new("tailbound").args_override_self(true).subcommand(verb);
    let matches = all.try_get_matches_from(words).ok()?;
    let (_, of_verb) = matches.subcommand()?;
    Some(Cli { command: read(of_verb).ok()? })
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn what_is_understood_is_what_the_whole_definition_understands() {
        for line in [
            "tailbound run",
            "tailbound run -D 1h -d 1ms --load hackbench --load none --cpus 1-3 --policy fifo:90",
            // The last of two counts.
            "tailbound run -D 1h -D 2h --force --out x",
            "tailbound run --rounds 3 -- --cpus 1",
            "tailbound measure cyclic --interval 200us --quiet",
            "tailbound measure signal --between processes --json",
        ] {
            let whole = Cli::try_parse_from(words(line)).expect(line);
            let own = parsed(&words(line)).expect(line);
            assert_eq!(format!("{own:?}"), format!("{whole:?}"), "{line}");
        }
    }

    #[test]
    fn what_is_refused_and_every_help_is_left_to_it() {
        for line in [
            "tailbound",
            "tailbound --version",
            "tailbound show x",
            "tailbound run --help",
            "tailbound run --no-such-option",
            "tailbound run --cpus",
            "tailbound measure",
            "tailbound measure --help",
            "tailbound measure help cyclic",
            "tailbound measure sweep",
            "tailbound measure no-such-probe",
            "tailbound measure cyclic --help",
            "tailbound measure cyclic --between processes",
            "tailbound run --color sometimes",
        ] {
            assert!(parsed(&words(line)).is_none(), "{line}");
        }
    }
}
