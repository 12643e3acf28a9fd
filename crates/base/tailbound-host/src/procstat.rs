// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/stat`: how each CPU spent its time.
//!
//! Units: ticks of USER_HZ (10 ms on nearly every machine), so that every
//! figure made of it is coarse and says so.
//! Source: proc_stat(5).

use std::collections::BTreeMap;

use crate::root::{Found, Missing, Root};

/// Ticks of one CPU since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// All of them.
    pub total: u64,
    /// Idle, waiting for I/O or not.
    pub idle: u64,
    /// Taken by the hypervisor; `None` where the kernel has no such column.
    pub steal: Option<u64>,
    /// In interrupts.
    pub interrupt: u64,
    /// In soft interrupts.
    pub softirq: u64,
}

impl CpuTicks {
    /// What passed since `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            total: self.total.saturating_sub(earlier.total),
            idle: self.idle.saturating_sub(earlier.idle),
            steal: self.steal.zip(earlier.steal).map(|(a, b)| a.saturating_sub(b)),
            interrupt: self.interrupt.saturating_sub(earlier.interrupt),
            softirq: self.softirq.saturating_sub(earlier.softirq),
        }
    }
}

/// Each CPU's ticks, by its number; offline CPUs are absent.
pub type Ticks = BTreeMap<u32, CpuTicks>;

/// Reads `/proc/stat`.
///
/// # Errors
/// [`Missing`].
pub fn read(root: &Root) -> Found<Ticks> {
    let text = root.text("/proc/stat")?;
    let ticks: Ticks = text.lines().filter_map(cpu_line).collect();
    if ticks.is_empty() {
        return Err(Missing::Unknown("/proc/stat has no line of a CPU".to_owned()));
    }
    Ok(ticks)
}

/// `cpu3 user nice system idle iowait irq softirq steal guest guest_nice`; guest is in user.
fn cpu_line(line: &str) -> Option<(u32, CpuTicks)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let values: Vec<u64> = words.map_while(|w| w.parse().ok()).collect();
    let at = |i: usize| values.get(i).copied();
    let ticks = CpuTicks {
        total: values.iter().take(8).fold(0, |a, b| a.saturating_add(*b)),
        idle: at(3)?.saturating_add(at(4).unwrap_or(0)),
        steal: at(7),
        interrupt: at(5).unwrap_or(0),
        softirq: at(6).unwrap_or(0),
    };
    Some((cpu, ticks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_old_and_new_lines() {
        let (cpu, t) = cpu_line("cpu1 10 1 20 300 5 0 7 30 2 0").unwrap_or_default();
        assert_eq!((cpu, t.total, t.idle, t.steal), (1, 373, 305, Some(30)));
        assert_eq!((t.interrupt, t.softirq), (0, 7));
        let old = cpu_line("cpu0 10 1 20 300").map(|(_, t)| (t.total, t.steal));
        assert_eq!(old, Some((331, None)));
        assert_eq!(cpu_line("cpu  10 1 20 300"), None);
        assert_eq!(cpu_line("cpu1 x"), None);
        assert_eq!(cpu_line("intr 1 2 3"), None);
    }
}
