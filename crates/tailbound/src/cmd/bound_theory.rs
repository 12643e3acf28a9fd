// SPDX-License-Identifier: MIT OR Apache-2.0
//! `bound --theory FILE`: the theoretical bound from an answer of `lab paths --theory --json` or of `bound --theory here --json`.
//!
//! Not here: what such an answer holds (`tailbound_stats::theory`).

use std::path::Path;

use tailbound_core::limits;
use tailbound_report::theory::RecordedBound;
use tailbound_stats::theory::StatedBound;
use tailbound_sys::given;

use crate::say::Failure;

/// The word for this machine instead of a file.
pub(super) const HERE: &str = "here";

/// A bound that was stated, or recorded just now.
#[derive(Debug)]
pub(super) struct Theory {
    pub(super) bound: StatedBound,
    /// Recorded just now.
    pub(super) here: Option<RecordedBound>,
}

/// Reads `file`.
///
/// # Errors
/// It is none, or contradicts itself.
pub(super) fn read(file: &Path) -> Result<StatedBound, Failure> {
    let cannot = |e: &dyn std::fmt::Display| Failure::cannot(format!("{}: {e}", file.display()));
    let bytes = given::read(file, limits::RESULT_BYTES_MAX).map_err(|e| cannot(&e))?;
    StatedBound::parse(&bytes).map_err(|e| cannot(&e))
}
