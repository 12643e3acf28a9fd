// SPDX-License-Identifier: MIT OR Apache-2.0
//! The command-line definition: help, man pages and completions all come from here.
//!
//! Parsing never looks at the machine or the user: what was typed is kept as
//! text and resolved later (`tailbound-run::resolve`).

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};

use crate::cli_color::ColorArg;
use crate::cli_run::RunArgs;
use crate::lazy::Lazy;

/// How late can this machine be? Real time is not fast: it is bounded.
///
/// Measures the wake-up latency of real-time threads under load. The result is a one-sentence
/// verdict, an HTML report and an exit status.
#[derive(Debug, Parser)]
#[command(
    name = "tailbound",
    version,
    long_version = crate::version::long(),
    max_term_width = 100,
    after_help = EXIT_HELP,
    args_override_self = true
)]
pub(crate) struct Cli {
    /// What to do
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The definition, with the options of every verb.
pub(crate) fn command() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

const EXIT_HELP: &str = "Exit status: 0 met, or nothing was required; 1 not met; 2 usage or input error; \
3 this machine or user cannot; 4 a bug of tailbound; 5 undecided (too short, cut off, doubtful).";

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure latency under load: inventory, load, warm-up, measurement, verdict, report
    Run(Lazy<RunArgs>),
    /// Run one probe, without load or report
    #[command(subcommand)]
    Measure(Measure),
    /// Measure as cyclictest does, with its options, output and exit status; also when called by that name
    #[command(disable_help_flag = true, after_help = tailbound_cyclictest::options())]
    Cyclictest(AnyArgs),
    /// Run loads only, for use beside another tool
    Load(Lazy<LoadArgs>),
    /// Write one HTML file about one or more runs; it opens offline in any browser
    Report(Lazy<ReportArgs>),
    /// Show a run in the terminal
    Show(Lazy<ShowArgs>),
    /// Name what made wake-ups late: of a run, of a trace (of trace-cmd, of perf, or as text), or of a running process
    Blame(Lazy<crate::cli_blame::BlameArgs>),
    /// Count what takes time from chosen CPUs: interrupts, work of the kernel, threads, and who sends it interrupts from other CPUs
    #[command(name = "irqs", alias = "interruptions")]
    Interruptions(Lazy<crate::cli_interruptions::InterruptionsArgs>),
    /// Bound the response times of watched threads, or of a model written by hand, and try out changes
    #[command(name = "response", alias = "tasks")]
    Tasks(Lazy<crate::cli_tasks::TasksArgs>),
    /// Watch the cycles of a program's own real-time threads, without changing it: period, response times, what each ns went to
    Watch(Lazy<crate::cli_watch::WatchArgs>),
    /// Count the wake-ups of the machine's own real-time threads, for years: a line for each window, and Prometheus
    Monitor(Lazy<crate::cli_monitor::MonitorArgs>),
    /// Show what CPUs are busy with, by samples
    Hot(Lazy<crate::cli_hot::HotArgs>),
    /// Compare two or more systems: intervals and verdict per quantile, exit status for CI
    Compare(Lazy<crate::cli_compare::CompareArgs>),
    /// Real time or real fast? Compare throughput and latency of two systems and recommend one
    Decide(Box<crate::cli_decide::DecideArgs>),
    /// Bound the latency beyond what was seen, with method and assumptions, or say why not
    Bound(Lazy<crate::cli_bound::BoundArgs>),
    /// Read another tool's file (cyclictest, rtla, oslat, jitterdebugger, rteval, latency, latmus, stress-ng) into a run file
    Import(Lazy<ImportArgs>),
    /// Export a run in the format of another tool: CSV, cyclictest, HdrHistogram, OpenMetrics, JUnit, KTAP, Perfetto
    Export(Lazy<crate::cli_export::ExportArgs>),
    /// Sign run files (minisign)
    Sign(Lazy<crate::cli_sign::SignArgs>),
    /// Check that run files are unchanged, and their signatures
    Verify(Lazy<crate::cli_sign::VerifyArgs>),
    /// Find changes in a series of runs, and what else changed at the same time
    History(Lazy<crate::cli_history::HistoryArgs>),
    /// Keep runs: in a file, or on a server of PostgreSQL; list them, ask them in SQL, get them back
    #[command(subcommand)]
    Store(crate::cli_store::StoreVerb),
    /// Serve a store: pages, a JSON API and metrics, and runs taken from other machines
    Serve(Lazy<crate::cli_serve::ServeArgs>),
    /// Run a campaign on many machines at once: here, by ssh, in the lab; one lock on each machine
    #[command(subcommand)]
    Fleet(crate::cli_fleet::Fleet),
    /// Ask a server for campaigns, run those that this machine's owner allows, and hand in what came of them
    #[cfg(feature = "agent")]
    Agent(Lazy<crate::cli_agent::AgentArgs>),
    /// Plan a measurement: how long it takes to show a rate, a share, a quantile or a mean
    Plan(Lazy<crate::cli_plan::PlanVerbArgs>),
    /// Measure the reaction of the whole machine to pulses from outside
    #[command(subcommand)]
    Box(crate::cli_box::BoxVerb),
    /// Measure real kernels in QEMU, in virtual time: the same figures on any host
    #[cfg(feature = "lab")]
    #[command(subcommand)]
    Lab(crate::cli_lab::Lab),
    /// Measure boards that boot their own kernel with our initramfs, and get their runs from the serial line
    #[cfg(feature = "lab")]
    Board(crate::cmd::board::Board),
    /// `lab hunt`, as it was called
    #[cfg(feature = "lab")]
    #[command(hide = true)]
    Hunt(Lazy<crate::cli_hunt::HuntArgs>),
    /// `lab bisect`, as it was called
    #[cfg(feature = "lab")]
    #[command(subcommand, hide = true)]
    Bisect(crate::cli_bisect::Bisect),
    #[cfg(not(feature = "lab"))]
    #[command(hide = true, disable_help_flag = true, aliases = ["board", "hunt", "bisect"])]
    Lab(AnyArgs),
    /// Find what is wrong with this machine for real-time work, and the exact fix; changes nothing
    Check(Box<crate::cli_check::CheckArgs>),
    /// `check capture`, as it was called
    #[command(hide = true)]
    Capture(Lazy<crate::cli_check::CaptureArgs>),
    /// Show and change settings that affect latency: isolation, affinities, priorities, power, memory; every change can be undone
    #[command(subcommand)]
    Tune(crate::cli_tune::Tune),
    /// Repeat published measurements (Altenberg, Williams and Williams, McKenney, OSADL) and compare the figures
    #[command(subcommand)]
    Campaign(crate::cli_campaign::Campaign),
    /// Print completions for a shell
    Completions {
        /// Which shell
        shell: clap_complete::Shell,
    },
    /// One load, started by `run` and `load` in a process of its own
    #[command(hide = true)]
    LoadWorker(WorkerArgs),
    /// Undoes a change that nobody confirmed; started by `tune apply --confirm`
    #[command(hide = true)]
    TuneGuard {
        /// The change
        number: u32,
        /// After so many milliseconds
        ms: u64,
    },
    /// Holds /dev/cpu_dma_latency open; started by `tune apply`
    #[command(hide = true)]
    TuneHolder {
        /// Microseconds
        us: i32,
        /// Where it notes that it is there
        note: PathBuf,
    },
    /// Removes the trace instance of a run that was killed; started by `run --observe`
    #[command(hide = true)]
    TraceGuard {
        /// The instance
        instance: String,
    },
    /// A command of --on-late or --on-end, with its variables; started by `run`
    #[command(hide = true)]
    ActionGuard {
        /// It ends after so many milliseconds
        limit_ms: u64,
        /// The command, and NAME=VALUE each
        #[arg(last = true)]
        words: Vec<std::ffi::OsString>,
    },
    /// A second process of a probe, started by `measure` and `run`
    #[command(hide = true)]
    Peer {
        /// What it is to do
        role: String,
        /// How many descriptors it was handed
        descriptors: u32,
        /// The rest
        #[arg(allow_hyphen_values = true)]
        words: Vec<String>,
    },
}

