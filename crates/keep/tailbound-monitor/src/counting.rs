// SPDX-License-Identifier: MIT OR Apache-2.0
//! By what it is counted: programs in the kernel, or a trace instance where the kernel does not allow them.
//!
//! Context: SETUP ([`Counting::begin`]), COLD.

use std::path::Path;

use tailbound_host::{Root, TracefsError};
use tailbound_sys::SysError;

use crate::counter::{Counter, CounterError};
use crate::programs::Tells;
use crate::traced::Traced;
use crate::window::{Late, ThreadWindow};

/// By what to count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// By programs, and where the kernel does not allow them by a trace instance.
    Either,
    /// Programs in the kernel.
    Bpf,
    /// A trace instance.
    Instance,
}

/// Why nothing can be counted here.
#[derive(Debug, thiserror::Error)]
pub enum CountingError {
    /// Not by programs.
    #[error("by programs in the kernel (BPF): {0}")]
    Bpf(#[from] CounterError),
    /// Not by a trace instance.
    #[error("by a trace instance: {0}")]
    Instance(#[from] TracefsError),
    /// Neither way.
    #[error("by programs in the kernel (BPF): {0}; and by a trace instance: {1}")]
    Neither(CounterError, TracefsError),
}

/// See the module.
pub(crate) enum Counting {
    Bpf(Box<Counter>),
    Instance(Box<Traced>),
}

impl Counting {
    /// Begins to count; `notes` gets what a person should know of the way.
    ///
    /// # Errors
    /// [`CountingError`].
    pub(crate) fn begin(
        root: &Root,
        by: By,
        exe: &Path,
        threshold_ns: Option<u64>,
        tells: Tells,
        notes: &mut Vec<String>,
    ) -> Result<Self, CountingError> {
        let traced = |notes: &mut Vec<String>| Traced::begin(root, exe, threshold_ns, notes);
        if by == By::Instance {
            return Ok(Self::Instance(Box::new(traced(notes)?)));
        }
        let why = match Counter::begin(root, threshold_ns, tells) {
            Ok(counter) => return Ok(Self::Bpf(Box::new(counter))),
            Err(why) if by == By::Bpf => return Err(why.into()),
            Err(why) => why,
        };
        match traced(notes) {
            Ok(traced) => {
                notes.push(format!("counts by a trace instance, which costs more: {why}"));
                Ok(Self::Instance(Box::new(traced)))
            }
            Err(neither) => Err(CountingError::Neither(why, neither)),
        }
    }

    /// A word for it.
    pub(crate) fn way(&self) -> &'static str {
        match self {
            Self::Bpf(_) => "bpf",
            Self::Instance(_) => "instance",
        }
    }

    /// Has it to be looked at again and again, or does it lose something?
    pub(crate) fn is_looked_at(&self) -> bool {
        matches!(self, Self::Instance(_))
    }

    /// The programs, if it is those.
    pub(crate) fn counter(&self) -> Option<&Counter> {
        match self {
            Self::Bpf(counter) => Some(counter),
            Self::Instance(_) => None,
        }
    }

    pub(crate) fn so_far(&self) -> Vec<ThreadWindow> {
        match self {
            Self::Bpf(counter) => counter.so_far(),
            Self::Instance(traced) => traced.so_far(),
        }
    }

    /// Ends the window: what it had.
    ///
    /// # Errors
    /// What the kernel refuses: then the window goes on.
    pub(crate) fn turn(&mut self) -> Result<Vec<ThreadWindow>, SysError> {
        match self {
            Self::Bpf(counter) => counter.turn(),
            Self::Instance(traced) => Ok(traced.turn()),
        }
    }

    /// The late wake-ups since the last look.
    pub(crate) fn late(&mut self, each: &mut dyn FnMut(Late)) {
        match self {
            Self::Bpf(counter) => counter.late(each),
            Self::Instance(traced) => traced.late(each),
        }
    }

    /// Since the begin: what found no room (wake-ups, or events), and late ones that were counted alone.
    pub(crate) fn lost(&self) -> (u64, u64) {
        match self {
            Self::Bpf(counter) => counter.lost(),
            Self::Instance(traced) => traced.lost(),
        }
    }

    /// Ends, as what is here has not to be there any more.
    ///
    /// # Errors
    /// What the next start removes.
    pub(crate) fn end(&mut self) -> Result<(), TracefsError> {
        match self {
            Self::Bpf(_) => Ok(()),
            Self::Instance(traced) => traced.end(),
        }
    }
}
