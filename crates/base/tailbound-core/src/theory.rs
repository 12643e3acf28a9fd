// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the theoretical bound on the scheduling latency is computed from: variables with their evidence, interrupts,
//! and what must hold.
//!
//! Units: ns.
//! Not here: the bound (`tailbound_stats::theory`), how exact sections give the evidence (`tailbound_paths::theory`).
//! Source: de Oliveira, Casini, de Oliveira, Cucinotta, "Demystifying the Real-Time Linux Scheduling Latency", ECRTS 2020.

use serde::{Deserialize, Serialize};

/// A stretch of the way from a wake-up to the thread. Interrupts' execution is taken out of all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Variable {
    /// Preemption or interrupts disabled, not to schedule (`D_POID`).
    Poid,
    /// Both enabled and a thread to be rescheduled, until scheduling begins (`D_PAIE`).
    Paie,
    /// Preemption disabled to schedule, until the scheduler returns (`D_PSD`).
    Psd,
    /// From interrupts disabled within the scheduler until it returns (`D_ST`).
    St,
    /// The idle thread, from the scheduler or a halt to the next halt.
    IdleIn,
    /// The idle thread, from a halt to the scheduler.
    IdleOut,
    /// The idle thread, from the scheduler to the scheduler without a halt.
    IdleThrough,
    /// From the time that was due to the interrupt where nothing was in its way: the timer's own.
    Timer,
    /// From the scheduler to user mode.
    Return,
    /// From user mode to the reading of the clock.
    Reading,
}

impl Variable {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Poid,
        Self::Paie,
        Self::Psd,
        Self::St,
        Self::IdleIn,
        Self::IdleOut,
        Self::IdleThrough,
        Self::Timer,
        Self::Return,
        Self::Reading,
    ];
}

/// The longest that was observed of a variable.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariableRecord {
    /// Which.
    pub variable: Variable,
    /// How long.
    pub ns: i64,
    /// Of how many.
    pub n: u64,
    /// Recording it took about so long of that, where the kernel's own events told; it is not taken out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tracing_ns: Option<i64>,
    /// When that one began, after the window's begin.
    pub at_ns: i64,
    /// Function in which it began.
    pub from: String,
    /// Function in which it ended.
    pub to: String,
}

/// One execution of an interrupt's handler, with the soft interrupts at its end and without interrupts within it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Execution {
    /// It was taken.
    pub at_ns: i64,
    /// It returned, or the scheduler was called at its end.
    pub end_ns: i64,
    /// It executed.
    pub ns: i64,
}

/// All executions of one vector, in the order of `at_ns`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Vector {
    /// Name of its entry.
    pub name: String,
    /// They.
    pub executions: Vec<Execution>,
}

/// A step of an interference curve: no window of `within_ns` had more than this.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CurveStep {
    /// From this length of a window on.
    pub within_ns: i64,
    /// Most executions that it has a part of.
    pub n: u64,
    /// Greatest sum of their execution times.
    pub sum_ns: i64,
}

/// One vector's interference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptRecord {
    /// Name of its entry.
    pub vector: String,
    /// How many executions.
    pub n: u64,
    /// The longest execution.
    pub longest_ns: i64,
    /// The longest time that others within one took.
    pub nested_ns: i64,
    /// The shortest time from one to the next; absent: there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ns: Option<i64>,
    /// By lengths of windows, ascending.
    pub curve: Vec<CurveStep>,
}

/// Does a precondition hold?
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Holds {
    /// It was checked, and does.
    Yes,
    /// It does not: no bound is given.
    No,
    /// It cannot be checked: it is an assumption.
    Unknown,
}

/// Something that lies outside of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Precondition {
    /// What.
    pub name: String,
    /// See [`Holds`].
    pub holds: Holds,
    /// From what that is known, or why it is not.
    pub why: String,
}

/// What was observed of wake-ups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How many.
    pub n: u64,
    /// The longest from the time at which the interrupt could have come until the scheduler returned.
    pub scheduling_ns: i64,
    /// The latest sample.
    pub sample_ns: i64,
}

/// What was seen, before it is condensed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// The longest of each variable that was seen at all.
    pub variables: Vec<VariableRecord>,
    /// Interrupts.
    pub vectors: Vec<Vector>,
    /// How long it was watched.
    pub span_ns: i64,
    /// An interrupt is taken so long after it could have been: one instruction.
    pub step_ns: i64,
    /// What must hold.
    pub preconditions: Vec<Precondition>,
    /// What was observed.
    pub observed: Observed,
}

/// All that the bound is computed from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TheoryRecord {
    /// The longest of each variable that was seen at all.
    pub variables: Vec<VariableRecord>,
    /// Interrupts, by vector.
    pub interrupts: Vec<InterruptRecord>,
    /// How long it was watched.
    pub span_ns: i64,
    /// Curves say nothing of longer windows.
    pub curves_to_ns: i64,
    /// An interrupt is taken so long after it could have been.
    pub step_ns: i64,
    /// What must hold.
    pub preconditions: Vec<Precondition>,
    /// What was observed, to stand beside it.
    pub observed: Observed,
}
