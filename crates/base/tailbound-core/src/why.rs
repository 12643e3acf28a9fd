// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a sample was late: the instant from which it was inevitable, and what happened there.
//!
//! Units: ns of the guest's virtual time; instants since the first judged activation was due.
//! Not here: how it is found (`tailbound-paths`), words (`tailbound-report`).

use serde::Serialize;

use crate::paths::TreeLine;

/// What was found of one sample.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WhyRecord {
    /// Number of the activation, from 0.
    pub activation: u64,
    /// Its latency, as the run has it.
    pub latency_ns: i64,
    /// When its timer was due.
    pub due_ns: i64,
    /// From this latency on a varied sample counts as late.
    pub late_ns: i64,
    /// Variations of an instant in which the processor stands still.
    pub variations: usize,
    /// Variations of an instant in which the kernel's random numbers are others.
    pub seeds: usize,
    /// Why there are none of these, though they were asked for.
    pub no_seeds: Option<String>,
    /// The longest time that the processor stands still: an interval.
    pub longest_ns: i64,
    /// The sample of a run that was stopped and let go without any change: the same, or nothing is told.
    pub control_ns: Option<i64>,
    /// That of a run in which the state of the random numbers was written as it was: the same too.
    pub control_numbers_ns: Option<i64>,
    /// So long before the due time the run was kept: variations of later instants began there, others at the run's beginning.
    pub kept_before_ns: Option<i64>,
    /// Instants that were tried, in the order of time.
    pub tried: Vec<TriedInstant>,
    /// The earliest of them from which it was inevitable.
    pub inevitable: Option<DecisiveInstant>,
    /// The search came to its end: nobody ended it before.
    pub is_whole: bool,
    /// What happened from the decisive instant to the sample.
    pub events: Vec<WhyEvent>,
    /// What was executed meanwhile.
    pub tree: Vec<TreeLine>,
}

/// An instant and what came of its variations.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TriedInstant {
    /// When.
    pub at_ns: i64,
    /// How long before the timer was due.
    pub before_due_ns: i64,
    /// Function of the block of instructions that ends there.
    pub function: String,
    /// Variations that were tried: fewer than all where one was early.
    pub tried: usize,
    /// Of these, those that remained late.
    pub late: usize,
    /// Of these, those whose activation was skipped or is later than twice its time.
    pub missed: usize,
    /// Least and greatest latency.
    pub least_ns: Option<i64>,
    /// See [`Self::least_ns`].
    pub most_ns: Option<i64>,
    /// Each of them.
    pub variations: Vec<VariedSample>,
}

/// What a variation changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Changes {
    /// The processor stands still for a while: all timers come earlier in the program's course.
    #[default]
    Phase,
    /// The kernel's random numbers are others from there on.
    RandomNumbers,
}

/// A variation, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct VariedSample {
    /// What it changed.
    pub changes: Changes,
    /// How long the processor stood still.
    pub still_ns: Option<i64>,
    /// What the random numbers followed from.
    pub seed: Option<u32>,
    /// The sample's latency; none: its activation was skipped or is later than twice its time.
    pub latency_ns: Option<i64>,
    /// It remained late.
    pub late: bool,
}

impl TriedInstant {
    /// Of the variations that change this: how many were tried, and how many of them remained late.
    #[must_use]
    pub fn of(&self, changes: Changes) -> (usize, usize) {
        let those = || self.variations.iter().filter(|v| v.changes == changes);
        (those().count(), those().filter(|v| v.late).count())
    }
}

/// The instant that decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DecisiveInstant {
    /// When.
    pub at_ns: i64,
    /// How long before the timer was due.
    pub before_due_ns: i64,
    /// How long before that some variation still made it early; none: never since the first activation.
    pub open_before_ns: Option<i64>,
    /// No block of instructions lies between the two.
    pub is_exact: bool,
    /// What happened: `call`, `interrupt`, `switch`, `section`, `function`, `idle`.
    pub what: String,
    /// Its name: of the system call, interrupt, thread or function.
    pub name: Option<String>,
    /// The thread on the CPU.
    pub thread: Option<String>,
    /// The system call that was under way.
    pub call: Option<String>,
    /// The function that goes on there.
    pub function: String,
    /// What was under way, from the outermost function inwards.
    pub under_way: Vec<String>,
}

/// See [`WhyRecord::events`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WhyEvent {
    /// Since the timer was due; before it where negative.
    pub since_due_ns: i64,
    /// In words.
    pub what: String,
}