/// Any words: those of another program, or of a verb that this one does not have.
#[derive(Debug, Args)]
pub(crate) struct AnyArgs {
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) words: Vec<std::ffi::OsString>,
}

/// Probes that can run bare.
#[derive(Debug, Subcommand)]
pub(crate) enum Measure {
    /// Latency by interval, with constant and with random intervals: does a constant period hide idle states?
    Sweep(Lazy<crate::cli_sweep::SweepArgs>),
    /// Time benchmarks without a latency measurement: real, user and sys time of each repetition
    #[command(visible_alias = "work")]
    Benchmark(Lazy<crate::cli_decide::MeasureBenchmarkArgs>),
    #[command(flatten)]
    Probe(Box<crate::cli_probe::ProbeArgs>),
}

/// Every load with its options, for `load --help` and its man page.
fn loads_help() -> String {
    let mut text = String::from("Loads:");
    for kind in tailbound_load::CATALOGUE {
        text.push_str(&format!("\n  {:<11} {} ({})", kind.name, kind.about, kind.unit));
        for (name, about) in kind.options {
            text.push_str(&format!("\n    {name}=  {about}"));
        }
    }
    text.push_str("\n  every load");
    for (name, about) in tailbound_load::PHASE {
        text.push_str(&format!("\n    {name}=  {about}"));
    }
    text
}

