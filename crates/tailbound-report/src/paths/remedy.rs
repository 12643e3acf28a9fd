// SPDX-License-Identifier: MIT OR Apache-2.0
//! What helps against sections that are known, and the command that shows it.
//!
//! Context: COLD. Only what was seen to help in the lab stands here.

use tailbound_core::paths::{PathsRecord, SectionKind, TreeLine};

/// Functions of the kernel that belong to one cause.
const STACK_OFFSET: [&str; 2] = ["get_random_u16", "choose_random_kstack_offset"];

fn has(lines: &[TreeLine], names: &[&str]) -> bool {
    lines.iter().any(|l| names.contains(&l.name.as_str()))
}

/// A sentence each.
pub(super) fn all(paths: &PathsRecord, kernel: &str) -> Vec<String> {
    let mut all = Vec::new();
    let latest = paths.wakeups.first();
    let total = |kind| paths.totals.iter().find(|t| t.kind == kind).map_or(0, |t| t.longest_ns);
    let pending = total(SectionKind::ReschedPending);
    if latest.is_some_and(|w| w.latency_ns < 2 * pending)
        && pending > 4 * total(SectionKind::InterruptsOff)
    {
        all.push(format!(
            "The kernel went on for {} with a thread to be rescheduled: it does not preempt its own code. With preempt=full: tailbound lab run -k {kernel} --append preempt=full, beside the same without (check kern.preempt-model)",
            tailbound_core::units::format_ns_i64(pending)
        ));
    }
    if paths.wakeups.iter().any(|w| has(&w.tree, &STACK_OFFSET)) {
        all.push(format!(
            "Random numbers for the offset of the kernel's stack (randomize_kstack_offset) are in the way of the latest: tailbound lab run -k {kernel} --append randomize_kstack_offset=off, beside the same without"
        ));
    }
    all
}
