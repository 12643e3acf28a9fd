// SPDX-License-Identifier: MIT OR Apache-2.0
//! What was seen of a thread's jobs: a line `task` of the run file.
//!
//! Units: ns. Each list begins with what it says of the fewest jobs: `distance_*` of
//! two releases, `execution_*` of one job; entry i is about i more.
//! Not here: how it is gathered (`tailbound_stats::tasks`), the model made of it (`model`).

use serde::{Deserialize, Serialize};

use crate::policy::Policy;
use crate::words::open_words;

open_words! {
    /// How a thread's releases follow each other.
    #[derive(Default)]
    ArrivalModel {
        /// On a grid of one period, each within the jitter.
        Periodic = "periodic",
        /// Not on a grid: only the shortest distances are known.
        #[default]
        Sporadic = "sporadic",
    }
}

/// How a thread's releases follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrival {
    /// In a word.
    pub model: ArrivalModel,
    /// The period of the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
    /// The largest difference seen between the distance of two releases and that of their places on
    /// the grid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<i64>,
    /// The grid's place within a period, since `t_ns` = 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offset_ns: Option<i64>,
    /// Places of the grid without a release.
    #[serde(default, skip_serializing_if = "is_none")]
    pub skipped: u64,
}

/// The largest of something, and when it was seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How long.
    pub ns: i64,
    /// When the job that had it was released.
    pub t_ns: i64,
}

/// A thread as a task: what its jobs were seen to do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskRecord {
    /// Which watched thread, counted from 0; of several lines with one number the last counts.
    pub thread: u32,
    /// The thread's name.
    pub name: String,
    /// Its number in the kernel.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tid: Option<u32>,
    /// Its policy and priority.
    pub policy: Policy,
    /// The CPUs its jobs ran on.
    pub cpus: Vec<u32>,
    /// Jobs that this rests on.
    pub jobs: u64,
    /// Jobs that are not among them, because events of their time were lost.
    #[serde(default, skip_serializing_if = "is_none")]
    pub lost: u64,
    /// The first release.
    pub from_ns: i64,
    /// The last job's end.
    pub to_ns: i64,
    /// The releases in words.
    pub arrival: Arrival,
    /// The shortest time from a release to the 1st, 2nd, … after it.
    pub distance_min_ns: Vec<i64>,
    /// The longest.
    pub distance_max_ns: Vec<i64>,
    /// The most execution time of 1, 2, … successive jobs.
    pub execution_max_ns: Vec<i64>,
    /// The least.
    pub execution_min_ns: Vec<i64>,
    /// The most time asleep, except for locks held at lower priority, of 1, 2, … successive jobs. This and the
    /// following lists are empty where it is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspension_max_ns: Vec<i64>,
    /// The most time asleep for locks held at lower priority.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked_max_ns: Vec<i64>,
    /// The most time ready while a thread of lower priority, or none, had the CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub latency_max_ns: Vec<i64>,
    /// The most time ready while threads of at least its priority ran that have no line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwatched_max_ns: Vec<i64>,
    /// The longest time from release to end.
    pub response: Observed,
    /// The most time asleep within one job, except for locks held at lower priority.
    pub suspension: Observed,
    /// The most sleeps within one job.
    #[serde(default, skip_serializing_if = "is_no")]
    pub suspensions: u32,
    /// The most time of one job asleep for locks held at lower priority.
    pub blocked: Observed,
    /// The most time of one job ready while a thread of lower priority, or none, had the CPU.
    pub latency: Observed,
    /// The longest single stretch of that: a section that could not be preempted.
    pub section: Observed,
    /// The most time of one job ready while threads of at least its priority ran that have no line.
    pub unwatched: Observed,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_none(n: &u64) -> bool {
    *n == 0
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_no(n: &u32) -> bool {
    *n == 0
}
