// SPDX-License-Identifier: MIT OR Apache-2.0
//! The records of a run, one Rust type for each line type of the run file.
//!
//! Units: ns; `t_ns` counts from the first due activation of the
//! measurement on the run's clock (negative: before it).
//! Not here: all of them together ([`crate::run`]).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::blame::BlameRecord;
use crate::context::Context;
use crate::cycle::CycleRecord;
use crate::distribution::Distribution;
use crate::disturbance::DisturbanceRecord;
use crate::ended::{EndReason, ThreadEnd};
use crate::finding::Finding;
use crate::histogram::SparseHistogram;
use crate::lab::LabRecord;
use crate::paths::PathsRecord;
use crate::plan::Plan;
use crate::pulses::{AnsweredPulses, PulseJoin, SentPulses};
use crate::purpose::Purpose;
use crate::requirement::Requirement;
use crate::rules::ViolationRecord;
use crate::sums_as_text;
use crate::tasks::TaskRecord;
use crate::verdict::Verdict;

pub use crate::facts::{Fact, Facts};
use tailbound_rt::sums::Sums;

/// Version of the run file's vocabulary; readers accept every one up to this.
pub const SCHEMA: &str = "tailbound-run/1";

/// First line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`SCHEMA`].
    pub schema: String,
    /// Name and version of the tool that measured.
    pub tool: String,
    /// Identity of the run: time and host, unique enough for a store.
    pub id: String,
    /// When it began, RFC 3339 in UTC.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// What it was to do.
    pub plan: Plan,
    /// The machine.
    pub machine: Facts,
    /// Where the data came from, for an imported run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// All that the run is a function of, for a run made in the lab: its time is virtual
    /// where the accelerator is `tcg`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<Box<LabRecord>>,
    /// Its place among runs that were made in turn, to be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round: Option<Round>,
    /// What persons stated about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purpose: Option<Box<Purpose>>,
}

/// The place of a run among those made in turn with it: each round runs every variant once,
/// in a random order, so that what drifts drifts for all of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Round {
    /// Identity of the series.
    pub series: String,
    /// Which of the things compared.
    pub variant: String,
    /// Which round, from 0.
    pub round: u32,
    /// How many were planned.
    pub rounds: u32,
    /// Position within the round, from 0.
    pub place: u32,
    /// Seed of the orders.
    pub seed: u64,
}

/// Origin of an imported run and what the origin could not tell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// Tool and version as far as known: `cyclictest 2.40`.
    pub tool: String,
    /// Which of its formats: `json v1`.
    pub format: String,
    /// The file's name.
    pub file: String,
    /// What the source lost or left unsaid, a sentence each.
    pub lost: Vec<String>,
}

/// Something that happened during the run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// When.
    pub t_ns: i64,
    /// What: `warm-up-over`, `threshold`, `stopped`, `load-started`, …
    pub event: String,
    /// Details for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// With the event [`WARM_UP_OVER`]: what the clocks of the system read at `t_ns` = 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Clocks>,
}

/// The event at which the measurement began.
pub const WARM_UP_OVER: &str = "warm-up-over";

impl Event {
    /// An event with details for people.
    pub fn new(t_ns: i64, event: impl Into<String>, text: impl Into<String>) -> Self {
        Self { t_ns, event: event.into(), text: text.into(), clocks: None }
    }
}

/// What clocks of the system read at one instant; clock_gettime(2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clocks {
    /// CLOCK_MONOTONIC: the kernel's trace clock `mono`.
    pub monotonic_ns: i64,
    /// CLOCK_BOOTTIME: the kernel's trace clock `boot`.
    pub boottime_ns: i64,
    /// CLOCK_REALTIME: time of day, since 1970 in UTC.
    pub realtime_ns: i64,
}

/// One second of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SecondRecord {
    /// Which thread.
    pub thread: u32,
    /// Which second of the schedule.
    pub second: u64,
    /// Wake-ups.
    pub n: u64,
    /// Latest.
    pub max_ns: i64,
    /// Activation number of the latest.
    pub argmax: u64,
    /// Earliest.
    pub min_ns: i64,
    /// Sum of the errors.
    pub sum_ns: i64,
    /// Missed activations.
    pub missed: u64,
}

