// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is timed from outside, in pieces: what was kept when it was cut off counts, and the rest of its time is
//! measured by the next command.
//!
//! Units: ns; seconds of the schedule where the names say so. A piece is a run file of its own until all of the time is
//! measured; then they are one run, which says when each began. Nothing is known of the time between.
//!
//! ```text
//! SYSTEM/PART.piece-1.tailbound.jsonl    SYSTEM/PART.piece-2.tailbound.jsonl    SYSTEM/PART.tailbound.jsonl
//! ```

use std::path::{Path, PathBuf};

use tailbound_core::record::{End, FigureRecord, ThreadRecord};
use tailbound_core::units::format_span;
use tailbound_core::{EndReason, Finding, Impact, Plan, Run, runfile};
use tailbound_sys::new_file::{self, Existing};

use super::make::near;
use crate::caller::Caller;
use crate::error::SeriesError;

const SECOND_NS: i64 = 1_000_000_000;

/// The pieces of a run whose file is `file`.
pub(super) struct Pieces {
    file: PathBuf,
    all: Vec<(PathBuf, Run)>,
}

impl Pieces {
    /// Reads those that are there; what a cut-off run left in the file itself becomes the last one.
    ///
    /// # Errors
    /// A file cannot be moved.
    pub(super) fn settle<C: Caller>(
        file: &Path,
        wanted: &Plan,
        caller: &mut C,
    ) -> Result<Self, SeriesError> {
        let mut pieces = Self { file: file.to_owned(), all: Vec::new() };
        while let Ok(run) = caller.read(&pieces.next_file(), &["raw"]) {
            pieces.all.push((pieces.next_file(), run));
        }
        let Ok(last) = caller.read(file, &["raw"]) else { return Ok(pieces) };
        // A whole run is the rest of its pieces, or one of its own.
        let is_rest = !last.ended_as_planned() || !pieces.all.is_empty();
        let is_merged = last.findings.iter().any(|f| f.id == FINDING);
        if is_rest && !is_merged && pieces.fits(&last, wanted) {
            let to = pieces.next_file();
            new_file::rename(file, &to).map_err(|e| SeriesError::unwritten(&to, e))?;
            pieces.all.push((to, last));
        }
        Ok(pieces)
    }

    fn next_file(&self) -> PathBuf {
        let name = super::folder::name(&self.file);
        let stem = name.strip_suffix(".tailbound.jsonl").unwrap_or(&name);
        let number = self.all.len() + 1;
        self.file.with_file_name(format!("{stem}.piece-{number}.tailbound.jsonl"))
    }

    /// Was it measured as the others were, and as is wanted?
    fn fits(&self, run: &Run, wanted: &Plan) -> bool {
        let alike = |first: &Run| {
            let channels = |run: &Run| run.threads.iter().map(|t| t.thread).collect::<Vec<_>>();
            first.header.tool == run.header.tool
                && channels(first) == channels(run)
                && first.header.plan.requirement == run.header.plan.requirement
        };
        run.measured_ns() > 0
            && !run.threads.is_empty()
            && near(run.header.plan.interval_ns, wanted.interval_ns)
            && self.all.first().is_none_or(|(_, first)| alike(first))
    }

    /// What is still to be measured of the wanted time, in whole intervals; nothing where no piece is there.
    pub(super) fn left_ns(&self, wanted: &Plan) -> Option<i64> {
        if self.all.is_empty() {
            return None;
        }
        let measured = self.all.iter().map(|(_, run)| run.measured_ns());
        let measured_ns = measured.fold(0, i64::saturating_add);
        let left_ns = wanted.duration_ns().saturating_sub(measured_ns).max(0);
        let interval_ns = wanted.interval_ns.max(1);
        Some(left_ns.saturating_add(interval_ns - 1) / interval_ns * interval_ns)
    }

    /// Makes one run of them where nothing is left to be measured.
    ///
    /// # Errors
    /// It cannot be written.
    pub(super) fn merge(self, wanted: &Plan) -> Result<(), SeriesError> {
        let is_whole = self.left_ns(wanted).is_some_and(|left| left <= wanted.interval_ns);
        if !is_whole {
            return Ok(());
        }
        let failed = |e| SeriesError::unwritten(&self.file, e);
        let Some(mut run) = merged(self.all.iter().map(|(_, run)| run)) else { return Ok(()) };
        let planned = u64::try_from(wanted.duration_ns() / wanted.interval_ns.max(1));
        run.header.plan.activations = planned.unwrap_or(run.header.plan.activations);
        tailbound_stats::judge(&mut run);
        let mut text = Vec::new();
        runfile::write_run(&run, &mut text).map_err(failed)?;
        new_file::write(&self.file, Existing::Replace, &text).map_err(failed)?;
        self.forget();
        Ok(())
    }

