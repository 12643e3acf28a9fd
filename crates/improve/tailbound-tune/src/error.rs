// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a change that a person asked for is not planned, made or undone, by who can mend it.
//!
//! Not here: why a step is refused by the machine (`apply`), why a journal cannot be kept (`journal`).

use std::io;

use tailbound_core::FailureKind;
use tailbound_core::units::{ParseTimeError, spaced};
use tailbound_host::CpusError;
use tailbound_sys::SysError;

use crate::here::HereError;
use crate::interval::{INTERVAL_MAX_NS, INTERVAL_MIN_NS};
use crate::journal::JournalError;
use crate::profile::ProfileError;
use crate::recipe::PlanError;
use crate::rules::RuleError;
use crate::settings::SettingError;

/// Why it is not done.
#[derive(Debug, thiserror::Error)]
pub enum TuneError {
    /// This machine is not changed.
    #[error(transparent)]
    Here(#[from] HereError),
    /// What is there cannot be read.
    #[error(transparent)]
    Unreadable(#[from] RuleError),
    /// The journal.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There is no plan.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// What was named is no profile.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// There is no such setting.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A system call.
    #[error(transparent)]
    System(#[from] SysError),
    /// The CPUs of this machine cannot be read.
    #[error("{0}")]
    Machine(CpusError),
    /// CPUs that were asked for are not there.
    #[error("{0}")]
    Cpus(CpusError),
    /// No profile has this name.
    #[error("there is no profile `{name}`: {} come with the program, or name a TOML file", .known.join(", "))]
    NoProfile {
        /// What was asked for.
        name: String,
        /// All names.
        known: Vec<&'static str>,
    },
    /// No profile of this name comes with the program.
    #[error("there is no profile `{name}`: {}", .known.join(", "))]
    NotShipped {
        /// What was asked for.
        name: String,
        /// All names.
        known: Vec<&'static str>,
    },
    /// The file of a profile cannot be read.
    #[error("{name}: {source}")]
    ProfileFile {
        /// As it was named.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The file of a profile is none.
    #[error("{name}: {why}")]
    ProfileText {
        /// As it was named.
        name: String,
        /// What is wrong with it.
        why: ProfileError,
    },
    /// Nothing was asked for.
    #[error("what is to be changed? Name a profile (--profile {}, or a file) or settings (--set SETTING=VALUE)", .known.join("|"))]
    NothingAsked {
        /// The profiles that come with the program.
        known: Vec<&'static str>,
    },
    /// No setting and its value.
    #[error("`{0}`: write SETTING=VALUE; `tailbound tune settings` lists them")]
    Word(String),
    /// No change has this number.
    #[error("there is no change {0}: see `tailbound tune history`")]
    NoChange(u32),
    /// No change is in force.
    #[error("nothing is applied: see `tailbound tune history`")]
    NothingApplied,
    /// It was undone before.
    #[error("change {0} was undone already")]
    UndoneAlready(u32),
    /// A later change of the same setting would be taken for another program's.
    #[error("change {number} came later and changed {target} too: undo it first, or use --all")]
    Covered {
        /// The later one.
        number: u32,
        /// What both changed.
        target: String,
    },
    /// A unit would apply what lasts by itself.
    #[error("--systemd-unit: boot parameters last by themselves: leave out --boot")]
    UnitForBoot,
    /// The time between two looks is none.
    #[error("--interval: {0}")]
    Interval(ParseTimeError),
    /// Rates over this time would be single events, or those of days.
    #[error(
        "--interval {text}: rates take between {} and {}; 0 shows totals since boot",
        spaced(INTERVAL_MIN_NS),
        spaced(INTERVAL_MAX_NS)
    )]
    IntervalLength {
        /// As it was written.
        text: String,
    },
    /// There is nobody to look at the interactive view.
    #[error("--live needs a terminal for input and output; without it the tables are printed")]
    NoTerminal,
}

impl TuneError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Plan(e) if e.is_of_machine() => FailureKind::Cannot,
            Self::Here(_)
            | Self::Journal(_)
            | Self::System(_)
            | Self::Machine(_)
            | Self::Unreadable(_)
            | Self::Covered { .. } => FailureKind::Cannot,
            _ => FailureKind::Usage,
        }
    }
}