/// Statistics over the last `window_s` seconds, of all due activations of one thread.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowRecord {
    /// Which thread.
    pub thread: u32,
    /// Length of the window.
    pub window_s: u32,
    /// The last second it covers.
    pub second: u64,
    /// Due activations.
    pub n: u64,
    /// Name to value: min, max, mean, sd, skewness, kurtosis, p5, p50, p95, p99, p99.9, …
    /// A statistic the count does not support is absent.
    pub values: BTreeMap<String, f64>,
}

/// All due activations of one thread in a stretch of the schedule: what intervals, changes
/// within a run and comparisons of single runs are made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BlockRecord {
    /// Which thread.
    pub thread: u32,
    /// First second of the schedule in it.
    pub second: u64,
    /// Number of seconds in it.
    pub seconds: u64,
    /// Due activations, woken and missed.
    pub n: u64,
    /// Their exact power sums.
    #[serde(default, skip_serializing_if = "Option::is_none", with = "sums_as_text")]
    pub sums: Option<Sums>,
    /// Those at or after their due time.
    pub late: SparseHistogram,
    /// Those before it, by how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub early: Option<SparseHistogram>,
}

/// One wake-up later than the threshold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExceedanceRecord {
    /// Which thread.
    pub thread: u32,
    /// Which activation.
    pub activation: u64,
    /// How late.
    pub error_ns: i64,
    /// When it woke.
    pub t_ns: i64,
    /// Activations that fell due meanwhile.
    pub missed: u64,
}

/// What a load did in an interval of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Which load, by its position in the plan.
    pub load: u32,
    /// Its name.
    pub name: String,
    /// End of the interval.
    pub t_ns: i64,
    /// Length of the interval.
    pub span_ns: i64,
    /// Units of work done in it.
    pub count: u64,
    /// What is counted: messages, accesses, echoes, sleeps, loops, runs.
    pub unit: String,
}

/// What a benchmark did in an interval of its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkInterval {
    /// End of the interval, since the benchmark began.
    pub t_ns: i64,
    /// Units done in it.
    pub count: u64,
}

/// A named figure that is not a latency of a due event: a cost, a rate, a skew, a count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FigureRecord {
    /// Its name, stable for scripts: `clock-skew`, `rate-highest`, …
    pub name: String,
    /// Its value.
    pub value: f64,
    /// Its unit: `ns`, `1/s`, `1` for a count, …
    pub unit: String,
    /// Lower limit of what it may be, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Confidence of the limits; absent where they are certain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// What it is, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A stretch of time in which something was in one state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Span {
    /// Its begin, since the begin of the timeline.
    pub from_ns: i64,
    /// Its end.
    pub to_ns: i64,
    /// The state: `running`, `ready`, `blocked`, `holds`, …
    pub state: String,
}

/// One task of a timeline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lane {
    /// Its name.
    pub name: String,
    /// Policy, priority, CPU: for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// Its states, in the order of time; nothing is known of the gaps.
    pub spans: Vec<Span>,
}

/// Who did what when: some tasks beside each other over a short time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineRecord {
    /// What it shows.
    pub title: String,
    /// The tasks, the most urgent first.
    pub lanes: Vec<Lane>,
}

/// One repetition of a benchmark: what it cost, as time(1) tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BenchmarkRecord {
    /// Its name: `arithmetic`, `messages`, `cmd`, …
    pub work: String,
    /// The whole specification; only like ones may be compared.
    pub spec: String,
    /// Which repetition, from 1.
    pub repetition: u32,
    /// From its start to its end.
    pub real_ns: i64,
    /// Processor time in user mode, of the benchmark and everything it waited for.
    pub user_ns: i64,
    /// Processor time in the kernel.
    pub sys_ns: i64,
    /// Units of work done.
    pub count: u64,
    /// What is counted.
    pub unit: String,
    /// The counts over time, where the benchmark counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<BenchmarkInterval>,
    /// Why it failed; its times are no cost then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// All samples of one thread in their order, from one point on: zlib over zigzag varints, base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RawRecord {
    /// Which thread.
    pub thread: u32,
    /// Number of samples before these.
    pub from: u64,
    /// Number of samples.
    pub n: u64,
    /// The samples.
    pub data: String,
}

/// In `dropped` of a context of the kernel's trace: wake-ups of the thread that the trace did not
/// have.
pub const WAKEUPS_NOT_SEEN: &str = "wakeups_not_seen";

