// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound board`: its verbs and their options are the library's (`tailbound_lab::board`).

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, Error, FromArgMatches};
use tailbound_lab::board::{self, BoardOption, BoardVerb, BoardWords, Form, VERBS};

use super::session;
use crate::run_args;
use crate::say::{self, Failure};

/// What was typed.
#[derive(Debug)]
pub(crate) struct Board(&'static BoardVerb, BoardWords);

fn arg(option: &BoardOption) -> Arg {
    let arg = Arg::new(option.name).help(option.about).value_name(option.value);
    let named = |arg: Arg| arg.long(option.name).short(option.short);
    match option.form {
        Form::Flag => return named(arg).action(ArgAction::SetTrue),
        Form::One => named(arg),
        Form::Several => named(arg).action(ArgAction::Append),
        Form::Place => arg.required(true),
        Form::Behind => arg.last(true).num_args(1..),
    }
    .value_parser(clap::value_parser!(OsString))
}

impl Args for Board {
    fn augment_args(all: Command) -> Command {
        let verbs = VERBS.iter().map(|verb| {
            let command = Command::new(verb.name).about(verb.about).after_help(verb.after);
            command.args(verb.options.iter().map(arg))
        });
        all.subcommand_required(true).arg_required_else_help(true).subcommands(verbs)
    }
    fn augment_args_for_update(all: Command) -> Command {
        Self::augment_args(all)
    }
}

impl FromArgMatches for Board {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let found = matches.subcommand().and_then(|(name, typed)| {
            let verb = VERBS.iter().find(|verb| verb.name == name)?;
            let given = verb.options.iter().filter_map(|option| match option.form {
                Form::Flag => typed.get_flag(option.name).then(|| (option.name, Vec::new())),
                _ => Some((option.name, typed.get_many(option.name)?.cloned().collect())),
            });
            Some(Self(verb, BoardWords(given.collect())))
        });
        found.ok_or_else(|| Error::new(clap::error::ErrorKind::MissingSubcommand))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        Self::from_arg_matches(matches).map(|typed| *self = typed)
    }
}

/// `tailbound board`
pub(super) fn board(Board(verb, words): &Board) -> Result<ExitCode, Failure> {
    let run = |words: &[OsString]| Ok(session::request_of(&*run_args(words)?)?.config);
    let answer = board::act(verb, words, &run, &say::note)?;
    say::answer(&answer.text)?;
    Ok(ExitCode::from(answer.status))
}
