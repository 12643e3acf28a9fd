// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deterministic lab: real kernels booted in QEMU, time counted in executed instructions.
//!
//! Nothing here measures. Not here: what runs inside the guest
//! (`tailbound-guest`, `tailbound-run`), pictures (`tailbound-report`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arch;
pub mod bench;
mod benchmarks;
pub mod board;
pub mod boot;
mod boot_files;
mod boot_folder;
pub mod build;
pub mod cache;
pub mod cache_report;
pub mod cell;
pub mod cpio;
pub mod diagnose;
pub mod elf;
pub mod emulator;
pub mod error;
pub mod hash;
mod in_turn;
pub mod keep;
pub mod kernel;
pub mod machine;
pub mod matrix;
pub mod needs;
pub mod paths;
pub mod pool;
pub mod program;
pub mod progress;
pub mod progress_line;
pub mod qemu;
mod qmp;
pub mod repeat;
pub mod request;
pub mod run;
pub mod setup;
pub mod slices;
mod snapshot;
pub mod store;
pub mod symbol_file;
mod symbols;
pub mod target;
pub mod vary;
pub mod watching;

pub use arch::Arch;
pub use bench::{Bench, HostOptions};
pub use boot::{Phase, Progress};
pub use cell::{Cell, Prepared};
pub use emulator::Emulator;
pub use error::LabError;
pub use keep::keep;
pub use kernel::{BuildName, Kernel, KernelName};
pub use machine::{Accelerator, Machine};
pub use pool::{Happened, on_cores, run_all};
pub use request::{Labelled, Request, System};
pub use run::{Cost, Made, Means, run};
pub use slices::Slice;
pub use store::Store;
pub use target::Target;
