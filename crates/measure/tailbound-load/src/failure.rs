// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a load cannot begin or go on: what was attempted, on what, what was refused, what would help.
//!
//! Context: SETUP in the worker and in its tasks; nothing is formatted before it fails.
//! Units: bytes, seconds.
//! The worker turns it into words once, in its last report; the measuring process hears those as
//! the reason of [`LoadError::Failed`].
//! Not here: what is wrong with a specification ([`LoadError`]).

use std::fmt::Display;
use std::io;
use std::sync::Arc;

use tailbound_core::{SpecError, units};
use tailbound_sys::SysError;
use tailbound_sys::program::Missing;

use crate::error::LoadError;

/// What helps where the kernel makes no more processes or threads.
pub(crate) const MORE_TASKS: &str = "raise `ulimit -u` or the control group's pids.max, or ask for";

/// Why a load cannot begin or go on. Cloned by the supervisor out of what its threads share.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// A system call that was refused.
    #[error(transparent)]
    System(#[from] SysError),
    /// An operation on a file, a socket or a thread.
    #[error(transparent)]
    Io(#[from] Arc<io::Error>),
    /// The worker was given words that are no specification.
    #[error(transparent)]
    Words(#[from] SpecError),
    /// The worker was given a specification that means nothing here.
    #[error(transparent)]
    Specification(#[from] LoadError),
    /// A program that is not to be had.
    #[error("{0}")]
    NotInstalled(Missing),
    /// What was attempted, or on what.
    #[error("{what}: {source}")]
    On { what: String, source: Box<Failure> },
    /// What would help.
    #[error("{source}: {remedy}")]
    Remedy { source: Box<Failure>, remedy: String },
    /// An option that is about one CPU and another.
    #[error("{option} needs at least 2 CPUs: {why}")]
    TooFewCpus { option: &'static str, why: &'static str },
    /// More memory, or more of a disk, than there is.
    #[error(
        "{what} need {} bytes: more than the {} that {whose} has to give (a tenth is left to others): {instead}",
        units::grouped(*wanted_bytes),
        units::grouped(*left_bytes)
    )]
    NoRoom {
        what: String,
        wanted_bytes: u64,
        left_bytes: u64,
        whose: String,
        instead: &'static str,
    },
    /// More descriptors than one process may have.
    #[error(
        "{needed} file descriptors are needed in one process ({source}): raise `ulimit -n`, or ask for {instead}"
    )]
    Descriptors { needed: u64, source: SysError, instead: &'static str },
    /// None of the folders will do; each with its reason.
    #[error("no {wanted} ({}): write path=", listed(refused))]
    NoFolder { wanted: &'static str, refused: Vec<Failure> },
    /// Tasks that were made and did not come to the start.
    #[error("only {ready} of {tasks} tasks were ready after {waited_s} s")]
    NotReady { ready: usize, tasks: usize, waited_s: u64 },
    /// A task or a program that ended though it should not have, or not so.
    #[error("{what} ended with {how}")]
    Ended { what: String, how: String },
    /// The worker was told to end by somebody else.
    #[error("its worker was sent signal {0}")]
    Signal(i32),
    /// Words of a program, or of a task in a process of its own, which can send nothing else.
    #[error("{0}")]
    Said(String),
    /// What was packed is not what came out.
    #[error(transparent)]
    Archive(#[from] crate::archive::Broken),
    /// A condition that a sentence describes completely.
    #[error("{0}")]
    Plain(&'static str),
}

fn listed(all: &[Failure]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<io::Error> for Failure {
    fn from(source: io::Error) -> Self {
        Self::Io(Arc::new(source))
    }
}

/// Says more about an error; builds the words only if there is one.
pub(crate) trait Explain: Sized {
    /// What comes of it.
    type Explained;
    /// `what` was attempted, or it was attempted on `what`.
    fn on(self, what: impl Display) -> Self::Explained;
    /// `remedy` would help.
    fn remedy(self, remedy: impl Display) -> Self::Explained;
}

impl Explain for Failure {
    type Explained = Self;

    fn on(self, what: impl Display) -> Self {
        Self::On { what: what.to_string(), source: Box::new(self) }
    }

    fn remedy(self, remedy: impl Display) -> Self {
        Self::Remedy { source: Box::new(self), remedy: remedy.to_string() }
    }
}

impl<T, E: Into<Failure>> Explain for Result<T, E> {
    type Explained = Result<T, Failure>;

    fn on(self, what: impl Display) -> Result<T, Failure> {
        self.map_err(|e| e.into().on(what))
    }

    fn remedy(self, remedy: impl Display) -> Result<T, Failure> {
        self.map_err(|e| e.into().remedy(remedy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_on_what_why_and_what_helps() {
        let refused = || Err::<(), _>(io::Error::from(io::ErrorKind::PermissionDenied));
        let said = |r: Result<(), Failure>| r.unwrap_err().to_string();
        assert_eq!(said(refused().on("/x")), "/x: permission denied");
        assert_eq!(
            said(refused().on("/x").remedy("write path=")),
            "/x: permission denied: write path="
        );
        let none = Failure::NoFolder {
            wanted: "disk to write to",
            refused: ["/a", "/b"].map(|dir| Failure::Plain("lies in memory").on(dir)).into(),
        };
        let wanted = "no disk to write to (/a: lies in memory; /b: lies in memory): write path=";
        assert_eq!(none.to_string(), wanted);
    }
}
