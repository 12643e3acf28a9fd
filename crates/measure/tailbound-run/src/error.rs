// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a run could not be made, by who can mend it.
//!
//! Every one of these is found before anything is started, or leaves what
//! was measured so far in the run file.
//! Not here: options that mean nothing (`option_error`, `until_error`).

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_core::plan::Clock;
use tailbound_core::policy::Policy;
use tailbound_core::unwritten::UnwrittenFile;
use tailbound_host::CpusError;
use tailbound_load::LoadError;
use tailbound_probe::ProbeError;
use tailbound_record::ObserveError;
use tailbound_sys::SysError;
use tailbound_tune::{HereError, PlanError};

use crate::option_error::OptionError;
use crate::room::NoRoom;
use crate::until_error::UntilError;

/// A run that could not be made.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An option means nothing, or contradicts another.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The rule that ends the run means nothing, or cannot.
    #[error(transparent)]
    Until(#[from] UntilError),
    /// The plan has a word of a later version.
    #[error("{word} is not known to this version")]
    UnknownWord {
        /// Which.
        word: String,
    },
    /// The run file is not written.
    #[error(transparent)]
    Unwritten(#[from] UnwrittenFile),
    /// The disk is too full for the run file.
    #[error("{}: no room for the run file (about {mib} MiB for this plan): {why}; choose another --out or a shorter run", .path.display())]
    NoRoom {
        /// Which.
        path: PathBuf,
        /// What it may need.
        mib: u64,
        /// What is missing.
        why: NoRoom,
    },
    /// It ended before the measurement, and the older run file stays.
    #[error("ended before the measurement began: {} is unchanged", .path.display())]
    Unchanged {
        /// Which.
        path: PathBuf,
    },
    /// The run file could not be written to its end; the run is elsewhere.
    #[error("{shown} could not be written ({why}){}; the result was saved as {}", if *.placed { " and holds what came before" } else { "" }, .saved.display())]
    SavedElsewhere {
        /// The run file, or standard output.
        shown: String,
        /// Why.
        why: String,
        /// The run file has its name, and a part of the run.
        placed: bool,
        /// Where the run is.
        saved: PathBuf,
    },
    /// The run could be written nowhere.
    #[error(
        "{shown} could not be written ({why}), and neither could /dev/shm, the temporary folder or this one"
    )]
    Lost {
        /// The run file, or standard output.
        shown: String,
        /// Why.
        why: String,
    },
    /// Nobody knows what loads and benchmarks would be started from.
    #[error("loads are started from this program, whose path is unknown: {0}")]
    NoProgram(io::Error),
    /// The CPUs of this machine cannot be read.
    #[error("--cpus: {0}")]
    Machine(CpusError),
    /// This machine lacks the clock.
    #[error("--clock {clock}: {source}")]
    Clock {
        /// Which.
        clock: Clock,
        /// What was refused.
        source: SysError,
    },
    /// The kernel refuses the scheduling policy.
    #[error("--policy {policy}: {source}")]
    Policy {
        /// Which.
        policy: Policy,
        /// What was refused.
        source: SysError,
    },
    /// This user may not have the scheduling policy.
    #[error("--policy {policy} is refused: {cause}\nDo: {remedy}")]
    NoRight {
        /// Which.
        policy: Policy,
        /// Why.
        cause: String,
        /// What to do.
        remedy: String,
    },
    /// Options of the probe mean nothing.
    #[error(transparent)]
    ProbeOption(Box<ProbeError>),
    /// The probe cannot work here.
    #[error("probe {probe}: {source}")]
    Probe {
        /// Which.
        probe: String,
        /// Why.
        source: Box<ProbeError>,
    },
    /// The threads of the probe could not start, or failed.
    #[error(transparent)]
    Threads(Box<ProbeError>),
    /// The stages of wake-ups cannot be observed.
    #[error("--observe: {0}")]
    Observe(ObserveError),
    /// Late wake-ups cannot be explained.
    #[error("--blame: {0}")]
    Blame(ObserveError),
    /// A load did not start.
    #[error("load: {0}")]
    Load(LoadError),
    /// The profile does not fit this machine, or means nothing on it.
    #[error("--tune: {0}")]
    Tune(PlanError),
    /// The settings of the profile could not be applied.
    #[error("--tune: {0}")]
    Apply(HereError),
    /// A signal came before the measurement.
    #[error("ended by a signal before the measurement")]
    Ended,
    /// Nothing would end real-time threads that run away.
    #[error("real-time guard: {0}")]
    Guard(SysError),
    /// The latency of idle states cannot be held.
    #[error("--cpu-dma-latency: {0}")]
    DmaLatency(SysError),
    /// The measured threads took their CPUs for themselves.
    #[error(
        "--interval {}: the measured threads used more than 90 % of their CPUs in the warm-up; choose a longer interval",
        tailbound_core::units::exact(*.interval_ns)
    )]
    Overloaded {
        /// From one activation to the next.
        interval_ns: i64,
    },
}

impl RunError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Option(_) | Self::Until(_) | Self::UnknownWord { .. } | Self::ProbeOption(_) => {
                FailureKind::Usage
            }
            Self::Unwritten(e) => e.kind(),
            Self::Observe(e) if e.is_usage() => FailureKind::Usage,
            Self::Tune(e) if !e.is_of_machine() => FailureKind::Usage,
            Self::NoRoom { .. }
            | Self::Unchanged { .. }
            | Self::SavedElsewhere { .. }
            | Self::Lost { .. }
            | Self::NoProgram(_)
            | Self::Machine(_)
            | Self::Clock { .. }
            | Self::Policy { .. }
            | Self::NoRight { .. }
            | Self::Probe { .. }
            | Self::Threads(_)
            | Self::Observe(_)
            | Self::Blame(_)
            | Self::Load(_)
            | Self::Tune(_)
            | Self::Apply(_)
            | Self::Ended
            | Self::Guard(_)
            | Self::DmaLatency(_)
            | Self::Overloaded { .. } => FailureKind::Cannot,
        }
    }
}
