// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a load is: a [`LoadKind`] before it starts, a [`Load`] while it works.
//!
//! Help texts and messages are made of [`LoadKind`]; the worker's supervisor asks
//! [`Load`] a few times a second. Units: what a load counts; ns of CLOCK_MONOTONIC.
//! Each load has a file with its `KIND`: words, options, start. `catalogue` lists them.
//! Not here: the reading of one option (`options`), the supervisor (`worker`).

use std::fmt;
use std::os::fd::BorrowedFd;
use std::process::ExitStatus;

use tailbound_core::Spec;
use tailbound_sys::process::Pid;

use crate::error::LoadError;
use crate::failure::Failure;
use crate::options::Reader;

/// One kind of load.
#[derive(Clone, Copy, Debug)]
pub struct LoadKind {
    /// Its name in a specification.
    pub name: &'static str,
    /// What it counts.
    pub unit: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// Its options and what they mean; every load has those of [`crate::PHASE`] besides.
    pub options: &'static [(&'static str, &'static str)],
    /// Does its count stand still for seconds while it works?
    pub(crate) coarse: bool,
    /// The command that a specification has it start, where somebody wrote one.
    pub(crate) command: Option<fn(&Spec) -> Option<String>>,
    /// Reads and checks its options. Starts nothing: the measuring process asks too.
    pub(crate) prepare: fn(&Reader<'_>) -> Result<Start, LoadError>,
}

/// The option that every load has, because the worker is started on these CPUs.
pub(crate) const CPUS: (&str, &str) = ("cpus", "CPUs it may use, for example 0-1,3 (default: all)");

/// Takes what the person who asked for the load should know about it, a line at a time.
pub(crate) type Note<'a> = &'a mut dyn FnMut(String);

/// A load at work, or why it could not begin.
pub(crate) type Started = Result<Box<dyn Load>, Failure>;

/// A load whose options are read, ready to start in its worker.
pub(crate) struct Start(Box<dyn FnOnce(Note<'_>) -> Started>);

impl Start {
    /// What `start` makes of `options`.
    pub(crate) fn new<O: 'static>(options: O, start: fn(O, Note<'_>) -> Started) -> Self {
        Self(Box::new(move |note| start(options, note)))
    }

    /// Starts the load.
    pub(crate) fn start(self, note: Note<'_>) -> Started {
        (self.0)(note)
    }
}

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Start")
    }
}

/// How it goes with a load.
pub(crate) enum Turn {
    Going,
    /// Its own end was reached, in the time given.
    Done {
        elapsed_ns: u64,
    },
    /// It ended by itself, without an error.
    Ended(String),
}

/// A load at work, seen from the supervisor.
pub(crate) trait Load {
    /// Units of work done so far.
    fn count(&self) -> u64;
    /// Told which children have ended since the last turn; an error is the load's failure.
    fn turn(&mut self, ended: &[(Pid, ExitStatus)]) -> Result<Turn, Failure>;
    /// A descriptor that asks for a turn when it is readable.
    fn source(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}
