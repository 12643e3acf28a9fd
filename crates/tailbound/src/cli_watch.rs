// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `watch`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args};

/// Arguments of `watch`.
#[derive(Debug, Args)]
#[command(
    group = ArgGroup::new("what").required(true).multiple(true).args(["target", "pid", "comm", "command"]),
    after_help = "How cycles are found and what the parts mean: docs/watch.md. The program is watched by the kernel's events \
alone: it is not stopped, traced by ptrace or changed. Needs root and tracefs. Ctrl-C ends it, with the result so far.\n\
Exit status: 0, and with --deadline: 0 every response in time; 1 one was later; 5 undecided; with --rules 1 where one was broken. 2 usage; 3 this machine or user cannot. \
That of CMD is said, and is `command` in the JSON.\n\
Examples:\n  \
tailbound watch -- ./controller --config plant.toml\n  \
tailbound watch --comm controller -D 1min --deadline 2ms -o controller.tailbound.jsonl\n  \
tailbound watch --rules --pid $(pidof controller) -D 10s\n  \
tailbound watch --pid $(pidof controller) -D 1min --latency-bound 45us\n  \
tailbound watch --comm ctl --html ctl.html -- ./robot"
)]
pub(crate) struct WatchArgs {
    /// Watch the threads of this running process
    #[arg(value_name = "PID", conflicts_with = "pid")]
    pub(crate) target: Option<u32>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// Watch for this long [default: until the program ends, or Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Ordinary threads too, not the real-time ones alone
    #[arg(long, conflicts_with = "comm")]
    pub(crate) all: bool,
    /// The period of the threads, where it is known [default: found]
    #[arg(long, value_name = "TIME")]
    pub(crate) period: Option<String>,
    /// Latest acceptable end of a cycle after its release; gives a verdict [default: the period, without a verdict]
    #[arg(short = 'd', long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// The system call in which the threads wait for their next cycle, as `read` [default: found]
    #[arg(long, value_name = "SYSCALL")]
    pub(crate) activation: Option<String>,
    /// Hold the threads against the rules for real-time programs too: page faults, sleeps, wakers, locks,
    /// allocation and blocking calls within cycles, priorities (docs/rules.md); with user stacks
    #[arg(long)]
    pub(crate) rules: bool,
    /// With --rules: do not have the threads copy their stacks at each system call and page fault
    #[arg(long, requires = "rules")]
    pub(crate) no_stacks: bool,
    /// With --rules: write every violation to this file, a JSON line each, with its time on CLOCK_MONOTONIC
    #[arg(long, value_name = "FILE", requires = "rules")]
    pub(crate) violations: Option<PathBuf>,
    /// Load no programs into the kernel: neither stacks of those who keep a thread off its CPU nor owners of locks
    #[arg(long)]
    pub(crate) plain: bool,
    /// Also bound each thread's response time, with this bound on the scheduling latency: a time as `45us`, or a file of
    /// `bound --theory here --json` (docs/tasks.md)
    #[arg(long, value_name = "TIME|FILE")]
    pub(crate) latency_bound: Option<String>,
    /// Show the N longest cycles of each thread one by one
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) worst: usize,
    /// Keep the N longest cycles and latest wake-ups of each thread in run file, page and JSON
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) keep: usize,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page (HTML) with pictures of the longest cycles
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write a run file, for show, report, compare, bound and blame
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
    /// The program to start, and its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with_all = ["target", "pid"])]
    pub(crate) command: Vec<OsString>,
}
