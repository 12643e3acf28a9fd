// SPDX-License-Identifier: MIT OR Apache-2.0
//! What latmon measured, as the record of any outside source.
//!
//! Units: ns. Its cells and its frames say different things of the same pulses: what of each can be believed stands in
//! [`LatmonCells`], and the rest is a sentence.

use super::record::{LatmonCells, LatmonRecord};
use super::{CELL_NS, LATMON_PATIENCE_NS};
use crate::TimeBase;
use crate::stimulus::{
    CellCount, CellTable, LinkLosses, SourceLimit, StimulusChannel, StimulusCounters, StimulusEnd,
    StimulusOrigin, StimulusRecord, StimulusSchedule, StimulusShape, StimulusSpacing,
};

/// How long latmon measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatmonSpan {
    /// From the request to the last frame.
    pub elapsed_ns: u64,
    /// As it was planned.
    pub planned_ns: u64,
}

impl LatmonRecord {
    /// The record of a box at `place`.
    #[must_use]
    pub fn stimulus(&self, place: &str, span: LatmonSpan, end: StimulusEnd) -> StimulusRecord {
        let period_ns = u64::from(self.request().period_us()) * 1000;
        StimulusRecord {
            origin: StimulusOrigin {
                tool: "latmon",
                what: "latmon, a latency box of Zephyr".to_owned(),
                version: None,
                place: place.to_owned(),
            },
            tick: TimeBase::NANOSECOND,
            resolution_ticks: CELL_NS,
            schedule: StimulusSchedule {
                period_ticks: period_ns,
                spacing: StimulusSpacing::Even,
                shape: StimulusShape::Pulse,
                elapsed_ticks: span.elapsed_ns,
                planned_ticks: span.planned_ns,
            },
            channels: vec![self.channel()],
            limits: self.limits(),
            link: LinkLosses::default(),
            end,
        }
    }

    fn channel(&self) -> StimulusChannel {
        let table = match self.cells() {
            LatmonCells::Whole(cells) => self.table(cells),
            _ => self.between_extremes(),
        };
        let answered: u64 = table.iter().map(|cell| cell.count).sum();
        let unanswered = self.overruns() - self.overruns_beside_late_answers();
        let at_least =
            CellCount { least_ticks: LATMON_PATIENCE_NS, most_ticks: None, count: unanswered };
        StimulusChannel {
            number: 0,
            name: "latmon's pulse and acknowledge".to_owned(),
            counters: StimulusCounters {
                sent: answered + unanswered,
                answered,
                unanswered,
                ..StimulusCounters::default()
            },
            cells: CellTable {
                answered: table,
                at_least: Vec::from_iter((unanswered > 0).then_some(at_least)),
            },
            lost: 0,
            in_flight: None,
            worst: Vec::new(),
            extremes: self.extremes(),
            streamed: None,
            numbers: None,
        }
    }

    fn table(&self, cells: &[u32]) -> Vec<CellCount> {
        let last = cells.len().saturating_sub(1);
        let warm_up = self.warm_up_samples() > 0;
        let greatest = self.extremes_ns().map(|(_, greatest)| u64::from(greatest));
        let mut table = Vec::new();
        for (cell, count) in cells.iter().enumerate().filter(|(_, count)| **count > 0) {
            let least_ticks = cell as u64 * CELL_NS;
            let is_last = cell == last;
            // Without a warm-up in them, nothing in the cells is later than the frames say.
            let beyond = greatest.filter(|_| !warm_up);
            let most_ticks = if is_last { beyond } else { Some(least_ticks + CELL_NS - 1) };
            // With one, the latest answer of the frames is still one of its cell.
            let known = greatest.filter(|ns| {
                warm_up && *ns >= least_ticks && (is_last || *ns < least_ticks + CELL_NS)
            });
            let others = u64::from(*count) - u64::from(known.is_some());
            if others > 0 {
                table.push(CellCount { least_ticks, most_ticks, count: others });
            }
            let exact = |ns| CellCount { least_ticks: ns, most_ticks: Some(ns), count: 1 };
            table.extend(known.map(exact));
        }
        table
    }

