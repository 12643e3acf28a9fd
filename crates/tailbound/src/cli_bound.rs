// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `bound`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `bound`.
#[derive(Debug, Args)]
#[command(
    after_help = "What a bound claims and what it does not: docs/bound.md. Exit status: 0 no deadline was given, or the \
deadline is shown to hold; 1 it was exceeded; 5 not shown, or no bound can be given. Examples:\n  \
tailbound bound run.tailbound.jsonl --above 100us --deadline 200us\n  \
tailbound bound --interval 1ms --unit us - < column.txt\n  \
tailbound bound --theory here -D 60s -c 2,3"
)]
pub(crate) struct BoundArgs {
    /// Run files, files of other tools, or plain columns of numbers; `-` is standard input
    #[arg(required_unless_present = "theory", value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// State how often latencies above this value occur; may be given more than once [default: round values]
    #[arg(long, value_name = "TIME")]
    pub(crate) above: Vec<String>,
    /// Deadline to demonstrate [default: that of the run]
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Time that the bound covers, in multiples of the length of the run: `10` or `100`
    #[arg(long, value_name = "TIMES", default_value = "10", value_parser = ["10", "100"])]
    pub(crate) extrapolate: String,
    /// Confidence of the statements that hold for any distribution; the bound always has 0.95
    #[arg(long, value_name = "P", default_value_t = 0.95)]
    pub(crate) confidence: f64,
    /// Seed of the random numbers used for values with coarse resolution
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Interval of another tool's measurement, if its file does not contain it
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// The unit of plain numbers: `ns`, `us`, `ms`
    #[arg(long, value_name = "UNIT", value_parser = ["ns", "us", "ms"])]
    pub(crate) unit: Option<String>,
    /// State the theoretical bound beside it: an answer of `lab paths --theory --json`; `here` records this machine's own events,
    /// where its kernel has them. See docs/theory.md
    #[arg(long, value_name = "FILE")]
    pub(crate) theory: Option<PathBuf>,
    /// With --theory here: record for this long [default: 10s]
    #[arg(short = 'D', long, value_name = "TIME", requires = "theory")]
    pub(crate) duration: Option<String>,
    /// With --theory here: record on these CPUs: a list as `0,2-3`, `all` or `isolated` [default: isolated ones, else all]
    #[arg(short = 'c', long, value_name = "LIST", requires = "theory")]
    pub(crate) cpus: Option<String>,
    /// With --theory here: no progress
    #[arg(short, long, requires = "theory")]
    pub(crate) quiet: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the return-level plot (SVG, one run only); `-` is standard output, instead of the text
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Overwrite an existing picture
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
