// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes of hand-overs: from one thread or process to another, by every means the kernel has.
//!
//! Context: SETUP in `check` and `begin`, HOT in the threads (`tailbound-rt`). Units: ns.
//! One engine for all of them: the sender wakes on its schedule, stamps and gives; the receiver
//! stamps when its receive call has returned. What differs is the medium (`tailbound-sys`), and
//! what each probe says of itself, a file each.
//! Source: docs/probes/handover.md.

mod begin;
mod group;
mod local;
mod options;

mod remote;
mod skew;

pub(crate) mod barrier;
pub(crate) mod condvar;
pub(crate) mod epoll;
pub(crate) mod eventfd;
pub(crate) mod futex;
pub(crate) mod io_uring;
pub(crate) mod mqueue;
pub(crate) mod pi_futex;
pub(crate) mod pipe;
pub(crate) mod semaphore;
pub(crate) mod signal;
pub(crate) mod socket;
pub(crate) mod sysv_semaphore;

pub(crate) use remote::ROLE;
