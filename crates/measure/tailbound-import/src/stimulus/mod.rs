// SPDX-License-Identifier: MIT OR Apache-2.0
//! What an outside source measured, as a run of context `external`: the same whichever source it was.
//!
//! Units: ns; ticks of the source until they are recorded. [`StimulusRecorder`] takes samples as they come, in bounded
//! memory, and makes the run of them and of the record at the end. An answer is a wake-up, an unanswered pulse is missed
//! and as late as had passed, at least. Pulses of which only a cell is known stand at its lower edge, and the
//! resolution of the run is that of the widest such cell; those of which nothing is known have no bucket.
//! Not here: sources and their records (`tailbound_box::stimulus`), captures (`capture`).

mod finding;
mod numbers;

use tailbound_box::TimeBase;
use tailbound_box::stimulus::{
    CellCount, StimulusChannel, StimulusEnd, StimulusProgress, StimulusReaction, StimulusRecord,
    StimulusSample, StimulusSink, StimulusSpacing,
};
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::record::{ExceedanceRecord, FigureRecord};
use tailbound_core::{Context, Distribution, EndReason, Run, ThreadEnd};

use crate::draft::Draft;
use crate::error::excerpt;
use crate::samples::Samples;

/// What the record does not know of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunFacts {
    /// Identity of the run.
    pub id: String,
    /// When it began, in s since 1970 in UTC.
    pub started_s: i64,
    /// The command line.
    pub command: Vec<String>,
    /// Largest acceptable time from a pulse to its answer.
    pub deadline_ns: Option<i64>,
}

impl RunFacts {
    /// A name of the run's file, without its ending.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("tailbound-box-{}", self.id.split('-').next().unwrap_or_default())
    }
}

/// Why no run can be made of a record.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnfitRecord(String);

/// Samples of one channel.
#[derive(Clone)]
struct Taken {
    samples: Samples,
    /// An unanswered one that may be the last: not yet added.
    held: Option<StimulusSample>,
    missed: Distribution,
}

/// Takes samples while a source measures.
pub struct StimulusRecorder<P> {
    tick: TimeBase,
    channels: Vec<Taken>,
    progress: P,
}

impl<P: FnMut(&StimulusProgress)> StimulusRecorder<P> {
    /// Nothing taken; `progress` is told how far it is.
    pub fn new(progress: P) -> Self {
        Self { tick: TimeBase::NANOSECOND, channels: Vec::new(), progress }
    }

    /// The run.
    ///
    /// # Errors
    /// Times of samples lie too far apart to be of one run.
    pub fn finish(self, record: &StimulusRecord, facts: &RunFacts) -> Result<Run, UnfitRecord> {
        run(self.channels, record, facts)
    }

    /// The run, as if it were cut off here.
    ///
    /// # Errors
    /// As [`Self::finish`].
    pub fn so_far(&self, record: &StimulusRecord, facts: &RunFacts) -> Result<Run, UnfitRecord> {
        run(self.channels.clone(), record, facts)
    }
}

fn run(
    channels: Vec<Taken>,
    record: &StimulusRecord,
    facts: &RunFacts,
) -> Result<Run, UnfitRecord> {
    let mut draft = draft(record, facts);
    let mut taken = channels.into_iter();
    for channel in &record.channels {
        let of = taken.next().unwrap_or_else(|| Taken::of(channel.number));
        of.into_draft(channel, record, &mut draft)?;
    }
    draft.figures = figures(record);
    finding::say(record, &mut draft);
    let mut run = draft.assembled(&excerpt(&record.origin.place), facts.id.clone());
    run.header.plan.requirement.deadline_ns = facts.deadline_ns;
    run.sent_pulses = numbers::of(record);
    let (reason, measured) = match record.end {
        StimulusEnd::Whole => (EndReason::Complete, record.schedule.planned_ticks),
        StimulusEnd::Stopped => (EndReason::Interrupted, record.schedule.elapsed_ticks),
        StimulusEnd::Unfinished => (EndReason::CutOff, record.schedule.elapsed_ticks),
        _ => (EndReason::Failed, record.schedule.elapsed_ticks),
    };
    if let Some(end) = &mut run.end {
        end.reason = reason;
        end.measured_ns = time_ns(record.tick, measured.min(record.schedule.planned_ticks));
    }
    Ok(run)
}

