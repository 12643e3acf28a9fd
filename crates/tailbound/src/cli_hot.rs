// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `hot`.

use std::path::PathBuf;

use clap::Args;

/// Arguments of `hot`.
#[derive(Debug, Args)]
#[command(
    after_help = "For a CPU that is busy rather than late: docs/hot.md says what samples can see. For who made a \
wake-up late: tailbound blame. It needs root or CAP_PERFMON. Ctrl-C gives the result so far. Examples:\n  \
tailbound hot -c 1 -D 30s\n  \
tailbound hot --pid $(pidof controller) --html hot.html\n\
Exit status: 0 samples were taken, 1 none were, 2 wrong arguments, 3 it cannot be done here."
)]
pub(crate) struct HotArgs {
    /// CPUs that are sampled [default: all that are online]
    #[arg(short = 'c', long, value_name = "LIST")]
    pub(crate) cpus: Option<String>,
    /// Functions of this process alone
    #[arg(value_name = "PID", conflicts_with = "pid")]
    pub(crate) target: Option<u32>,
    #[command(flatten)]
    pub(crate) process: crate::cli_process::ProcessArgs,
    /// How long
    #[arg(short = 'D', long, value_name = "TIME", default_value = "10s")]
    pub(crate) duration: String,
    /// Samples a second of each CPU; a prime falls into step with nothing
    #[arg(long, value_name = "HZ", default_value_t = 997)]
    pub(crate) frequency: u64,
    /// Rows of each table
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) top: usize,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page (HTML)
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Overwrite an existing page
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}
