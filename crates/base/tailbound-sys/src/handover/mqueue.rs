// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a POSIX message queue whose name is gone as soon as it is open.
//!
//! Context: HOT (`End`), SETUP (`open`). Source: mq_overview(7), mq_open(2).
//! The raw calls, because a C library need not have them.

use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::Arc;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use crate::error::{SysError, check};

const BYTES: usize = 8;
/// One under way, and the last.
const MESSAGES: libc::c_long = 2;

/// Opens a queue that nobody else can find.
pub(super) fn open() -> Result<(OwnedFd, OwnedFd), SysError> {
    let name = format!("tailbound-{}-{}", std::process::id(), crate::sched::gettid());
    let c_name = CString::new(name.as_str())
        .map_err(|_| SysError::code("mq_open", name.as_str(), libc::EINVAL))?;
    // As the kernel has it: flags, room, size of a message, and what is in it.
    let attributes: [libc::c_long; 8] = [0, MESSAGES, BYTES as libc::c_long, 0, 0, 0, 0, 0];
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated name without slash, and a live attribute block.
    let raw = unsafe {
        libc::syscall(libc::SYS_mq_open, c_name.as_ptr(), flags, 0o600, attributes.as_ptr())
    };
    let raw = check(raw, "mq_open", &name)
        .map_err(|e| e.needs("a kernel with CONFIG_POSIX_MQUEUE and room in RLIMIT_MSGQUEUE"))?;
    // SAFETY: a fresh descriptor, ours alone; the name is NUL-terminated.
    let queue = unsafe {
        libc::syscall(libc::SYS_mq_unlink, c_name.as_ptr());
        OwnedFd::from_raw_fd(i32::try_from(raw).unwrap_or(-1))
    };
    let other = queue.try_clone().map_err(|_| SysError::last("dup", "message queue"))?;
    Ok((queue, other))
}

/// Either end.
pub(super) struct End(pub(super) Arc<OwnedFd>);

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

impl Give for End {
    fn give(&mut self) -> Result<(), i32> {
        let bytes = [1u8; BYTES];
        loop {
            // SAFETY: mq_timedsend(2) reads the live array; without a time it may block.
            let sent = unsafe {
                libc::syscall(
                    libc::SYS_mq_timedsend,
                    self.0.as_raw_fd(),
                    bytes.as_ptr(),
                    BYTES,
                    0,
                    std::ptr::null::<u8>(),
                )
            };
            match (sent, errno()) {
                (0, _) => return Ok(()),
                (_, libc::EINTR) => {}
                (_, errno) => return Err(errno),
            }
        }
    }
}

impl Take for End {
    fn take(&mut self) -> Wake {
        let mut bytes = [0u8; BYTES];
        // SAFETY: mq_timedreceive(2) writes at most the live array's length.
        let got = unsafe {
            libc::syscall(
                libc::SYS_mq_timedreceive,
                self.0.as_raw_fd(),
                bytes.as_mut_ptr(),
                BYTES,
                std::ptr::null_mut::<u32>(),
                std::ptr::null::<u8>(),
            )
        };
        if got >= 0 {
            return Wake::Due;
        }
        match errno() {
            libc::EINTR => Wake::Interrupted,
            errno => Wake::Failed(errno),
        }
    }
}
