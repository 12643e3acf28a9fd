// SPDX-License-Identifier: MIT OR Apache-2.0
//! For how long tasks waited for a resource, since the machine was started: /proc/pressure.
//!
//! Units: µs, as the kernel tells them. Source: Documentation/accounting/psi.rst.

use crate::root::{Found, Missing, Root};

/// The total of the line that begins with `line` (`some `, `full `) of `resource` (`cpu`, `io`, `memory`, `irq`).
///
/// # Errors
/// The kernel does not count it, or tells no total.
pub fn total_us(root: &Root, resource: &str, line: &str) -> Found<u64> {
    let file = format!("/proc/pressure/{resource}");
    let text = root.text(&file)?;
    // `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`
    let total = text.lines().find(|l| l.starts_with(line)).and_then(|l| l.split("total=").nth(1));
    let us = total.and_then(|t| t.trim().parse().ok());
    us.ok_or_else(|| Missing::Unknown(format!("{file} has no total")))
}
