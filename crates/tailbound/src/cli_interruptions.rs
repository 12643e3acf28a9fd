// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `interruptions`.

use clap::Args;

/// Arguments of `interruptions`.
#[derive(Debug, Args)]
#[command(
    after_help = "For CPUs that should be left alone. Everything that ran on them is counted: interrupts with their devices, interrupts from \
other CPUs with the function and who sent them, soft interrupts, work queue functions, threads. The kernel's events are recorded in a \
trace of its own, which is removed at the end; nothing else is changed. It needs root and tracefs. Examples:\n  \
tailbound irqs -c 2-3 -D 1min\n  \
tailbound irqs -c 3 --json | jq '.cpus[0].taken[:5]'\n\n\
What to do about it: `tailbound check -c LIST` and `tailbound tune isolate`. How it is counted: docs/interruptions.md."
)]
pub(crate) struct InterruptionsArgs {
    /// These CPUs, as a list [default: those that are isolated, else all]
    #[arg(short = 'c', long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// How long
    #[arg(short = 'D', long, value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
