// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a load may take: the last cache's size, and what is available on the
//! machine and in the control group.
//!
//! Context: SETUP. Units: bytes.
//! Source: proc_meminfo(5), /sys/devices/system/cpu/cpu*/cache, cgroup v2 memory.max.

use std::fs;
use std::path::Path;

/// Size of the largest cache of CPU 0, if the kernel tells.
pub(crate) fn last_cache_bytes() -> Option<usize> {
    (0..8)
        .filter_map(|i| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{i}/size");
            cache_size(fs::read_to_string(path).ok()?.trim())
        })
        .max()
}

fn cache_size(text: &str) -> Option<usize> {
    let kib = text.strip_suffix('K').map(|n| (n, 1 << 10));
    let (number, factor) = kib.or_else(|| text.strip_suffix('M').map(|n| (n, 1 << 20)))?;
    number.parse::<usize>().ok()?.checked_mul(factor)
}

/// Memory that can be had without pushing anyone out: MemAvailable, or what is left in
/// the control group if that is less.
pub(crate) fn available_bytes() -> Option<u64> {
    let meminfo = fs::read_to_string("/proc/meminfo").ok();
    let machine = meminfo.as_deref().and_then(mem_available);
    [machine, group_left()].into_iter().flatten().min()
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|l| l.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn group_left() -> Option<u64> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = groups.lines().find_map(|l| l.strip_prefix("0::"))?.trim_start_matches('/');
    let top = Path::new("/sys/fs/cgroup");
    let number =
        |dir: &Path, file| fs::read_to_string(dir.join(file)).ok()?.trim().parse::<u64>().ok();
    top.join(own)
        .ancestors()
        .take_while(|dir| dir.starts_with(top))
        .filter_map(|dir| {
            // `max` is no number: no limit at this level.
            let left = number(dir, "memory.max")?;
            Some(left.saturating_sub(number(dir, "memory.current").unwrap_or(0)))
        })
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_the_kernel() {
        assert_eq!(cache_size("32K"), Some(32 << 10));
        assert_eq!(cache_size("12M"), Some(12 << 20));
        assert_eq!(cache_size("?"), None);
        assert_eq!(mem_available("MemFree: 1 kB\nMemAvailable:   2 kB\n"), Some(2048));
        assert_eq!(mem_available("MemFree: 1 kB\n"), None);
    }
}
