// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sections of the kernel in which a wake-up has to wait: how long, between which two instructions, how often.
//!
//! Units: ns.
//! A section in which the CPU halted is left out. One that is not whole within the window is not counted. One [`Sections`] for
//! each CPU: with several the time of the log goes on while others execute, and a section has a length in its CPU's own time, too.

use std::collections::HashMap;
use tailbound_core::order;

use tailbound_core::paths::SectionKind;

use crate::log::Record;
use crate::record::{kind, state};
use crate::window::GuestWindow;

/// Is the processor in such a section in this state?
#[must_use]
pub const fn is_in(kind: SectionKind, bits: u8) -> bool {
    let mask = match kind {
        SectionKind::InterruptsOff => state::INTERRUPTS_OFF,
        SectionKind::PreemptionOff => state::PREEMPTION_OFF,
        SectionKind::NotPreemptible => state::INTERRUPTS_OFF | state::PREEMPTION_OFF,
        SectionKind::ReschedPending => state::RESCHED,
        SectionKind::Unknown(_) => 0,
    };
    bits & mask != 0
}

/// Its place among those that are watched.
fn place(kind: SectionKind) -> usize {
    SectionKind::ALL.iter().position(|k| *k == kind).unwrap_or(SectionKind::ALL.len())
}

/// All sections between the same two instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Between {
    /// How many.
    pub n: u64,
    /// Their lengths together.
    pub sum_ns: u64,
    /// The longest.
    pub longest_ns: u64,
    /// The longest in the CPU's own time.
    pub own_ns: u64,
    /// When that one began, and how long it was by the log's time.
    pub at_ns: u64,
    /// See [`Self::at_ns`].
    pub at_length_ns: u64,
}

/// One section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// When it began.
    pub from_ns: u64,
    /// When it ended.
    pub to_ns: u64,
    /// The instruction that began it.
    pub first: u64,
    /// The instruction that ended it.
    pub last: u64,
    /// Begin and end in the CPU's own time.
    pub own: (u64, u64),
}

/// Where one begins.
#[derive(Clone, Copy, Debug)]
struct Begin {
    t_ns: u64,
    own_ns: u64,
    at: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Sections {
    window: GuestWindow,
    open: [Option<Begin>; 4],
    tables: [HashMap<(u64, u64), Between>; 4],
    /// In which a wake-up waits.
    waits: SectionKind,
    /// Lengths of those, and how many had each.
    lengths: HashMap<u64, u64>,
}

impl Sections {
    /// Of sections that lie within this window; a wake-up waits in those of the kind `waits`.
    #[must_use]
    pub fn new(window: GuestWindow, waits: SectionKind) -> Self {
        let lengths = HashMap::new();
        Self { window, open: [None; 4], tables: Default::default(), waits, lengths }
    }

