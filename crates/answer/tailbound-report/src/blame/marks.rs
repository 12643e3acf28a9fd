// SPDX-License-Identifier: MIT OR Apache-2.0
//! The time that a picture of a sample shows, its marks, and the CPUs in it.
//!
//! Units: ns since the due time.

use tailbound_core::blame::{BlameLane, BlameRecord, Phase};
use tailbound_core::order;

/// Most CPUs in one picture: a terminal and a page have no room for hundreds.
const CPUS_MAX: usize = 8;

/// From when to when a picture, or something in it, goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PictureSpan {
    pub(super) from_ns: i64,
    pub(super) to_ns: i64,
}

/// The latency, and a little before and after it where that is known.
pub(super) fn window(record: &BlameRecord) -> PictureSpan {
    let spans = || record.lanes.iter().flat_map(|l| &l.spans);
    let end = record.latency_ns.max(1);
    let earliest = spans().map(|s| s.from_ns).min().unwrap_or(0);
    let last = spans().map(|s| s.to_ns).max().unwrap_or(0);
    let from_ns = earliest.clamp(-(end / 4), 0);
    PictureSpan { from_ns, to_ns: last.clamp(end, end.saturating_add(end / 20)) }
}

/// Is it a whole cycle of a watched thread, and no wake-up alone?
pub(crate) fn is_cycle(record: &BlameRecord) -> bool {
    let within = |p: &Phase| matches!(p, Phase::Running | Phase::Preempted | Phase::Blocked);
    record.parts.iter().any(|p| within(&p.phase))
}

/// When the thread was made ready: the end of the phases before. `None` where they are not known.
pub(super) fn ready_ns(record: &BlameRecord) -> Option<i64> {
    let before =
        record.parts.iter().take_while(|p| matches!(p.phase, Phase::Timer | Phase::WakeUp));
    before.map(|p| p.from_ns.saturating_add(p.ns)).max()
}

/// Adjoining parts of one phase together: phase, begin, end.
pub(crate) fn phases(record: &BlameRecord) -> Vec<(Phase, i64, i64)> {
    let mut out: Vec<(Phase, i64, i64)> = Vec::new();
    for p in &record.parts {
        let end = p.from_ns.saturating_add(p.ns);
        match out.last_mut().filter(|(phase, ..)| *phase == p.phase) {
            Some((.., to)) => *to = (*to).max(end),
            None => out.push((p.phase, p.from_ns, end)),
        }
    }
    out
}

/// The CPUs of a picture.
pub(super) struct PictureLanes<'a> {
    /// Those that are shown, in their order.
    pub(super) shown: Vec<&'a BlameLane>,
    /// How many more there are.
    more: usize,
}

impl PictureLanes<'_> {
    /// What to say where some are not shown.
    pub(super) fn more_words(&self) -> Option<String> {
        (self.more > 0).then(|| format!("{} more CPUs are in the run file.", self.more))
    }
}

/// The CPU of the thread, then the busiest.
pub(super) fn lanes(record: &BlameRecord) -> PictureLanes<'_> {
    let mut all: Vec<&BlameLane> = record.lanes.iter().collect();
    order::by_key(&mut all, |l| {
        (Some(l.cpu) != record.cpu, std::cmp::Reverse(l.spans.len()), l.cpu)
    });
    let more = all.len().saturating_sub(CPUS_MAX);
    all.truncate(CPUS_MAX);
    order::by_key(&mut all, |l| l.cpu);
    PictureLanes { shown: all, more }
}