impl<P: FnMut(&StimulusProgress)> StimulusSink for StimulusRecorder<P> {
    fn begin(&mut self, tick: TimeBase, channels: u8) {
        self.tick = tick;
        self.channels = (0..channels).map(Taken::of).collect();
    }

    fn sample(&mut self, channel: u8, sample: StimulusSample) {
        if let Some(taken) = self.channels.get_mut(usize::from(channel)) {
            taken.take(sample, self.tick);
        }
    }

    fn progress(&mut self, now: &StimulusProgress) {
        (self.progress)(now);
    }
}

impl Taken {
    fn of(channel: u8) -> Self {
        let missed = Distribution { sums: None, ..Distribution::default() };
        Self { samples: Samples::new(channel.into()), held: None, missed }
    }

    fn take(&mut self, sample: StimulusSample, tick: TimeBase) {
        if let Some(held) = self.held.take() {
            self.add(&held, tick);
        }
        match sample.reaction {
            StimulusReaction::AtLeast(_) => self.held = Some(sample),
            _ => self.add(&sample, tick),
        }
    }

    fn add(&mut self, sample: &StimulusSample, tick: TimeBase) {
        let due_ns = time_ns(tick, sample.sent_ticks);
        match sample.reaction {
            StimulusReaction::Answered(ticks) | StimulusReaction::Late(ticks) => {
                self.samples.add_due(due_ns, latency_ns(tick, ticks));
            }
            StimulusReaction::AtLeast(ticks) => {
                self.samples.miss_due(due_ns);
                self.missed.add(time_ns(tick, ticks));
            }
            StimulusReaction::Unknown => {
                self.samples.miss_due(due_ns);
                self.missed.n += 1;
                self.missed.unbinned += 1;
            }
        }
    }

    fn into_draft(
        mut self,
        channel: &StimulusChannel,
        record: &StimulusRecord,
        draft: &mut Draft,
    ) -> Result<(), UnfitRecord> {
        let tick = record.tick;
        if let Some(held) = self.held.take().filter(|s| channel.in_flight != Some(s.number)) {
            self.add(&held, tick);
        }
        let mut cells = channel.cells.clone();
        // The longest are exact, whether the sink was given them or not.
        let is_new = |s: &&StimulusSample| {
            channel.streamed.as_ref().is_none_or(|account| !account.has(s.number))
        };
        let mut alone = Vec::new();
        for sample in channel.worst.iter().filter(is_new) {
            let (table, ticks) = match sample.reaction {
                StimulusReaction::Answered(t) | StimulusReaction::Late(t) => {
                    (&mut cells.answered, t)
                }
                StimulusReaction::AtLeast(t) => (&mut cells.at_least, t),
                StimulusReaction::Unknown => continue,
            };
            let holds = |c: &&mut CellCount| {
                c.count > 0 && c.least_ticks <= ticks && c.most_ticks.is_none_or(|m| ticks <= m)
            };
            let Some(cell) = table.iter_mut().find(holds) else { continue };
            cell.count -= 1;
            match sample.reaction {
                StimulusReaction::AtLeast(t) => self.missed.add(time_ns(tick, t)),
                _ if channel.streamed.is_some() => self.add(sample, tick),
                _ => alone.push(latency_ns(tick, ticks)),
            }
        }
        if channel.streamed.is_none() {
            self.samples.forget();
        }
        let step = latency_ns(tick, record.resolution_ticks);
        let step = step.unsigned_abs().max(1).max(finding::own_error_ns(record));
        let mut all = self.samples.finish(step).map_err(|f| UnfitRecord(f.reason))?;
        let d = &mut all.distribution;
        alone.into_iter().for_each(|ns| d.add(ns));
        in_cells(d, &cells.answered, tick);
        if let Some((least, most)) = channel.extremes {
            d.min_ns = Some(latency_ns(tick, least));
            d.max_ns = Some(latency_ns(tick, most));
        }
        in_cells(&mut self.missed, &cells.at_least, tick);
        self.missed.n = self.missed.n.saturating_add(channel.lost);
        self.missed.unbinned = self.missed.unbinned.saturating_add(channel.lost);
        if self.missed.unbinned > 0 {
            // Of what is not known the greatest is not either.
            self.missed.max_ns = None;
        }
        self.missed.resolution_ns = self.missed.resolution_ns.max(step);
        let number = channel.number.into();
        draft.recorded(number, None, all).map_err(|f| UnfitRecord(f.reason))?;
        if let Some(thread) = draft.threads.last_mut() {
            thread.context = Context::External;
            thread.name = Some(excerpt(&channel.name));
            thread.missed = self.missed;
            thread.counters =
                counters(channel).into_iter().map(|(name, n, _)| (name.to_owned(), n)).collect();
            thread.ended = match &record.end {
                StimulusEnd::Whole => ThreadEnd::Complete,
                StimulusEnd::Stopped => ThreadEnd::Stopped,
                other => ThreadEnd::Other(finding::end(other)),
            };
        }
        Ok(())
    }
}

