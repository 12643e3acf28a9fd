// SPDX-License-Identifier: MIT OR Apache-2.0
//! latmon over the network, both roles: a client of a Zephyr box, and a box for clients such as latmus.
//!
//! Not here: the protocol (`tailbound_box::latmon`).

mod client;
mod server;

use std::time::Duration;

pub use client::LatmonHost;
pub use server::{LatmonServer, PulseSource, ServedConnection, ServedEnd, serve_latmon};

/// How often an ending signal and the stop flag are looked at.
const LOOK_MS: i32 = 50;
const LOOK: Duration = Duration::from_millis(LOOK_MS as u64);
