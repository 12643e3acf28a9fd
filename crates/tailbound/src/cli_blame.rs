// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `blame`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `blame`.
#[derive(Debug, Args)]
#[command(
    after_help = "What a cause means and how sure it is: docs/blame.md. A running process is watched from outside: \
nothing about it is changed. It needs root and tracefs. Examples:\n  \
tailbound run --blame -D 10min -o run.tailbound.jsonl && tailbound blame run.tailbound.jsonl\n  \
trace-cmd record -C mono -e sched -e irq -e irq_vectors -e timer sleep 10; tailbound blame trace.dat --comm controller\n  \
tailbound blame --comm controller -D 1min --above 100us"
)]
pub(crate) struct BlameArgs {
    /// A run file made with `--blame`, a trace (trace.dat, perf.data, or text of ftrace, trace-cmd, perf, rtla; `-` reads standard input), or the number of a process
    #[arg(value_name = "RUN|TRACE|PID", conflicts_with = "pid", required_unless_present_any = ["pid", "comm"])]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// Ordinary threads too, not the real-time ones alone
    #[arg(long, conflicts_with = "comm")]
    pub(crate) all: bool,
    /// Only wake-ups later than this
    #[arg(long, value_name = "TIME")]
    pub(crate) above: Option<String>,
    /// Show the N latest wake-ups one by one
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(crate) worst: usize,
    /// Take the N latest wake-ups of a trace or process apart
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) keep: usize,
    /// How long a process is watched [default: 10s]
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Record events alone: no programs in the kernel (BPF), and so no stacks
    #[arg(long)]
    pub(crate) plain: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page (HTML) with a picture of each of the latest wake-ups
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the latest wake-ups as a trace for ui.perfetto.dev: phases, causes and what each CPU did
    #[arg(long, value_name = "FILE")]
    pub(crate) perfetto: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
