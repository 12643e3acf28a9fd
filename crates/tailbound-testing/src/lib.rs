// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of all crates share: how a test says that it cannot run here, and a Prometheus.
//!
//! Context: COLD, tests only. `TAILBOUND_REQUIRE=root,rt,net,…` names what this machine can do: a
//! test that cannot run for lack of that has failed. CI sets it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod prometheus;

pub use prometheus::Prometheus;

/// Does the environment demand `capability`?
#[must_use]
pub fn required(capability: &str) -> bool {
    std::env::var("TAILBOUND_REQUIRE").is_ok_and(|v| v.split(',').any(|c| c.trim() == capability))
}

/// Says on one line why a test cannot run here, so that it counts as skipped.
///
/// # Panics
/// Where the environment demands `capability`.
#[expect(clippy::print_stdout, reason = "a skipped test says why")]
pub fn skip(capability: &str, why: impl std::fmt::Display) {
    let why = why.to_string();
    let why = why.trim().lines().next().unwrap_or_default();
    assert!(!required(capability), "TAILBOUND_REQUIRE has {capability}, but {why}");
    println!("skipped: {why}");
}
