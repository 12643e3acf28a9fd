// SPDX-License-Identifier: MIT OR Apache-2.0
//! Copies of descriptors, where their numbers matter: dup2(2) to a number that is still a source would lose it.
//!
//! Source: fcntl(2), F_DUPFD_CLOEXEC.

use std::os::fd::{FromRawFd as _, OwnedFd};

use crate::error::{SysError, check};

/// A copy of a descriptor, of this number or a higher one.
pub(crate) fn duplicate_above(fd: i32, lowest: i32) -> Result<OwnedFd, SysError> {
    // SAFETY: fcntl(2) on a borrowed descriptor; it makes a new one.
    let raw = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, lowest) };
    check(raw, "fcntl", "F_DUPFD_CLOEXEC")?;
    // SAFETY: `raw` is a fresh descriptor, ours alone.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}
