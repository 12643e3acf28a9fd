// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of every probe of the catalogue: `measure NAME` with the probe's own options
//! beside those of any plan.
//!
//! Made from the catalogue when the program starts, so that help, man pages
//! and completions know each probe and no list is kept twice.

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args as _, Command, Error, FromArgMatches, Subcommand};
use tailbound_probe::{CATALOGUE, PlanOption, ProbeKind, catalogue};

use crate::cli_run::MeasureArgs;

/// One probe of the catalogue, as it was typed.
#[derive(Debug)]
pub(crate) struct ProbeArgs {
    /// Its name and the options given: `signal:between=processes`.
    pub(crate) spec: String,
    /// What any probe takes.
    pub(crate) args: MeasureArgs,
}

/// Its name and what it is; its options when it is used.
pub(crate) fn command(kind: &'static ProbeKind) -> Command {
    let with_options = |command: Command| match catalogue::kind(command.get_name()) {
        Ok(kind) => defined(kind, command),
        Err(_) => command,
    };
    Command::new(kind.name).about(kind.about).defer(with_options)
}

fn defined(kind: &'static ProbeKind, command: Command) -> Command {
    let event = kind.event.unwrap_or("activation");
    let mut about = format!("{}\n\nTimes from {} to {}.", kind.about, kind.from, kind.to);
    if !kind.replaces.is_empty() {
        about.push_str(&format!("\n\nReplaces {}.", kind.replaces.join(", ")));
    }
    about.push_str(&format!(
        "\n\nOne {} every {} unless --interval says otherwise.",
        event, kind.interval
    ));
    let command = kind.options.iter().fold(command, |command, option| {
        let default = match option.default {
            "" => String::new(),
            default => format!(" [default: {default}]"),
        };
        command.arg(
            Arg::new(option.name)
                .long(option.name)
                .value_name(option.value)
                .help(format!("{}{default}", option.about))
                .help_heading("Probe")
                .hide(option.hidden),
        )
    });
    let all = MeasureArgs::augment_args(command).about(kind.about).long_about(about);
    let foreign = PlanOption::ALL.iter().filter(|option| !kind.takes.contains(option));
    let all = foreign.fold(all, |all, option| {
        all.mut_args(|a| if a.get_long() == Some(option.name()) { a.hide(true) } else { a })
    });
    all.mut_arg("interval", |a| {
        a.help(format!("From one {event} to the next [default: {}]", kind.interval))
    })
}

impl Subcommand for ProbeArgs {
    fn augment_subcommands(command_of_all: Command) -> Command {
        CATALOGUE.iter().fold(command_of_all, |all, kind| all.subcommand(command(kind)))
    }
    fn augment_subcommands_for_update(command_of_all: Command) -> Command {
        Self::augment_subcommands(command_of_all)
    }
    fn has_subcommand(name: &str) -> bool {
        catalogue::kind(name).is_ok()
    }
}

impl FromArgMatches for ProbeArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let found = matches.subcommand().and_then(|(n, m)| Some((catalogue::kind(n).ok()?, m)));
        let Some((kind, words)) = found else {
            return Err(Error::new(clap::error::ErrorKind::MissingSubcommand));
        };
        let given: Vec<String> = kind
            .options
            .iter()
            .filter(|o| words.value_source(o.name) == Some(ValueSource::CommandLine))
            .filter_map(|o| Some(format!("{}={}", o.name, words.get_one::<String>(o.name)?)))
            .collect();
        let spec = if given.is_empty() {
            kind.name.to_owned()
        } else {
            format!("{}:{}", kind.name, given.join(","))
        };
        Ok(Self { spec, args: MeasureArgs::from_arg_matches(words)? })
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}
