// SPDX-License-Identifier: MIT OR Apache-2.0
//! Room on a disk, reserved before it is needed; files that are read without waiting.
//!
//! Context: SETUP. Units: bytes. Source: fallocate(2), open(2).

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd as _, RawFd};
use std::os::unix::ffi::OsStrExt as _;
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

/// Opens `path` for reading, in one call: musl's open(3) asks for `FD_CLOEXEC` a second time, for kernels before 2.6.23.
///
/// # Errors
/// Those of open(2).
pub fn open_kernels(path: &Path) -> io::Result<File> {
    let path = CString::new(path.as_os_str().as_bytes())?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC | libc::O_LARGEFILE;
    loop {
        // SAFETY: openat(2) on a NUL-terminated string.
        let made = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags) };
        match RawFd::try_from(made) {
            // SAFETY: the kernel made it for us, and nobody else has it.
            Ok(fd) if fd >= 0 => return Ok(unsafe { File::from_raw_fd(fd) }),
            _ => {}
        }
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
    }
}
