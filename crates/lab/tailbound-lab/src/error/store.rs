// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why the lab's folder, with its kernels, builds and snapshots, is not used.
//!
//! Units: MiB.

use std::path::PathBuf;

use tailbound_core::FailureKind;
use tailbound_sys::owner::Foreign;

use crate::cache::ParseLimitError;

/// A store that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing says where it is.
    #[error("there is no HOME: set TAILBOUND_LAB to a folder for kernels")]
    NoHome,
    /// Somebody else may change it.
    #[error("the lab's folder {} is not used: {foreign}, and {remedy}: name another one in TAILBOUND_LAB, or give this one (and those above it) to its user alone", .folder.display())]
    Foreign {
        /// The store.
        folder: PathBuf,
        /// The level that is not the caller's alone.
        foreign: Foreign,
        /// What this user does.
        remedy: &'static str,
    },
    /// The name of a room leads out of it.
    #[error("{name:?} is no name of a folder in the store")]
    Name {
        /// The name.
        name: String,
    },
    /// Another process uses what would be removed.
    #[error("another tailbound works in {}: nothing was removed", .folder.display())]
    InUse {
        /// The store.
        folder: PathBuf,
    },
    /// A limit in the environment is none.
    #[error("{variable}: {source}")]
    Limit {
        /// The variable.
        variable: &'static str,
        /// What is wrong with it.
        source: ParseLimitError,
    },
    /// There is not enough room on its disk.
    #[error("{} has {free_mib} MiB free, and {wanted_mib} are needed: name another folder in TAILBOUND_LAB, or see `tailbound lab cache`", .folder.display())]
    Full {
        /// Where.
        folder: PathBuf,
        /// What is free.
        free_mib: u64,
        /// What is needed.
        wanted_mib: u64,
    },
}

impl StoreError {
    /// Who can mend it.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Name { .. } | Self::Limit { .. } => FailureKind::Usage,
            Self::NoHome | Self::Foreign { .. } | Self::InUse { .. } | Self::Full { .. } => {
                FailureKind::Cannot
            }
        }
    }
}
