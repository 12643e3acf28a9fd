// SPDX-License-Identifier: MIT OR Apache-2.0
//! Defaults of a plan, as on the command line.

/// `--duration`
pub const DURATION: &str = "60s";
/// `--warm-up`
pub const WARM_UP: &str = "1s";
/// `--repeat`: how many times a benchmark is run
pub const REPEAT: u32 = 3;
/// `--policy`, where it is allowed
pub const POLICY_PRIORITY: u8 = 95;
/// `--load` of a run: an idle machine says little about how late it can be.
pub const LOADS: [&str; 2] = ["hackbench", "memory"];
