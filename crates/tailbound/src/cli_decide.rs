// SPDX-License-Identifier: MIT OR Apache-2.0
//! The words of `decide` and of the works it decides by.
//!
//! Context: COLD.

use std::path::PathBuf;

use clap::Args;
use tailbound_core::plan::Campaign;

/// Works beside a measurement.
#[derive(Debug, Args)]
pub(crate) struct WorkWords {
    /// Works timed after the measurement, for what the system costs in throughput: arithmetic, file, messages, compile, `cmd:COMMAND`; separated by commas
    ///
    /// Real, user and sys time of each repetition go into the run file; `tailbound decide` sets two systems side by side.
    #[arg(short = 'W', long, value_name = "WORKS", help_heading = "Work")]
    pub(crate) work: Vec<String>,
    /// Any shell command as a work
    #[arg(long, value_name = "CMD", help_heading = "Work")]
    pub(crate) work_cmd: Option<String>,
    /// How many times each work is done [default: 3]
    #[arg(long, value_name = "N", help_heading = "Work")]
    pub(crate) repeat: Option<u32>,
}

impl WorkWords {
    /// Lays the flags over the words of a campaign file.
    pub(crate) fn lay_over(&self, words: &mut Campaign) {
        let mut works = self.work.clone();
        works.extend(self.work_cmd.as_ref().map(|line| format!("cmd:{line}")));
        if !works.is_empty() {
            words.work = Some(works);
        }
        words.repeat = self.repeat.or(words.repeat);
    }
}

/// Every work with what it does, for `measure work --help`.
fn works_help() -> String {
    let mut text = String::from("Works:");
    for kind in tailbound_load::WORKS {
        text.push_str(&format!("\n  {:<11} {}", kind.name, kind.about));
    }
    text.push_str("\n\nOptions are those of the load of the same kind, see `tailbound load --help`; loops= is the amount.");
    text
}

/// Arguments of `measure work`.
#[derive(Debug, Args)]
#[command(after_help = works_help())]
pub(crate) struct MeasureWorkArgs {
    /// Works, with options after a colon: `messages:groups=4`, `cmd:make -j8`
    #[arg(required = true, value_name = "NAME[:OPTIONS]")]
    pub(crate) works: Vec<String>,
    /// How many times each is done [default: 3]
    #[arg(long, value_name = "N")]
    pub(crate) repeat: Option<u32>,
    /// Where the run file goes; `-` is standard output [default: nowhere]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing run file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the times as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
