// SPDX-License-Identifier: MIT OR Apache-2.0
//! A machine that asks a server for work, for instance behind a NAT: nobody reaches it, it reaches the server.
//!
//! Context: COLD while it asks. Blocking code without an async runtime. A run is a process of its own (`campaign run`), which
//! holds the machine's lock; beside it this process wakes a few times a second.
//! Not here: the server (`tailbound-fleet`), the machine's lock (`tailbound-host`), words of the command line.
//!
//! ```text
//! wire.rs    what both sides say       client.rs  HTTPS, with one token
//! policy.rs  what the machine's owner allows, and whether a campaign keeps to it
//! spool.rs   what is to be handed in, on disk      child.rs   one campaign, run
//! agent.rs   ask, look, refuse or run, hand in
//! outbox.rs  run files that others measured (`monitor`): kept, and handed in
//! ```
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod agent;
mod child;
pub mod client;
pub mod denial;
pub mod hook;
pub mod monitor_outbox;
pub mod outbox;
pub mod policy;
mod spool;
pub mod wire;
