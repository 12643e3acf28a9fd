// SPDX-License-Identifier: MIT OR Apache-2.0
//! What whoever watches a run is shown.
//!
//! Context: COLD, at most ten times a second.

use tailbound_core::progress::Progress;

/// One thing to show.
#[derive(Debug)]
pub enum View<'a> {
    /// Something that takes longer than two seconds, in words.
    Note(&'a str),
    /// The run so far.
    Progress(&'a Progress),
}
