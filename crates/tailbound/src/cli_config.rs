// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of a measurement: flags that bear the names of a run configuration's keys, for `run`, `measure`
//! and the lab.
//!
//! Values stay text here; `tailbound_run::resolve` reads them. Flags become a
//! [`RunConfig`] through their names, so that no list copies one into the other; a test holds
//! both to the same names.

use std::ops::Not;
use std::path::Path;

use clap::Args;
use serde::Serialize;
use tailbound_core::plan::RunConfig;

use crate::say::Failure;

/// The run configuration that asks for what these flags ask for.
fn config(flags: &impl Serialize) -> Result<RunConfig, Failure> {
    let named = |e: serde_json::Error| Failure::usage(e.to_string());
    let flags = serde_json::to_value(flags).map_err(named)?;
    // JSON has no such number: it would be read back as a flag that was not given.
    if let Some((key, _)) = flags.as_object().into_iter().flatten().find(|(_, v)| v.is_null()) {
        return Err(Failure::usage(format!("--{key}: infinite, or no number")));
    }
    serde_json::from_value(flags).map_err(named)
}

/// The run configuration in a file, for `--config`.
pub(crate) fn in_file(path: &Path) -> Result<RunConfig, Failure> {
    let at =
        |e: &dyn std::fmt::Display| Failure::usage(format!("--config {}: {e}", path.display()));
    let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
        .map_err(|e| at(&e))?;
    RunConfig::parse(&text).map_err(|e| at(&e))
}

/// What is required and how it is measured.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct MeasurementArgs {
    /// Largest acceptable latency: `100us`. Without it the figures are shown and nothing is judged
    #[arg(short = 'd', long, value_name = "TIME", help_heading = "Requirement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) deadline: Option<String>,
    /// How much earlier than its due time a wake-up may be, where early is as bad as late
    #[arg(long, value_name = "TIME", help_heading = "Requirement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) early: Option<String>,
    /// How strictly: `hard` (every activation), `safe` (and demonstrated at --rate), `95`, `best-effort` [default: hard]
    #[arg(long, value_name = "CLASS", help_heading = "Requirement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) class: Option<String>,
    /// Rate of exceedances that class `safe` has to demonstrate: `1/24h`
    #[arg(long, value_name = "N/TIME", help_heading = "Requirement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate: Option<String>,
    /// Confidence of statements about rates [default: 0.95]
    #[arg(long, value_name = "P", help_heading = "Requirement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) confidence: Option<f64>,

    /// Interval between activations [default: 1ms]
    #[arg(short, long, value_name = "TIME", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interval: Option<String>,
    /// How long to measure [default: 60s]
    #[arg(short = 'D', long, value_name = "TIME", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration: Option<String>,
    /// How many activations of each thread, instead of a duration
    #[arg(short = 'l', long, value_name = "N", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) loops: Option<u64>,
    /// Warm-up before the measurement; reported, not judged [default: 1s]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warm_up: Option<String>,
    /// Measured CPUs: `all`, `isolated` or a list such as `2-3` [default: all]
    #[arg(
        short = 'a',
        long,
        alias = "affinity",
        value_name = "CPUS",
        help_heading = "Measurement"
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpus: Option<String>,
    /// Policy of the measured threads: `fifo:95` or `95`, `rr:N`, `other`, `deadline:RUNTIME/PERIOD` [default: fifo:95 where allowed]
    #[arg(short, long, value_name = "POLICY", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) policy: Option<String>,
    /// Clock of the schedule: `monotonic`, `tai`, `boottime`, `realtime` [default: monotonic]
    #[arg(long, value_name = "CLOCK", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) clock: Option<String>,
    /// Run N unpinned threads, all due together, instead of one per CPU
    #[arg(long, value_name = "N", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tasks: Option<u32>,
    /// How the threads sleep: `nanosleep`, `nanosleep-relative`, `timerfd`, `posix-timer`, `itimer`, `nanosleep-plain`, `usleep`, `poll`, `select`, `epoll`, `cobalt`, `evl` [default: nanosleep]
    #[arg(long, alias = "means", value_name = "CALL", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) sleep: Option<String>,
    /// Random intervals: delay each activation by a random time of up to this share of the interval; a seed may follow: `50%`, `50%:7`
    #[arg(long, value_name = "SHARE[:SEED]", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) interval_spread: Option<String>,
    /// Timer slack of the measured threads; the kernel uses it for ordinary threads only, not for real-time ones [default: that of this process, usually 50us]
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) timer_slack: Option<String>,
    /// Hold /dev/cpu_dma_latency at this value during the run (changes the system; off by default)
    #[arg(long, value_name = "TIME", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) cpu_dma_latency: Option<String>,
    /// Keep every sample in the run file, and estimate P² percentiles from them
    #[arg(long, help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Not::not")]
    pub(crate) raw: bool,
    /// Confine the measured threads to the system calls they need; any other kills the run
    #[arg(long, help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Not::not")]
    pub(crate) paranoid: bool,
    /// Break latency down by stage with the kernel's tracing: `timerlat`, `osnoise`, `hwlat`, `tracepoints`, `auto` (timerlat where the kernel has it, else tracepoints); needs root
    #[arg(long, value_name = "HOW", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) observe: Option<String>,
    /// Name what made the worst samples late, from the kernel's tracing: those above TIME, or the worst of each minute; needs root
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "auto", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) blame: Option<String>,
    /// Stopping rule: end before --duration, which is then the maximum: `exceedance` (at the first wake-up later than --deadline), `demonstrated` (at the first exceedance, or when the planned time shows --rate), `anytime` (when a limit that may be looked at all the time shows --rate), `precision` (when quantiles are known well enough)
    #[arg(long, value_name = "RULE", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<String>,
    /// For --until precision: the half-width to reach, and the quantiles: `5%`, `2%:p50,p99` [default: 5%:p50,p99,p99.9]
    #[arg(long, value_name = "SHARE[:QUANTILES]", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) precision: Option<String>,

    /// What the run is called, for the head of its report
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) title: Option<String>,
    /// Who measures, for the head of the report
    #[arg(long, value_name = "NAME", help_heading = "Report")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) operator: Option<String>,
    /// The requirement that the run answers, as your documents call it: `REQ-17: control loop`
    #[arg(long, value_name = "TEXT", help_heading = "Report")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) requirement: Option<String>,
}

