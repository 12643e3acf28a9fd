// SPDX-License-Identifier: MIT OR Apache-2.0
//! Flags for what is measured in the lab's guests: which kernels, under which loads, with which probe.

use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches};

use crate::cli_config::{BenchmarkArgs, MeasurementArgs};
use crate::cli_guest::GuestArgs;

/// The options of a measurement with the defaults of the lab.
#[derive(Debug)]
pub(crate) struct InLab(pub(crate) MeasurementArgs);

impl Args for InLab {
    fn augment_args(command: Command) -> Command {
        MeasurementArgs::augment_args(command)
            .mut_arg("deadline", |a| a.help("Largest acceptable latency, in virtual time"))
            .mut_arg("interval", |a| {
                a.help("Interval between activations, in virtual time [default: 250us, or the probe's own]")
            })
            .mut_arg("duration", |a| a.help("How long to measure, in virtual time, instead of a number"))
            .mut_arg("loops", |a| {
                a.visible_alias("cycles").help("Number of activations of each thread [default: 3000]")
            })
            .mut_arg("warm_up", |a| a.help("Warm-up before the measurement [default: 100ms]"))
            .mut_arg("cpus", |a| {
                a.help("Measured CPUs of the guest: `all`, `isolated` or a list such as `0-1` [default: all]")
            })
            .mut_arg("cpu_dma_latency", |a| a.hide(true))
            .mut_arg("policy", |a| {
                a.help("Policy of the measured threads: `fifo:95`, `rr:N`, `other` [default: fifo:95]")
            })
    }
    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for InLab {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        MeasurementArgs::from_arg_matches(matches).map(Self)
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.update_from_arg_matches(matches)
    }
}

/// What is measured in guests.
#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// The probe, with options after a colon: any probe of `tailbound measure --help` [default: cyclic]
    #[arg(long, value_name = "PROBE[:OPTIONS]", help_heading = "Measurement")]
    pub(crate) probe: Option<String>,
    #[command(flatten)]
    pub(crate) measurement: InLab,
    /// Further options of the measurement, from a run configuration (TOML)
    #[arg(short, long, alias = "campaign", value_name = "FILE", help_heading = "Measurement")]
    pub(crate) config: Option<PathBuf>,
    /// Measure with another program: a command line that begins with its path, with --with for its file; or the names of a --target's testers, separated by commas; `own` is Tailbound's loop, `all` is everything
    #[arg(long, value_name = "CMD", help_heading = "Measurement")]
    pub(crate) tester: Option<String>,
    /// Format of the tester's output, if it cannot be detected
    #[arg(long, value_name = "FORMAT", requires = "tester", help_heading = "Measurement")]
    pub(crate) format: Option<String>,
    /// File in the guest that the tester writes its output to, if not standard output
    #[arg(long, value_name = "FILE", requires = "tester", help_heading = "Measurement")]
    pub(crate) tester_file: Option<String>,
}

/// Which kernels, under which loads, measured how.
#[derive(Debug, Args)]
pub(crate) struct SubjectArgs {
    /// `debian:6.12-rt`, `debian:6.12`, `path:VMLINUZ[,MODULES]`, `build:NAME`; several are compared
    #[arg(short, long, value_name = "KERNEL", help_heading = "Guest")]
    pub(crate) kernel: Vec<String>,
    /// Append to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Option<String>,
    /// Loads during the measurement: hackbench, memory, … (all of them: `tailbound load --help`), or `none` [default: hackbench]
    #[arg(short = 'L', long, value_name = "LOADS", help_heading = "Measurement")]
    pub(crate) load: Vec<String>,
    #[command(flatten)]
    pub(crate) work: BenchmarkArgs,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
}
