// SPDX-License-Identifier: MIT OR Apache-2.0
//! The server's log.

/// A line of the server's log: standard error, which systemd keeps.
pub(super) fn log(what: &str) {
    use std::io::Write as _;
    // Nobody to tell if it cannot be written.
    let _ = writeln!(std::io::stderr(), "serve: {}", tailbound_core::printable::line(what));
}
