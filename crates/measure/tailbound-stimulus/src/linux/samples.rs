// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses on their way from the sending thread to the sink, and which of them were too many.
//!
//! Units: ns.

use tailbound_box::stimulus::{
    CellCount, CellTable, SampleAccount, StimulusCounters, StimulusReaction, StimulusSample,
};
use tailbound_rt::Recorder;
use tailbound_rt::answer::sender::{PulseSample, PulseTime};
use tailbound_rt::h2::{self, BUCKETS, PRECISION};
use tailbound_sys::clock::{CLOCK_MONOTONIC, now_ns};

use super::record::SenderReport;
use super::{LEAD_NS, SECOND_NS, Shared, StimulusProgress, StimulusSink};
use crate::copy_pace::CopyPace;

/// Longest pulses that are kept.
const WORST: usize = 256;

/// What the sink was given.
pub(super) struct SampleFeed<'a> {
    sink: &'a mut dyn StimulusSink,
    first_ns: Option<i64>,
    told_ns: i64,
    answered: Vec<u64>,
    at_least: Vec<u64>,
    counters: StimulusCounters,
    account: SampleAccount,
    worst: Vec<StimulusSample>,
    copies: CopyPace,
}

impl<'a> SampleFeed<'a> {
    pub(super) fn new(sink: &'a mut dyn StimulusSink, begun_ns: i64) -> Self {
        Self {
            sink,
            first_ns: None,
            told_ns: 0,
            answered: vec![0; BUCKETS],
            at_least: vec![0; BUCKETS],
            counters: StimulusCounters { late: Some(0), ..StimulusCounters::default() },
            account: SampleAccount::default(),
            worst: Vec::new(),
            copies: CopyPace::begin(begun_ns),
        }
    }

    /// Takes what came since the last look.
    pub(super) fn take(&mut self, shared: &Shared, begun_ns: i64) {
        while let Some(words) = shared.samples.pop() {
            self.add(PulseSample::unpack(words));
        }
        let elapsed_ns = now_ns(CLOCK_MONOTONIC).saturating_sub(begun_ns + LEAD_NS).max(0);
        if elapsed_ns >= self.told_ns.saturating_add(SECOND_NS) {
            self.told_ns = elapsed_ns;
            let worst = self.worst.iter().filter_map(|sample| sample.reaction.ticks()).max();
            self.sink.progress(&StimulusProgress {
                elapsed_ns,
                counters: self.counters,
                worst_ns: worst.and_then(|ns| i64::try_from(ns).ok()),
            });
        }
    }

    /// Hands over what was measured by now, from time to time.
    pub(super) fn copy(&mut self, report: &SenderReport<'_>, shared: &Shared, begun_ns: i64) {
        let now_ns = now_ns(CLOCK_MONOTONIC);
        if self.counters.sent > 0 && self.copies.is_due(now_ns) {
            self.copies.taken(now_ns);
            let record = report.so_far(shared, self, now_ns.saturating_sub(begun_ns + LEAD_NS));
            self.sink.so_far(&record);
        }
    }

    /// What was given to the sink by now, with those that were dropped on the way: of these nothing is known yet.
    pub(super) fn so_far(
        &self,
        dropped: u64,
    ) -> (StimulusCounters, SampleAccount, Vec<StimulusSample>) {
        let counters = StimulusCounters {
            sent: self.counters.sent.saturating_add(dropped),
            unknown: dropped,
            dropped: Some(dropped),
            ..self.counters
        };
        (counters, self.account.clone(), self.worst.clone())
    }

    fn add(&mut self, sample: PulseSample) {
        let PulseSample { number, sent_ns, time } = sample;
        let first_ns = *self.first_ns.get_or_insert(sent_ns);
        let (kept, ns) = match time {
            PulseTime::Answered(ns) | PulseTime::Late(ns) => (&mut self.answered, ns),
            PulseTime::AtLeast(ns) => (&mut self.at_least, ns),
        };
        let ns = ns.max(0).cast_unsigned();
        if let Some(count) = kept.get_mut(bucket(ns)) {
            *count += 1;
        }
        let counters = &mut self.counters;
        counters.sent += 1;
        let reaction = match time {
            PulseTime::Answered(_) => StimulusReaction::Answered(ns),
            PulseTime::Late(_) => StimulusReaction::Late(ns),
            PulseTime::AtLeast(_) => StimulusReaction::AtLeast(ns),
        };
        match reaction {
            StimulusReaction::AtLeast(_) => counters.unanswered += 1,
            _ => counters.answered += 1,
        }
        let is_late = u64::from(matches!(reaction, StimulusReaction::Late(_)));
        counters.late = counters.late.map(|late| late + is_late);
        let sent_ticks = sent_ns.saturating_sub(first_ns).max(0).cast_unsigned();
        let sample = StimulusSample { number, sent_ticks, reaction };
        self.account.take(number);
        self.keep(sample, ns);
        self.sink.sample(0, sample);
    }

    fn keep(&mut self, sample: StimulusSample, ns: u64) {
        let ticks = |sample: &StimulusSample| sample.reaction.ticks().unwrap_or(0);
        if self.worst.len() == WORST {
            if self.worst.last().is_some_and(|least| ticks(least) >= ns) {
                return;
            }
            self.worst.pop();
        }
        let at = self.worst.partition_point(|other| ticks(other) >= ns);
        self.worst.insert(at, sample);
    }

    /// When the first one was sent, by which the others are told.
    pub(super) fn first_ns(&self) -> i64 {
        self.first_ns.unwrap_or(0)
    }

    /// What the sink was not given, from all that the sending thread counted; which numbers came; the longest.
    pub(super) fn finish(self, shared: &Shared) -> (CellTable, SampleAccount, Vec<StimulusSample>) {
        let table = CellTable {
            answered: rest(&shared.answered, &self.answered),
            at_least: rest(&shared.at_least, &self.at_least),
        };
        (table, self.account, self.worst)
    }
}

fn bucket(ns: u64) -> usize {
    h2::index(ns, PRECISION).min(BUCKETS - 1)
}

fn rest(all: &Recorder, given: &[u64]) -> Vec<CellCount> {
    let counts = all.late_buckets().iter().map(|n| n.load(std::sync::atomic::Ordering::Relaxed));
    let greatest = all.wakeups().max_ns.unwrap_or(0).max(0).cast_unsigned();
    let left = counts.zip(given).enumerate().filter_map(|(i, (all, given))| {
        // The buckets wrap at 2^32; what was not given is far less.
        let count = u64::from(all.wrapping_sub(*given as u32));
        let (least_ticks, width) = h2::bounds(i, PRECISION);
        let most = if i == BUCKETS - 1 { greatest } else { least_ticks + width - 1 };
        (count > 0).then_some(CellCount { least_ticks, most_ticks: Some(most), count })
    });
    left.collect()
}
