// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where run files go: to whoever hands them in.
//!
//! Not here: the folder that keeps them, and the server (`tailbound-agent`), which a build may be without.

use std::io;

use serde::Serialize;

/// How the run files stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct OutboxState {
    /// Files that wait.
    pub waiting: u64,
    /// Their bytes, packed.
    pub waiting_bytes: u64,
    /// Files that the server has, since the monitor began.
    pub sent: u64,
    /// Files that had to go unsent because there were too many: the oldest, ever.
    pub dropped: u64,
    /// Files that the server does not take; they are kept for a person.
    pub refused: u64,
}

/// Takes run files.
pub trait Outbox {
    /// Keeps a file that goes on, in the place of what was kept so before: it is what is left where the power goes.
    ///
    /// # Errors
    /// The disk.
    fn keep(&mut self, so_far: &[u8]) -> io::Result<()>;
    /// Takes a whole file; what was kept of it goes.
    ///
    /// # Errors
    /// The disk. It may be given again.
    fn put(&mut self, whole: &[u8]) -> io::Result<()>;
    /// How they stand.
    fn state(&self) -> OutboxState;
}