    /// The next record of the CPU, at `own_ns` of its own time; each section that ends within the window is handed over. One that
    /// the window begins in does not count: its length is not the window's.
    pub fn add(&mut self, r: &Record, own_ns: u64, mut ended: impl FnMut(SectionKind, Section)) {
        match r.kind {
            kind::HALT => self.open = [None; 4],
            kind::STATE => {
                for kind in SectionKind::ALL {
                    let Some(open) = self.open.get_mut(place(kind)) else { continue };
                    match (*open, is_in(kind, r.state)) {
                        (None, true) => {
                            *open = Some(Begin { t_ns: r.t_ns, own_ns, at: r.value });
                        }
                        (Some(begin), false) => {
                            *open = None;
                            let one = Section {
                                from_ns: begin.t_ns,
                                to_ns: r.t_ns,
                                first: begin.at,
                                last: r.value,
                                own: (begin.own_ns, own_ns),
                            };
                            if !self.window.holds(r.t_ns) {
                                continue;
                            }
                            if one.from_ns >= self.window.from_ns {
                                self.count(kind, one);
                            }
                            ended(kind, one);
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, kind: SectionKind, one: Section) {
        let ns = one.to_ns - one.from_ns;
        if kind == self.waits {
            *self.lengths.entry(ns).or_default() += 1;
        }
        let Some(table) = self.tables.get_mut(place(kind)) else { return };
        let between = table.entry((one.first, one.last)).or_default();
        between.n += 1;
        between.sum_ns += ns;
        between.longest_ns = between.longest_ns.max(ns);
        let own_ns = one.own.1 - one.own.0;
        if own_ns > between.own_ns {
            (between.own_ns, between.at_ns, between.at_length_ns) = (own_ns, one.from_ns, ns);
        }
    }

    /// Between which two instructions, the longest of the CPU's own time first; equal ones by address, so that the order is
    /// one.
    #[must_use]
    pub fn table(&self, kind: SectionKind) -> Vec<((u64, u64), Between)> {
        let table = self.tables.get(place(kind));
        let mut all: Vec<_> = table.into_iter().flatten().map(|(k, v)| (*k, *v)).collect();
        order::by_key(&mut all, |(key, b)| (std::cmp::Reverse(b.own_ns), *key));
        all
    }

    /// Lengths of the sections in which a wake-up waits, ascending, and how many had each.
    #[must_use]
    pub fn lengths(&self) -> Vec<(u64, u64)> {
        let mut all: Vec<_> = self.lengths.iter().map(|(k, v)| (*k, *v)).collect();
        all.sort_unstable();
        all
    }

    /// The window's length.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.window.length_ns()
    }
}

/// How likely a wake-up is later than `x_ns`, had its timer fallen due at any instant of the window: it waits for
/// the rest of the section that it fell into, and takes `rest_ns` besides. An estimate: what comes after the section is taken as
/// constant.
#[must_use]
pub fn later_than(lengths: &[(u64, u64)], window_ns: u64, rest_ns: u64, x_ns: u64) -> f64 {
    if window_ns == 0 {
        return 0.0;
    }
    let Some(residual) = x_ns.checked_sub(rest_ns) else { return 1.0 };
    let from = lengths.partition_point(|(length, _)| *length <= residual);
    let late: u64 = lengths.iter().skip(from).map(|(length, n)| (length - residual) * n).sum();
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = late as f64 / window_ns as f64;
    share.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(t_ns: u64, state: u8, value: u64) -> Record {
        Record { t_ns, cpu: 0, state, kind: kind::STATE, value }
    }

    #[test]
    fn overlapping_sections_are_each_and_both() {
        let mut sections =
            Sections::new(GuestWindow { from_ns: 0, to_ns: 1000 }, SectionKind::NotPreemptible);
        let mut all = Vec::new();
        for r in [state(10, 1, 0xa), state(20, 3, 0xb), state(30, 2, 0xc), state(50, 0, 0xd)] {
            sections.add(&r, r.t_ns, |kind, s| {
                all.push((kind, s.from_ns, s.to_ns, s.first, s.last));
            });
        }
        assert_eq!(
            all,
            [
                (SectionKind::InterruptsOff, 10, 30, 0xa, 0xc),
                (SectionKind::PreemptionOff, 20, 50, 0xb, 0xd),
                (SectionKind::NotPreemptible, 10, 50, 0xa, 0xd),
            ]
        );
        assert_eq!(sections.lengths(), [(40, 1)]);
    }

    #[test]
    fn a_halt_and_the_window_cut_sections_out() {
        let mut sections =
            Sections::new(GuestWindow { from_ns: 100, to_ns: 200 }, SectionKind::NotPreemptible);
        let halt = Record { t_ns: 150, cpu: 0, state: 1, kind: kind::HALT, value: 0 };
        let mut all = Vec::new();
        for r in [
            state(90, 1, 1),
            state(110, 0, 2),
            state(140, 1, 1),
            halt,
            state(160, 0, 2),
            state(190, 1, 1),
            state(210, 0, 2),
        ] {
            sections.add(&r, r.t_ns, |kind, s| all.push((kind, s.from_ns, s.to_ns)));
        }
        // The first interrupt of a window may have waited for a section that had begun before.
        let both = [SectionKind::InterruptsOff, SectionKind::NotPreemptible];
        assert_eq!(all, both.map(|kind| (kind, 90, 110)));
        assert!(SectionKind::ALL.iter().all(|kind| sections.table(*kind).is_empty()));
    }

    #[test]
    fn the_longest_by_the_clock_need_not_be_the_longest_of_the_cpu() {
        let mut sections =
            Sections::new(GuestWindow { from_ns: 0, to_ns: 1000 }, SectionKind::NotPreemptible);
        // 90 ns, 20 of them its own; then 50, all its own.
        for (r, own) in [
            (state(10, 1, 0xa), 0),
            (state(100, 0, 0xb), 20),
            (state(200, 1, 0xa), 20),
            (state(250, 0, 0xb), 70),
        ] {
            sections.add(&r, own, |_, _| {});
        }
        let (_, b) = sections.table(SectionKind::InterruptsOff)[0];
        assert_eq!((b.n, b.longest_ns, b.own_ns), (2, 90, 50));
        assert_eq!((b.at_ns, b.at_length_ns), (200, 50));
    }

    #[test]
    fn every_instant_of_a_window_is_counted() {
        // One section of 100 ns in 1000: a timer due within its first 40 ns waits for more than 60.
        let lengths = [(100, 1)];
        let p = |x| later_than(&lengths, 1000, 5, x);
        assert!((p(65) - 0.04).abs() < 1e-12);
        assert!((p(5) - 0.1).abs() < 1e-12 && p(105) == 0.0 && p(4) == 1.0);
    }
}
