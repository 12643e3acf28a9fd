// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tally of samples: how much of the time a CPU, process or function had, and how sure that is.
//!
//! Units: samples; shares are of 1. The interval of a share is Wilson's, at 95 %: each sample is
//! taken for a throw of its own, which holds where what runs changes more often than it is looked at or
//! goes on in no step with it (the frequency is a prime for that).
//! Source: Wilson, J. Am. Stat. Assoc. 22 (1927) 209; Brown, Cai, DasGupta, Stat. Sci. 16 (2001) 101.

use std::collections::BTreeMap;
use tailbound_core::order;

use serde::Serialize;
use tailbound_core::sampled::{SampleOwner, Spent};

/// Quantile of the normal distribution for 95 % in the middle.
const Z: f64 = 1.959_963_984_540_054;
/// Most different places and processes: beyond them samples are counted as one.
const PLACES_MAX: usize = 1 << 16;

/// A share with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Samples.
    pub n: u64,
    /// The share.
    pub share: f64,
    /// The interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Share {
    /// `n` of `of`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "counts of samples are far below 2^53")]
    pub fn of(n: u64, of: u64) -> Self {
        if of == 0 {
            return Self { n, share: 0.0, low: 0.0, high: 1.0 };
        }
        let (total, p) = (of as f64, n as f64 / of as f64);
        let z2 = Z * Z / total;
        let centre = (p + z2 / 2.0) / (1.0 + z2);
        let half = Z * (p * (1.0 - p) / total + z2 / (4.0 * total)).sqrt() / (1.0 + z2);
        // At the ends rounding would leave a trace of nothing.
        let low = if n == 0 { 0.0 } else { (centre - half).max(0.0) };
        let high = if n == of { 1.0 } else { (centre + half).min(1.0) };
        Self { n, share: p, low, high }
    }
}

/// What one CPU did, in samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuCount {
    /// Nothing.
    pub idle: u64,
    /// Programs.
    pub user: u64,
    /// The kernel for threads.
    pub kernel: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Interrupts.
    pub interrupt: u64,
    /// Guests or a hypervisor.
    pub other: u64,
}

impl CpuCount {
    /// All of them.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.idle + self.busy()
    }

    /// Without idle ones.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.user + self.kernel + self.softirq + self.interrupt + self.other
    }
}

/// Where a sample fell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct SampleSite {
    /// The function; empty where it has no name.
    pub function: String,
    /// The program, library, or `kernel`.
    pub object: String,
    /// What the time went to.
    pub kind: Spent,
    /// The name of the process.
    pub comm: String,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// By CPU.
    pub cpus: BTreeMap<u32, CpuCount>,
    places: BTreeMap<SampleSite, u64>,
    processes: BTreeMap<(i32, String), u64>,
    /// Samples of places or processes beyond the limit.
    pub beyond: u64,
    base: u64,
}

/// One row of a table.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row<T: Serialize> {
    /// What.
    #[serde(flatten)]
    pub what: T,
    /// How much.
    #[serde(flatten)]
    pub share: Share,
}

/// A process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub comm: String,
}

/// Where and of whom samples were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampledProcess {
    /// The CPU.
    pub cpu: u32,
    /// The process.
    pub pid: i32,
    /// Is it one that was asked about?
    pub whose: SampleOwner,
}

impl Tally {
    /// `n` samples. Places are kept of processes that were asked about.
    pub fn add(&mut self, of: SampledProcess, place: SampleSite, n: u64) {
        let SampledProcess { cpu, pid, whose } = of;
        let count = self.cpus.entry(cpu).or_default();
        let slot = match place.kind {
            Spent::Idle => &mut count.idle,
            Spent::User => &mut count.user,
            Spent::Kernel => &mut count.kernel,
            Spent::Softirq => &mut count.softirq,
            Spent::Interrupt => &mut count.interrupt,
            Spent::Other => &mut count.other,
        };
        *slot += n;
        if place.kind == Spent::Idle {
            return;
        }
        let process = (pid, place.comm.clone());
        if self.processes.len() < PLACES_MAX || self.processes.contains_key(&process) {
            *self.processes.entry(process).or_default() += n;
        } else {
            self.beyond += n;
        }
        if whose == SampleOwner::Others {
            return;
        }
        self.base += n;
        if self.places.len() < PLACES_MAX || self.places.contains_key(&place) {
            *self.places.entry(place).or_default() += n;
        } else {
            self.beyond += n;
        }
    }

