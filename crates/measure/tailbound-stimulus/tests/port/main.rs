// SPDX-License-Identifier: MIT OR Apache-2.0
//! A simulated box at a pseudo-terminal: whatever happens to the line, nothing is invented and what was measured is kept.

mod cost;
mod port_use;
mod pty_box;
mod pulled;
#[path = "../../../tailbound-box/tests/pico/simulated_box.rs"]
mod simulated_box;
