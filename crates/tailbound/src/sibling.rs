// SPDX-License-Identifier: MIT OR Apache-2.0
//! The two programs, each of which finds the other.
//!
//! `tailbound` measures and is copied to boards; `tailbound-server` has the database and the network server.
//! Not here: where they are looked for, and how one becomes the other (`tailbound_sys::companion`).

use tailbound_sys::companion::Companion;

use crate::say::Failure;

/// `tailbound`: everything about one machine.
#[cfg(feature = "server")]
pub(crate) const MACHINE: Companion = Companion {
    name: "tailbound",
    origin: "`make build` builds it: target/release/tailbound",
    version: env!("CARGO_PKG_VERSION"),
};

/// `tailbound-server`: `serve`, `store`, `fleet`.
const SERVER: Companion = Companion {
    name: "tailbound-server",
    origin: "`make server` builds it: target/release/tailbound-server",
    version: env!("CARGO_PKG_VERSION"),
};

/// Replaces this process by `tailbound-server` with the same words. Returns only if that is not possible.
pub(crate) fn become_server(verb: &str) -> Failure {
    Failure::cannot(format!("{verb}: {}", SERVER.take_over()))
}
