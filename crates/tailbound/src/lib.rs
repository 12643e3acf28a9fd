// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments to library calls and exit codes, nothing else.
//!
//! A library so that man pages and completions are made from the one
//! definition ([`command`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod caller;
mod cli;
#[cfg(feature = "agent")]
mod cli_agent;
#[cfg(feature = "lab")]
mod cli_bisect;
mod cli_blame;
mod cli_bound;
mod cli_box;
mod cli_campaign;
mod cli_check;
mod cli_color;
mod cli_compare;
mod cli_config;
mod cli_decide;
mod cli_export;
mod cli_fleet;
mod cli_guest;
mod cli_history;
mod cli_hot;
#[cfg(feature = "lab")]
mod cli_hunt;
mod cli_interruptions;
#[cfg(feature = "lab")]
mod cli_lab;
#[cfg(feature = "lab")]
mod cli_lab_kernel;
#[cfg(feature = "lab")]
mod cli_lab_qemu;
#[cfg(feature = "lab")]
mod cli_lab_subject;
#[cfg(feature = "lab")]
mod cli_lab_why;
mod cli_monitor;
mod cli_plan;
mod cli_probe;
mod cli_process;
mod cli_run;
mod cli_serve;
#[cfg(feature = "server")]
mod cli_server;
mod cli_sign;
mod cli_store;
mod cli_sweep;
mod cli_tasks;
mod cli_threshold;
mod cli_tune;
mod cli_tune_auto;
mod cli_tune_show;
mod cli_watch;
mod cmd;
mod completions;
mod consent;
mod flags;
mod help;
mod input;
mod lazy;
mod live;
mod machine;
mod measuring;
mod names;
mod say;
mod sibling;
mod site;
mod usage;
mod version;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::Parser;
use tailbound_host::Root;
use tailbound_run::Session;

pub use crate::help::questions;
pub use crate::say::Failure;
pub use crate::site::site_pages;

/// The one definition of the command line, with the options of every verb.
#[must_use]
pub fn command() -> clap::Command {
    cli::command()
}

/// The same with the values that a shell may offer: for completions only, it would refuse what has options.
#[must_use]
pub fn command_for_completions() -> clap::Command {
    completions::command()
}

/// The program `tailbound`: parses, runs, answers with an exit status.
#[must_use]
pub fn main() -> ExitCode {
    #[cfg(feature = "guest")]
    if tailbound_guest::is_guest() {
        return tailbound_guest::main();
    }
    site::link();
    let words: Vec<OsString> = std::env::args_os().collect();
    if let Some(words) = tailbound_cyclictest::arguments(&words) {
        return ended(words, cmd::cyclictest::cyclictest);
    }
    match measuring::parsed(&words) {
        Some(cli) => ended(cli, cmd::dispatch),
        None => match &plain(&words)[..] {
            [] => {
                say::note(help::first().trim_end());
                ExitCode::from(2)
            }
            words => match help::asked(words, command) {
                Some(text) => {
                    say::answer(&text).map_or_else(Failure::report, |()| ExitCode::SUCCESS)
                }
                None => parsed::<cli::Cli>(cmd::dispatch),
            },
        },
    }
}

/// The session that `tailbound run WORDS` would begin on the machine under `root`: all is checked, nothing is started.
///
/// # Errors
/// What `tailbound run` says, where it refuses these words.
pub fn session_of_run(words: &[OsString], root: Root) -> Result<Session, Failure> {
    cmd::session::of_run(&*run_args(words)?, root)
}

/// The options in words of `run`.
fn run_args(words: &[OsString]) -> Result<lazy::Lazy<cli_run::RunArgs>, Failure> {
    let begin = ["tailbound", "run"].map(OsString::from);
    let words = [&begin, words].concat();
    let cli = measuring::parsed(&words).map_or_else(|| cli::Cli::try_parse_from(words), Ok);
    match cli.map_err(Failure::usage)?.command {
        cli::Command::Run(args) => Ok(args),
        _ => Err(Failure::bug_of("`run` was parsed as another verb")),
    }
}

/// The words behind the program's name, for messages.
fn plain(words: &[OsString]) -> Vec<String> {
    words.iter().skip(1).map(|w| w.to_string_lossy().into_owned()).collect()
}

/// The program `tailbound-server`, which `tailbound` becomes for the verbs `serve`, `store` and `fleet`.
#[cfg(feature = "server")]
#[must_use]
pub fn server_main() -> ExitCode {
    site::link();
    parsed::<cli_server::ServerCli>(cmd::dispatch_server)
}

fn parsed<C: Parser>(dispatch: fn(C) -> Result<ExitCode, Failure>) -> ExitCode {
    let cli = match C::try_parse() {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version are answers; anything else is usage.
            let status = if e.use_stderr() { 2 } else { 0 };
            let words = plain(&std::env::args_os().collect::<Vec<_>>());
            if let Some(help) = usage::of_cyclictest(&words, &e) {
                return Failure::usage(help).report();
            }
            drop(usage::with_tip(e, command).print());
            return ExitCode::from(status);
        }
    };
    ended(cli, dispatch)
}

fn ended<C>(cli: C, dispatch: fn(C) -> Result<ExitCode, Failure>) -> ExitCode {
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| dispatch(cli)));
    match caught {
        Ok(Ok(status)) => status,
        Ok(Err(failure)) => failure.report(),
        Err(_) => Failure::bug().report(),
    }
}
