// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seconds of a run's threads, with how late each was and what was taken of its CPU. Of a monitor's run, which
//! has no seconds, its windows.
//!
//! Units: ns, kHz, counts.

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::disturbance::{CpuTaken, DisturbanceKind, DisturbanceRecord, MachineTaken};
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::{SecondRecord, WindowRecord};

/// Most cells of all threads together that are looked at: the first of longer runs.
const CELLS_MAX: usize = 1 << 18;
/// A look that covers less of a cell is not of it, and one that covers all but so little is of it alone.
const EDGE: f64 = 0.05;

/// How late each cell was.
pub(super) struct Lateness {
    /// Length of a row.
    pub(super) cells: usize,
    /// Length of a cell.
    pub(super) cell_s: u32,
    /// The CPU of each row, a thread; `None`: anywhere.
    cpus: Vec<Option<u32>>,
    /// Latest wake-up of each cell, row by row.
    late: Vec<f64>,
}

/// Row by row a thread, in it cell by cell.
pub(super) struct Cells {
    /// Length of a row.
    pub(super) seconds: usize,
    /// Latest wake-up of each.
    pub(super) late: Vec<f64>,
    /// What was taken.
    pub(super) taken: Vec<f64>,
}

/// Where a kind of reading stands in a record.
enum Reading {
    /// Of one CPU.
    Cpu(fn(&CpuTaken) -> i64),
    /// Of the machine.
    Machine(fn(&MachineTaken) -> i64),
    /// Of the threads above.
    Above,
    /// How slow the CPU was.
    Frequency,
}

impl Reading {
    fn of(kind: DisturbanceKind) -> Option<Self> {
        Some(match kind {
            DisturbanceKind::Steal => Self::Cpu(|c| c.steal_ns),
            DisturbanceKind::Interrupt => Self::Cpu(|c| c.interrupt_ns),
            DisturbanceKind::Softirq => Self::Cpu(|c| c.softirq_ns),
            DisturbanceKind::Waited => Self::Cpu(|c| c.waited_ns),
            DisturbanceKind::Firmware => Self::Machine(|m| m.smis),
            DisturbanceKind::Quota => Self::Machine(|m| m.quota_ns),
            DisturbanceKind::CpuPressure => Self::Machine(|m| m.cpu_pressure_ns),
            DisturbanceKind::IoPressure => Self::Machine(|m| m.io_pressure_ns),
            DisturbanceKind::MemoryPressure => Self::Machine(|m| m.memory_pressure_ns),
            DisturbanceKind::IrqPressure => Self::Machine(|m| m.irq_pressure_ns),
            DisturbanceKind::RanAbove => Self::Above,
            DisturbanceKind::Frequency => Self::Frequency,
            DisturbanceKind::Unknown(_) => return None,
        })
    }

    /// What one look has of it, on `cpu` or on all.
    fn at(&self, look: &DisturbanceRecord, cpu: Option<u32>) -> i64 {
        let here = |of: u32| cpu.is_none_or(|cpu| of == cpu);
        match self {
            Self::Cpu(of) => sum(look.cpus.iter().filter(|c| here(c.cpu)).map(of)),
            Self::Machine(of) => of(&look.machine),
            Self::Above => sum(look.above.iter().filter(|a| here(a.cpu)).map(|a| a.ns)),
            Self::Frequency => 0,
        }
    }
}

/// The latest wake-up of one thread in one second or window.
struct Point {
    thread: u32,
    /// Its last second.
    second: u64,
    max_ns: f64,
}

impl Point {
    fn of_second(s: &SecondRecord) -> Self {
        Self { thread: s.thread, second: s.second, max_ns: s.max_ns.real() }
    }

    fn of_window(w: &WindowRecord) -> Option<Self> {
        let max_ns = w.values.get("max").copied().filter(|v| v.is_finite())?;
        Some(Self { thread: w.thread, second: w.second, max_ns })
    }
}

impl Lateness {
    /// That of the judged threads.
    pub(super) fn of_run(run: &Run) -> Option<Self> {
        let context = run.judged_context()?;
        let threads: BTreeMap<u32, Option<u32>> = run
            .threads
            .iter()
            .filter(|t| t.context == context)
            .map(|t| (t.thread, t.cpu))
            .collect();
        let most = CELLS_MAX / threads.len().max(1);
        let (cell_s, points) = match run.seconds.is_empty() {
            false => (1, run.seconds.iter().map(Point::of_second).collect()),
            true => windows(run)?,
        };
        // By its middle: windows of a monitor end a little late.
        let middle =
            |second: u64| second.saturating_add(1).saturating_sub(u64::from(cell_s).div_ceil(2));
        let place = |second: u64| usize::try_from(middle(second) / u64::from(cell_s)).ok();
        let cells =
            points.iter().filter_map(|p| place(p.second)).filter(|at| *at < most).max()? + 1;
        let rows: BTreeMap<u32, usize> =
            threads.keys().enumerate().map(|(row, thread)| (*thread, row)).collect();
        let mut late = vec![0.0; cells * threads.len()];
        for Point { thread, second, max_ns } in points {
            let row = rows.get(&thread);
            let at = row.zip(place(second).filter(|at| *at < cells));
            if let Some(cell) = at.and_then(|(row, at)| late.get_mut(row * cells + at)) {
                *cell = f64::max(*cell, max_ns);
            }
        }
        Some(Self { cells, cell_s, cpus: threads.into_values().collect(), late })
    }

