// SPDX-License-Identifier: MIT OR Apache-2.0
//! An acknowledgement in words.

use tailbound_report::escape::xml;

/// Who knows it, and what they say.
pub(super) fn known_words(it: &tailbound_store::Acknowledgement) -> String {
    format!("known to {}, {}: {}", xml(&it.author), xml(&day(&it.at)), xml(&it.message))
}

pub(super) fn day(rfc3339: &str) -> String {
    rfc3339.get(..10).unwrap_or(rfc3339).to_owned()
}