impl MeasurementArgs {
    pub(crate) fn config(&self) -> Result<RunConfig, Failure> {
        config(self)
    }
}

/// The probe, and the loads beside it.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BesideArgs {
    /// The probe: `cyclic`, or any probe of `tailbound measure --help`, with options after a colon: `signal:between=processes` [default: cyclic]
    #[arg(long, value_name = "PROBE[:OPTIONS]", help_heading = "Measurement")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) probe: Option<String>,
    /// Loads during the measurement, separated by commas: hackbench, memory, disk, … (all of them: `tailbound load --help`), or `none` [default: hackbench,memory]
    ///
    /// Options follow a colon: `hackbench:groups=10,ipc=inet,memory`. See `tailbound load --help`.
    #[arg(short = 'L', long, value_name = "LOADS", help_heading = "Load")]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) load: Vec<String>,
    /// Any shell command as a load; it is stopped with the run
    #[arg(long, value_name = "CMD", help_heading = "Load")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) load_cmd: Option<String>,
    /// Apply a profile for the time of the run, and undo it after: the name of one (`tailbound tune profiles`) or a file; needs root
    #[arg(long, value_name = "PROFILE", help_heading = "Machine")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tune: Option<String>,
    /// CPUs for real-time work, for --tune [default: the measured ones]
    #[arg(long, value_name = "LIST", help_heading = "Machine", requires = "tune")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rt_cpus: Option<String>,
    #[command(flatten)]
    #[serde(skip)]
    pub(crate) work: BenchmarkArgs,
}

impl BesideArgs {
    pub(crate) fn config(&self) -> Result<RunConfig, Failure> {
        Ok(config(self)?.over(&self.work.config()?))
    }
}

/// What `--work` is for, with every name of the catalogue.
fn work_help() -> String {
    let names: Vec<&str> = tailbound_load::BENCHMARKS
        .iter()
        .map(|kind| kind.name)
        .filter(|name| *name != "cmd")
        .collect();
    format!(
        "Benchmarks to time after the measurement, to show what the system costs in throughput: {}, `cmd:COMMAND`; separated by commas",
        names.join(", ")
    )
}

/// Benchmarks after a measurement.
#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct BenchmarkArgs {
    #[arg(
        short = 'W',
        long,
        visible_alias = "benchmark",
        value_name = "BENCHMARKS",
        help = work_help(),
        long_help = format!("{}\n\nReal, user and sys time of each repetition go into the run file; `tailbound decide` compares two systems by them.", work_help()),
        help_heading = "Benchmarks"
    )]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) work: Vec<String>,
    /// Any shell command as a benchmark
    #[arg(long, visible_alias = "benchmark-cmd", value_name = "CMD", help_heading = "Benchmarks")]
    #[serde(skip)]
    pub(crate) work_cmd: Option<String>,
    /// How many times each benchmark is run [default: 3]
    #[arg(long, value_name = "N", help_heading = "Benchmarks")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) repeat: Option<u32>,
}

impl BenchmarkArgs {
    /// A command is the last of the benchmarks.
    pub(crate) fn config(&self) -> Result<RunConfig, Failure> {
        let mut words = config(self)?;
        if let Some(line) = &self.work_cmd {
            if line.trim().is_empty() {
                return Err(Failure::usage("--work-cmd: write a command"));
            }
            words.work.get_or_insert_default().push(format!("cmd:{line}"));
        }
        Ok(words)
    }
}
