// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the kernel does to memory behind a program's back.
//!
//! Source: Documentation/admin-guide/sysctl/vm.rst,
//! Documentation/admin-guide/mm/{transhuge,ksm,damon}.rst.

use tailbound_host::root::chosen;

use super::{PLAIN, few, number};
use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::need::Need;
use crate::outcome::{CheckOutcome, Level, Look};

const CHECK: Check = Check { group: Group::Memory, ..PLAIN };

pub(super) static CHECKS: &[Check] = &[
    Check {
        id: "mm.stat-interval",
        why: "a work item on every busy CPU each second; 226 us were measured on a kernel that is not preemptible",
        now: "echo 10 > /proc/sys/vm/stat_interval",
        for_good: "vm.stat_interval = 10 in /etc/sysctl.d",
        undo: "echo 1 > /proc/sys/vm/stat_interval",
        source: "mm/vmstat.c",
        look: |m| number(m, "/proc/sys/vm/stat_interval", |n| n >= 10, Level::Warn),
        ..CHECK
    },
    Check {
        id: "mm.thp",
        why: "khugepaged joins pages while programs wait for the map of their memory, and flushes TLBs of other CPUs",
        now: "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
        for_good: "boot with transparent_hugepage=madvise",
        undo: "write the word in brackets back, not the line",
        source: "transhuge.rst",
        look: |m| {
            let text = m.text("/sys/kernel/mm/transparent_hugepage/enabled")?;
            let word = chosen(&text).unwrap_or(&text);
            Ok(CheckOutcome::ok_if(
                word != "always",
                Level::Warn,
                format!("transparent huge pages: {word}"),
            ))
        },
        ..CHECK
    },
    Check {
        id: "mm.ksm",
        why: "joined pages are parted by a fault at the next write, and a scanner runs",
        now: "echo 2 > /sys/kernel/mm/ksm/run",
        for_good: "disable ksm and ksmtuned",
        undo: "write the old value back",
        source: "ksm.rst",
        look: |m| number(m, "/sys/kernel/mm/ksm/run", |n| n != 1, Level::Bad),
        ..CHECK
    },
    Check {
        id: "mm.compaction",
        why: "pages are moved in the background, locked ones too: each is a fault in a real-time thread",
        now: "echo 0 > /proc/sys/vm/compaction_proactiveness; echo 0 > /proc/sys/vm/compact_unevictable_allowed",
        for_good: "both in /etc/sysctl.d",
        undo: "write the old values back",
        source: "sysctl/vm.rst",
        look: compaction,
        ..CHECK
    },
    Check {
        id: "mm.swap",
        why: "memory that has gone to the disk comes back in milliseconds",
        now: "swapoff -a, or lock the program's memory (mlockall)",
        for_good: "/etc/fstab",
        undo: "swapon -a",
        source: "sysctl/vm.rst (swappiness)",
        look: swap,
        ..CHECK
    },
    Check {
        id: "mm.damon",
        why: "it walks the page tables of programs again and again",
        now: "echo off > /sys/kernel/mm/damon/admin/kdamonds/N/state",
        undo: "echo on > …/state",
        source: "Documentation/admin-guide/mm/damon/usage.rst",
        look: damon,
        ..CHECK
    },
    Check {
        id: "mm.zone-reclaim",
        why: "a thread that allocates reclaims memory of its own node first",
        now: "echo 0 > /proc/sys/vm/zone_reclaim_mode",
        for_good: "vm.zone_reclaim_mode = 0 in /etc/sysctl.d",
        undo: "write the old value back",
        source: "sysctl/vm.rst",
        needs: &[Need::Numa],
        look: |m| number(m, "/proc/sys/vm/zone_reclaim_mode", |n| n == 0, Level::Warn),
        ..CHECK
    },
    Check {
        id: "mm.writeback",
        why: "much changed memory is written in long bursts by kernel workers",
        now: "echo 3 > /proc/sys/vm/dirty_background_ratio; echo 10 > /proc/sys/vm/dirty_ratio",
        for_good: "both in /etc/sysctl.d",
        undo: "write the old values back",
        source: "sysctl/vm.rst",
        look: writeback,
        ..CHECK
    },
    Check {
        id: "mm.slub-partial",
        why: "before Linux 7.0 a CPU that frees much gives its partial slabs back all at once",
        now: "echo 0 > each /sys/kernel/slab/*/cpu_partial",
        undo: "write each old value back",
        source: "mm/slub.c",
        look: slub,
        ..CHECK
    },
];

