// SPDX-License-Identifier: MIT OR Apache-2.0
//! The deterministic lab: real kernels booted in QEMU, time counted in executed instructions.
//!
//! Context: COLD; nothing here measures. Not here: what runs inside the guest
//! (`tailbound-guest`, `tailbound-run`), pictures (`tailbound-report`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod arch;
pub mod error;
pub mod kernel;
pub mod store;

pub use arch::Arch;
pub use error::LabError;
pub use kernel::Kernel;
pub use store::Store;
