// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does to memory behind a program's back.
//!
//! Source: Documentation/admin-guide/sysctl/vm.rst,
//! Documentation/admin-guide/mm/{transhuge,ksm}.rst.

use super::{Effect, Setting, Values};
use crate::codec::Codec;

pub(super) static SETTINGS: &[Setting] = &[
    Setting {
        name: "transparent-hugepages",
        about: "When the kernel joins pages to huge ones",
        cures: &["mm.thp"],
        cost: "never: more page-table walks in programs with much memory",
        values: Values::Words(&[("never", "never"), ("madvise", "madvise"), ("always", "always")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/kernel/mm/transparent_hugepage/enabled", Codec::Choice)]),
    },
    Setting {
        name: "khugepaged-defrag",
        about: "khugepaged does not move pages to make room",
        cures: &["mm.thp"],
        cost: "fewer huge pages",
        values: Values::Words(&[("off", "0"), ("on", "1")]),
        needs_cpus: false,
        effect: Effect::Files(&[(
            "/sys/kernel/mm/transparent_hugepage/khugepaged/defrag",
            Codec::Number,
        )]),
    },
    Setting {
        name: "same-page-merging",
        about: "KSM: equal pages of programs are joined, and parted with a fault at the next write",
        cures: &["mm.ksm"],
        cost: "off: what is joined stays so until it is written",
        values: Values::Words(&[("off", "0"), ("on", "1")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/sys/kernel/mm/ksm/run", Codec::Number)]),
    },
    Setting {
        name: "compaction",
        about: "Pages are not moved in the background, and never locked ones",
        cures: &["mm.compaction"],
        cost: "large allocations may fail sooner",
        values: Values::Words(&[("off", "0")]),
        needs_cpus: false,
        effect: Effect::Files(&[
            ("/proc/sys/vm/compaction_proactiveness", Codec::Number),
            ("/proc/sys/vm/compact_unevictable_allowed", Codec::Number),
        ]),
    },
    Setting {
        name: "swappiness",
        about: "How willingly memory of programs goes to the disk",
        cures: &["mm.swap"],
        cost: "low: less cache of files",
        values: Values::Number(0, 200),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/swappiness", Codec::Number)]),
    },
    Setting {
        name: "stat-interval",
        about: "Seconds between two sums of memory statistics, a work item on every busy CPU",
        cures: &["mm.stat-interval"],
        cost: "statistics of memory are older",
        values: Values::Number(1, 3600),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/stat_interval", Codec::Number)]),
    },
    Setting {
        name: "dirty-background-ratio",
        about: "Percent of memory from which changed pages are written in the background",
        cures: &["mm.writeback"],
        cost: "low: the disk is written sooner and more evenly",
        values: Values::Number(1, 100),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/dirty_background_ratio", Codec::Number)]),
    },
    Setting {
        name: "dirty-ratio",
        about: "Percent of memory from which a program that writes has to wait for the disk",
        cures: &["mm.writeback"],
        cost: "low: programs that write much wait sooner, and for less",
        values: Values::Number(1, 100),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/dirty_ratio", Codec::Number)]),
    },
    Setting {
        name: "dirty-writeback",
        about: "Hundredths of a second between two visits of the threads that write changed pages",
        cures: &["mm.writeback"],
        cost: "long: more is lost when the power goes",
        values: Values::Number(0, 60_000),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/dirty_writeback_centisecs", Codec::Number)]),
    },
    Setting {
        name: "zone-reclaim",
        about: "A program that allocates does not reclaim memory of its own node first",
        cures: &["mm.zone-reclaim"],
        cost: "memory may come from another node",
        values: Values::Words(&[("off", "0")]),
        needs_cpus: false,
        effect: Effect::Files(&[("/proc/sys/vm/zone_reclaim_mode", Codec::Number)]),
    },
];
