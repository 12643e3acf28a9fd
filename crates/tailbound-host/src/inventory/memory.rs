// SPDX-License-Identifier: MIT OR Apache-2.0
//! `mem.*`: how much memory, and what moves or merges pages behind a thread's back.
//!
//! Context: COLD. Units: kB as in the names. Source: proc_meminfo(5),
//! Documentation/admin-guide/mm/{transhuge,ksm}.rst, admin-guide/sysctl/vm.rst.

use super::Sheet;
use crate::root::Missing;

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let info = sheet.root.text("/proc/meminfo");
    for (name, key) in [
        ("mem.total_kb", "MemTotal"),
        ("mem.available_kb", "MemAvailable"),
        ("mem.swap_total_kb", "SwapTotal"),
        ("mem.swap_free_kb", "SwapFree"),
        ("mem.hugepages", "HugePages_Total"),
    ] {
        let value = info.as_ref().map_err(Clone::clone).and_then(|text| {
            text.lines()
                .find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))
                .and_then(|v| v.split_ascii_whitespace().next()?.parse::<i64>().ok())
                .ok_or_else(|| Missing::NotApplicable(format!("/proc/meminfo has no {key}")))
        });
        sheet.put(name, value);
    }
    sheet.choice("mem.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled");
    sheet.choice("mem.transparent_hugepages_defrag", "/sys/kernel/mm/transparent_hugepage/defrag");
    sheet.number("mem.ksm", "/sys/kernel/mm/ksm/run");
    sheet.number("mem.swappiness", "/proc/sys/vm/swappiness");
    sheet.number("mem.stat_interval_s", "/proc/sys/vm/stat_interval");
    sheet.number("mem.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness");
    sheet.number("mem.compact_unevictable", "/proc/sys/vm/compact_unevictable_allowed");
}
