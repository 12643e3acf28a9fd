// SPDX-License-Identifier: MIT OR Apache-2.0
//! `kernel-log`: the kernel warned of something during the run.
//!
//! Whether the log could be read is `watch.kernel-log`.
//! Source: Documentation/core-api/printk-basics.rst (levels).

use tailbound_core::record::Fact;
use tailbound_core::{Finding, Impact};

use super::{Disturbance, Look};

/// Warning and worse.
const LEVEL_MAX: u8 = 4;
/// Most characters of the message that is shown.
const TEXT_MAX: usize = 160;

/// Counts the kernel's warnings.
#[derive(Default)]
pub(crate) struct Log {
    count: u64,
    first: Option<String>,
}

impl Disturbance for Log {
    fn look(&mut self, look: &Look) -> Vec<Finding> {
        for record in look.log.iter().filter(|r| r.level <= LEVEL_MAX) {
            self.count = self.count.saturating_add(1);
            self.first.get_or_insert_with(|| {
                record.text.chars().filter(|c| !c.is_control()).take(TEXT_MAX).collect()
            });
        }
        let Some(first) = &self.first else { return Vec::new() };
        vec![Finding::listed(
            "kernel-log",
            Impact::Notice,
            format!(
                "the kernel logged {} message(s) of level warning or worse during the run, first: {first}",
                self.count
            ),
        )]
    }

    fn watched(&self) -> Vec<(&'static str, Fact)> {
        Vec::new()
    }
}
