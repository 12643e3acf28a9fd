// SPDX-License-Identifier: MIT OR Apache-2.0
//! A system call that a watched thread is in.
//!
//! Units: ns. Not here: names and numbers of calls (`calls`), what a thread may sleep in (`judge`).

/// A system call that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Call {
    pub(super) id: i64,
    /// Empty: not known by name.
    pub(super) name: &'static str,
    pub(super) args: [u64; 4],
    pub(super) t_ns: u64,
}

/// Is the thread in a system call?
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum InCall {
    /// It began before the recording, or events were lost.
    #[default]
    Unknown,
    No,
    Yes(Call),
}
