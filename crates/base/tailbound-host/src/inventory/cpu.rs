// SPDX-License-Identifier: MIT OR Apache-2.0
//! `cpu.*`: model, microcode, which CPUs there are and how they hang together.
//!
//! Source: Documentation/admin-guide/cputopology.rst,
//! Documentation/ABI/testing/sysfs-devices-system-cpu.

use std::collections::BTreeMap;

use serde_json::Value;
use tailbound_core::CpuSet;

use super::Sheet;
use crate::cpus;
use crate::root::{Found, Missing, Root};

const BASE: &str = "/sys/devices/system/cpu";
/// Flags that decide how good the clock is, and whether this is a guest.
const FLAGS: &[&str] = &[
    "constant_tsc",
    "nonstop_tsc",
    "tsc_known_freq",
    "tsc_adjust",
    "tsc_deadline_timer",
    "arat",
    "hypervisor",
];

pub(super) fn read(sheet: &mut Sheet<'_>) {
    let root = sheet.root;
    let info = root.text("/proc/cpuinfo");
    let field = |names: &[&str]| -> Found<String> {
        let text = info.as_ref().map_err(Clone::clone)?;
        names.iter().find_map(|n| cpuinfo(text, n)).ok_or_else(|| {
            Missing::NotApplicable(format!("/proc/cpuinfo has no `{}`", names.join("` or `")))
        })
    };
    sheet.put(
        "cpu.model",
        field(&["model name", "Processor", "cpu model", "cpu"]).or_else(|e| arm(&info).ok_or(e)),
    );
    sheet.put("cpu.vendor", field(&["vendor_id", "CPU implementer", "vendor"]));
    let microcode = root
        .read_trimmed(&format!("{BASE}/cpu0/microcode/version"))
        .or_else(|_| field(&["microcode"]));
    sheet.put("cpu.microcode", microcode);
    let flags = field(&["flags", "Features"]).map(|text| {
        FLAGS
            .iter()
            .filter(|f| text.split(' ').any(|w| w == **f))
            .map(|f| Value::from(*f))
            .collect::<Vec<_>>()
    });
    sheet.put("cpu.flags", flags);

    for name in ["online", "present", "possible", "offline", "isolated", "nohz_full"] {
        let found = root.cpus(&format!("{BASE}/{name}")).map(|c| c.to_string());
        sheet.put(&format!("cpu.{name}"), found);
    }
    sheet.put("cpu.isolated_partitions", cpus::partitioned(root).map(|c| c.to_string()));
    sheet.put("cpu.allowed", cpus::allowed(root).map(|c| c.to_string()));
    sheet.text("cpu.smt", &format!("{BASE}/smt/control"));
    sheet.put("cpu.siblings", sets(root, &sheet.online, siblings));
    sheet.put("cpu.last_level_cache", sets(root, &sheet.online, last_level_cache));
    sheet.put(
        "cpu.packages",
        sets(root, &sheet.online, |root, cpu| {
            root.cpus(&format!("{BASE}/cpu{cpu}/topology/package_cpus_list"))
                .or_else(|_| root.cpus(&format!("{BASE}/cpu{cpu}/topology/core_siblings_list")))
        }),
    );
    sheet.put("cpu.numa_nodes", nodes(root));
    sheet.by_cpu("cpu.capacity", |root, cpu| {
        root.parsed::<i64>(&format!("{BASE}/cpu{cpu}/cpu_capacity"))
    });
}

/// The first `name : value` of /proc/cpuinfo.
fn cpuinfo(text: &str, name: &str) -> Option<String> {
    text.lines()
        .filter_map(|l| l.split_once(':'))
        .find(|(k, v)| k.trim() == name && !v.trim().is_empty())
        .map(|(_, v)| v.trim().to_owned())
}

/// arm64 has numbers and no name.
fn arm(info: &Found<String>) -> Option<String> {
    let text = info.as_ref().ok()?;
    let (implementer, part) = (cpuinfo(text, "CPU implementer")?, cpuinfo(text, "CPU part")?);
    let revision = cpuinfo(text, "CPU revision").unwrap_or_default();
    Some(format!("ARM implementer {implementer} part {part} revision {revision}"))
}

/// CPUs that share a core with `cpu`, itself included.
pub(crate) fn siblings(root: &Root, cpu: u32) -> Found<CpuSet> {
    root.cpus(&format!("{BASE}/cpu{cpu}/topology/thread_siblings_list"))
}

fn last_level_cache(root: &Root, cpu: u32) -> Found<CpuSet> {
    let dir = format!("{BASE}/cpu{cpu}/cache");
    let last = root
        .list(&dir)?
        .into_iter()
        .rfind(|n| n.starts_with("index"))
        .ok_or_else(|| Missing::NotApplicable(format!("{dir} names no cache")))?;
    root.cpus(&format!("{dir}/{last}/shared_cpu_list"))
}

/// The distinct sets that `of` gives for the CPUs: `["0-1", "2-3"]`.
fn sets(root: &Root, cpus: &CpuSet, of: impl Fn(&Root, u32) -> Found<CpuSet>) -> Found<Vec<Value>> {
    let mut out: BTreeMap<u32, String> = BTreeMap::new();
    let mut covered = std::collections::BTreeSet::new();
    for cpu in cpus.iter().filter(|_| !cpus.is_empty()) {
        if covered.contains(&cpu) {
            continue;
        }
        let set = of(root, cpu)?;
        covered.extend(set.iter());
        out.insert(cpu, set.to_string());
    }
    if out.is_empty() {
        return Err(Missing::Unknown("which CPUs are online is not known".to_owned()));
    }
    Ok(out.into_values().map(Value::from).collect())
}

fn nodes(root: &Root) -> Found<Vec<Value>> {
    const DIR: &str = "/sys/devices/system/node";
    let mut out = Vec::new();
    for name in root.list(DIR)? {
        let number = name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
        if number {
            out.push(root.cpus(&format!("{DIR}/{name}/cpulist"))?.to_string().into());
        }
    }
    Ok(out)
}
