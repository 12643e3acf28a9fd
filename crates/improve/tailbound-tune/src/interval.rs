// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one look at a machine to the next: the least and the most.
//!
//! Units: ns.

/// Shortest time between two looks, in ns: a shorter one counts single events.
pub(crate) const INTERVAL_MIN_NS: i64 = 10_000_000;
/// Longest, in ns.
pub(crate) const INTERVAL_MAX_NS: i64 = 86_400_000_000_000;
