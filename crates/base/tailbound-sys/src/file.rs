// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room on a disk, reserved before it is needed; files that are read without waiting.
//!
//! Context: SETUP. Units: bytes. Source: fallocate(2), open(2).

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

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

/// Opens `path` for reading; a read that would wait for data fails with EAGAIN instead.
///
/// # Errors
/// Those of open(2).
pub fn open_without_waiting(path: &Path) -> io::Result<File> {
    File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)
}