fn compaction(m: &Machine) -> Look {
    let proactive = m.number("/proc/sys/vm/compaction_proactiveness")?;
    let locked = m.number("/proc/sys/vm/compact_unevictable_allowed")?;
    let found =
        format!("compaction_proactiveness {proactive}, compact_unevictable_allowed {locked}");
    Ok(CheckOutcome::ok_if(proactive == 0 && locked == 0, Level::Warn, found))
}

fn swap(m: &Machine) -> Look {
    let text = m.text("/proc/swaps")?;
    let areas = text.lines().skip(1).filter(|l| !l.trim().is_empty()).count();
    if areas == 0 {
        return Ok(CheckOutcome::ok("no swap"));
    }
    if let Some(pid) = m.wanted.pid {
        let status = m.text(&format!("/proc/{pid}/status"))?;
        let kb = status.lines().find_map(|l| {
            l.strip_prefix("VmSwap:")?.split_whitespace().next()?.parse::<u64>().ok()
        });
        return Ok(match kb {
            Some(0) => CheckOutcome::ok("nothing of the program is swapped"),
            Some(kb) => CheckOutcome::bad(format!("{kb} kB of the program are swapped")),
            None => CheckOutcome::unknown("the kernel does not say what of the program is swapped"),
        });
    }
    let swappiness = m.number("/proc/sys/vm/swappiness")?;
    Ok(CheckOutcome::ok_if(
        swappiness <= 10,
        Level::Warn,
        format!("swap is on, swappiness {swappiness}"),
    ))
}

fn damon(m: &Machine) -> Look {
    let threads: Vec<String> = m
        .threads()?
        .iter()
        .filter(|t| t.kernel && t.name.starts_with("kdamond"))
        .filter(|t| m.rt.is_empty() || !t.allowed.as_ref().is_ok_and(|a| m.rt_in(a).is_empty()))
        .map(|t| t.name.clone())
        .collect();
    Ok(if threads.is_empty() {
        CheckOutcome::ok("it does not run here")
    } else {
        CheckOutcome::warn(few(&threads, 3))
    })
}

fn writeback(m: &Machine) -> Look {
    let bytes = m.number("/proc/sys/vm/dirty_bytes")?;
    if bytes > 0 {
        return Ok(CheckOutcome::ok(format!("dirty_bytes {bytes}")));
    }
    let background = m.number("/proc/sys/vm/dirty_background_ratio")?;
    let ratio = m.number("/proc/sys/vm/dirty_ratio")?;
    let found = format!("dirty_background_ratio {background}, dirty_ratio {ratio}");
    Ok(CheckOutcome::ok_if(background <= 5 && ratio <= 10, Level::Warn, found))
}

fn slub(m: &Machine) -> Look {
    if m.linux()? >= (7, 0) || m.is_rt() {
        return Ok(CheckOutcome::not_applicable("this kernel has no such list"));
    }
    let mut with = 0u32;
    let names = m.root.list("/sys/kernel/slab")?;
    for name in &names {
        if m.number(&format!("/sys/kernel/slab/{name}/cpu_partial")).is_ok_and(|n| n > 0) {
            with = with.saturating_add(1);
        }
    }
    Ok(CheckOutcome::ok_if(
        with == 0,
        Level::Warn,
        format!("{with} of {} caches keep such lists", names.len()),
    ))
}
