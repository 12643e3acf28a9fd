// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cycles (jobs) of a thread that was watched from outside: how it is paced, what its cycles
//! were made of, and the longest of them part by part. A line `cycle` of the run file.
//!
//! Units: ns. A cycle goes from its release (its timer's due time, else the waking that
//! starts it) to where the thread goes to sleep for the next one. Its parts adjoin and their sum is its
//! length: what nothing explains is a part too, with the cause `unexplained`.
//! Not here: how cycles are found (`tailbound-trace`), what is said about them (`tailbound-report`).

mod pace;

pub use pace::{Pace, PaceKind};

use serde::{Deserialize, Serialize};

use crate::blame::{BlameRecord, Cause, Phase, Sureness};
use crate::distribution::Distribution;
use crate::policy::Policy;

/// One thread's cycles: a line `cycle` of the run file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CycleRecord {
    /// Which measured thread of the run.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The kernel's number of it.
    pub tid: i32,
    /// Its process.
    pub process: u32,
    /// Policy and priority when it was last looked at.
    pub policy: Policy,
    /// Its CPU, where it was always the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// What it waits in for its next cycle; absent where no wait could be told to be that one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
    /// In what rhythm the cycles are released.
    pub pace: Pace,
    /// What its response times are held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ns: Option<i64>,
    /// Cycles whose response took longer than that.
    #[serde(default)]
    pub misses: u64,
    /// Whole cycles: those in the figures.
    pub cycles: u64,
    /// Cycles that began late because the previous one overran: their wake-up latency includes its rest.
    #[serde(default)]
    pub overruns: u64,
    /// Cycles in which events were lost so that their begin or end is not sure: not in the figures.
    #[serde(default)]
    pub broken: u64,
    /// Whole cycles of whose time some events were lost: they have a part that is unexplained.
    #[serde(default)]
    pub lossy: u64,
    /// Page faults within cycles.
    #[serde(default)]
    pub page_faults: u64,
    /// Release to the CPU.
    pub wakeup: Distribution,
    /// On the CPU, without what interrupted it.
    pub execution: Distribution,
    /// Asleep within the cycle.
    pub blocked: Distribution,
    /// Release to end: the cycle's length.
    pub response: Distribution,
    /// What the cycles were made of, most time first. Each instant counts once: where one cycle began late because the one
    /// before had not finished, that time is in the one before.
    pub causes: Vec<CycleCause>,
    /// Time that went to more causes than are listed.
    #[serde(default)]
    pub causes_left_out_ns: i64,
    /// Why cycles took longer than the deadline, those of most cycles first: each late cycle is in one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub late_reasons: Vec<LateReason>,
    /// The longest cycles, the longest first; `latency_ns` is the length.
    pub worst: Vec<BlameRecord>,
    /// Cycles in figures, in the order of time, from the first on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<Job>,
    /// Cycles after these, which are in the figures alone.
    #[serde(default)]
    pub jobs_left_out: u64,
}

/// The wait that paces a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activation {
    /// The system call and what of its arguments tells it from others: `clock_nanosleep`,
    /// `read of descriptor 5`.
    pub wait: String,
    /// How often the thread waited in it.
    pub waits: u64,
    /// How often it waited elsewhere.
    pub others: u64,
    /// How sure it is that this is the one.
    pub sureness: Sureness,
    /// The user named it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub given: bool,
}

/// Something that cycles were made of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CycleCause {
    /// Where the thread was.
    pub phase: Phase,
    /// What the time went to.
    pub cause: Cause,
    /// Who.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// The least sure of the attributions.
    #[serde(default)]
    pub sureness: Sureness,
    /// Cycles that it was in.
    pub cycles: u64,
    /// Time in all of them.
    pub total_ns: i64,
    /// Most of one.
    pub worst_ns: i64,
}

/// What made cycles late.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateReason {
    /// Where the thread was.
    pub phase: Phase,
    /// What delayed it.
    pub cause: Cause,
    /// Who.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub who: String,
    /// How sure that is.
    #[serde(default)]
    pub sureness: Sureness,
    /// Cycles that were late for it.
    pub cycles: u64,
    /// Of them those that began late because an earlier one was delayed by it.
    #[serde(default)]
    pub backlog: u64,
    /// What it took of the others more than of cycles in time.
    pub total_ns: i64,
    /// Most of one.
    pub worst_ns: i64,
}

/// One cycle in figures: what task models are made from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Job {
    /// When it was released, on the run's clock.
    pub release_ns: i64,
    /// From there to the CPU.
    pub wakeup_ns: i64,
    /// On the CPU, without what interrupted it.
    pub execution_ns: i64,
    /// Asleep within the cycle.
    pub blocked_ns: i64,
    /// Release to end.
    pub response_ns: i64,
}

impl From<Job> for [i64; 5] {
    fn from(j: Job) -> Self {
        [j.release_ns, j.wakeup_ns, j.execution_ns, j.blocked_ns, j.response_ns]
    }
}

impl CycleRecord {
    /// All time within whole cycles, each instant once.
    #[must_use]
    pub fn total_ns(&self) -> i64 {
        let listed = self.causes.iter().map(|c| c.total_ns).fold(0, i64::saturating_add);
        listed.saturating_add(self.causes_left_out_ns)
    }
}
