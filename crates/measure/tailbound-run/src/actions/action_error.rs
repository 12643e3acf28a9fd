// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why an action at a threshold means nothing, or cannot be performed.

use std::io;
use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_record::ObserveError;
use tailbound_sys::SysError;

use crate::option_error::OptionError;

/// An action that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// A value cannot be read.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// There is no such action.
    #[error(
        "{flag} `{typed}`: the actions are trace[,file=FILE], signal,num=N,pid=PID, shell,command=CMD and continue"
    )]
    UnknownAction {
        /// The option.
        flag: &'static str,
        /// Its value.
        typed: String,
    },
    /// The action has other parts.
    #[error("{flag} `{typed}`: write {wanted}")]
    Action {
        /// The option.
        flag: &'static str,
        /// Its value.
        typed: String,
        /// How it is written.
        wanted: &'static str,
    },
    /// No signal to a process.
    #[error(
        "--signal `{typed}`: write the number of a process, or `parent`, and a signal if it is not USR1: 4711:TERM"
    )]
    Signal {
        /// What was written.
        typed: String,
    },
    /// There is no command.
    #[error("{flag}: write a command")]
    NoCommand {
        /// The option.
        flag: &'static str,
    },
    /// Two files.
    #[error("--trace: there is one trace, and two files are named: {} and {}", .one.display(), .other.display())]
    TwoTraces {
        /// The first.
        one: PathBuf,
        /// The second.
        other: PathBuf,
    },
    /// One of many runs.
    #[error(
        "--on-late, --on-threshold, --signal, --on-end and --trace are for one run, and --rounds makes several"
    )]
    OfOneRun,
    /// The run ends where it is to go on.
    #[error(
        "--on-threshold continue: --until exceedance ends the run there; leave one of them out"
    )]
    GoesOnAndEnds,
    /// Two recorders at once.
    #[error(
        "--trace cannot be given with --observe or --break-irq: it keeps the events of --blame, and each would measure the other's cost"
    )]
    TraceAndObserve,
    /// Two recorders at once.
    #[error(
        "--break-irq cannot be given with --blame: it needs --observe, and each would measure the other's cost"
    )]
    IrqAndBlame,
    /// Nothing tells the interrupt's part.
    #[error(
        "--break-irq: the interrupt's part of a wake-up is known with --observe timerlat or tracepoints alone"
    )]
    NoInterrupts,
    /// Nothing says what is late.
    #[error(
        "--on-late, --on-threshold and --signal: nothing says what is late; add --deadline TIME, --break TIME or --break-irq TIME"
    )]
    NoThreshold,
    /// A process cannot be signalled.
    #[error("--signal: {0}")]
    Recipient(SysError),
    /// There is no trace.
    #[error("--trace: {0}")]
    Untraceable(ObserveError),
    /// The file of the trace.
    #[error("--trace {}: {why}; choose another name, or give --force to overwrite a file", .path.display())]
    TraceFile {
        /// Which.
        path: PathBuf,
        /// Why it cannot be made.
        why: io::Error,
    },
}

impl ActionError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Untraceable(_) => FailureKind::Cannot,
            Self::Recipient(e) if e.is_permission() => FailureKind::Cannot,
            Self::TraceFile { why, .. } if why.kind() == io::ErrorKind::PermissionDenied => {
                FailureKind::Cannot
            }
            _ => FailureKind::Usage,
        }
    }
}