    /// All samples of the frames in one cell without an upper bound: where between their extremes they lie, nobody
    /// knows, and a cell from the one to the other would look like a distribution.
    fn between_extremes(&self) -> Vec<CellCount> {
        let cell = self.extremes_ns().map(|(least, _)| CellCount {
            least_ticks: u64::from(least),
            most_ticks: None,
            count: self.samples(),
        });
        Vec::from_iter(cell)
    }

    /// The extremes, where they are those of all answers: the warm-up is in the cells alone.
    fn extremes(&self) -> Option<(u64, u64)> {
        let (least, greatest) = self.extremes_ns()?;
        let (least, greatest) = (u64::from(least), u64::from(greatest));
        if let LatmonCells::Whole(cells) = self.cells()
            && self.warm_up_samples() > 0
        {
            let filled = |(_, count): &(usize, &u32)| **count > 0;
            let first = cells.iter().enumerate().find(filled).map(|(cell, _)| cell as u64);
            let last = cells.iter().enumerate().rev().find(filled).map(|(cell, _)| cell as u64);
            let is_last = |cell: u64| cell + 1 == cells.len() as u64;
            let same = first == Some(least / CELL_NS)
                && last.is_some_and(|cell| cell == greatest / CELL_NS && !is_last(cell));
            return same.then_some((least, greatest));
        }
        Some((least, greatest))
    }

    /// Overruns of frames that have an answer later than the period: these count its periods too.
    fn overruns_beside_late_answers(&self) -> u64 {
        let period_us = self.request().period_us();
        let late = self.seconds().iter().filter(|s| s.max_ns / 1000 > period_us);
        late.map(|s| u64::from(s.overruns)).sum()
    }

    fn limits(&self) -> Vec<SourceLimit> {
        let mut limits = vec![
            SourceLimit::GivesUp { after_ticks: LATMON_PATIENCE_NS },
            SourceLimit::WaitsForAnswer,
        ];
        limits.extend(self.sentences().into_iter().map(SourceLimit::Stated));
        limits
    }

    fn sentences(&self) -> Vec<String> {
        let mut out = vec![
            "A thread of latmon takes the time of an answer: its own delay is in each latency, about 3.2 µs on an FRDM-K64F by Zephyr's documentation. A wire between its two pins shows how much yours has.".to_owned(),
            format!("Overruns: {}. They count pulses without an answer, and periods that late answers took.", self.overruns()),
        ];
        let unclear = self.overruns_beside_late_answers();
        if unclear > 0 {
            out.push(format!(
                "{unclear} of the overruns came beside answers later than the period: latmon does not tell which of these are pulses without an answer. None of them is counted as one."
            ));
        }
        let cut = "Only the extremes of its frames are known";
        match self.cells() {
            LatmonCells::Whole(cells) => {
                let warm_up = self.warm_up_samples();
                if warm_up > 0 {
                    out.push(format!(
                        "{warm_up} answers of latmon's warm-up are in its cells and in none of its frames."
                    ));
                }
                if cells.last().is_some_and(|count| *count > 0) {
                    out.push(format!(
                        "The last of {} cells has everything from {} µs on.",
                        cells.len(),
                        cells.len() - 1
                    ));
                }
            }
            LatmonCells::NotAsked => out.push(format!("No histogram was asked for. {cut}.")),
            LatmonCells::Cut => out.push(format!("The histogram did not come. {cut}.")),
            LatmonCells::Folded => out.push(format!(
                "An answer came later than the period: latmon counts it in the cell of what is left after whole periods, so its histogram cannot be used. {cut}."
            )),
            LatmonCells::TooFew { cells, frames } => out.push(format!(
                "The histogram has {cells} answers and the frames have {frames}: it cannot be used. {cut}."
            )),
        }
        out
    }
}