/// Values of which only the cell is known: at its lower edge, in steps of its width.
fn in_cells(d: &mut Distribution, cells: &[CellCount], tick: TimeBase) {
    for cell in cells.iter().filter(|cell| cell.count > 0) {
        d.sums = None;
        let least_ns = time_ns(tick, cell.least_ticks);
        let Some(most) = cell.most_ticks else {
            d.n = d.n.saturating_add(cell.count);
            d.unbinned = d.unbinned.saturating_add(cell.count);
            d.unbinned_from_ns = Some(least_ns);
            d.max_ns = None;
            continue;
        };
        let before = d.max_ns.filter(|_| d.n > 0);
        let was_known = d.n == 0 || before.is_some();
        d.add_many(least_ns, cell.count);
        let width_ns = latency_ns(tick, most.saturating_sub(cell.least_ticks) + 1).unsigned_abs();
        d.resolution_ns = d.resolution_ns.max(width_ns);
        // The greatest is known where it is above all that the cell may hold.
        let most_ns = latency_ns(tick, most);
        let is_above = before.is_some_and(|max| max >= most_ns);
        let is_exact = most == cell.least_ticks;
        d.max_ns = match (was_known, is_above, is_exact) {
            (true, true, _) => before,
            (true, false, true) => Some(before.map_or(most_ns, |max| max.max(most_ns))),
            _ => None,
        };
    }
}

fn draft(record: &StimulusRecord, facts: &RunFacts) -> Draft {
    let mut draft = Draft::new(record.origin.tool, "external pulses");
    draft.version = record.origin.version.as_ref().map(|v| excerpt(v));
    draft.event = Some("pulse");
    draft.means = Some(Means::NotTold);
    draft.clock = Some(Clock::Monotonic);
    draft.started_s = Some(facts.started_s);
    draft.command.clone_from(&facts.command);
    draft.interval_ns = Some(time_ns(record.tick, record.schedule.period_ticks));
    draft.duration_ns = Some(time_ns(record.tick, record.schedule.planned_ticks));
    if let StimulusEnd::Whole | StimulusEnd::Stopped | StimulusEnd::Slipped = record.end {
        for channel in &record.channels {
            draft.exceedances.extend(worst(channel, record.tick));
        }
    }
    draft
}

/// The longest answers with their times.
fn worst(channel: &StimulusChannel, tick: TimeBase) -> Vec<ExceedanceRecord> {
    let answered = channel.worst.iter().filter_map(|sample| match sample.reaction {
        StimulusReaction::Answered(ticks) | StimulusReaction::Late(ticks) => Some((sample, ticks)),
        _ => None,
    });
    let mut all: Vec<ExceedanceRecord> = answered
        .map(|(sample, ticks)| ExceedanceRecord {
            thread: channel.number.into(),
            activation: sample.number,
            error_ns: latency_ns(tick, ticks),
            t_ns: time_ns(tick, sample.sent_ticks.saturating_add(ticks)),
            missed: 0,
        })
        .collect();
    order::by_key(&mut all, |e| e.activation);
    all
}

