// SPDX-License-Identifier: MIT OR Apache-2.0
//! The characteristic workloads: what the machine is made to do while wake-ups are timed.
//!
//! Context: SETUP and COLD in the measuring process; the work itself runs elsewhere.
//! Loads never run inside the measuring process. [`Loads::start`] starts for each load a
//! worker, `<exe> load-worker <spec>`, which calls [`worker_main`]; a socket between them
//! carries cumulative counts one way and `stop` the other. When the measuring process ends,
//! however it ends, the socket closes and the kernel sends the worker its death signal;
//! where permitted the worker is the init of a PID namespace, so that everything a load
//! started dies with it.
//! Not here: when to start and stop, and what is written to the run file (`tailbound-run`).
//!
//! ```text
//! hackbench.rs  messages between many tasks     options.rs   what a spec may say
//! memory.rs     random accesses beyond the cache loads.rs     the measuring process's side
//! ping.rs       ICMP echo                        worker.rs    the worker's side
//! spin.rs       arithmetic; clock and sleep      protocol.rs  what they say to each other
//! fork.rs       processes that end at once       machine.rs   memory and caches to size by
//! mmap.rs       mappings touched and dropped     storm.rs     what fork, mmap, file share
//! file.rs       files written, read, dropped     command.rs   a shell command
//! compile.rs    C made up and compiled           works.rs     loads with an end, by name
//! work.rs       one of them, done and timed      launch.rs    starts a worker
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod command;
mod compile;
mod error;
mod file;
mod fork;
mod hackbench;
mod launch;
mod loads;
mod machine;
mod memory;
mod mmap;
mod options;
mod ping;
mod protocol;
mod spin;
mod storm;
mod work;
mod worker;
mod works;

pub use error::LoadError;
pub use loads::{LoadEnd, LoadSample, Loads, StartOptions};
pub use options::{CATALOGUE, LoadKind, check};
pub use work::do_work;
pub use worker::{STATUS_FD, worker_main};
pub use works::{WORKS, WorkKind, work};
