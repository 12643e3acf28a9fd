// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reads the machine: what it is ([`inventory()`]), which CPUs can be measured ([`Cpus`]),
//! and disturbances while a run goes on ([`Watch`]). Everything is read under an injectable
//! [`Root`], so that the same code runs over trees of files in tests.
//!
//! Context: SETUP, COLD. Nothing here changes the machine, but for [`tracefs`], which makes
//! and removes trace instances; nothing here stops a run: what cannot be read is unknown,
//! with its reason.
//! Not here: system calls (`tailbound-sys`), the vocabulary of facts and findings
//! (`tailbound-core`), what to do about it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
// Numbers of kernels and of captured machines: arithmetic saturates, or says why not.
#![cfg_attr(
    not(test),
    deny(clippy::arithmetic_side_effects, clippy::indexing_slicing, clippy::unwrap_used)
)]

mod capabilities;
pub mod cgroups;
mod clock_id;
pub mod cpus;
mod disturbances;
pub mod elf;
mod group_limits;
pub mod interrupts;
pub mod inventory;
mod kconfig;
mod kernel_files;
pub mod kmsg;
mod lockdown;
pub mod machine_lock;
mod machine_readings;
mod missing;
mod policy;
pub mod preemptirq;
pub mod pressure;
mod process_choice;
pub mod procstat;
mod realtime_right;
pub mod resctrl;
pub mod root;
mod root_tree;
pub mod runnable;
mod schedstat;
pub mod smi;
mod stat;
mod tasks;
pub mod threads;
pub mod tracefs;
mod tracing_right;
pub mod watch;
mod watch_plan;

pub use capabilities::{Capabilities, Capability};
pub use clock_id::clock_id;
pub use cpus::{Cpus, CpusError};
pub use disturbances::given::{not_locked, not_realtime};
pub use disturbances::traffic::Switches;
pub use group_limits::{Budget, GroupLimits, Quota, group_limits};
pub use inventory::memory::meminfo;
pub use inventory::{changed, inventory, inventory_of_identity, is_virtual_machine, machine_of};
pub use machine_readings::MachineReadings;
pub use policy::attributes;
pub use process_choice::{ProcessChoice, ProcessChoiceError};
pub use realtime_right::RealtimeRight;
pub use root::{Found, Missing, Root};
pub use root_tree::{Tree, TreeError};
pub use tracefs::{Instance, Tracefs, TracefsError};
pub use tracing_right::TracingRight;
pub use watch::Watch;
pub use watch_plan::WatchPlan;