    /// Samples that were not idle.
    #[must_use]
    pub fn busy(&self) -> u64 {
        self.cpus.values().map(CpuCount::busy).sum()
    }

    /// All samples.
    #[must_use]
    pub fn all(&self) -> u64 {
        self.cpus.values().map(CpuCount::all).sum()
    }

    /// What the shares of places are of: the busy samples of those that were asked about.
    #[must_use]
    pub fn base(&self) -> u64 {
        self.base
    }

    /// Functions, the hottest first.
    #[must_use]
    pub fn places(&self) -> Vec<Row<SampleSite>> {
        let base = self.base();
        let row =
            |(what, n): (&SampleSite, &u64)| Row { what: what.clone(), share: Share::of(*n, base) };
        let mut rows: Vec<Row<SampleSite>> = self.places.iter().map(row).collect();
        order::by_key(&mut rows, |r| std::cmp::Reverse(r.share.n));
        rows
    }

    /// Processes, the busiest first; shares are of the busy samples.
    #[must_use]
    pub fn processes(&self) -> Vec<Row<Process>> {
        let busy = self.busy();
        let row = |((pid, comm), n): (&(i32, String), &u64)| Row {
            what: Process { pid: *pid, comm: comm.clone() },
            share: Share::of(*n, busy),
        };
        let mut rows: Vec<Row<Process>> = self.processes.iter().map(row).collect();
        order::by_key(&mut rows, |r| std::cmp::Reverse(r.share.n));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(function: &str, comm: &str, kind: Spent) -> SampleSite {
        let object = if kind == Spent::User { "program" } else { "kernel" };
        SampleSite { function: function.into(), object: object.into(), kind, comm: comm.into() }
    }

    fn asked(cpu: u32, pid: i32) -> SampledProcess {
        SampledProcess { cpu, pid, whose: SampleOwner::Asked }
    }

    fn others(cpu: u32, pid: i32) -> SampledProcess {
        SampledProcess { whose: SampleOwner::Others, ..asked(cpu, pid) }
    }

    #[test]
    fn shares_are_of_what_was_busy_and_idle_is_of_the_cpu_alone() {
        let mut tally = Tally::default();
        tally.add(asked(0, 0), place("halt", "idle thread", Spent::Idle), 60);
        tally.add(asked(0, 7), place("spin", "a", Spent::User), 30);
        tally.add(asked(1, 8), place("copy_page", "b", Spent::Kernel), 10);
        assert_eq!((tally.all(), tally.busy(), tally.base()), (100, 40, 40));
        let places = tally.places();
        let first = places.first().unwrap();
        assert_eq!((first.what.function.as_str(), first.share.n), ("spin", 30));
        assert!((first.share.share - 0.75).abs() < 1e-12);
        assert_eq!(places.len(), 2, "idle is no hot spot");
        assert_eq!(tally.cpus.get(&0).unwrap().idle, 60);
        assert_eq!(tally.processes().first().unwrap().what.pid, 7);
    }

    #[test]
    fn of_one_process_the_shares_are_of_its_own_samples() {
        let mut tally = Tally::default();
        tally.add(others(0, 7), place("spin", "a", Spent::User), 30);
        tally.add(asked(0, 8), place("f", "b", Spent::User), 10);
        assert_eq!((tally.busy(), tally.base(), tally.places().len()), (40, 10, 1));
        assert_eq!(tally.processes().len(), 2);
    }

    #[test]
    fn the_interval_is_wilsons() {
        // 10 of 20: 0.2993 to 0.7007 (Brown, Cai, DasGupta 2001, and any table).
        let share = Share::of(10, 20);
        assert!((share.low - 0.299_298).abs() < 1e-5 && (share.high - 0.700_702).abs() < 1e-5);
        let none = Share::of(0, 100);
        assert!(none.low == 0.0 && (none.high - 0.036_994).abs() < 1e-5, "{none:?}");
        let all = Share::of(100, 100);
        assert!(all.high >= 1.0 && (all.low - 0.963_006).abs() < 1e-5, "{all:?}");
        assert_eq!(Share::of(0, 0).high, 1.0);
    }
}
