// SPDX-License-Identifier: MIT OR Apache-2.0
//! Command-line arguments of `decide` and `measure benchmark`.

use std::path::PathBuf;

use clap::Args;

/// Every benchmark with what it does, for `measure benchmark --help`.
fn benchmarks_help() -> String {
    let mut text = String::from("Benchmarks:");
    for kind in tailbound_load::BENCHMARKS {
        text.push_str(&format!("\n  {:<11} {}", kind.name, kind.about));
    }
    text.push_str("\n\nOptions are those of the load of the same kind, see `tailbound load --help`; loops= is the amount.");
    text
}

/// Arguments of `measure benchmark`.
#[derive(Debug, Args)]
#[command(after_help = benchmarks_help())]
pub(crate) struct MeasureBenchmarkArgs {
    /// Benchmarks, with options after a colon: `messages:groups=4`, `cmd:make -j8`
    #[arg(required = true, value_name = "NAME[:OPTIONS]")]
    pub(crate) benchmarks: Vec<String>,
    /// How many times each is run [default: 3]
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

const DECIDE_HELP: &str = "Exit status: 0 every question was answered; 5 some were not, and the recommendation names them; 2 usage or input error.\n\nPictures of --svg: flow; delay-1, delay-2, … one per benchmark; rates; sleepers.";

/// Arguments of `decide`.
#[derive(Debug, Args)]
#[command(after_help = DECIDE_HELP, args_conflicts_with_subcommands = true)]
pub(crate) struct DecideArgs {
    /// Other questions about the two systems
    #[command(subcommand)]
    pub(crate) also: Option<Also>,
    /// Run files of two systems, told apart by their kernels; the one with PREEMPT_RT is the real-time side
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Run files of the real-time side, where the kernels do not tell
    #[arg(long, value_name = "RUN", num_args = 1.., help_heading = "Systems")]
    pub(crate) real: Vec<PathBuf>,
    /// Run files of the real-fast side
    #[arg(long, value_name = "RUN", num_args = 1.., help_heading = "Systems")]
    pub(crate) fast: Vec<PathBuf>,
    /// Published figures of both systems (TOML, see docs/decide.md) in the place of run files
    #[arg(long, value_name = "FILE", conflicts_with_all = ["runs", "real", "fast"], help_heading = "Systems")]
    pub(crate) published: Option<PathBuf>,

    /// Does only throughput matter? [default: no, where the runs had a deadline]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], help_heading = "Answers")]
    pub(crate) throughput_only: Option<String>,
    /// How busy the processors are forced to be: `80%`; from 90 % on that is high
    #[arg(long, value_name = "PERCENT", help_heading = "Answers")]
    pub(crate) utilisation: Option<String>,
    /// Do all tasks wait for the last one, as at a barrier?
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], help_heading = "Answers")]
    pub(crate) barriers: Option<String>,
    /// Is memory full? [default: as measured]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], help_heading = "Answers")]
    pub(crate) memory_full: Option<String>,
    /// Does the system run as a guest of a hypervisor? [default: as measured]
    #[arg(long, value_name = "YES|NO", value_parser = ["yes", "no"], help_heading = "Answers")]
    pub(crate) virtualised: Option<String>,
    /// Length of one work item: `5ms`
    #[arg(long, value_name = "TIME", help_heading = "Answers")]
    pub(crate) unit_length: Option<String>,
    /// Largest acceptable start latency [default: that of the runs]
    #[arg(short, long, value_name = "TIME", help_heading = "Answers")]
    pub(crate) deadline: Option<String>,
    /// Do not prompt for unknown answers, even on a terminal
    #[arg(long, help_heading = "Answers")]
    pub(crate) no_ask: bool,

    /// Also write everything as one HTML file
    #[arg(short, long, value_name = "FILE", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long, help_heading = "Output")]
    pub(crate) force: bool,
    /// Write one picture (SVG) instead
    #[arg(long, value_name = "WHICH", help_heading = "Output")]
    pub(crate) svg: Option<String>,
    /// Print as JSON
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) color: crate::cli_color::ColorArg,
}

/// What `decide` can do besides deciding.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum Also {
    /// Measure 1, 2, … tasks that sleep in parallel; one run file for each number
    Sleepers(SleepersArgs),
}

/// Arguments of `decide sleepers`.
#[derive(Debug, Args)]
pub(crate) struct SleepersArgs {
    /// Numbers of tasks: `1-12`, `1,2,4,8`
    #[arg(long, value_name = "LIST", default_value = "1-12")]
    pub(crate) tasks: String,
    /// Sleeps of each task
    #[arg(short, long, value_name = "N", default_value_t = 10_000)]
    pub(crate) loops: u64,
    /// Interval between activations
    #[arg(short, long, value_name = "TIME", default_value = "1ms")]
    pub(crate) interval: String,
    /// Policy of the tasks [default: fifo:95 where allowed]
    #[arg(short, long, value_name = "POLICY")]
    pub(crate) policy: Option<String>,
    /// CPUs that the tasks share [default: all]
    #[arg(short = 'a', long, value_name = "CPUS")]
    pub(crate) cpus: Option<String>,
    /// Loads during the measurement: hackbench, memory, … (all of them: `tailbound load --help`), or `none`
    #[arg(short = 'L', long, value_name = "LOADS", default_value = "none")]
    pub(crate) load: String,
    /// Folder of the run files [default: sleepers, with a number if that holds run files]
    #[arg(short, long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite existing run files
    #[arg(long)]
    pub(crate) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the picture (SVG) instead of the table
    #[arg(long)]
    pub(crate) svg: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
