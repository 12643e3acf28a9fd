// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the library keeps of one loop: its set-up, and all that was taken out of its recorders.
//!
//! Units: ns; `t_ns` counts from the first due activation.
//! The loop writes into rings and 32-bit counters; whoever asks for figures, or polls, takes
//! them over into memory that grows (64 bytes per second and context). Rings that nobody empties
//! fill up and count what they drop.

use tailbound_core::collect::Collector;
use tailbound_core::occurrence::Occurrence;
use tailbound_core::record::{BlockRecord, Event, ExceedanceRecord, SecondRecord, SelfCost};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Context, Distribution, Policy};
use tailbound_rt::jobs::{Counts, Progress};
use tailbound_rt::recorder::Recorder;
use tailbound_stats::blocks::{Blocks, length_s};
use tailbound_sys::mem::Prefaulted;

/// Exceedances kept before the threshold doubles: a bounded file, whatever happens.
const EXCEEDANCES_A_STEP: u64 = 4096;

/// What is required of one latency, and from what latency on a cycle is kept one by one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    pub(crate) late_ns: Option<i64>,
    pub(crate) early_ns: Option<i64>,
    pub(crate) threshold_ns: Option<i64>,
}

/// What the program said of its loop.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) name: String,
    pub(crate) period_ns: i64,
    pub(crate) clock: i32,
    pub(crate) policy: Option<Policy>,
    pub(crate) cpu: Option<u32>,
    pub(crate) confidence: f64,
    pub(crate) opened_realtime_ns: i64,
    pub(crate) self_cost: SelfCost,
}

/// One latency of the loop: its recorder and what was taken from it.
#[derive(Debug)]
pub(crate) struct Side {
    /// Its number in the run file; per-second records are told apart by it.
    pub(crate) thread: u32,
    /// `start` or `completion`.
    pub(crate) context: Context,
    pub(crate) limits: Limits,
    pub(crate) recorder: Prefaulted<Recorder>,
    collector: Collector,
    pub(crate) seconds: Vec<SecondRecord>,
    pub(crate) exceedances: Vec<ExceedanceRecord>,
    since_step: u64,
    cutter: Blocks,
    /// The schedule in stretches, as long as it was between two looks at least.
    pub(crate) blocks: Vec<BlockRecord>,
    /// Seconds of the schedule that are in a stretch.
    cut_s: u64,
}

impl Side {
    pub(crate) fn new(
        thread: u32,
        context: Context,
        limits: Limits,
        recorder: Prefaulted<Recorder>,
    ) -> Self {
        if let Some(threshold) = limits.threshold_ns.or(limits.late_ns) {
            recorder.set_threshold_ns(threshold);
        }
        Self {
            thread,
            context,
            limits,
            recorder,
            collector: Collector::new(thread, 0),
            seconds: Vec::new(),
            exceedances: Vec::new(),
            since_step: 0,
            cutter: Blocks::new(thread, 1),
            blocks: Vec::new(),
            cut_s: 0,
        }
    }

    /// Takes everything new; tells when the threshold had to rise.
    fn collect(&mut self, first_due_ns: i64) -> Option<String> {
        self.collector.set_start_ns(first_due_ns);
        let fresh = self.collector.collect(&self.recorder);
        self.since_step += fresh.exceedances.len() as u64;
        self.seconds.extend(fresh.seconds);
        self.exceedances.extend(fresh.exceedances);
        if self.since_step < EXCEEDANCES_A_STEP {
            return None;
        }
        let threshold = self.recorder.threshold_ns().unwrap_or(0);
        let next = threshold.saturating_mul(2).max(1000);
        self.recorder.set_threshold_ns(next);
        let many = std::mem::take(&mut self.since_step);
        Some(format!(
            "{}: {} cycles above {} are kept; from here on only those above {} (the histogram has all)",
            self.context,
            grouped(many),
            format_ns_i64(threshold),
            format_ns_i64(next)
        ))
    }

    /// Ends a stretch when it is long enough for the length the run has come to (how long it will
    /// be, nobody said), or when the loop is over.
    fn cut(&mut self, progress: &Progress) {
        let Some(newest) = self.seconds.last().map(|s| s.second) else { return };
        let passed = newest.saturating_add(1);
        let run_ns = i64::try_from(passed).unwrap_or(i64::MAX).saturating_mul(1_000_000_000);
        if passed.saturating_sub(self.cut_s) < length_s(run_ns) && !progress.finished {
            return;
        }
        self.cut_s = passed;
        let (late, sums) = self.collector.due(&self.recorder);
        self.blocks.extend(self.cutter.cut(newest, &late, self.collector.early(), &sums));
    }

    /// Served and missed activations. Exact when the loop has finished; before, the sums are
    /// those of the last full second.
    pub(crate) fn distributions(&self) -> (Distribution, Distribution) {
        self.collector.distributions(&self.recorder)
    }
}

/// All that is kept of one loop. Boxed and shared: its recorders stay where they are.
#[derive(Debug)]
pub(crate) struct Collected {
    pub(crate) setup: Setup,
    pub(crate) counts: Prefaulted<Counts>,
    pub(crate) start: Side,
    pub(crate) completion: Side,
    pub(crate) events: Vec<Event>,
}

impl Collected {
    /// Takes everything new out of the recorders.
    pub(crate) fn collect(&mut self) -> Progress {
        let progress = self.counts.progress();
        let first = progress.first_due_ns.unwrap_or(0);
        let now = tailbound_sys::clock::now_ns(self.setup.clock);
        for side in [&mut self.start, &mut self.completion] {
            if let Some(note) = side.collect(first) {
                let event = Occurrence::Threshold { note: &note }.at(now.saturating_sub(first));
                self.events.push(event);
            }
            side.cut(&progress);
        }
        progress
    }

    /// The latencies that the loop has told: completion only if it ever ended a cycle.
    pub(crate) fn sides(&self) -> Vec<&Side> {
        let completion = self.completion.recorder.wakeups().n > 0;
        std::iter::once(&self.start).chain(completion.then_some(&self.completion)).collect()
    }
}
