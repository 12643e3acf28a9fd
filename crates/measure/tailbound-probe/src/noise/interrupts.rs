// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/proc/interrupts`: how many of which kind each CPU took.
//!
//! Context: COLD ([`Interrupts`]); HOT in place of a better witness ([`Column`]: reads into
//! memory it has, and the time is the loop's own). Units: counts.
//! Source: proc_interrupts(5).

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tailbound_core::order;

use tailbound_host::{Found, Missing, Root};

/// Every kind of interrupt of every CPU since boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Interrupts(BTreeMap<u32, BTreeMap<String, u64>>);

impl Interrupts {
    pub(super) fn read(root: &Root) -> Found<Self> {
        let all = Self::parse(&root.text("/proc/interrupts")?);
        if all.0.is_empty() {
            return Err(Missing::Unknown("/proc/interrupts names no CPU".to_owned()));
        }
        Ok(all)
    }

    fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let cpus: Vec<u32> = lines.next().map(header).unwrap_or_default();
        let mut all: BTreeMap<u32, BTreeMap<String, u64>> =
            cpus.iter().map(|c| (*c, BTreeMap::new())).collect();
        for line in lines {
            let Some((name, rest)) = line.split_once(':') else { continue };
            let name = named(name.trim(), rest, cpus.len());
            for (cpu, n) in
                cpus.iter().zip(rest.split_ascii_whitespace().map_while(|w| w.parse::<u64>().ok()))
            {
                if let Some(kinds) = all.get_mut(cpu) {
                    *kinds.entry(name.clone()).or_insert(0u64) += n;
                }
            }
        }
        Self(all)
    }

    /// What `cpu` took since `earlier`, the most frequent first.
    pub(super) fn since(&self, earlier: &Self, cpu: u32) -> Vec<(String, u64)> {
        let none = BTreeMap::new();
        let before = earlier.0.get(&cpu).unwrap_or(&none);
        let mut taken: Vec<(String, u64)> = self
            .0
            .get(&cpu)
            .unwrap_or(&none)
            .iter()
            .map(|(k, n)| (k.clone(), n.saturating_sub(before.get(k).copied().unwrap_or(0))))
            .filter(|(_, n)| *n > 0)
            .collect();
        order::by_key(&mut taken, |(_, n)| std::cmp::Reverse(*n));
        taken
    }
}

/// `CPU0 CPU1 CPU3`: offline ones are absent.
fn header(line: &str) -> Vec<u32> {
    line.split_ascii_whitespace().filter_map(|w| w.strip_prefix("CPU")?.parse().ok()).collect()
}

/// `LOC`, or for a numbered one `24 virtio0-requests`.
fn named(number: &str, rest: &str, cpus: usize) -> String {
    if number.parse::<u32>().is_err() {
        return number.to_owned();
    }
    let device = rest.split_ascii_whitespace().skip(cpus).last().unwrap_or_default();
    format!("{number} {device}").trim_end().to_owned()
}

/// All interrupts of one CPU, by their sum.
#[derive(Debug)]
pub(super) struct Column {
    file: File,
    place: usize,
    text: Vec<u8>,
}

impl Column {
    /// # Errors
    /// The file cannot be opened, or does not name the CPU.
    pub(super) fn open(root: &Root, cpu: u32) -> Found<Self> {
        let text = root.text("/proc/interrupts")?;
        let place =
            text.lines().next().map(header).unwrap_or_default().iter().position(|c| *c == cpu);
        let place = place.ok_or_else(|| {
            Missing::Unknown(format!("/proc/interrupts has no column of CPU {cpu}"))
        })?;
        let file = File::open(root.path("/proc/interrupts"))
            .map_err(|e| Missing::Unknown(format!("/proc/interrupts: {e}")))?;
        Ok(Self { file, place, text: vec![0; text.len() + (64 << 10)] })
    }

    /// The sum; `None` when it cannot be read.
    pub(super) fn sum(&mut self) -> Option<u64> {
        let mut filled = 0;
        loop {
            let room = self.text.get_mut(filled..)?;
            match self.file.read_at(room, u64::try_from(filled).ok()?) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(_) => return None,
            }
        }
        Some(sum_of(self.text.get(..filled)?, self.place))
    }
}

fn sum_of(text: &[u8], place: usize) -> u64 {
    text.split(|b| *b == b'\n')
        .skip(1)
        .filter_map(|line| {
            let colon = line.iter().position(|b| *b == b':')?;
            let mut words = line
                .get(colon + 1..)?
                .split(u8::is_ascii_whitespace)
                .filter(|w| !w.is_empty())
                .map_while(|w| std::str::from_utf8(w).ok()?.parse::<u64>().ok());
            words.nth(place)
        })
        .fold(0, u64::wrapping_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "           CPU0       CPU2
 24:         10          1  IR-PCI-MSI 5-edge  virtio0-requests
LOC:       1000       2000   Local timer interrupts
ERR:          7
";
    const AFTER: &str = "           CPU0       CPU2
 24:         10          9  IR-PCI-MSI 5-edge  virtio0-requests
LOC:       1000       2500   Local timer interrupts
ERR:          8
";

    #[test]
    fn each_kind_of_each_cpu_is_reported() {
        let (before, after) = (Interrupts::parse(BEFORE), Interrupts::parse(AFTER));
        let want = vec![("LOC".to_owned(), 500), ("24 virtio0-requests".to_owned(), 8)];
        assert_eq!(after.since(&before, 2), want);
        assert_eq!(after.since(&before, 0), vec![("ERR".to_owned(), 1)]);
        assert_eq!(after.since(&before, 1), vec![]);
        assert_eq!((sum_of(AFTER.as_bytes(), 1), sum_of(AFTER.as_bytes(), 0)), (2509, 1018));
    }

    #[test]
    fn this_machine_counts_its_interrupts() {
        let root = Root::real();
        let Ok(mut column) = Column::open(&root, 0) else {
            return tailbound_testing::skip("root", "there is no /proc/interrupts");
        };
        let (a, b) = (column.sum().unwrap(), column.sum().unwrap());
        assert!(a > 0 && b >= a);
    }
}
