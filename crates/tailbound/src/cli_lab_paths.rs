// SPDX-License-Identifier: MIT OR Apache-2.0
//! Arguments of `lab paths`.
//!
//! Context: COLD.

use clap::Args;

use crate::cli_lab::{GuestArgs, HostArgs, ProbeArgs};

/// Arguments of `lab paths`.
#[derive(Debug, Args)]
pub(crate) struct LabPathsArgs {
    /// `debian:6.12-rt`, `debian:6.12`, `path:VMLINUZ[,MODULES]`, `build:NAME`
    #[arg(short, long, value_name = "KERNEL", help_heading = "Guest")]
    pub(crate) kernel: Option<String>,
    /// Append to the kernel's command line
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, help_heading = "Guest")]
    pub(crate) append: Option<String>,
    /// Loads during the measurement: hackbench, memory, … (all of them: `tailbound load --help`), or `none` [default: hackbench]
    #[arg(short = 'L', long, value_name = "LOADS", help_heading = "Measurement")]
    pub(crate) load: Vec<String>,
    #[command(flatten)]
    pub(crate) work: crate::cli_config::BenchmarkArgs,
    #[command(flatten)]
    pub(crate) guest: GuestArgs,
    #[command(flatten)]
    pub(crate) probe: ProbeArgs,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}
