// SPDX-License-Identifier: MIT OR Apache-2.0
//! A wait for a pulse through io_uring: a poll of the line's file, with its read linked behind.
//!
//! Context: HOT (`wait`: one io_uring_enter(2) a pulse), SETUP (`check`, `new`). Units: ns, bytes.
//! The read begins when the poll is over, in the thread that waits; its file must never wait (O_NONBLOCK). What a wait began
//! goes on behind its end, and the next wait is for the same.
//! Source: io_uring_enter(2), io_uring_setup(2).

use std::os::fd::BorrowedFd;

use crate::answer::LOOK_MS;
use crate::error::SysError;
use crate::uring::{BYTES_MAX, Completing, Operation, Ring, Then};

/// What a wait came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    /// There is something to read, or so many bytes are read.
    Ready(usize),
    Nothing,
    Interrupted,
    Failed(i32),
}

/// What follows the poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behind {
    /// Nothing: the caller reads.
    Caller,
    /// A read of so many bytes at most.
    Read(u32),
}

/// An end of what is under way comes at once.
const END_NS: i64 = 100 * super::MILLISECOND_NS;

/// A ring in which at most one wait is under way.
pub(super) struct RingWait {
    ring: Ring,
    /// Results that the wait under way will have; 0: none is.
    due: u32,
}

impl RingWait {
    /// Can this machine wait so?
    ///
    /// # Errors
    /// ENOSYS, EPERM: the kernel has no io_uring, or refuses it.
    pub(super) fn check() -> Result<(), SysError> {
        Self::new().map(drop)
    }

    /// For the calling thread alone.
    ///
    /// # Errors
    /// As [`Self::check`].
    pub(super) fn new() -> Result<Self, SysError> {
        let ring = Ring::new(Completing::InWait)?;
        ring.has_limits()?;
        Ok(Self { ring, due: 0 })
    }

    /// Waits until there is something to read, for at most `left_ns` and [`LOOK_MS`].
    pub(super) fn wait(&mut self, file: BorrowedFd<'_>, behind: Behind, left_ns: i64) -> Waited {
        if self.due == 0 {
            self.due = match behind {
                Behind::Caller => {
                    self.ring.queue(Operation::PollIn, file, Then::Nothing);
                    1
                }
                Behind::Read(bytes) => {
                    self.ring.queue(Operation::PollIn, file, Then::Next);
                    self.ring.queue(Operation::Read(bytes), file, Then::Nothing);
                    2
                }
            };
        }
        let span_ns = left_ns.min(LOOK_MS * super::MILLISECOND_NS);
        let entered = self.ring.enter(self.due, Some(span_ns));
        if self.ring.results() < self.due {
            return match entered {
                Ok(()) | Err(libc::ETIME) => Waited::Nothing,
                Err(libc::EINTR) => Waited::Interrupted,
                Err(errno) => Waited::Failed(errno),
            };
        }
        self.due = 0;
        let polled = self.ring.next_result().unwrap_or(-libc::EIO);
        let read = match behind {
            Behind::Caller => 0,
            Behind::Read(_) => self.ring.next_result().unwrap_or(-libc::EIO),
        };
        match (polled, read) {
            (errno, _) if errno < 0 => Waited::Failed(errno.saturating_neg()),
            (_, read) if read == -libc::EAGAIN => Waited::Nothing,
            (_, read) if read == -libc::EINTR => Waited::Interrupted,
            (_, errno) if errno < 0 => Waited::Failed(errno.saturating_neg()),
            (_, read) => Waited::Ready(usize::try_from(read).unwrap_or(0)),
        }
    }

    /// Ends the wait that is under way: until then the file is open, whoever closes it.
    pub(super) fn end(&mut self, file: BorrowedFd<'_>) {
        if self.due == 0 {
            return;
        }
        self.ring.queue(Operation::EndPoll, file, Then::Nothing);
        // Of a ring that cannot be told there is nothing more to be had: the kernel ends it behind its drop.
        let _ended = self.ring.enter(self.due.saturating_add(1), Some(END_NS));
        while self.ring.next_result().is_some() {}
        self.due = 0;
    }

    /// What the last read brought, as long as no wait is under way.
    pub(super) fn bytes(&self) -> [u8; BYTES_MAX] {
        self.ring.bytes()
    }
}
