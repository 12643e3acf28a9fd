// SPDX-License-Identifier: MIT OR Apache-2.0
//! The last windows as a run whose threads are the CPUs, so that what comes with the late ones can be looked for.
//!
//! Units: ns of CLOCK_MONOTONIC; in the run, from the begin of the first window that is kept. Memory is bounded: the
//! last windows, and the CPUs on which most waited.
//! Only the light probe's late wake-ups can show a period: their schedule is known.
//! Not here: what is looked for (`tailbound-stats`), its words (`tailbound-report`).

use std::collections::{BTreeMap, VecDeque};
use tailbound_core::order;

use tailbound_core::disturbance::DisturbanceRecord;
use tailbound_core::record::{ExceedanceRecord, ThreadRecord, WindowRecord};
use tailbound_core::{Context, Run};

use crate::clocks::Clocks;
use crate::probe;
use crate::runfile::{self, About};
use crate::window::{Late, Window};

/// Windows that are kept: a day of 15 minutes each.
const WINDOWS_MAX: usize = 96;
/// Fewest that show anything, and fewest late wake-ups of the probe.
const WINDOWS_MIN: usize = 30;
const LATE_MIN: usize = 6;
/// CPUs that are laid beside what was taken of them.
const CPUS_MAX: usize = 16;
/// Late wake-ups of the probe that are kept.
const LATE_MAX: usize = 512;
const SECOND_NS: i64 = 1_000_000_000;

/// What is kept of a window.
#[derive(Debug)]
struct Kept {
    begin_ns: i64,
    end_ns: i64,
    /// The longest wait on each CPU.
    longest: BTreeMap<u32, u64>,
    taken: DisturbanceRecord,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    windows: VecDeque<Kept>,
    /// When late wake-ups of the probe fell due.
    probe_due_ns: VecDeque<i64>,
    /// Where it ran last.
    probe_cpu: u32,
}

impl Recent {
    /// A late wake-up.
    pub(crate) fn late(&mut self, late: &Late) {
        if late.comm != probe::NAME {
            return;
        }
        let due_ns = i64::try_from(late.at_ns.saturating_sub(late.wait_ns)).unwrap_or(i64::MAX);
        self.probe_cpu = late.cpu;
        self.probe_due_ns.push_back(due_ns);
        if self.probe_due_ns.len() > LATE_MAX {
            self.probe_due_ns.pop_front();
        }
    }

    /// A window that ended.
    pub(crate) fn add(&mut self, window: &Window) {
        let mut longest: BTreeMap<u32, u64> = BTreeMap::new();
        for worst in window.threads.iter().map(|t| &t.worst) {
            let most = longest.entry(worst.cpu).or_default();
            *most = worst.wait_ns.max(*most);
        }
        self.windows.push_back(Kept {
            begin_ns: window.begin_ns,
            end_ns: window.end_ns,
            longest,
            taken: window.taken.clone(),
        });
        if self.windows.len() > WINDOWS_MAX {
            self.windows.pop_front();
        }
    }

    /// All of it; `None` as long as it is too little to show anything.
    pub(crate) fn run(&self, about: &About, now: &Clocks) -> Option<Run> {
        if self.windows.len() < WINDOWS_MIN && self.probe_due_ns.len() < LATE_MIN {
            return None;
        }
        let from_ns = self.windows.front()?.begin_ns;
        let mut header = runfile::header(about, now);
        header.plan.interval_ns = probe::EVERY_NS;
        let mut run = Run::new(header);
        let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
        for cpu in self.windows.iter().flat_map(|w| w.longest.keys()) {
            *seen.entry(*cpu).or_default() += 1;
        }
        let mut cpus: Vec<(usize, u32)> = seen.into_iter().map(|(cpu, n)| (n, cpu)).collect();
        order::by(&mut cpus, |a, b| b.cmp(a));
        cpus.truncate(CPUS_MAX);
        run.threads.extend(cpus.iter().map(|(_, cpu)| ThreadRecord {
            thread: *cpu,
            context: Context::RunQueue,
            cpu: Some(*cpu),
            ..ThreadRecord::default()
        }));
        for window in &self.windows {
            let span_ns = window.end_ns.saturating_sub(window.begin_ns);
            let second = window.end_ns.saturating_sub(from_ns) / SECOND_NS;
            let window_s = u32::try_from(span_ns.saturating_add(SECOND_NS / 2) / SECOND_NS);
            for (_, cpu) in &cpus {
                let Some(max) = window.longest.get(cpu) else { continue };
                run.windows.push(WindowRecord {
                    thread: *cpu,
                    window_s: window_s.unwrap_or(1).max(1),
                    second: u64::try_from(second).unwrap_or(0).saturating_sub(1),
                    n: 1,
                    values: [("max".to_owned(), *max as f64)].into(),
                });
            }
            let t_ns = window.taken.t_ns.saturating_sub(from_ns);
            run.disturbances.push(DisturbanceRecord { t_ns, ..window.taken.clone() });
        }
        run.exceedances.extend(self.probe_due_ns.iter().map(|due_ns| ExceedanceRecord {
            thread: self.probe_cpu,
            activation: 0,
            error_ns: 0,
            t_ns: due_ns.saturating_sub(from_ns),
            missed: 0,
        }));
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::{self, tests::raw};

    #[test]
    fn the_last_windows_are_a_run_by_cpu_and_no_more_are_kept() {
        let mut recent = Recent::default();
        let about = About::new("0", "bpf", false);
        let now = Clocks::of(SECOND_NS, SECOND_NS, SECOND_NS);
        assert!(recent.run(&about, &now).is_none());
        let n = i64::try_from(WINDOWS_MAX).unwrap() + 4;
        for i in 0..n {
            let (of, value) = raw(7, b"control\0");
            let mut thread = window::thread(&of, &value).unwrap();
            thread.worst.cpu = 1;
            let end_ns = (i + 1) * 60 * SECOND_NS;
            let taken = DisturbanceRecord {
                t_ns: end_ns,
                span_ns: 60 * SECOND_NS,
                ..DisturbanceRecord::default()
            };
            recent.add(&Window {
                begin_ns: i * 60 * SECOND_NS,
                end_ns,
                taken,
                threads: vec![thread],
                ..Window::default()
            });
        }
        let run = recent.run(&about, &now).unwrap();
        assert_eq!(run.windows.len(), WINDOWS_MAX);
        assert_eq!(run.threads.iter().map(|t| t.cpu).collect::<Vec<_>>(), [Some(1)]);
        let first = &run.windows[0];
        assert_eq!((first.window_s, first.second, first.values["max"]), (60, 59, 700.0));
        assert_eq!(run.disturbances[0].t_ns, 60 * SECOND_NS);
    }
}
