// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bound is made from: the greatest latency of every second of the schedule over all
//! threads of the judged context, and what is known about the run beside it.
//!
//! Units: ns; seconds of the schedule.
//! Not here: reading a run file; what follows from what is missing (`refuse.rs`).

use std::collections::{BTreeMap, BTreeSet};

use tailbound_core::occurrence::Occurrence;
use tailbound_core::{Context, Distribution, Impact, Run};

/// Maxima by the second, and what must be known of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockMaxima {
    /// The judged context.
    pub context: Context,
    /// What came late, in the singular.
    pub event: String,
    /// Latest wake-up of each whole second of the schedule, in order.
    pub maxima_ns: Vec<i64>,
    /// Whole seconds that were measured.
    pub seconds: u64,
    /// Of these, how many lack the record of a thread (they are not in `maxima_ns`).
    pub seconds_lost: u64,
    /// Of these, how many held no wake-up at all (likewise).
    pub seconds_empty: u64,
    /// Seconds at which something changed during the run, as whoever looked for it found.
    pub changes: Vec<u64>,
    /// Step of the values: 1 for ours.
    pub step_ns: u64,
    /// Warm-up that the run itself discarded.
    pub warm_up_ns: i64,
    /// All due activations of the context.
    pub due: Distribution,
    /// Missed activations.
    pub missed: u64,
    /// Distance of two activations.
    pub interval_ns: i64,
    /// Is the time of the run virtual?
    pub virtual_time: bool,
    /// Titles of findings by which the figures do not describe the machine.
    pub unfit: Vec<String>,
    /// Did the run come from another tool, and which?
    pub source: Option<String>,
    /// Deadline of the run, if it had one.
    pub deadline_ns: Option<i64>,
    /// Numbers of the activations beyond the run's threshold for single records, missed ones
    /// included, of the thread that has most; empty where not all of them were kept.
    pub exceedances: Vec<u64>,
}

impl BlockMaxima {
    /// Of a run.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let context = run.judged_context().unwrap_or_default();
        let judged: Vec<_> = run.threads.iter().filter(|t| t.context == context).collect();
        let mut due = Distribution::default();
        for t in &judged {
            due.merge(&t.wakeup);
            due.merge(&t.missed);
        }
        let ids: BTreeSet<u32> = judged.iter().map(|t| t.thread).collect();
        let seconds = u64::try_from(run.measured_ns() / 1_000_000_000).unwrap_or(0);
        let mut of: BTreeMap<u64, (usize, Option<i64>)> = BTreeMap::new();
        let mut records: BTreeMap<u32, u64> = BTreeMap::new();
        for s in run.seconds.iter().filter(|s| ids.contains(&s.thread)) {
            *records.entry(s.thread).or_default() += s.n;
            if s.second < seconds {
                let (threads, max) = of.entry(s.second).or_default();
                *threads += 1;
                if s.n > 0 {
                    *max = Some(max.map_or(s.max_ns, |m| m.max(s.max_ns)));
                }
            }
        }
        let whole = of.values().filter(|(threads, _)| *threads >= ids.len());
        let recorded = whole.clone().count() as u64;
        let maxima_ns: Vec<i64> = whole.filter_map(|(_, max)| *max).collect();
        Self {
            event: run.header.plan.late_word().to_owned(),
            seconds_empty: recorded - maxima_ns.len() as u64,
            seconds_lost: seconds.saturating_sub(recorded),
            maxima_ns,
            seconds,
            // Where they could not be looked for the gate still sees the maxima themselves.
            changes: crate::change::phases(&run.blocks)
                .map(|found| found.iter().map(|p| p.second).collect())
                .unwrap_or_default(),
            step_ns: judged.iter().map(|t| t.wakeup.resolution_ns).max().unwrap_or(1),
            warm_up_ns: run.header.plan.warm_up_ns,
            missed: judged.iter().fold(0, |n, t| n.saturating_add(t.missed.n)),
            due,
            interval_ns: run.header.plan.interval_ns,
            virtual_time: run.header.lab.as_ref().is_some_and(|l| l.accelerator == "tcg"),
            unfit: run
                .findings
                .iter()
                .filter(|f| f.impact == Impact::Unfit)
                .map(|f| f.title.clone())
                .collect(),
            source: run.header.source.as_ref().map(|s| format!("{} ({})", s.tool, s.format)),
            deadline_ns: run.header.plan.requirement.deadline_ns,
            exceedances: exceedances(run, &ids),
            context,
        }
    }

    /// The greatest value of all, that of seconds without a record included.
    #[must_use]
    pub fn observed_max_ns(&self) -> Option<i64> {
        self.due.max_ns.max(self.maxima_ns.iter().max().copied())
    }

    /// In how many seconds something was later than `limit_ns`: at most, and of how many.
    ///
    /// A second without a whole record counts as one; a value of a coarse source as its step's
    /// upper end.
    #[must_use]
    pub fn hits(&self, limit_ns: i64) -> u64 {
        if self.due.n > 0 && self.due.beyond(limit_ns) == (0, 0) {
            return 0;
        }
        let step = i64::try_from(self.step_ns.saturating_sub(1)).unwrap_or(i64::MAX);
        let seen =
            self.maxima_ns.iter().filter(|m| m.saturating_add(step) > limit_ns).count() as u64;
        seen + self.seconds_lost
    }
}

/// Missed activations of one wake-up that are listed, at most: a suspend misses millions.
const MISSED_LISTED: u64 = 10_000;

/// Activations beyond the threshold of the thread that has most of them, if all were kept.
///
/// A wake-up that missed activations stands for them too: the k-th was late by k intervals less.
fn exceedances(run: &Run, ids: &BTreeSet<u32>) -> Vec<u64> {
    let raised =
        run.events.iter().any(|e| matches!(Occurrence::of(e), Occurrence::Threshold { .. }));
    let lost = run.threads.iter().any(|t| t.dropped.get("exceedances").is_some_and(|n| *n > 0));
    if raised || lost {
        return Vec::new();
    }
    let kept = || run.exceedances.iter().filter(|e| ids.contains(&e.thread));
    // The run file does not keep the threshold: it is no more than the least of those beyond it.
    let least_ns = kept().map(|e| e.error_ns).min().unwrap_or(0);
    let interval_ns = run.header.plan.interval_ns.max(1);
    let mut by_thread: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    for e in kept() {
        let beyond = (e.error_ns.saturating_sub(least_ns) / interval_ns).max(0).unsigned_abs();
        let missed = e.missed.min(beyond).min(MISSED_LISTED);
        let list = by_thread.entry(e.thread).or_default();
        list.extend(e.activation..=e.activation.saturating_add(missed));
    }
    let mut most = by_thread.into_values().max_by_key(Vec::len).unwrap_or_default();
    most.sort_unstable();
    most.dedup();
    most
}
