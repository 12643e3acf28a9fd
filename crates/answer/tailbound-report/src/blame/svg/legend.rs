// SPDX-License-Identifier: MIT OR Apache-2.0
//! The legend of a picture: the activities in it.

use std::collections::BTreeSet;

use tailbound_core::blame::{Activity, BlameLane};

use super::look;
use crate::svg::legend::{self, LegendEntry};

/// Most entries: a file may bring any number of words that this version does not know.
const ENTRIES_MAX: usize = 14;

/// The activities that occur, and how high their legend came out.
pub(super) fn legend(lanes: &[&BlameLane], width: f64) -> (String, f64) {
    let all: BTreeSet<Activity> = lanes.iter().flat_map(|l| &l.spans).map(|s| s.activity).collect();
    let entries = all.iter().take(ENTRIES_MAX).map(|activity| {
        let (colour, share) = look::drawn(*activity);
        let paint = format!("class=\"span\" style=\"fill:var(--{colour})\"");
        LegendEntry { paint, height: 15.0 * share, words: look::meaning(activity) }
    });
    legend::legend(entries, width)
}
