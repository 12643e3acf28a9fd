// SPDX-License-Identifier: MIT OR Apache-2.0
//! The seconds of a run's threads, with how late each was and what was taken of its CPU.
//!
//! Units: ns.

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::disturbance::CpuTaken;
use tailbound_core::number::{Real as _, Whole as _};

use super::DisturbanceKind;

/// Most seconds of all threads together that are looked at: the first of longer runs.
const CELLS_MAX: usize = 1 << 18;
/// A look that covers less of a second is not of it, and one that covers all but so little is of it alone.
const EDGE: f64 = 0.05;

/// Row by row a thread, in it second by second.
pub(super) struct Cells {
    /// Length of a row.
    pub(super) seconds: usize,
    /// Latest wake-up of each.
    pub(super) late: Vec<f64>,
    /// What was taken.
    pub(super) taken: Vec<f64>,
}

impl Cells {
    /// Those of the judged threads; `None` where nothing of `kind` was taken.
    pub(super) fn of_run(run: &Run, kind: DisturbanceKind) -> Option<Self> {
        let of = |c: &CpuTaken| match kind {
            DisturbanceKind::Steal => c.steal_ns,
            DisturbanceKind::Interrupt => c.interrupt_ns,
            DisturbanceKind::Softirq => c.softirq_ns,
        };
        if run.disturbances.iter().all(|d| d.cpus.iter().all(|c| of(c) <= 0)) {
            return None;
        }
        let context = run.judged_context()?;
        let threads: BTreeMap<u32, Option<u32>> = run
            .threads
            .iter()
            .filter(|t| t.context == context)
            .map(|t| (t.thread, t.cpu))
            .collect();
        let most = u64::try_from(CELLS_MAX / threads.len().max(1)).unwrap_or(0);
        let last = run.seconds.iter().map(|s| s.second).filter(|s| *s < most).max()?;
        let seconds = usize::try_from(last).ok()?.saturating_add(1);
        let (mut late, mut taken) = (Vec::new(), Vec::new());
        for (thread, cpu) in &threads {
            let mut row = vec![0.0; seconds];
            for s in run.seconds.iter().filter(|s| s.thread == *thread) {
                let at = usize::try_from(s.second).ok().and_then(|i| row.get_mut(i));
                at.into_iter().for_each(|at| *at = s.max_ns.real());
            }
            late.append(&mut row);
            taken.append(&mut taken_of(run, *cpu, seconds, &of));
        }
        Some(Self { seconds, late, taken })
    }

    /// Which cells are the latest: a tenth of them, within `least_most`; `None` where they do not differ.
    pub(super) fn latest(&self, (least, most): (usize, usize)) -> Option<Vec<bool>> {
        let n = (self.late.len() / 10).clamp(least, most);
        let mut sorted = self.late.clone();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let from = *sorted.get(n.checked_sub(1)?)?;
        let late: Vec<bool> = self.late.iter().map(|l| *l >= from).collect();
        (late.iter().filter(|l| **l).count() <= 2 * n).then_some(late)
    }

    /// Which cells had much taken.
    pub(super) fn much(&self) -> Vec<bool> {
        let mut sorted = self.taken.clone();
        sorted.sort_by(f64::total_cmp);
        let quartile = sorted.get(sorted.len() * 3 / 4).copied().unwrap_or(0.0);
        self.taken.iter().map(|t| *t > quartile).collect()
    }
}

/// What was taken of `cpu` (`None`: of all) in each second.
fn taken_of(
    run: &Run,
    cpu: Option<u32>,
    seconds: usize,
    of: &dyn Fn(&CpuTaken) -> i64,
) -> Vec<f64> {
    let mut row = vec![0.0; seconds];
    for look in run.disturbances.iter().filter(|d| d.span_ns > 0) {
        let mine = look.cpus.iter().filter(|c| cpu.is_none_or(|cpu| c.cpu == cpu));
        let ns = mine.fold(0i64, |sum, c| sum.saturating_add(of(c))).real();
        let (to, span) = (look.t_ns.real() / 1e9, look.span_ns.real() / 1e9);
        let from = to - span;
        if ns <= 0.0 || to <= 0.0 {
            continue;
        }
        let first = from.max(0.0).floor().whole_usize();
        for (i, cell) in row.iter_mut().enumerate().skip(first).take(span.ceil().whole_usize() + 1)
        {
            let second = i.real();
            let covered = (to.min(second + 1.0) - from.max(second)).max(0.0);
            let part = match covered / span {
                part if part < EDGE => 0.0,
                part if part > 1.0 - EDGE => 1.0,
                part => part,
            };
            *cell += ns * part;
        }
    }
    row
}
