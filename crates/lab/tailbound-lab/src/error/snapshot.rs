// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a guest's state was not saved, or not gone on from.

use std::io;

use tailbound_core::FailureKind;

use crate::boot::Ended;

/// A snapshot that was not made, or is of no use.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The guest worked when its state was to be saved.
    #[error(
        "the guest was not asleep when it was to be stopped, and would not repeat: move that instant with `--append tailbound.settle_ms=3100`"
    )]
    Awake,
    /// The state cannot be received.
    #[error("the guest's state could not be saved: {0}")]
    Unsaved(io::Error),
    /// QEMU cannot send the state.
    #[error("QEMU could not send the guest's state")]
    Unsent,
    /// QEMU does not take a snapshot that it made.
    #[error("QEMU goes on from no snapshot of its own")]
    NotTaken,
    /// There is none to begin from.
    #[error("there is no snapshot of this guest to begin from: leave out --no-snapshot")]
    None,
    /// The guest is another one before it takes its job.
    #[error("this guest has its job from the boot on")]
    JobFromBoot,
    /// The run ended before the instant at which it was to be stopped.
    #[error("the run was over before that instant")]
    Over,
    /// The guest did not reach the instant at which it was to be stopped.
    #[error("the guest did not come there: {ended:?}")]
    NotReached {
        /// How it ended.
        ended: Ended,
    },
}

impl SnapshotError {
    /// Did the guest not come where its state is saved, or was it not asleep there?
    pub(super) fn is_of_kernel(&self) -> bool {
        matches!(self, Self::Awake | Self::Over | Self::NotReached { .. })
    }

    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Awake
            | Self::Unsaved(_)
            | Self::Unsent
            | Self::NotTaken
            | Self::None
            | Self::JobFromBoot
            | Self::Over
            | Self::NotReached { .. } => FailureKind::Cannot,
        }
    }
}
