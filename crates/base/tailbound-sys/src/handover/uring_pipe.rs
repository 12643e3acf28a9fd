// SPDX-License-Identifier: MIT OR Apache-2.0
//! Hand-over by a pipe that is written and read through io_uring.
//!
//! Context: HOT (one io_uring_enter each), SETUP (`new`).
//! The receiver's read is queued before it waits: one call submits it and waits for its end.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use tailbound_rt::Wake;
use tailbound_rt::handover::{Give, Take};

use crate::error::SysError;
use crate::uring::{Completing, Operation, Ring, Then};

/// What is handed over.
const BYTES: u32 = 8;

/// Is there an io_uring here?
///
/// # Errors
/// ENOSYS, EPERM.
pub(super) fn available() -> Result<(), SysError> {
    Ring::new(Completing::AtOnce).map(drop)
}

/// Submits what is queued and waits for its end; its result, or `None` where a signal came first.
fn ended(ring: &Ring) -> Result<Option<i32>, i32> {
    let entered = ring.enter(1, None);
    match (ring.next_result(), entered) {
        (Some(result), _) => Ok(Some(result)),
        (None, Ok(()) | Err(libc::EINTR)) => Ok(None),
        (None, Err(errno)) => Err(errno),
    }
}

/// The sender's end.
pub(super) struct Writer {
    ring: Ring,
    fd: Arc<OwnedFd>,
}

impl Writer {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Result<Self, SysError> {
        Ok(Self { ring: Ring::new(Completing::AtOnce)?, fd })
    }
}

impl Give for Writer {
    fn give(&mut self) -> Result<(), i32> {
        self.ring.queue(Operation::Write(BYTES), self.fd.as_fd(), Then::Nothing);
        loop {
            match ended(&self.ring)? {
                Some(result) if result < 0 => return Err(result.saturating_neg()),
                Some(_) => return Ok(()),
                None => {}
            }
        }
    }
}

/// The receiver's end.
pub(super) struct Reader {
    ring: Ring,
    fd: Arc<OwnedFd>,
    queued: bool,
}

impl Reader {
    pub(super) fn new(fd: Arc<OwnedFd>) -> Result<Self, SysError> {
        Ok(Self { ring: Ring::new(Completing::AtOnce)?, fd, queued: false })
    }
}

impl Take for Reader {
    fn take(&mut self) -> Wake {
        if !self.queued {
            self.ring.queue(Operation::Read(BYTES), self.fd.as_fd(), Then::Nothing);
            self.queued = true;
        }
        match ended(&self.ring) {
            Ok(None) => Wake::Interrupted,
            Ok(Some(result)) => {
                self.queued = false;
                match result {
                    0 => Wake::Failed(libc::EPIPE),
                    r if r < 0 => Wake::Failed(r.saturating_neg()),
                    _ => Wake::Due,
                }
            }
            Err(errno) => Wake::Failed(errno),
        }
    }
}
