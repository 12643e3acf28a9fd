// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags of `run`, and those that `measure` has too.

use std::path::PathBuf;

use clap::Args;

use crate::cli_color::ColorArg;
use crate::cli_compare::RoundsArgs;
use crate::cli_config::{BesideArgs, MeasurementArgs};
use crate::cli_threshold::ThresholdArgs;

/// What both `run` and `measure` take.
#[derive(Debug, Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) measurement: MeasurementArgs,
    /// One thread per CPU, which is the default; accepted for users of cyclictest. `-a` chooses the CPUs
    #[arg(id = "one-per-cpu", short = 't', value_name = "N", num_args = 0..=1, hide = true)]
    pub(crate) one_per_cpu: Option<Option<u32>>,
    #[command(flatten)]
    pub(crate) threshold: ThresholdArgs,
    /// Time counts executed instructions; given by the lab to its guest
    #[arg(long, hide = true)]
    pub(crate) virtual_time: bool,
    /// Read options from a TOML file, whose keys are these options; options on the command line take precedence
    #[arg(short, long, alias = "campaign", value_name = "FILE", help_heading = "Measurement")]
    pub(crate) config: Option<PathBuf>,
    /// Do not ask before running commands from the --config file as root
    #[arg(short, long, help_heading = "Measurement")]
    pub(crate) yes: bool,
    /// Wait while a fleet or an agent measures on this machine, instead of ending with an error
    #[arg(long, help_heading = "Measurement")]
    pub(crate) wait_for_machine: bool,
    /// Let the first activation, of the warm-up, fall due at this instant: seconds since 1970, as `date +%s.%N` prints them
    #[arg(
        long,
        value_name = "SECONDS",
        conflicts_with = "virtual_time",
        help_heading = "Measurement"
    )]
    pub(crate) begin_at: Option<String>,

    /// Where the run file goes; `-` is standard output [default: for `run` named after config file, probe and start time, with a number if that exists; nowhere for `measure`]
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing run file and report
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Print the result as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the answer as one line of key=value pairs, for logs and CI
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) brief: bool,
    /// No live view, no progress
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) color: ColorArg,
}

/// Arguments of `run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// Where the HTML report goes [default: beside the run file]
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub(crate) report: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) rounds: RoundsArgs,
}

/// Arguments of `measure`.
#[derive(Debug, Args)]
pub(crate) struct MeasureArgs {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
}
