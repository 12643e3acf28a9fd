// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of caches and of memory bandwidth the real-time CPUs share, and with whom.
//!
//! Units: masks of ways in hexadecimal, as resctrl writes them. A thread that is in a group itself uses that group's
//! share, wherever it runs; any other that of its CPU's group.
//! Source: Documentation/filesystems/resctrl.rst ("Resource allocation rules", `shareable_bits`, `bit_usage`).

use std::collections::BTreeMap;

use tailbound_core::CpuSet;
use tailbound_host::resctrl::{
    BANDWIDTH, BandwidthUnit, Cache, ControlGroup, FOLDER, Resctrl, cache_id,
};

use super::few;
use crate::machine::Machine;
use crate::outcome::{CheckOutcome, Look};

pub(super) fn llc_shared(m: &Machine) -> Look {
    let mut with = Vec::new();
    for cpu in m.rt.iter() {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list");
        with.extend(m.root.cpus(&path)?.minus(&m.rt).iter());
    }
    let with: CpuSet = with.into_iter().collect();
    if with.is_empty() {
        return Ok(CheckOutcome::ok("the last-level cache belongs to the real-time CPUs alone"));
    }
    let own = Resctrl::read(&m.root).map_err(CheckOutcome::from).and_then(|all| {
        let caches = all.level(3);
        let shared = shared(m, &all, &caches)?;
        Ok(!caches.is_empty() && shared.is_empty())
    });
    Ok(match own {
        Ok(true) => CheckOutcome::ok(format!("shared with CPUs {with}, by ways of their own")),
        Ok(false) => CheckOutcome::warn(format!("shared with CPUs {with}")),
        Err(why) => CheckOutcome::warn(format!("shared with CPUs {with}; {}", why.found)),
    })
}

pub(super) fn cache_ways(m: &Machine) -> Look {
    let all = Resctrl::read(&m.root)?;
    let caches: Vec<&Cache> = all.caches.iter().collect();
    if caches.is_empty() {
        return Ok(CheckOutcome::not_applicable("this CPU cannot divide its caches"));
    }
    let problems = shared(m, &all, &caches)?;
    Ok(if problems.is_empty() {
        CheckOutcome::ok("no other CPU, group or device fills the real-time CPUs' ways")
    } else {
        CheckOutcome::warn(few(&problems, 3))
    })
}

/// A sentence for each share of a cache that somebody else has too.
fn shared(m: &Machine, all: &Resctrl, caches: &[&Cache]) -> Result<Vec<String>, CheckOutcome> {
    let mut found = Vec::new();
    let threads = of_threads(m, all);
    for cache in caches {
        let mut groups: BTreeMap<(u32, &str), &ControlGroup> = BTreeMap::new();
        for cpu in m.rt.iter() {
            let id = cache_id(&m.root, cpu, cache.level)?;
            let of = all.of_cpu(cpu).into_iter().chain(threads.iter().copied());
            groups.extend(of.map(|group| ((id, group.name.as_str()), group)));
        }
        for ((id, _), group) in groups {
            let Some(mask) = group.share(&cache.name, id) else { continue };
            found.extend(with_others(m, all, cache, id, group)?);
            let devices = mask & devices(cache, id);
            if devices != 0 {
                let name = &cache.name;
                found.push(format!("devices use ways {devices:x} of {mask:x} in {name} {id}"));
            }
        }
    }
    found.dedup();
    Ok(found)
}

/// Who else fills the ways that `group` has in a cache. A cache that no other CPU uses is nobody else's.
fn with_others(
    m: &Machine,
    all: &Resctrl,
    cache: &Cache,
    id: u32,
    group: &ControlGroup,
) -> Result<Option<String>, CheckOutcome> {
    let mut neighbours = Vec::new();
    for cpu in m.hk.iter() {
        if cache_id(&m.root, cpu, cache.level)? == id {
            neighbours.push(cpu);
        }
    }
    let Some(mask) = group.share(&cache.name, id).filter(|_| !neighbours.is_empty()) else {
        return Ok(None);
    };
    // Code and data have masks of their own over the same ways.
    let peers = all.level(cache.level);
    let overlaps = |other: &&ControlGroup| {
        let is_same = other.name == group.name;
        let theirs = peers.iter().filter_map(|p| other.share(&p.name, id)).fold(0, |a, m| a | m);
        match is_same {
            true => {
                neighbours.iter().any(|cpu| all.of_cpu(*cpu).is_some_and(|g| g.name == other.name))
            }
            false => theirs & mask != 0,
        }
    };
    let names: Vec<String> = all.groups.iter().filter(overlaps).map(ControlGroup::label).collect();
    let ways = format!("ways {mask:x} of {} {id}", cache.name);
    Ok((!names.is_empty()).then(|| format!("{ways} are shared with {}", few(&names, 3))))
}

/// Ways that devices fill: those that may be, and those of which the kernel says it.
fn devices(cache: &Cache, id: u32) -> u64 {
    let letters = cache.usage.get(&id).map(String::as_str).unwrap_or_default();
    let by_hardware = |(at, letter): (usize, char)| match letter {
        'X' | 'H' => 1 << at,
        _ => 0,
    };
    letters.chars().rev().take(64).enumerate().map(by_hardware).fold(cache.hardware, |a, m| a | m)
}

/// Groups that threads of the program have joined.
fn of_threads<'a>(m: &Machine, all: &'a Resctrl) -> Vec<&'a ControlGroup> {
    let Ok(threads) = m.target() else { return Vec::new() };
    let is_in = |group: &&ControlGroup| {
        let tasks = m.root.text(&format!("{FOLDER}/{}/tasks", group.name)).unwrap_or_default();
        tasks.lines().any(|l| threads.iter().any(|t| l.trim().parse() == Ok(t.tid)))
    };
    all.groups.iter().skip(1).filter(is_in).collect()
}

pub(super) fn memory_bandwidth(m: &Machine) -> Look {
    let all = Resctrl::read(&m.root)?;
    let Some(bandwidth) = &all.bandwidth else {
        return Ok(CheckOutcome::not_applicable("this CPU cannot limit memory bandwidth"));
    };
    let unit = match bandwidth.unit {
        BandwidthUnit::Percent => " %",
        BandwidthUnit::Mebibytes => " MB/s",
        BandwidthUnit::Eighths => "/8 GB/s",
    };
    let mut found = Vec::new();
    for cpu in m.rt.iter() {
        let id = cache_id(&m.root, cpu, 3)?;
        let Some(own) = all.of_cpu(cpu) else { continue };
        let Some(ours) = own.share(BANDWIDTH, id) else { continue };
        for other in &all.groups {
            let is_same = other.name == own.name && !own.cpus.and(&m.hk).is_empty();
            let theirs = other.share(BANDWIDTH, id).unwrap_or(0);
            if is_same || (other.name != own.name && theirs >= ours) {
                let (cpus, label) = (cpu, other.label());
                found.push(format!("CPU {cpus} may use {ours}{unit}, {label} {theirs}{unit}"));
            }
        }
    }
    Ok(if found.is_empty() {
        CheckOutcome::ok("everything else is limited to less than the real-time CPUs")
    } else {
        CheckOutcome::warn(few(&found, 3))
    })
}