    /// Removes their files.
    pub(super) fn forget(self) {
        // One that stays is read again, and then removed.
        self.all.iter().for_each(|(file, _)| drop(std::fs::remove_file(file)));
    }
}

/// The finding of a run that was made of pieces.
const FINDING: &str = "measured-in-pieces";

/// All pieces as one run, each after the one before; `None` without any.
fn merged<'a>(mut pieces: impl Iterator<Item = &'a Run>) -> Option<Run> {
    let mut all = pieces.next()?.clone();
    let mut times = vec![said(&all)];
    let mut measured_ns = all.measured_ns();
    for (number, piece) in (2..).zip(pieces) {
        times.push(said(piece));
        append(&mut all, piece, number);
        measured_ns = measured_ns.saturating_add(piece.measured_ns());
    }
    if times.len() > 1 {
        let title = format!("measured in {} pieces: {}", times.len(), times.join("; "));
        all.findings.push(Finding::listed(FINDING, Impact::Notice, title));
    }
    // Their numbers are of one piece each.
    all.sent_pulses.clear();
    all.pulse_joins.clear();
    all.verdict = None;
    all.end = Some(End { reason: EndReason::Complete, measured_ns, lines: 0 });
    Some(all)
}

fn said(piece: &Run) -> String {
    let end = piece.end_reason();
    format!("{} from {} on ({end})", format_span(piece.measured_ns()), piece.header.started)
}

/// Adds a piece behind what is there.
fn append(all: &mut Run, piece: &Run, number: u32) {
    // The next whole second, so that no second is of two pieces.
    let end_s = all.seconds.iter().map(|s| s.second + 1).max().unwrap_or(0);
    let end_s =
        all.blocks.iter().map(|b| b.second.saturating_add(b.seconds)).max().max(Some(end_s));
    let at_s = end_s.unwrap_or(0);
    let at_ns = i64::try_from(at_s).unwrap_or(i64::MAX).saturating_mul(SECOND_NS);
    let counted = |t: &ThreadRecord| {
        t.counters.get("pulses").copied().unwrap_or(t.wakeup.n.saturating_add(t.missed.n))
    };
    let before =
        |all: &Run, thread: u32| all.threads.iter().find(|t| t.thread == thread).map_or(0, counted);
    for second in &piece.seconds {
        let mut second = second.clone();
        second.second = second.second.saturating_add(at_s);
        second.argmax = second.argmax.saturating_add(before(all, second.thread));
        all.seconds.push(second);
    }
    for block in &piece.blocks {
        let mut block = block.clone();
        block.second = block.second.saturating_add(at_s);
        all.blocks.push(block);
    }
    for exceedance in &piece.exceedances {
        let mut exceedance = exceedance.clone();
        exceedance.activation =
            exceedance.activation.saturating_add(before(all, exceedance.thread));
        exceedance.t_ns = exceedance.t_ns.saturating_add(at_ns);
        all.exceedances.push(exceedance);
    }
    for event in &piece.events {
        let mut event = event.clone();
        event.t_ns = event.t_ns.saturating_add(at_ns);
        all.events.push(event);
    }
    for own in &piece.threads {
        if let Some(to) = all.threads.iter_mut().find(|t| t.thread == own.thread) {
            thread(to, own);
        }
    }
    for figure in &piece.figures {
        match all.figures.iter_mut().find(|f| f.name == figure.name) {
            Some(to) if is_count(to) => to.value += figure.value,
            Some(_) => {}
            None => all.figures.push(figure.clone()),
        }
    }
    for finding in &piece.findings {
        let mut finding = finding.clone();
        // One of the same kind has figures of its own.
        finding.id = format!("{}-piece-{number}", finding.id);
        all.findings.push(finding);
    }
    if let (Some(to), Some(of)) = (&mut all.header.source, &piece.header.source) {
        let new = of.lost.iter().filter(|line| !to.lost.contains(line)).cloned();
        to.lost.extend(new.collect::<Vec<_>>());
    }
}

fn is_count(figure: &FigureRecord) -> bool {
    figure.unit == "1"
}

fn thread(to: &mut ThreadRecord, of: &ThreadRecord) {
    to.wakeup.merge(&of.wakeup);
    to.missed.merge(&of.missed);
    for (name, n) in &of.counters {
        let sum = to.counters.entry(name.clone()).or_default();
        *sum = sum.saturating_add(*n);
    }
    to.ended.clone_from(&of.ended);
}

#[cfg(test)]
mod tests;
