// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command line of `tailbound-server`: the verbs that `tailbound` hands on to it.
//!
//! Help and messages speak of `tailbound`, the one tool that people type.

use clap::{Parser, Subcommand};

use crate::lazy::Lazy;

/// Keeps, serves and collects runs; `tailbound serve`, `tailbound store` and `tailbound fleet` start it.
#[derive(Debug, Parser)]
#[command(
    name = "tailbound-server",
    bin_name = "tailbound",
    version,
    long_version = crate::version::long(),
    max_term_width = 100,
    args_override_self = true
)]
pub(crate) struct ServerCli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: ServerCommand,
}

/// The verbs, defined as in [`crate::cli::Command`].
#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// Keep runs: in a file, or on a server of PostgreSQL; list them, ask them in SQL, get them back
    #[command(subcommand)]
    Store(crate::cli_store::StoreVerb),
    /// Serve a store: pages, a JSON API and metrics, and runs taken from other machines
    Serve(Lazy<crate::cli_serve::ServeArgs>),
    /// Run a campaign on many machines at once: here, by ssh, in the lab; one lock on each machine
    #[command(subcommand)]
    Fleet(crate::cli_fleet::Fleet),
}
