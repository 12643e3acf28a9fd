// SPDX-License-Identifier: MIT OR Apache-2.0
//! PID 1 of the lab: from the kernel to the run file and back to the host.
//!
//! Context: SETUP and COLD.
#![forbid(unsafe_code)]
#![deny(missing_docs)]
