// SPDX-License-Identifier: MIT OR Apache-2.0
//! What of a run is told: its longest sections, its latest wake-ups, its CPUs.
//!
//! Units: ns. Each entry names a target, of which it is found out later what was executed.

use tailbound_core::order;
use tailbound_core::paths::{
    Behind, HandedOver, PathsCpu, SectionKind, SectionRecord, SectionTotal, WakeUpRecord,
};
use tailbound_trace::symbols::Symbols;

use super::reading::LogReading;
use super::{Samples, Sparse, Target, Targeted, WAKEUPS};
use crate::names::named;
use crate::sections::Sections;
use crate::wakeups::{self, WakeUp};
use crate::window::GuestWindow;

/// Sections of each kind that are told, and of how many it is told what they executed.
const SECTIONS: usize = 10;
const TREES: usize = 2;

impl Sparse {
    /// Those of one kind and CPU.
    pub(super) fn sections(
        &mut self,
        kind: SectionKind,
        cpu: u8,
        all: &Sections,
        seen: &LogReading,
        symbols: &Symbols,
    ) {
        let several = seen.several();
        let name = |at: u64| named(symbols, at).to_owned();
        let number = several.then(|| u32::from(cpu));
        let table = all.table(kind);
        self.pairs.extend(table.iter().map(|((first, last), _)| (kind, *first, *last)));
        self.record.totals.push(SectionTotal {
            kind,
            cpu: number,
            n: table.iter().map(|(_, b)| b.n).sum(),
            sum_ns: table.iter().map(|(_, b)| b.sum_ns).sum::<u64>().cast_signed(),
            longest_ns: table.iter().map(|(_, b)| b.longest_ns).max().unwrap_or(0).cast_signed(),
            own_ns: several.then(|| table.first().map_or(0, |(_, b)| b.own_ns.cast_signed())),
        });
        for (nth, ((first, last), b)) in table.into_iter().take(SECTIONS).enumerate() {
            if nth < TREES {
                let target = Target::Section(self.record.sections.len());
                let within = GuestWindow { from_ns: b.at_ns, to_ns: b.at_ns + b.at_length_ns };
                self.targets.push(Targeted { within, cpu, target });
            }
            self.record.sections.push(SectionRecord {
                kind,
                cpu: number,
                from: name(first),
                to: name(last),
                n: b.n,
                mean_ns: (b.sum_ns / b.n.max(1)).cast_signed(),
                longest_ns: b.longest_ns.cast_signed(),
                own_ns: several.then(|| b.own_ns.cast_signed()),
                at_ns: b.at_ns.saturating_sub(self.window.from_ns).cast_signed(),
                tree: Vec::new(),
            });
        }
    }

    pub(super) fn wakeups(
        &mut self,
        wakeups: &[WakeUp],
        samples: Samples<'_>,
        dues: &[u64],
        seen: &LogReading,
        symbols: &Symbols,
    ) {
        let mut latest: Vec<usize> = (0..wakeups.len()).collect();
        let latency = |at: &usize| samples.latencies_ns.get(*at).copied().unwrap_or(0);
        order::by_key(&mut latest, |at| (std::cmp::Reverse(latency(at)), *at));
        // Of those that another CPU handed over the latest is told, too.
        let over = |at: &usize| wakeups.get(*at).is_some_and(WakeUp::handed_over);
        let over = latest
            .iter()
            .skip(WAKEUPS)
            .copied()
            .find(over)
            .filter(|_| !latest.iter().take(WAKEUPS).any(over));
        for at in latest.into_iter().take(WAKEUPS).chain(over) {
            let (Some(w), Some(due_ns)) = (wakeups.get(at), dues.get(at)) else { continue };
            let to_user = w.user_ns.saturating_sub(*due_ns).cast_signed();
            let legs = wakeups::legs(w, *due_ns, latency(&at) - to_user, &seen.turns);
            let delayed = legs.first().is_some_and(|first| first.ns > 0);
            let before = seen.behind(w, *due_ns).filter(|_| delayed);
            let nth = self.record.wakeups.len();
            let mut until = |to_ns, cpu, target| {
                let within = GuestWindow { from_ns: *due_ns, to_ns };
                self.targets.push(Targeted { within, cpu, target });
            };
            until(w.user_ns, w.cpus.1, Target::WakeUp(nth));
            if w.handed_over() {
                until(w.told_ns, w.cpus.0, Target::Timer(nth));
            }
            self.record.wakeups.push(WakeUpRecord {
                activation: at as u64,
                latency_ns: latency(&at),
                legs,
                behind: before.map(|s| Behind {
                    from: named(symbols, s.first).to_owned(),
                    to: named(symbols, s.last).to_owned(),
                    ns: (s.to_ns - s.from_ns).cast_signed(),
                    own_ns: seen.several().then(|| (s.own.1 - s.own.0).cast_signed()),
                }),
                handed_over: w.handed_over().then(|| HandedOver {
                    cpu: u32::from(w.cpus.0),
                    by: self.told_by(w, symbols),
                    tree: Vec::new(),
                }),
                tree: Vec::new(),
            });
        }
    }

    /// The interrupt by which the thread's CPU was told.
    fn told_by(&self, w: &WakeUp, symbols: &Symbols) -> Option<String> {
        let name = named(symbols, w.told_by);
        let seen = w.told_by != 0 && self.guest.is_interrupt(w.told_by, name);
        (seen && !w.moved).then(|| name.to_owned())
    }

    /// What there is to say of several CPUs.
    pub(super) fn several(&mut self, wakeups: &[WakeUp], seen: &LogReading, symbols: &Symbols) {
        if !seen.several() {
            return;
        }
        let unexplained =
            |w: &&WakeUp| w.moved || (w.handed_over() && self.told_by(w, symbols).is_none());
        let unexplained = wakeups.iter().filter(unexplained).count() as u64;
        if let Some(checks) = &mut self.record.checks.several {
            checks.unexplained = unexplained;
        }
        let GuestWindow { from_ns, to_ns } = self.window;
        let one = |(cpu, _): &(u8, Sections)| PathsCpu {
            cpu: u32::from(*cpu),
            executed_ns: seen.turns.within(*cpu, from_ns, to_ns).cast_signed(),
            share_permille: None,
        };
        self.record.cpus = seen.sections.iter().map(one).collect();
    }
}
