// SPDX-License-Identifier: MIT OR Apache-2.0
//! Lines on which pulses from outside arrive and answers leave, and the four ways of waiting for one.
//!
//! Context: HOT (the `PulseLine` methods), SETUP (`open`). Units: ns on the run's clock; ms for the looks at the stop flag.
//! Source: ppoll(2), io_uring_enter(2).

use std::os::fd::{AsRawFd as _, BorrowedFd};

use tailbound_rt::answer::Stamp;
use tailbound_rt::answer::clocks::{ClockPair, Compared};

use crate::clock::{now_ns, span};

mod datagrams;
mod end_alarm;
pub mod gpio;
mod ring_wait;
pub mod sender;
pub mod uart;
pub mod udp;

/// How a thread waits for the next pulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// ppoll(2), then a read that does not wait.
    Poll,
    /// A read that waits.
    Read,
    /// io_uring_enter(2): a poll with the read linked behind it.
    IoUring,
    /// Reads that do not wait, over and over: the thread never sleeps.
    Busy,
}

/// A wait that is over by itself lasts at most so long: the end of the run is seen by then.
const LOOK_MS: i64 = 50;
const MILLISECOND_NS: i64 = 1_000_000;

/// What ppoll(2) came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ready {
    Yes,
    Gone,
    No,
    Interrupted,
    Failed(i32),
}

/// Waits until there is something to read, for at most `left_ns` and [`LOOK_MS`].
#[inline]
fn ready(fd: BorrowedFd<'_>, left_ns: i64) -> Ready {
    let mut poll = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let span = span(left_ns.min(LOOK_MS * MILLISECOND_NS));
    // SAFETY: ppoll(2) reads one live timespec, reads and writes one live pollfd; the mask stays.
    let n = unsafe { libc::ppoll(&raw mut poll, 1, &raw const span, std::ptr::null()) };
    match n {
        1 if poll.revents & libc::POLLIN != 0 => Ready::Yes,
        1 if poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0 => Ready::Gone,
        0 | 1 => Ready::No,
        _ => match last_errno() {
            libc::EINTR => Ready::Interrupted,
            errno => Ready::Failed(errno),
        },
    }
}

#[inline]
fn last_errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// A stamp on another clock as one of the run's, and what the other clock reads now. `ran_ns` was read just before.
#[inline]
fn stamped(
    clocks: &mut ClockPair,
    [run, other]: [libc::clockid_t; 2],
    ran_ns: i64,
    stamp_ns: Option<i64>,
) -> (Stamp, i64) {
    let other_ns = now_ns(other);
    let compared = clocks.compare(ran_ns, other_ns, now_ns(run));
    let stamp = match (stamp_ns, compared) {
        (None, _) => Stamp::Absent,
        (Some(_), Compared::Set) => Stamp::ClockSet,
        (Some(stamp_ns), Compared::Steady(distance)) => Stamp::Kernel {
            arrived_ns: stamp_ns.wrapping_sub(distance.ahead_ns),
            error_ns: distance.error_ns,
        },
    };
    (stamp, other_ns)
}

#[cfg(test)]
mod testing {
    use tailbound_rt::answer::{Arrival, PulseLine};

    use super::By;
    use super::ring_wait::RingWait;

    /// All ways of waiting that this machine has.
    pub(super) fn ways() -> Vec<By> {
        let mut ways = vec![By::Poll, By::Read, By::Busy];
        match RingWait::check() {
            Ok(()) => ways.push(By::IoUring),
            Err(e) => tailbound_testing::skip("io_uring", e),
        }
        ways
    }

    /// The next arrival that is not nothing.
    pub(super) fn arrival(line: &mut impl PulseLine) -> Arrival {
        loop {
            let until_ns = line.now_ns().saturating_add(20_000_000_000);
            match line.wait(until_ns) {
                Arrival::Nothing | Arrival::Interrupted => {}
                other => return other,
            }
        }
    }
}
