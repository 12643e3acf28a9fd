// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound fleet`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::lazy::Lazy;

/// Subcommands about many machines.
#[derive(Debug, Subcommand)]
pub(crate) enum Fleet {
    /// Ask every machine of a file what it is, and whether it is free
    Targets(Lazy<FleetTargetsArgs>),
    /// Run a campaign on all machines of a file at once; resumes an interrupted one
    Run(Lazy<FleetRunArgs>),
    /// Switch machines that nobody has off and on, and wait until they answer
    Power(Lazy<FleetPowerArgs>),
}

/// Which machines.
#[derive(Debug, Args)]
pub(crate) struct OnArgs {
    /// The file of targets (docs/fleet.md)
    #[arg(long, value_name = "FILE")]
    pub(crate) on: PathBuf,
    /// Only targets with one of these names or tags
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) target: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `fleet targets`.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 all answered; 2 usage or input error; 3 some did not.")]
pub(crate) struct FleetTargetsArgs {
    #[command(flatten)]
    pub(crate) on: OnArgs,
}

/// What `fleet power` does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PowerChange {
    /// Off, and on again
    Cycle,
}

/// Arguments of `fleet power`.
#[derive(Debug, Args)]
#[command(
    after_help = "Only an engine `labgrid` can. Exit status: 0 all answer again; 2 usage or input error; 3 some do not, or somebody has them."
)]
pub(crate) struct FleetPowerArgs {
    /// What to do
    #[arg(value_name = "WHAT")]
    pub(crate) what: PowerChange,
    #[command(flatten)]
    pub(crate) on: OnArgs,
}

/// How `fleet run` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A table
    Text,
    /// KTAP: one line a run of each target
    Ktap,
}

/// Arguments of `fleet run`.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 every run of every target complete; 2 usage or input error; 3 a target or a run could not be made; 5 a run was cut off or lost its lease.\n\nThe folder holds a campaign's folder for each target: `tailbound campaign page DIR/*/` writes one page of all."
)]
pub(crate) struct FleetRunArgs {
    /// A campaign's name (see `campaign list`) or a file
    #[arg(value_name = "NAME|FILE")]
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) on: OnArgs,
    /// Only these runs, by their names or by the names of their steps
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) only: Vec<String>,
    /// Scale everything down to this share, as in `campaign run`
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    pub(crate) scale: f64,
    /// Do not ask before running commands from the campaign file
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// The folder [default: the campaign's name with .fleet]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Begin each run at one instant on all machines (engines `local` and `ssh`), with the error stated; LEAD is the time in which each starts its loads
    #[arg(long, value_name = "LEAD", num_args = 0..=1, require_equals = true, default_missing_value = "20s")]
    pub(crate) aligned: Option<String>,
    /// Leave the results on the machines as well, which are otherwise removed there when all runs are complete and here
    #[arg(long)]
    pub(crate) keep: bool,
    /// How to answer
    #[arg(long, value_name = "FORMAT", default_value = "text", conflicts_with = "json")]
    pub(crate) format: Format,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