/// What a channel counted: name, count, meaning.
fn counters(channel: &StimulusChannel) -> Vec<(&'static str, u64, &'static str)> {
    let c = &channel.counters;
    let optional = [
        ("late", c.late, "pulses answered after the next one"),
        ("spurious", c.spurious, "answers that belong to no pulse"),
        ("answered_twice", c.twice, "answers to a pulse that had one"),
        ("stray", c.stray, "messages that are the answer to no pulse"),
        ("unassigned", c.unassigned, "answers after an unanswered pulse that may be to it"),
        ("held", c.held, "pulses that were left out to let answers come"),
        (
            "skipped",
            c.skipped,
            "pulses that were not sent, because the source was late or was refused",
        ),
        ("edges_lost", c.edges_lost, "times at which answers came faster than they were taken"),
        ("dropped", c.dropped, "samples that the source had no room for"),
    ];
    let closed = c.answered.saturating_add(c.unanswered).saturating_add(c.unknown);
    let mut all = vec![
        ("pulses", c.sent, "pulses on the line"),
        ("answered", c.answered, "pulses whose answer is known"),
        ("unanswered", c.unanswered, "pulses without an answer; each is as late as had passed"),
        ("unknown", c.unknown, "pulses that were open when answers were lost"),
        ("in_flight", c.sent.saturating_sub(closed), "pulses not yet answered at the end"),
    ];
    all.extend(optional.into_iter().filter_map(|(name, n, what)| Some((name, n?, what))));
    if let Some(account) = &channel.streamed {
        all.push(("samples", account.came, "pulses known one by one"));
    }
    let cells = channel.cells.answered.iter().chain(&channel.cells.at_least);
    all.push(("in_cells", cells.map(|c| c.count).sum(), "pulses known to a cell of a histogram"));
    all.push(("not_known", channel.lost, "pulses of which nothing is known"));
    all
}

fn figures(record: &StimulusRecord) -> Vec<FigureRecord> {
    let mut all = Vec::new();
    for channel in &record.channels {
        let part =
            if record.channels.len() > 1 { format!("-{}", channel.number) } else { String::new() };
        all.extend(counters(channel).into_iter().map(|(name, n, note)| {
            figure(&format!("{}{part}", name.replace('_', "-")), n.real(), "1", note)
        }));
    }
    let tick_ns = record.tick.latency_ns(1).real();
    all.push(figure("tick", tick_ns, "ns", "one tick of the source, rounded up"));
    let spacing = match record.schedule.spacing {
        StimulusSpacing::Even => "from pulse to pulse".to_owned(),
        StimulusSpacing::Random(seed) => {
            format!("from pulse to pulse on average; random from the seed {seed}")
        }
    };
    let period_ns = time_ns(record.tick, record.schedule.period_ticks);
    all.push(figure("period", period_ns.real(), "ns", &spacing));
    let link = &record.link;
    for (name, n, note) in [
        ("frames-missing", link.missing, "frames that did not come, by the count of the source"),
        ("frames-damaged", link.damaged, "pieces of the line that were no frame"),
        ("frames-repeated", link.repeated, "frames that came twice"),
        ("asked-again", link.asked_again, "questions that were asked again"),
    ] {
        all.push(figure(name, n.real(), "1", note));
    }
    all
}

fn figure(name: &str, value: f64, unit: &str, note: &str) -> FigureRecord {
    FigureRecord {
        name: name.to_owned(),
        value,
        unit: unit.to_owned(),
        note: note.to_owned(),
        ..FigureRecord::default()
    }
}

fn latency_ns(tick: TimeBase, ticks: u64) -> i64 {
    tick.latency_ns(i64::try_from(ticks).unwrap_or(i64::MAX))
}

fn time_ns(tick: TimeBase, ticks: u64) -> i64 {
    tick.time_ns(i64::try_from(ticks).unwrap_or(i64::MAX))
}
