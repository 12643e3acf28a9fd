// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a monitor came to when it ended.

use serde::Serialize;
use tailbound_core::units::{format_ns_i64, grouped};

use crate::cost::Cost;

/// What it came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Windows, also the last one, which a signal may have cut short.
    pub windows: u64,
    /// Of these, the ones that could not be written.
    pub not_written: u64,
    /// Wake-ups that were counted.
    pub n: u64,
    /// Wake-ups that found no room.
    pub lost: u64,
    /// Wake-ups over the threshold.
    pub late: u64,
    /// How often a thread began to starve.
    pub starving: u64,
    /// How often one was lent CPU time.
    pub boosts: u64,
    /// What it cost.
    pub own: Cost,
}

impl Summary {
    /// For people.
    #[must_use]
    pub fn text(&self) -> String {
        let starving = match self.starving {
            0 => String::new(),
            n => format!(", threads that starved: {}", grouped(n)),
        };
        format!(
            "{} windows with {} wake-ups, {} not counted{starving}; {} of CPU time, {} of memory",
            grouped(self.windows),
            grouped(self.n),
            grouped(self.lost),
            format_ns_i64(i64::try_from(self.own.cpu_ns).unwrap_or(i64::MAX)),
            self.own.peak_bytes.map_or_else(
                || "an unknown amount".to_owned(),
                |b| format!("at most {} KiB", grouped(b / 1024))
            )
        )
    }
}
