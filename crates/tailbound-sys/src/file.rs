// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room on a disk, reserved before it is needed.
//!
//! Context: SETUP. Units: bytes. Source: fallocate(2).

use std::fs::File;
use std::os::fd::AsRawFd;

use crate::error::SysError;

/// Reserves `bytes` for `file` without changing its length.
///
/// # Errors
/// ENOSPC, EDQUOT, EFBIG. A file system that cannot reserve is not an error.
pub fn reserve(file: &File, bytes: u64) -> Result<(), SysError> {
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // SAFETY: a live descriptor and numbers.
    let result =
        unsafe { libc::fallocate64(file.as_raw_fd(), libc::FALLOC_FL_KEEP_SIZE, 0, bytes) };
    if result == 0 {
        return Ok(());
    }
    let error = SysError::last("fallocate", "");
    match error.errno {
        libc::EOPNOTSUPP | libc::ENOSYS | libc::ESPIPE | libc::ENODEV | libc::EINVAL => Ok(()),
        _ => Err(error),
    }
}
