// SPDX-License-Identifier: MIT OR Apache-2.0
//! The only unsafe code of the workspace: typed system calls, and threads that are created with their policy.
//!
//! Context: HOT in `clock`, `timer`, `cobalt`, `evl` (the ports of the measuring loop), `answer` and `counter`, SETUP and COLD
//! elsewhere. Units: ns unless named otherwise. One file a kernel facility; each unsafe
//! block names what makes it sound.
//! Not here: what the calls are for.
#![expect(unsafe_code, reason = "system calls; every other crate denies it")]
#![deny(missing_docs)]

pub mod addressee;
pub mod answer;
pub mod boot;
pub mod bpf;
pub mod broadcast;
pub mod calls;
pub mod cheap_calls;
pub mod clock;
pub mod coalescing;
pub mod cobalt;
pub mod companion;
pub mod counter;
pub mod deadline;
pub mod detached;
mod duplicate;
pub mod environment;
pub mod error;
pub mod evl;
pub mod file;
pub mod file_lock;
pub mod first_heap;
pub mod free_name;
pub mod futex;
pub mod given;
pub mod gpio;
pub mod handover;
pub mod held_calls;
pub mod hostinfo;
pub mod icmp;
mod ioctl;
pub mod ipc;
pub mod kernel_fs;
pub mod limits;
pub mod long_call;
pub mod long_wake;
pub mod mapping;
pub mod mem;
pub mod membarrier;
pub mod netns;
pub mod new_file;
pub mod objects;
pub mod only_reads;
pub mod owner;
pub mod paging;
pub mod perf;
pub mod perf_cpu;
mod perf_ring;
pub mod perf_stacks;
pub mod private;
pub mod process;
pub mod program;
pub mod ptrace;
mod raw_time;
pub mod readings;
pub mod resident;
pub mod robust;
pub mod sched;
pub mod scratch;
pub mod seccomp;
pub mod serial;
pub mod shared;
pub mod short_lived;
pub mod signal;
pub mod sleep;
mod socket_option;
pub mod spawn;
pub mod terminal;
pub mod thread;
mod time64;
pub mod timer;
pub mod timer_set;
pub mod turns;
mod uring;

pub use error::SysError;