/// One measured thread and context at the end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThreadRecord {
    /// Which thread.
    pub thread: u32,
    /// The CPU it was pinned to.
    pub cpu: Option<u32>,
    /// Where in the system.
    pub context: Context,
    /// Per wake-up: what a stopwatch at the thread saw.
    pub wakeup: Distribution,
    /// The missed activations, with the latency each would have had.
    pub missed: Distribution,
    /// The warm-up: seen and discarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<WarmUp>,
    /// Counters of the thread over the measured loop: `minor_faults`, `major_faults`,
    /// `voluntary_switches`, `involuntary_switches`, `cpu_ns`, …
    #[serde(default)]
    pub counters: BTreeMap<String, u64>,
    /// Entries lost by the rings: `exceedances`, `seconds`, `raw`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub dropped: BTreeMap<String, u64>,
    /// P² estimates (approximate) where raw samples were seen: `p50` → ns.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub p2: BTreeMap<String, f64>,
    /// Why the loop ended; `running` in a record that was written on the way, for the case
    /// that no later one comes.
    #[serde(default)]
    pub ended: ThreadEnd,
    /// What this context is judged by, where that is not the plan's requirement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requirement: Option<Box<Requirement>>,
    /// Its own name and policy, where it is no thread of tailbound: `control fifo:80`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl ThreadRecord {
    /// Per due activation: wake-ups and missed ones together.
    #[must_use]
    pub fn due(&self) -> Distribution {
        let mut all = self.wakeup.clone();
        all.merge(&self.missed);
        all
    }
}

/// What the discarded warm-up saw.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Wake-ups.
    pub n: u64,
    /// Missed activations.
    pub missed: u64,
    /// Latest wake-up.
    pub max_ns: Option<i64>,
}

/// Costs of the tool itself, measured at the start: `clock_read_ns`, `record_ns`, …
pub type SelfCost = BTreeMap<String, f64>;

/// Last line: without it the file was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// Why it ended.
    pub reason: EndReason,
    /// Measured length of the schedule.
    pub measured_ns: i64,
    /// Lines before this one.
    pub lines: u64,
}

/// One line of the run file. [`crate::runfile::read_line`] reads it: by serde each record would be compiled a second time, for
/// a tag that may stand anywhere.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum Line {
    /// First.
    Header(Box<Header>),
    /// Any time.
    Event(Event),
    /// Once a second and thread.
    Second(SecondRecord),
    /// Now and then.
    Window(WindowRecord),
    /// Once a stretch of the schedule and thread.
    Block(BlockRecord),
    /// Whenever it happens.
    Exceedance(ExceedanceRecord),
    /// For a late wake-up that was taken apart.
    Blame(Box<BlameRecord>),
    /// At the end, and now and then: what was seen of a watched thread's jobs.
    Task(Box<TaskRecord>),
    /// At the end: the cycles of a thread that was watched.
    Cycle(Box<CycleRecord>),
    /// At the end: a rule for real-time programs that a watched thread broke at some place.
    Violation(Box<ViolationRecord>),
    /// At the end: what a run in the lab showed that was watched from within the emulator.
    Paths(Box<PathsRecord>),
    /// Once a look of the supervisor, where something was taken of a measured CPU.
    Disturbance(DisturbanceRecord),
    /// At the end, where pulses were sent: their numbers.
    SentPulses(SentPulses),
    /// At the end, where pulses were answered: the longest answers.
    AnsweredPulses(Box<AnsweredPulses>),
    /// In the run of who sent: its longest pulses, joined with their answers.
    PulseJoin(Box<PulseJoin>),
    /// Once a second and load.
    Load(LoadRecord),
    /// After the measurement, once per repetition of a benchmark.
    #[serde(rename = "work")]
    Benchmark(BenchmarkRecord),
    /// At the end: a figure of the probe.
    Figure(FigureRecord),
    /// At the end: what some tasks did.
    Timeline(TimelineRecord),
    /// When asked for.
    Raw(RawRecord),
    /// Once a thread and context: now and then as it stands, and at the end.
    Thread(Box<ThreadRecord>),
    /// At the end: costs of the tool itself.
    SelfCost {
        /// Name to value.
        values: SelfCost,
    },
    /// At the end: facts that changed during the run, or that are known only then.
    After {
        /// As in the header.
        facts: Facts,
    },
    /// When noticed.
    Finding(Finding),
    /// At the end.
    Verdict(Verdict),
    /// Last.
    End(End),
}
