// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths of a run in the lab: the longest sections of its kernel, and the way of its latest wake-ups.
//!
//! Units: ns of the guest's virtual time, in which one instruction is 2^shift ns.
//! CPUs of one guest execute one after the other, and time goes on for all. So with several of them a time has a part in
//! which its CPU executed itself: `own_ns`. With one CPU the two are the same, and there is no `own_ns`.
//! Not here: how they are found (`tailbound-paths`).

use serde::{Deserialize, Serialize};

use crate::words::open_words;

open_words! {
    /// What is not possible in a section.
    SectionKind {
        /// Interrupts are disabled.
        InterruptsOff = "interrupts-off",
        /// Preemption is disabled.
        PreemptionOff = "preemption-off",
        /// Either.
        NotPreemptible = "not-preemptible",
        /// A thread is to be rescheduled, and is not yet.
        ReschedPending = "resched-pending",
    }
}

impl SectionKind {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::InterruptsOff, Self::PreemptionOff, Self::NotPreemptible, Self::ReschedPending];
}

/// The first leg of an answer to an edge; no other has one of this name.
pub const FROM_STAMP: &str = "to the interrupt's thread";

/// The first leg of a hand-over; a wake-up by a timer has none of this name.
pub const SENDERS_CALL: &str = "the sender's call";

/// What was watched in one run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsRecord {
    /// Length of the window that was watched: from the first judged due time to the last sample.
    pub window_ns: i64,
    /// What was checked before anything of this was believed.
    pub checks: PathsChecks,
    /// The CPUs, where there are several: that of the measured thread first, as in all lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpus: Vec<PathsCpu>,
    /// Sections of each kind in all.
    pub totals: Vec<SectionTotal>,
    /// The longest of each kind, by the two instructions that they lie between.
    pub sections: Vec<SectionRecord>,
    /// The latest wake-ups, the latest first; of several CPUs, also the latest that another CPU handed over.
    pub wakeups: Vec<WakeUpRecord>,
    /// Of answers to edges: each part of their way, from the line to the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub split: Vec<SplitPart>,
    /// The measured thread is a second kernel's (Cobalt, EVL): it waits where interrupts are disabled, and nowhere else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub second_kernel: bool,
    /// How likely a wake-up is later than each time; empty of hand-overs, which have no due time of their own.
    pub curve: Vec<CurvePoint>,
    /// What the theoretical bound is computed from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory: Option<crate::theory::TheoryRecord>,
}

/// See [`PathsRecord::split`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitPart {
    /// From where to where; the first lies before the sample begins.
    pub name: String,
    /// The shortest of all answers.
    pub least_ns: i64,
    /// Their mean.
    pub mean_ns: i64,
    /// The longest.
    pub longest_ns: i64,
}

/// See [`PathsRecord::checks`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsChecks {
    /// The run file has the same bytes with and without being watched.
    pub same_bytes: bool,
    /// Samples that are what was watched, by one constant.
    pub samples: u64,
    /// That constant.
    pub constant_ns: i64,
    /// What the guest's clock is slower than QEMU's, in parts of 10⁹.
    pub drift_ppb: i64,
    /// Interrupts that came late, each taken one instruction after the section that was in the way.
    pub delayed: u64,
    /// Of these, those whose timer the kernel set within that section, when it was due already: they were taken after the
    /// shortest time that can be set.
    #[serde(default, skip_serializing_if = "crate::lab::is_zero")]
    pub set_late: u64,
    /// What was checked besides, where there are several CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub several: Option<SeveralChecks>,
    /// Of answers to edges: the constant of the samples up to the answering thread, all of which were checked too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_constant_ns: Option<i64>,
}

/// See [`PathsChecks::several`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeveralChecks {
    /// Turns of CPUs. Each begins where the one before ended, or time went on while all halted.
    pub turns: u64,
    /// Interrupts that came late because it was not their CPU's turn, when they were due or when their timer was set: it
    /// executed next to nothing since.
    pub out_of_turn: u64,
    /// Wake-ups whose timer another CPU served.
    pub handed_over: u64,
    /// Of these, those of which it was not seen how the thread's CPU was told.
    pub unexplained: u64,
}

/// One of several CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathsCpu {
    /// Its number.
    pub cpu: u32,
    /// How much of the window it executed.
    pub executed_ns: i64,
    /// Its share of time while all are busy, in parts of a thousand, as the guest counted at the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub share_permille: Option<u64>,
}

/// See [`PathsRecord::totals`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionTotal {
    /// Of what kind.
    pub kind: SectionKind,
    /// Of which CPU, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// How many.
    pub n: u64,
    /// Their lengths together.
    pub sum_ns: i64,
    /// The longest.
    pub longest_ns: i64,
    /// The most of one that its CPU executed itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<i64>,
}

/// Sections between the same two instructions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SectionRecord {
    /// Of what kind.
    pub kind: SectionKind,
    /// Of which CPU, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// Function of the first instruction.
    pub from: String,
    /// Function of the last.
    pub to: String,
    /// How many.
    pub n: u64,
    /// Their mean length.
    pub mean_ns: i64,
    /// The longest.
    pub longest_ns: i64,
    /// The most of one that its CPU executed itself: of the longest, or of another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<i64>,
    /// When that one began, after the window's begin; with one CPU the longest.
    pub at_ns: i64,
    /// What that one executed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<TreeLine>,
}

/// One late wake-up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WakeUpRecord {
    /// Number of the activation, from 0.
    pub activation: u64,
    /// Its latency, as the run has it.
    pub latency_ns: i64,
    /// What it is made of: their sum is the latency.
    pub legs: Vec<Leg>,
    /// The section that the timer's interrupt had to wait for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behind: Option<Behind>,
    /// Another CPU served the timer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<HandedOver>,
    /// What was executed from the due time on; of several CPUs, by that of the thread.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<TreeLine>,
}

/// A wake-up whose timer another CPU served.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandedOver {
    /// That CPU.
    pub cpu: u32,
    /// The entry by which the thread's CPU was told; absent: that was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// What the other CPU executed from the due time until then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tree: Vec<TreeLine>,
}

/// A part of a wake-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Leg {
    /// From where to where.
    pub name: String,
    /// How long.
    pub ns: i64,
    /// How much of it its CPU executed itself; absent where it lies on two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<i64>,
}

/// A section with interrupts disabled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Behind {
    /// Function of its first instruction.
    pub from: String,
    /// Function of its last.
    pub to: String,
    /// Its whole length.
    pub ns: i64,
    /// How much of it its CPU executed itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_ns: Option<i64>,
}

/// A function in a tree of calls.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TreeLine {
    /// How deep: 0 is outermost.
    pub depth: u16,
    /// The function.
    pub name: String,
    /// How often it was called there.
    pub calls: u64,
    /// Time in it and in what it called.
    pub total_ns: i64,
    /// Time in itself.
    pub own_ns: i64,
}

/// See [`PathsRecord::curve`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CurvePoint {
    /// Later than this.
    pub ns: i64,
    /// Share of the samples.
    pub samples: f64,
    /// Share of all instants of the window, estimated from the sections.
    pub instants: f64,
}

impl Eq for CurvePoint {}
