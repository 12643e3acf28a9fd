// SPDX-License-Identifier: MIT OR Apache-2.0
//! Interrupts from one CPU to the others on demand: membarrier(2) in its expedited form asks
//! every CPU that runs a thread of this process to execute a barrier, by an interrupt.
//!
//! Context: HOT of a load (`barrier`), SETUP (`register`).
//! Source: membarrier(2), MEMBARRIER_CMD_PRIVATE_EXPEDITED.

use crate::error::{SysError, check};

/// From the kernel's include/uapi/linux/membarrier.h.
const PRIVATE_EXPEDITED: libc::c_int = 1 << 3;
const REGISTER_PRIVATE_EXPEDITED: libc::c_int = 1 << 4;

fn call(command: libc::c_int) -> Result<(), SysError> {
    // SAFETY: membarrier(2) on integers.
    let done = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    check(done, "membarrier", "").map(drop)
}

/// Says that this process will ask for barriers.
///
/// # Errors
/// ENOSYS before Linux 4.14 or without CONFIG_MEMBARRIER.
pub fn register() -> Result<(), SysError> {
    call(REGISTER_PRIVATE_EXPEDITED)
}

/// Interrupts every other CPU that runs a thread of this process, and waits for all.
///
/// # Errors
/// EPERM before [`register`].
pub fn barrier() -> Result<(), SysError> {
    call(PRIVATE_EXPEDITED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_registered_process_has_barriers() {
        match register() {
            Ok(()) => assert_eq!(barrier(), Ok(())),
            Err(e) => assert_eq!(e.errno, libc::ENOSYS),
        }
    }
}
