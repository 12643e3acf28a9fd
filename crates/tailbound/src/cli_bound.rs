// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `bound`.
//!
//! Context: COLD.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `bound`.
#[derive(Debug, Args)]
#[command(
    after_help = "What is claimed and what is not: docs/bound.md. Exit status: 0 without a deadline, or the \
statement shows it; 1 it was exceeded; 5 not shown, or no bound can be given. Examples:\n  \
tailbound bound run.tailbound.jsonl --above 100us --deadline 200us\n  \
tailbound bound --interval 1ms --unit us - < column.txt"
)]
pub(crate) struct BoundArgs {
    /// Run files, files of other tools, or plain columns of numbers; `-` is standard input
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// State how often something later than this comes; may be given more than once [default: round values]
    #[arg(long, value_name = "TIME")]
    pub(crate) above: Vec<String>,
    /// The deadline to be shown [default: that of the run]
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// How many times the length of the run the bound reaches: `10` or `100`
    #[arg(long, value_name = "TIMES", default_value = "10", value_parser = ["10", "100"])]
    pub(crate) extrapolate: String,
    /// Confidence of the lines that hold for every distribution; the bound has 0.95 or is refused
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Seed for values of a coarse source
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The interval of another tool's measurement, where its file does not name it
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// The unit of plain numbers: `ns`, `us`, `ms`
    #[arg(long, value_name = "UNIT", value_parser = ["ns", "us", "ms"])]
    pub(crate) unit: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the picture of levels over the time between exceedances (one run); `-` is standard output, in the place of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite an existing picture
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli::ColorArg,
}
