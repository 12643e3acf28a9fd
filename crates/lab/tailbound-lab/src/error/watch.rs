// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a guest cannot be watched, or why what was seen of it says nothing.

use tailbound_core::FailureKind;
use tailbound_core::runfile::RawFault;
use tailbound_paths::log::LogError;
use tailbound_paths::look::LookError;
use tailbound_paths::plan::PlanError;
use tailbound_stats::theory::BrokenBound;

use super::LabError;

/// A guest that cannot be watched, or was watched in vain.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    // What can be watched.
    /// The host executes the guest.
    #[error(
        "lab paths: with --kvm the host executes the guest, and nothing can be watched: leave it out"
    )]
    Kvm,
    /// Several CPUs of this architecture cannot be told apart.
    #[error("lab paths: guests of several CPUs can be watched of x86-64, others with --smp 1")]
    SeveralCpus,
    /// There are more CPUs than the plugin follows.
    #[error("lab paths: a guest of up to {most} CPUs can be watched, not --smp {smp}")]
    TooManyCpus {
        /// The most.
        most: u32,
        /// The guest's.
        smp: u32,
    },
    /// A verb looks into guests of one CPU.
    #[error("{verb} looks into guests of one CPU: use --smp 1 (`lab paths` watches several)")]
    OneCpu {
        /// The verb.
        verb: &'static str,
    },
    /// Several CPUs are not divided into short slices.
    #[error(
        "lab paths: several CPUs are watched in short slices alone: use QEMU 8.1 or later (`tailbound lab qemu fetch`), and no --slice off"
    )]
    LongSlices,
    /// There is no plugin for this machine.
    #[error("lab paths: the plugin for QEMU is there for x86-64 machines alone")]
    NoPlugin,
    /// Nothing says which of several threads is meant.
    #[error(
        "lab paths looks at one measured thread: with several CPUs say which one measures, such as --cpus 1"
    )]
    WhichThread,
    /// The theoretical bound is not one of this probe.
    #[error("the theoretical bound is one of wake-ups by a timer: leave out --theory, or --probe")]
    TheoryOfTimers,
    /// The theoretical bound is not one of several CPUs.
    #[error(
        "--theory takes a guest of one CPU (--smp 1): a CPU that spins for a lock waits for another one's turns, so that the longest stretches of several CPUs would be those of slices and not of the kernel"
    )]
    TheoryOfOneCpu,
    /// Hand-overs and answers cannot be followed on this architecture.
    #[error(
        "lab paths: hand-overs and answers are followed in guests of x86-64, where a call is told from an interrupt by its entry"
    )]
    NotByTimers,
    /// The kernel has not the functions that are watched.
    #[error("{0}")]
    Plan(PlanError),

    // What was seen.
    /// The run is another one when it is watched.
    #[error("the run has other bytes when it is watched: nothing of it can be told")]
    Differs,
    /// The log says nothing.
    #[error("{0}")]
    Look(Box<LookError>),
    /// The log cannot be read.
    #[error("{0}")]
    Log(LogError),
    /// The plugin left no log.
    #[error("no log")]
    NoLog,
    /// The theoretical bound contradicts the run.
    #[error("{0}")]
    Bound(BrokenBound),
    /// The samples cannot be read.
    #[error("{0}")]
    Samples(RawFault),
    /// There are no samples.
    #[error("the run has no samples")]
    NoSamples,
    /// Activations have no instants without an interval.
    #[error("the run does not say its interval")]
    NoInterval,
    /// Activations have no instants without the first one.
    #[error("the run does not say when it began")]
    NoStart,
    /// Random numbers cannot be exchanged.
    #[error("the state of the kernel's random numbers could not be written")]
    RandomNumbers,
    /// One of several cells cannot be watched.
    #[error("{0}")]
    Cell(Box<LabError>),
}

impl WatchError {
    /// The log says nothing.
    pub(crate) fn look(why: LookError) -> Self {
        Self::Look(Box::new(why))
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Kvm
            | Self::SeveralCpus
            | Self::TooManyCpus { .. }
            | Self::OneCpu { .. }
            | Self::WhichThread
            | Self::TheoryOfTimers
            | Self::TheoryOfOneCpu => FailureKind::Usage,
            Self::LongSlices
            | Self::NoPlugin
            | Self::NotByTimers
            | Self::Plan(_)
            | Self::Differs
            | Self::Look(_)
            | Self::Log(_)
            | Self::NoLog
            | Self::Bound(_)
            | Self::Samples(_)
            | Self::NoSamples
            | Self::NoInterval
            | Self::NoStart
            | Self::RandomNumbers
            | Self::Cell(_) => FailureKind::Cannot,
        }
    }
}
