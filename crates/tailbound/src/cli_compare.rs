// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `compare` and of `run --rounds`.
//!
//! Context: COLD.

use std::path::PathBuf;

use clap::Args;

use crate::cli::ColorArg;

/// What is greater than it matters, and what a script is told.
#[derive(Debug, Args)]
pub(crate) struct JudgeArgs {
    /// The smallest change that matters, as a share: a change must exceed both margins [default: 5%]
    #[arg(long, value_name = "PERCENT", help_heading = "Comparison")]
    pub(crate) margin: Option<String>,
    /// And as a time [default: 1us]
    #[arg(long, value_name = "TIME", help_heading = "Comparison")]
    pub(crate) margin_time: Option<String>,
    /// Exit with 5 unless every system is shown to be equivalent to the first, or better
    #[arg(long, help_heading = "Comparison")]
    pub(crate) require_equivalent: bool,
    /// Of everything random: orders, resamples, exchanges of labels [default: 1; for --rounds: from the clock]
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub(crate) seed: Option<u64>,
}

const COMPARE_HELP: &str = "\
How systems are compared: runs made in turn by `run --rounds` by rounds (drift of the machine cancels); \
one run of each by stretches of at least 10 s, several of each (folders) by runs, both labelled as not interleaved. \
Quantiles and the block maximum have intervals that hold at once at 95 %. Later beyond both margins is a regression, \
earlier an improvement; an interval within them is equivalent; else inconclusive, with how many more rounds would decide.

Exit status: 0 no regression is shown; 1 a regression; 2 usage or input error; 5 undecided, with --require-equivalent only.";

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
    /// Make so many rounds of all VARIANTs, in random order, each a run of its own, and compare them. Stopped by Ctrl-C, it goes on when the same words are given with the same --out
    #[arg(long, value_name = "N", help_heading = "Comparison")]
    pub(crate) rounds: Option<u32>,
    /// What is compared, each in quotes: `'NAME: FLAGS OF RUN'`; flags before `--` are common to all, and the loads of both add up
    #[arg(last = true, value_name = "VARIANT", help_heading = "Comparison")]
    pub(crate) variants: Vec<String>,
    #[command(flatten)]
    pub(crate) judge: JudgeArgs,
    /// The place of this run among others; given by `run --rounds`
    #[arg(long, hide = true, value_name = "JSON")]
    pub(crate) as_round: Option<String>,
}
