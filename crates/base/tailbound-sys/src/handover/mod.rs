// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries a hand-over from a thread or process to another: one file per kind of medium.
//!
//! Context: HOT in the ends ([`Channel::giver`], [`Channel::taker`]), SETUP elsewhere.
//! An end is made in the thread that arms and moves to the one that uses it. Whatever a medium
//! needs beyond memory is a descriptor, which dies with its holders; the one exception, System V
//! semaphores, is removed when its channel is dropped (and see [`Channel::left_behind`]).
//! Not here: when something is handed over, and what is timed (`tailbound-rt`).

mod channel;
mod descriptor;
mod epoll;
mod library;
mod medium;
mod mqueue;
mod signal;
mod site;
mod sysv;
mod uring_pipe;
mod word;

pub use channel::Channel;
pub use medium::{Carrier, Medium, NoMedium};
pub use sysv::{own_ipc_namespace, remove_semaphores};
