// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a response-time analysis answers: a bound with its terms, or why there is none.
//!
//! Units: ns.
//! Not here: how it is computed (`bound`), rendering (`tailbound-report`).

use tailbound_core::Outcome;
use tailbound_core::policy::Policy;
use tailbound_core::units::{format_ns_i64, format_span};

/// Of all threads of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseTimes {
    /// In the order of the model.
    pub threads: Vec<Thread>,
    /// How long they were watched; `None`: the model was written by hand.
    pub watched_ns: Option<i64>,
}

/// Of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Thread {
    /// Its name.
    pub name: String,
    /// Its policy and priority.
    pub policy: Policy,
    /// The CPUs it runs on.
    pub cpus: Vec<u32>,
    /// The share of a CPU that it can take for long.
    pub load: Option<f64>,
    /// The longest response that was seen.
    pub observed_ns: Option<i64>,
    /// How much later than its due time a job may be released.
    pub jitter_ns: i64,
    /// When its jobs must be done, since they fell due.
    pub deadline_ns: Option<i64>,
    /// The bound on its response time, from release to end.
    pub bound: Result<Bound, NoBound>,
}

/// A bound on response times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// From release to end.
    pub ns: i64,
    /// What it adds up from, the thread's own first.
    pub terms: Vec<Term>,
}

/// A part of a bound.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// What it is for.
    pub kind: TermKind,
    /// How many jobs.
    pub jobs: u64,
    /// How long.
    pub ns: i64,
}

/// What a part of a bound is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// Execution of the thread's own jobs.
    Execution,
    /// Its jobs asleep.
    Suspension,
    /// Its jobs held up by threads of lower priority: locks, and stretches that cannot be preempted.
    Blocking,
    /// The way from the wake-up to the switch, and sections that were met.
    Latency,
    /// Threads that are not in the model.
    Unwatched,
    /// Jobs of this thread, of at least its priority.
    Interference(String),
    /// Taken off: the job is released so long after the first one that it waits for.
    Later,
}

impl TermKind {
    /// The word for scripts.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Execution => "execution",
            Self::Suspension => "suspension",
            Self::Blocking => "blocking",
            Self::Latency => "latency",
            Self::Unwatched => "unwatched",
            Self::Interference(_) => "interference",
            Self::Later => "later",
        }
    }
}

impl Bound {
    /// The part that is largest.
    #[must_use]
    pub fn largest(&self) -> Option<&Term> {
        self.terms.iter().max_by_key(|t| t.ns)
    }
}

/// Why there is no bound.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NoBound {
    /// Its policy has no fixed priority.
    #[error("its policy is {0}: the analysis is of fixed priorities (fifo, rr)")]
    Policy(Policy),
    /// It moves.
    #[error("it ran on CPUs {}: the analysis is of threads that stay on one; pin it", list(.0))]
    Moves(Vec<u32>),
    /// One that may preempt it moves.
    #[error("`{name}`, of at least its priority, runs on CPUs {}: when it comes to CPU {cpu} is not known; pin it", list(.cpus))]
    OtherMoves {
        /// Which.
        name: String,
        /// Where it runs.
        cpus: Vec<u32>,
        /// Where this one runs.
        cpu: u32,
    },
    /// A SCHED_DEADLINE thread runs there.
    #[error(
        "`{name}` on CPU {cpu} is SCHED_DEADLINE and goes before every fixed priority: the analysis does not cover that"
    )]
    DeadlineThread {
        /// Which.
        name: String,
        /// Where.
        cpu: u32,
    },
    /// Too little was seen of it, or of one that may preempt it.
    #[error(
        "only {jobs} jobs of `{name}` were seen: how often they come is not known; watch for longer"
    )]
    FewJobs {
        /// Of which.
        name: String,
        /// How many.
        jobs: u64,
    },
    /// Releases at one instant.
    #[error("jobs of `{name}` were released at one instant: how often they come is not bounded")]
    AtOnce {
        /// Of which.
        name: String,
    },
    /// No fixed point.
    #[error(
        "not schedulable: no fixed point within {}; it and threads of at least its priority can take {:.0} % of CPU {cpu}",
        format_span(*.limit_ns), .load * 100.0
    )]
    NoFixedPoint {
        /// How far was looked.
        limit_ns: i64,
        /// What they can take.
        load: f64,
        /// Where.
        cpu: u32,
    },
    /// A number that no computer has.
    #[error("`{name}` has times beyond a day")]
    OutOfRange {
        /// Which.
        name: String,
    },
}

fn list(cpus: &[u32]) -> String {
    cpus.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

impl Thread {
    /// Since the due time, what the bound leaves of the deadline; negative: it is not shown to hold.
    #[must_use]
    pub fn slack_ns(&self) -> Option<i64> {
        let bound = self.bound.as_ref().ok()?;
        Some(self.deadline_ns?.saturating_sub(bound.ns.saturating_add(self.jitter_ns)))
    }

    /// Does it meet its deadline: with one, met where the bound is within it, not met where a response
    /// was seen beyond it, else undecided.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let Some(deadline) = self.deadline_ns else {
            let refused = matches!(&self.bound, Err(why) if !matches!(why, NoBound::Policy(_)));
            return if refused { Outcome::Undecided } else { Outcome::Measured };
        };
        if self.observed_ns.is_some_and(|ns| ns > deadline) {
            return Outcome::NotMet;
        }
        if self.slack_ns().is_some_and(|ns| ns >= 0) { Outcome::Met } else { Outcome::Undecided }
    }
}

impl ResponseTimes {
    /// Of all threads together: the worst.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        let all = self.threads.iter().map(Thread::outcome);
        all.max_by_key(|o| match o {
            Outcome::NotMet => 3,
            Outcome::Undecided | Outcome::Unfit | Outcome::Unknown(_) => 2,
            Outcome::Met => 1,
            Outcome::Measured => 0,
        })
        .unwrap_or(Outcome::Measured)
    }

    /// What the bounds rest on, in a sentence.
    #[must_use]
    pub fn condition(&self) -> String {
        match self.watched_ns {
            Some(ns) => format!(
                "The bounds hold if no job is longer, and none comes sooner, than what was seen in {}. \
                 They are no guarantee.",
                format_ns_i64(ns)
            ),
            None => "The bounds hold if the model does: no job is longer, and none comes sooner, than it says."
                .to_owned(),
        }
    }
}
