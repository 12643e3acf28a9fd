// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tasks`.

use clap::Args;

/// Arguments of `tasks`.
#[derive(Debug, Args)]
#[command(
    after_help = "The model, the analysis and what it assumes: docs/tasks.md. A bound holds if no job is longer, and none comes \
sooner, than the model says; it is no guarantee. Exit status: 0 every deadline is shown to hold, or none was given and \
every thread of fixed priority has a bound; 1 a deadline was seen to be exceeded; 5 not shown, or no bound. Examples:\n  \
tailbound response run.tailbound.jsonl --deadline control=5ms\n  \
tailbound response tasks.toml --what-if priority:control=80 --what-if add:name=log,period=10ms,wcet=1ms,priority=20"
)]
pub(crate) struct TasksArgs {
    /// A run file of watched threads, a model written by hand (TOML), or the number of a process to watch first
    #[arg(value_name = "RUN|FILE.toml|PID", conflicts_with = "pid", required_unless_present_any = ["pid", "comm"])]
    pub(crate) target: Option<String>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// How long a process is watched [default: 10s]
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// What would change: `priority:NAME=80`, `cpu:NAME=1`, `add:name=x,period=5ms,wcet=1ms,priority=60`; may be given more than once
    #[arg(long, value_name = "CHANGE")]
    pub(crate) what_if: Vec<String>,
    /// When jobs of a thread must be done, since they fell due; may be given more than once
    #[arg(long, value_name = "NAME=TIME")]
    pub(crate) deadline: Vec<String>,
    /// Take this bound on the scheduling latency for each wait of a job: a time, or a file of `bound --theory here --json`
    #[arg(long, value_name = "TIME|FILE")]
    pub(crate) latency_bound: Option<String>,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
