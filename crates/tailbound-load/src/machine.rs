// SPDX-License-Identifier: MIT OR Apache-2.0
//! How much memory a load may take: the last cache's size, and what is available on the
//! machine and in the control group.
//!
//! Context: SETUP. Units: bytes.
//! Source: proc_meminfo(5), /sys/devices/system/cpu/cpu*/cache, cgroup v2 memory.max.

use std::fs;
use std::path::Path;

use tailbound_core::units;

/// At most this part of the available memory is taken by default.
const AVAILABLE_PART: u64 = 8;

/// What each of `tasks` may take: `asked`, or `usual` where nothing was asked for, but together no
/// more than an eighth of what is available.
///
/// # Errors
/// What was asked for is more than is available.
pub(crate) fn block_bytes(
    asked: Option<usize>,
    usual: usize,
    tasks: usize,
) -> Result<usize, String> {
    share(asked, usual, tasks.max(1), available_bytes())
}

fn share(
    asked: Option<usize>,
    usual: usize,
    tasks: usize,
    available: Option<u64>,
) -> Result<usize, String> {
    let Some(bytes) = asked else {
        let part = available.and_then(|a| usize::try_from(a / AVAILABLE_PART).ok());
        let part = part.map_or(usize::MAX, |p| p / tasks);
        // Whole pages of any machine, and never nothing.
        return Ok((usual.min(part) & !0xffff).max(0x1_0000));
    };
    let wanted = u64::try_from(bytes.saturating_mul(tasks)).unwrap_or(u64::MAX);
    match available.filter(|a| wanted > *a) {
        None => Ok(bytes),
        Some(available) => Err(format!(
            "{tasks} tasks of {} bytes are more than the {} bytes available: write a smaller size= or fewer tasks=",
            units::grouped(bytes as u64),
            units::grouped(available)
        )),
    }
}

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
    fn a_default_is_modest_and_a_wish_is_checked() {
        const MIB: usize = 1 << 20;
        assert_eq!(share(None, 64 * MIB, 2, Some(32 << 30)), Ok(64 * MIB));
        assert_eq!(share(None, 64 * MIB, 2, Some(512 << 20)), Ok(32 * MIB));
        assert_eq!(share(None, 64 * MIB, 2, Some(0)), Ok(1 << 16));
        assert_eq!(share(Some(5000), 64 * MIB, 2, Some(1 << 20)), Ok(5000));
        let refused = share(Some(MIB), MIB, 3, Some(2 << 20));
        assert!(refused.is_err_and(|e| e.contains("3 tasks") && e.contains("size=")));
    }

    #[test]
    fn sizes_of_the_kernel() {
        assert_eq!(cache_size("32K"), Some(32 << 10));
        assert_eq!(cache_size("12M"), Some(12 << 20));
        assert_eq!(cache_size("?"), None);
        assert_eq!(mem_available("MemFree: 1 kB\nMemAvailable:   2 kB\n"), Some(2048));
        assert_eq!(mem_available("MemFree: 1 kB\n"), None);
    }
}
