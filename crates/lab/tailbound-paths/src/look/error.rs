// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why nothing is told of a run.

use crate::log::LogError;
use crate::plan::PlanError;
use crate::wakeups::FitError;

/// Why nothing is told of a run.
#[derive(Debug, thiserror::Error)]
pub enum LookError {
    /// The log.
    #[error(transparent)]
    Log(#[from] LogError),
    /// It cannot be read twice.
    #[error("the plugin's log: {0}")]
    Read(#[from] std::io::Error),
    /// Samples and wake-ups.
    #[error("{0}")]
    Fit(#[from] FitError),
    /// An interrupt came at another instant than it should have.
    #[error(
        "{late} of {all} late interrupts were not taken where interrupts were enabled again: nothing can be said of them"
    )]
    Elsewhere {
        /// How many.
        late: usize,
        /// Of how many.
        all: usize,
    },
    /// An interrupt came where it could not.
    #[error(
        "{0} timer interrupts were taken where interrupts were seen as disabled: this kernel enables them in a way that is not followed, and nothing can be said of it"
    )]
    Disabled(u64),
    /// The theorem is of Linux's scheduler.
    #[error(
        "the theoretical bound is of Linux's scheduler, and the thread that was measured is a second kernel's: leave --theory out"
    )]
    SecondKernel,
    /// A hand-over is followed on one CPU.
    #[error("lab paths follows hand-overs in guests of one CPU: use --smp 1")]
    HandOversOfSeveral,
    /// So is an answer.
    #[error("lab paths follows answers to edges in guests of one CPU: use --smp 1")]
    AnswersOfSeveral,
    /// Answers are told by functions of simulated lines.
    #[error("{0}: answers are followed in kernels with simulated GPIO lines (CONFIG_GPIO_SIM)")]
    Plan(#[from] PlanError),
    /// CPUs did not execute one after the other.
    #[error(
        "{wrong} of {all} turns of CPUs are not where the one before ended: nothing can be said of this run"
    )]
    Turns {
        /// How many.
        wrong: u64,
        /// Of how many.
        all: u64,
    },
    /// With several CPUs it is the reading of the clock that a sample ends with.
    #[error(
        "of {0} wake-ups it was not seen that the thread read its clock by rdtsc in user mode: nothing can be said of them"
    )]
    Unread(usize),
    /// A timer's function was called before the timer was due.
    #[error("{0} timers were served before they were due: nothing can be said of this run")]
    Early(usize),
}
