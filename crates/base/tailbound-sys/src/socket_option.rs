// SPDX-License-Identifier: MIT OR Apache-2.0
//! Options of sockets.
//!
//! Source: setsockopt(2), socket(7).

use std::os::fd::{AsRawFd as _, BorrowedFd};

use crate::error::{SysError, check};

/// setsockopt(2) with a plain struct.
pub(crate) fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
    what: &str,
) -> Result<(), SysError> {
    // SAFETY: setsockopt(2) reads the live value of the given length.
    let done = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            option,
            std::ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    };
    check(done, "setsockopt", what).map(drop)
}
