// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `measure sweep`.

use std::path::PathBuf;

use clap::Args;

use crate::cli_run::PlanArgs;

/// Arguments of `measure sweep`.
#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Shortest interval
    #[arg(long, value_name = "TIME", default_value = "100us", help_heading = "Sweep")]
    pub(crate) from: String,
    /// Longest interval
    #[arg(long, value_name = "TIME", default_value = "100ms", help_heading = "Sweep")]
    pub(crate) to: String,
    /// Number of intervals, in equal ratios
    #[arg(long, value_name = "N", default_value_t = 7, help_heading = "Sweep")]
    pub(crate) steps: u32,
    /// Measure each interval also with random intervals of this spread; `0%` for none
    #[arg(long, value_name = "SHARE", default_value = "90%", help_heading = "Sweep")]
    pub(crate) random: String,
    /// Also write an HTML report with the plot
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub(crate) report: Option<PathBuf>,
    /// Also write the plot alone (SVG)
    #[arg(long, value_name = "FILE", help_heading = "Sweep")]
    pub(crate) svg: Option<PathBuf>,
    /// --duration applies to each step [default: 5s], --out names a folder for the run files
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
}