    /// Beside what was taken of `kind`; `None` where nothing was, or a look could not tell.
    pub(super) fn beside(&self, run: &Run, kind: DisturbanceKind) -> Option<Cells> {
        let reading = Reading::of(kind)?;
        if run.disturbances.iter().any(|d| d.unread.contains(&kind)) {
            return None;
        }
        let mut taken = Vec::new();
        for cpu in &self.cpus {
            match reading {
                Reading::Frequency => taken.append(&mut self.slowness(run, (*cpu)?)?),
                _ => taken.append(&mut self.taken(run, *cpu, &reading)),
            }
        }
        let some = taken.iter().any(|t| *t > 0.0);
        some.then(|| Cells { seconds: self.cells, late: self.late.clone(), taken })
    }

    /// What was taken of `cpu` (`None`: of all) in each cell.
    fn taken(&self, run: &Run, cpu: Option<u32>, reading: &Reading) -> Vec<f64> {
        let mut row = vec![0.0; self.cells];
        for look in run.disturbances.iter().filter(|d| d.span_ns > 0) {
            let amount = reading.at(look, cpu).real();
            let cell_ns = f64::from(self.cell_s) * 1e9;
            let (to, span) = (look.t_ns.real() / cell_ns, look.span_ns.real() / cell_ns);
            let from = to - span;
            if amount <= 0.0 || to <= 0.0 {
                continue;
            }
            if self.cell_s > 1 && (0.5..1.5).contains(&span) {
                let middle = ((from + to) / 2.0).max(0.0).floor().whole_usize();
                row.iter_mut().skip(middle).take(1).for_each(|cell| *cell += amount);
                continue;
            }
            let first = from.max(0.0).floor().whole_usize();
            let most = span.ceil().whole_usize().saturating_add(1);
            for (i, cell) in row.iter_mut().enumerate().skip(first).take(most) {
                let at = i.real();
                let covered = (to.min(at + 1.0) - from.max(at)).max(0.0);
                let part = match covered / span {
                    part if part < EDGE => 0.0,
                    part if part > 1.0 - EDGE => 1.0,
                    part => part,
                };
                *cell += amount * part;
            }
        }
        row
    }

    /// By how much `cpu` was slower than the fastest at its fastest, in kHz; `None` where its frequency is not known from the start.
    fn slowness(&self, run: &Run, cpu: u32) -> Option<Vec<f64>> {
        let mut row = vec![0.0; self.cells];
        let mut first = None;
        for look in &run.disturbances {
            let Some(khz) = look.cpus.iter().find(|c| c.cpu == cpu && c.frequency_khz > 0) else {
                continue;
            };
            let middle_ns = look.t_ns.saturating_sub(look.span_ns / 2).max(0);
            let at = (middle_ns.real() / 1e9 / f64::from(self.cell_s)).floor().whole_usize();
            // The first look ends the first second, or the one after.
            let at = if *first.get_or_insert(at) == at && at <= 1 { 0 } else { at };
            row.iter_mut().skip(at).for_each(|cell| *cell = khz.frequency_khz.real());
        }
        let fastest = Self::fastest_khz(run).real();
        (first? <= 1).then(|| row.iter().map(|khz| fastest - khz).collect())
    }

    /// The fastest frequency in the run.
    pub(super) fn fastest_khz(run: &Run) -> i64 {
        run.disturbances.iter().flat_map(|d| &d.cpus).map(|c| c.frequency_khz).max().unwrap_or(0)
    }
}

/// The length of a monitor's windows, and each one's thread, second and longest wait; `None` where they differ.
fn windows(run: &Run) -> Option<(u32, Vec<Point>)> {
    let mut lengths: BTreeMap<u32, usize> = BTreeMap::new();
    run.windows.iter().for_each(|w| *lengths.entry(w.window_s).or_default() += 1);
    let (window_s, n) = lengths.into_iter().max_by_key(|(_, n)| *n)?;
    // The last one may have been cut short.
    let threads = run.threads.len();
    let whole = run.windows.len().saturating_sub(n) <= threads && window_s > 0;
    let of_length = run.windows.iter().filter(|w| w.window_s == window_s);
    let points = of_length.filter_map(Point::of_window).collect();
    whole.then_some((window_s, points))
}

fn sum(all: impl Iterator<Item = i64>) -> i64 {
    all.fold(0, i64::saturating_add)
}

impl Cells {
    /// Which cells are the latest: a tenth of them, within `least_most`; `None` where they do not differ.
    pub(super) fn latest(&self, (least, most): (usize, usize)) -> Option<Vec<bool>> {
        let n = (self.late.len() / 10).clamp(least, most);
        let mut sorted = self.late.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.reverse();
        let from = *sorted.get(n.checked_sub(1)?)?;
        let late: Vec<bool> = self.late.iter().map(|l| *l >= from).collect();
        (late.iter().filter(|l| **l).count() <= 2 * n).then_some(late)
    }

    /// Which cells had much taken.
    pub(super) fn much(&self) -> Vec<bool> {
        let mut sorted = self.taken.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let quartile = sorted.get(sorted.len() * 3 / 4).copied().unwrap_or(0.0);
        self.taken.iter().map(|t| *t > quartile).collect()
    }
}
