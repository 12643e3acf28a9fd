// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mem.*`: how much memory, and what moves or merges pages behind a thread's back.
//!
//! Units: kB as in the names. Source: proc_meminfo(5),
//! Documentation/admin-guide/mm/{transhuge,ksm}.rst, admin-guide/sysctl/vm.rst.

use super::Sheet;
use crate::root::{Found, Missing, Root};

/// A line of /proc/meminfo, in KiB (or a number, where the file has no unit).
///
/// # Errors
/// [`Missing`].
pub fn meminfo(root: &Root, key: &str) -> Found<i64> {
    of(&root.text("/proc/meminfo")?, key)
}

fn of(text: &str, key: &str) -> Found<i64> {
    text.lines()
        .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))
        .and_then(|v| v.split_ascii_whitespace().next()?.parse().ok())
        .ok_or_else(|| Missing::NotApplicable(format!("/proc/meminfo has no {key}")))
}

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let info = sheet.root.text("/proc/meminfo");
    for (name, key) in [
        ("mem.total_kb", "MemTotal"),
        ("mem.available_kb", "MemAvailable"),
        ("mem.swap_total_kb", "SwapTotal"),
        ("mem.swap_free_kb", "SwapFree"),
        ("mem.hugepages", "HugePages_Total"),
    ] {
        sheet.put(name, info.as_ref().map_err(Clone::clone).and_then(|text| of(text, key)));
    }
    sheet.choice("mem.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled");
    sheet.choice("mem.transparent_hugepages_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
    sheet.number("mem.ksm", "/sys/kernel/mm/ksm/run");
    sheet.number("mem.swappiness", "/proc/sys/vm/swappiness");
    sheet.number("mem.stat_interval_s", "/proc/sys/vm/stat_interval");
    sheet.number("mem.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness");
    sheet.number("mem.compact_unevictable", "/proc/sys/vm/compact_unevictable_allowed");
}
