// SPDX-License-Identifier: MIT OR Apache-2.0
//! What helps against sections that are known, and the command that shows it.
//!
//! Only what was seen to help in the lab stands here.

use tailbound_core::paths::{PathsRecord, TreeLine, WakeUpRecord};
use tailbound_core::units::format_ns_i64;

/// The leg in which the kernel's own code goes on.
const PENDING: &str = "to the scheduler";
/// Functions of the kernel that belong to one cause.
const STACK_OFFSET: [&str; 2] = ["get_random_u16", "choose_random_kstack_offset"];

/// Pages between the CPU's list and the zone's, many at a time under the zone's lock.
const PAGE_LISTS: [&str; 2] = ["free_pcppages_bulk", "__rmqueue_pcplist"];

fn has(lines: &[TreeLine], names: &[&str]) -> bool {
    lines.iter().any(|l| names.contains(&l.name.as_str()))
}

/// A sentence each.
pub(super) fn all(paths: &PathsRecord, kernel: &str) -> Vec<String> {
    let mut all = Vec::new();
    let pending = |w: &WakeUpRecord| {
        let leg = w.legs.iter().find(|leg| leg.name == PENDING)?;
        (leg.ns > w.latency_ns / 2).then_some(leg.ns)
    };
    if let Some(ns) = paths.wakeups.first().and_then(pending) {
        all.push(format!(
            "The kernel went on for {} with a thread to be rescheduled: it does not preempt its own code. With preempt=full it does: tailbound lab run -k {kernel} --append preempt=full, beside the same without (check kern.preempt-model)",
            format_ns_i64(ns)
        ));
    }
    let lists = |w: &WakeUpRecord| {
        let of = |l: &&TreeLine| PAGE_LISTS.contains(&l.name.as_str());
        w.tree.iter().filter(of).map(|l| l.total_ns).find(|ns| *ns > w.latency_ns / 2)
    };
    if let Some(ns) = paths.wakeups.first().and_then(lists) {
        all.push(format!(
            "Pages went between the CPU's list and the memory zone's for {}, all under one lock. Shorter lists take fewer at a time: tailbound lab run -k {kernel} --append sysctl.vm.percpu_pagelist_high_fraction=1000, beside the same without (docs/results/page-lists.md)",
            format_ns_i64(ns)
        ));
    }
    if let Some(over) = paths.wakeups.first().and_then(|w| w.handed_over.as_ref()) {
        all.push(format!(
            "The latest one's timer was on CPU {}, whose sections were in its way: a CPU with nohz_full gives its timers away. With the boot option sysctl.kernel.timer_migration=0 they stay: tailbound lab run -k {kernel} with --append as before and sysctl.kernel.timer_migration=0, beside the same without",
            over.cpu
        ));
    }
    if paths.wakeups.iter().any(|w| has(&w.tree, &STACK_OFFSET)) {
        all.push(format!(
            "Random numbers for the offset of the kernel's stack (randomize_kstack_offset) are in the way of the latest: tailbound lab run -k {kernel} --append randomize_kstack_offset=off, beside the same without"
        ));
    }
    all
}
