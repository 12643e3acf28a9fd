// SPDX-License-Identifier: MIT OR Apache-2.0
//! Words on the command line to library calls and exit codes, nothing else.
//!
//! Context: COLD. A library so that man pages and completions are made from the one
//! definition ([`command`]).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod cli;

use clap::CommandFactory as _;

/// The one definition of the command line.
#[must_use]
pub fn command() -> clap::Command {
    cli::Cli::command()
}
