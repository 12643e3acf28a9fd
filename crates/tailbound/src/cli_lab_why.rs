// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound lab why`.

use std::path::PathBuf;

use clap::Args;

use crate::cli_guest::HostArgs;

/// Arguments of `lab why`.
#[derive(Debug, Args)]
pub(crate) struct LabWhyArgs {
    /// A run file made in the lab that keeps raw samples, as `lab run --paths` and `lab run --raw` write it
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Number of the activation, from 0 [default: the latest one]
    #[arg(short, long, value_name = "N", help_heading = "Search")]
    pub(crate) activation: Option<usize>,
    /// Number of variations of each instant in which the processor stands still; 0: no instant is searched, and what is tried is whether other random numbers from the run's beginning on change the sample
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = standstills, help_heading = "Search")]
    pub(crate) variations: u8,
    /// Number of variations of each instant in which the kernel's random numbers are others from there on; 0: none [default: 2, where the kernel names their state]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=64), help_heading = "Search")]
    pub(crate) seeds: Option<u8>,
    /// A varied sample counts as late from this percentage of the latency on
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u8).range(1..=100), help_heading = "Search")]
    pub(crate) late: u8,
    /// Stop the guest at the instant that was found, with QEMU's gdb stub at a socket and the kernel's symbols in a file; ends when gdb is gone
    #[arg(long, help_heading = "Debugger")]
    pub(crate) gdb: bool,
    /// With --gdb: stop at this instant instead of searching one, in ns since the first judged activation was due (`at_ns` of the JSON answer)
    #[arg(long, value_name = "NS", requires = "gdb", help_heading = "Debugger")]
    pub(crate) at: Option<i64>,
    /// Where the answer goes as an HTML page, with a picture of the instants
    #[arg(long, value_name = "FILE", conflicts_with = "at", help_heading = "Output")]
    pub(crate) html: Option<PathBuf>,
    /// Overwrite an existing page
    #[arg(long, requires = "html", help_heading = "Output")]
    pub(crate) force: bool,
    /// The target description, for a run that was made with one
    #[arg(short, long, value_name = "FILE", help_heading = "Guest")]
    pub(crate) target: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) host: HostArgs,
}

fn standstills(text: &str) -> Result<u8, String> {
    let number = text.parse().ok().filter(|n| *n == 0 || (2..=64).contains(n));
    number.ok_or_else(|| "not 0, and not 2 to 64".to_owned())
}
