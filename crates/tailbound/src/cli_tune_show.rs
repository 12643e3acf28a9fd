// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `tailbound tune show`.

use clap::{Args, ValueEnum};

const HELP: &str = "Threads: number; policy and priority (other:+5 is a nice value); CPUs it may run on (`!`: user space cannot change \
them); the CPU it ran on last; voluntary and involuntary context switches; name, and its process's name where that is another. [name] \
is a thread of the kernel.\nInterrupts: number; CPU that gets it; CPUs it may be handled on; rate; `managed` ones the kernel alone \
places; policy of the thread that handles it; devices.\n`?` is what could not be read; --json has the reason.\n\nSort keys of threads: \
number, priority, cpu, affinity, voluntary, involuntary, command; of interrupts: number, priority, cpu, affinity, rate, managed, users.";

/// Which table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Table {
    /// Threads only
    Threads,
    /// Interrupts only
    Irqs,
}

/// Arguments of `tune show`.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct TuneShowArgs {
    /// One table only [default: both]
    #[arg(value_enum)]
    pub(crate) table: Option<Table>,
    /// Only threads and interrupts that may be on these CPUs: `all`, `isolated` or a list; counts of interrupts are theirs
    #[arg(short = 'a', long, value_name = "CPUS", help_heading = "Selection")]
    pub(crate) cpus: Option<String>,
    /// Only rows with this text in their number, name, policy or device
    #[arg(short, long, value_name = "TEXT", help_heading = "Selection")]
    pub(crate) filter: Option<String>,
    /// Only threads of SCHED_FIFO, SCHED_RR and SCHED_DEADLINE
    #[arg(long, help_heading = "Selection")]
    pub(crate) realtime: bool,
    /// Only threads of the kernel
    #[arg(long, conflicts_with = "user", help_heading = "Selection")]
    pub(crate) kernel: bool,
    /// Only threads of programs
    #[arg(long, help_heading = "Selection")]
    pub(crate) user: bool,
    /// Order: a key, or `KEY:desc` for the greatest first (keys are listed below)
    #[arg(short, long, value_name = "KEY", help_heading = "Selection")]
    pub(crate) sort: Option<String>,
    /// Rates over this time; 0 shows totals since boot
    #[arg(short, long, value_name = "TIME", default_value = "1s", help_heading = "Output")]
    pub(crate) interval: String,
    /// Interactive view, refreshed each interval: select CPUs, threads and interrupts, see a plan, then change them
    #[arg(short = 'w', long, conflicts_with = "json", help_heading = "Output")]
    pub(crate) live: bool,
    /// Print as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
