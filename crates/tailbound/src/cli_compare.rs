// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `compare` and of `run --rounds`.

use std::path::PathBuf;

use clap::Args;

use crate::cli_color::ColorArg;

/// Margins of a relevant change, and the exit status.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// Smallest relevant change, as a share; a change must exceed both margins [default: 5%]
    #[arg(long, value_name = "PERCENT", help_heading = "Comparison")]
    pub(crate) margin: Option<String>,
    /// Smallest relevant change, as a time [default: 1us]
    #[arg(long, value_name = "TIME", help_heading = "Comparison")]
    pub(crate) margin_time: Option<String>,
    /// Exit with status 5 unless every system is shown to be equivalent to the first, or better
    #[arg(long, help_heading = "Comparison")]
    pub(crate) require_equivalent: bool,
    /// Seed of everything random: order of runs, resamples, permutations [default: 1; for --rounds: from the clock]
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub(crate) seed: Option<u64>,
}

const COMPARE_HELP: &str = "\
The unit of comparison is the round for runs made by `run --rounds` (drift of the machine cancels). For one run per \
system it is a stretch of at least 10 s, for several (folders) the run; both are labelled as not interleaved. \
Quantiles and the block maximum have simultaneous 95 % intervals. Later by more than both margins is a regression, \
earlier an improvement; an interval within the margins is equivalent; anything else is inconclusive, with an estimate of \
how many more rounds would decide.

Exit status: 0 no regression is shown; 1 a regression; 2 usage or input error; 5 no statement is possible, or, with \
--require-equivalent, undecided.";

/// Arguments of `compare`.
#[derive(Debug, Args)]
#[command(after_help = COMPARE_HELP)]
pub(crate) struct CompareArgs {
    /// Run files, files of tools that `import` reads, or folders of either; the first is the reference. One folder of `run --rounds` holds its variants
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// Also write pictures and tables as one HTML file
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Write a picture (SVG) instead: `histogram`, `survival` or `shift`
    #[arg(long, value_name = "WHICH", value_parser = ["histogram", "survival", "shift"])]
    pub(crate) svg: Option<String>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: ColorArg,
}

/// What `run` takes to make runs in turn.
#[derive(Debug, Args)]
pub(crate) struct RoundsArgs {
    /// Run N rounds of all VARIANTs, in random order, and compare them. After Ctrl-C the same command with the same --out resumes
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub(crate) rounds: Option<u32>,
    /// Variants to compare, each in quotes: `'NAME: OPTIONS OF RUN'`; options before `--` apply to all, and the loads of both add up
    #[arg(last = true, value_name = "VARIANT", help_heading = "Comparison")]
    pub(crate) variants: Vec<String>,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// Position of this run among others; set by `run --rounds`
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) as_round: Option<String>,
}
