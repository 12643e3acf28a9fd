// SPDX-License-Identifier: MIT OR Apache-2.0
//! KTAP, version 1.
//!
//! Context: COLD. What is not decided is `not ok`: a gap is never a pass.
//! Source: Documentation/dev-tools/ktap.rst of the kernel.

use std::fmt::Write as _;

use tailbound_core::printable;
use tailbound_stats::Analysis;

use super::cases::{self, Status};

/// A run as results in that format.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let cases = cases::of(analysis);
    let mut out = format!("KTAP version 1\n1..{}\n", cases.len());
    for (number, case) in (1..).zip(&cases) {
        // A hash begins a directive.
        let line = |text: &str| printable::line(text).replace('#', "No.");
        let name = line(&case.name);
        let _ = match &case.status {
            Status::Pass => writeln!(out, "ok {number} {name}"),
            Status::Skip(why) => writeln!(out, "ok {number} {name} # SKIP {}", line(why)),
            Status::Fail(why) => writeln!(out, "# {}\nnot ok {number} {name}", line(why)),
            Status::Undecided(why) => {
                writeln!(out, "# undecided: {}\nnot ok {number} {name}", line(why))
            }
        };
    }
    out
}