/// Every format with what it is, for `import --help` and its man page.
fn formats_help() -> String {
    let mut text = String::from("Formats:");
    for format in tailbound_import::Format::ALL {
        text.push_str(&format!("\n  {:<20} {}", format.name(), format.description()));
    }
    text
}

/// Arguments of `load`.
#[derive(Debug, Args)]
#[command(after_help = loads_help())]
pub(crate) struct LoadArgs {
    /// Loads, with options after a colon: `hackbench:groups=10,ipc=inet`
    #[arg(required = true, value_name = "NAME[:OPTIONS]")]
    pub(crate) names: Vec<String>,
    /// Duration [default: until Ctrl-C]
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Print totals as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub(crate) struct ReportArgs {
    /// Run files, or files of tools that `import` reads
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// The HTML file; `-` is standard output [default: the first run's name with .html]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
}

/// Arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// A run file, or a file of a tool that `import` reads; `-` is standard input
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
    /// Print as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Print one line of key=value pairs, for logs and CI
    #[arg(long, conflicts_with_all = ["json", "svg", "worst"])]
    pub(crate) brief: bool,
    /// Print the N latest wake-ups one by one: time of day, trace clock, activation, thread and load
    #[arg(long, value_name = "N", conflicts_with = "svg")]
    pub(crate) worst: Option<usize>,
    /// Write a picture (SVG) instead: `histogram`, `survival` or `maxima`
    #[arg(long, value_name = "WHICH", value_parser = ["histogram", "survival", "maxima"])]
    pub(crate) svg: Option<String>,
    #[command(flatten)]
    pub(crate) color: ColorArg,
}

/// Arguments of `import`.
#[derive(Debug, Default, Args)]
#[command(after_help = formats_help())]
pub(crate) struct ImportArgs {
    /// The file; `-` is standard input
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Format, if it cannot be detected
    #[arg(short, long, value_name = "FORMAT")]
    pub(crate) format: Option<String>,
    /// Unit of the numbers, if the file does not name it: ns, us, ms, s
    #[arg(short, long, value_name = "UNIT")]
    pub(crate) unit: Option<String>,
    /// Interval of the measurement, if the file does not contain it or is wrong
    #[arg(short, long, value_name = "TIME")]
    pub(crate) interval: Option<String>,
    /// Duration of the measurement, if the file does not contain it or is wrong
    #[arg(short = 'D', long, value_name = "TIME")]
    pub(crate) duration: Option<String>,
    /// Deadline to judge it by
    #[arg(short, long, value_name = "TIME")]
    pub(crate) deadline: Option<String>,
    /// Of a capture of a logic analyser: the channel of the pulses, by name or number from 0
    #[arg(long, value_name = "CHANNEL", requires = "answer")]
    pub(crate) stimulus: Option<String>,
    /// Of a capture: the channel of the answers
    #[arg(long, value_name = "CHANNEL", requires = "stimulus")]
    pub(crate) answer: Option<String>,
    /// Of a capture: which edges count. `rising`: of both lines. `toggle`: every edge, the answer takes the level of
    /// the stimulus, so that a late answer is told from the next one's. `inverted`: it takes the opposite level
    #[arg(long, value_name = "RULE", value_parser = ["rising", "toggle", "inverted"], default_value = "rising")]
    pub(crate) edge: String,
    /// Of a capture that does not state it: samples in a second, such as `24MHz`
    #[arg(long, value_name = "RATE", requires = "stimulus")]
    pub(crate) sample_rate: Option<String>,
    /// Which of several runs in the file, from 1 [default: each into a run file of its own]
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<usize>,
    /// The run file; `-` is standard output [default: FILE.tailbound.jsonl; of a pipe: imported.tailbound.jsonl]
    #[arg(short, long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    /// Print what was read as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of the hidden load worker.
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The load
    pub(crate) spec: String,
}
