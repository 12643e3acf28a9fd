// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tests of all crates share: how a test says that it cannot run here, programs that it writes, lists of what
//! others rely on, and a Prometheus.
//!
//! Context: COLD, tests only. `TAILBOUND_REQUIRE=root,rt,net,…` names what this machine can do: a
//! test that cannot run for lack of that has failed. CI sets it.
#![forbid(unsafe_code)]
#![deny(missing_docs)]

pub mod names;
mod prometheus;
mod promised;

pub use prometheus::Prometheus;
pub use promised::promised;

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

/// Writes an executable script.
///
/// A process of its own writes it: what this one has open for writing is open, for a moment, in every process that another test
/// starts just then, and cannot be executed until that has begun (ETXTBSY, execve(2)).
///
/// # Panics
/// It cannot be written.
pub fn write_script(path: &std::path::Path, text: &str) {
    written("printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"", text.as_ref(), path);
}

/// Copies a program, likewise.
///
/// # Panics
/// It cannot be copied.
pub fn copy_program(from: &std::path::Path, to: &std::path::Path) {
    written("cp -- \"$1\" \"$2\" && chmod 755 \"$2\"", from.as_os_str(), to);
}

#[expect(clippy::disallowed_methods, reason = "waited for at once")]
fn written(script: &str, what: &std::ffi::OsStr, to: &std::path::Path) {
    let words = [std::ffi::OsStr::new("-c"), script.as_ref(), "sh".as_ref(), what, to.as_os_str()];
    let status = std::process::Command::new("sh").args(words).status();
    assert!(status.is_ok_and(|s| s.success()), "{}", to.display());
}
