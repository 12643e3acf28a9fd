// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that prove a property of the kernel, each in a kernel that has it and again with a planted fault: one that always
//! accuses, always refuses or never accuses fails here.

use anyhow::ensure;

use super::{Lab, RT};
use crate::stages::tally::Tally;

/// Probes that prove a property: the probe, a fault that can be planted, and how much.
const PROVERS: &[(&str, &str, &str)] = &[
    ("sched-football:game=5ms", "demoted", "-i 20ms -l 5 --warm-up 20ms"),
    ("pi", "no-inheritance", "-l 100"),
    ("pi-process", "no-inheritance", "-l 20"),
    ("prio-preempt", "falling", "-l 20"),
    ("prio-wake", "exchanged", "-l 20"),
    ("rt-migrate", "reversed", "-l 20"),
    ("ptrace", "signal", "-l 60"),
    ("periodic-load", "overrun", "-l 200"),
    ("deadline", "", "-l 20"),
    ("queue", "", "-l 20"),
    ("clocks", "", "-l 20"),
];

impl Lab {
    /// Every probe that proves something, in a kernel that has the property, and again with a planted
    /// fault: one that always accuses, always refuses or never accuses fails here.
    pub(super) fn provers(&self) -> anyhow::Result<Tally> {
        let mut tally = Tally::default();
        for (probe, fault, more) in PROVERS {
            let run = |probe: &str, status: i32, says: &str| {
                let out = format!("{}.jsonl", probe.replace([':', ',', '='], "-"));
                let words = ["lab", "run", "--quiet", "-k", RT, "-L", "none", "--probe", probe];
                let more: Vec<&str> = more.split_whitespace().chain(["-o", &out]).collect();
                let said = self.answers(&[&words[..], &more].concat(), status)?;
                ensure!(said.contains(says), "{says} is missing: {said}");
                Ok(())
            };
            tally.add(&format!("{probe} is met in a kernel"), run(probe, 0, "Met: "));
            if !fault.is_empty() {
                let between = if probe.contains(':') { "," } else { ":" };
                let planted = format!("{probe}{between}plant={fault}");
                tally.add(&format!("{planted} is found"), run(&planted, 1, "Not met: "));
            }
        }
        Ok(tally)
    }
}
