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
//! kind.rs       what a load is                  catalogue.rs every load, by name
//! options.rs    reads a specification           phase.rs     when a load works
//! loads.rs      the measuring process's side    worker.rs    the worker's side
//! protocol.rs   what they say to each other     launch.rs    starts a worker
//! storm.rs      tasks that are processes        spin.rs      tasks that are threads
//! failure.rs    why a load cannot go on         error.rs     why there is no load
//! child.rs      programs that a load starts     machine.rs   memory and caches to size by
//! benchmarks.rs loads with an end, by name      benchmark.rs one of them, run and timed
//! ```
//!
//! and the file of each load, with its `KIND`, which `catalogue.rs` lists. Parts of loads are groups
//! (`machine`), tree (`compile`), archive (`download`) and the files of `culprit`.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod alone;
mod archive;
mod benchmark;
mod benchmarks;
mod calls;
mod catalogue;
mod child;
mod command;
mod compile;
mod culprit;
mod disk;
mod download;
mod error;
mod failure;
mod file;
mod fork;
mod groups;
mod hackbench;
mod interrupts;
mod kind;
mod launch;
mod loads;
mod machine;
mod memory;
mod mmap;
mod options;
pub mod pages;
mod phase;
mod ping;
mod ping_pong;
mod protocol;
mod spin;
mod storm;
mod stress_ng;
mod syscalls;
mod timers;
mod tlb;
mod tree;
mod worker;

pub use alone::{LoadEvent, LoadTotals};
pub use benchmark::run_benchmark;
pub use benchmarks::{BENCHMARKS, BenchmarkKind, benchmark};
pub use catalogue::{CATALOGUE, PHASE, command_of, commands_in};
pub use error::LoadError;
pub use kind::LoadKind;
pub use loads::{LoadEnd, LoadSample, Loads, StartOptions};
pub use machine::available_bytes;
pub use options::check;
pub use phase::PhaseChange;
pub use worker::{STATUS_FD, worker_main};
