// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths: what a plugin in the emulator saw of a guest, and what that says of its kernel.
//!
//! Units: ns of the guest's virtual time, in which one instruction is 2^shift ns.
//! Rules of the room: no input or output, no clock; a plan and a log are bytes.
//! Not here: QEMU (`tailbound-lab`), words and pictures (`tailbound-report`).
#![deny(missing_docs)]

pub mod answers;
mod blocks;
mod curve;
pub mod decisive;
pub mod executed;
pub mod handovers;
pub mod inevitable;
pub mod interrupts;
pub mod log;
pub mod look;
pub mod machine;
mod names;
pub mod outside;
pub mod plan;
pub mod random_numbers;
pub mod record;
pub mod sections;
mod stretches;
pub mod theory;
pub mod tree;
pub mod turns;
pub mod variation;
pub mod varied;
pub mod wake_and_wait;
pub mod wakeups;
pub mod window;

/// The plugin, for the interface of QEMU up to 8.2; empty where there is none for this machine.
pub const PLUGIN_1: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin-1.so"));
/// The plugin, for QEMU from 9.0 on.
pub const PLUGIN_2: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/plugin-2.so"));

/// The plugin's own parts that can be tested without QEMU.
#[cfg(test)]
#[path = "../plugin/arm.rs"]
#[expect(dead_code, reason = "the plugin uses it")]
mod arm;
#[cfg(test)]
#[path = "../plugin/arm32.rs"]
#[expect(dead_code, reason = "the plugin uses it")]
mod arm32;
#[cfg(test)]
#[path = "../plugin/arm64.rs"]
#[expect(dead_code, reason = "the plugin uses it")]
mod arm64;
#[cfg(test)]
#[path = "../plugin/code.rs"]
#[expect(dead_code, reason = "the plugin uses it")]
mod code;
#[cfg(test)]
#[path = "../plugin/x86.rs"]
#[expect(dead_code, reason = "the plugin uses it")]
mod x86;
