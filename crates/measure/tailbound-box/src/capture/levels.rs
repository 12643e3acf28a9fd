// SPDX-License-Identifier: MIT OR Apache-2.0
//! The levels of the two lines while a capture is read, and their edges in the order of time.
//!
//! Of edges in one sample those of the stimulus come first: an answer cannot come before its pulse.

use crate::capture::Shortest;
use crate::edge::{CaptureLine, Edge, Level};

/// What a capture says of a line at an instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineState {
    Known(Level),
    /// Neither 0 nor 1.
    Unknown,
}

impl LineState {
    pub(crate) fn of_bit(bit: bool) -> Self {
        Self::Known(if bit { Level::High } else { Level::Low })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct OneLine {
    level: Option<Level>,
    last_edge: Option<i64>,
    shortest: Option<Shortest>,
}

/// Both lines.
#[derive(Debug, Default)]
pub(crate) struct Levels {
    lines: [OneLine; 2],
    /// Edges of the answer in the sample that is read.
    held: Vec<Edge>,
    pub(crate) unknown_states: u64,
}

impl Levels {
    /// `line` is `state` from `tick` on. A line's first level is no edge.
    pub(crate) fn set(
        &mut self,
        line: CaptureLine,
        state: LineState,
        tick: i64,
        out: &mut Vec<Edge>,
    ) {
        let [stimulus, answer] = &mut self.lines;
        let one = match line {
            CaptureLine::Stimulus => stimulus,
            CaptureLine::Answer => answer,
        };
        let LineState::Known(level) = state else {
            self.unknown_states += u64::from(one.level.is_some());
            return;
        };
        let Some(before) = one.level.replace(level) else { return };
        if before == level {
            return;
        }
        if let Some(last) = one.last_edge.replace(tick) {
            one.note(tick.saturating_sub(last));
        }
        let edge = Edge { tick, line, level };
        match line {
            CaptureLine::Answer => self.held.push(edge),
            CaptureLine::Stimulus => {
                if self.held.first().is_some_and(|held| held.tick < tick) {
                    out.append(&mut self.held);
                }
                out.push(edge);
            }
        }
        // A capture that changes without an end in one sample is not kept.
        if self.held.len() > 1 << 10 {
            out.append(&mut self.held);
        }
    }

    /// No edge before `tick` comes any more.
    pub(crate) fn until(&mut self, tick: i64, out: &mut Vec<Edge>) {
        if self.held.first().is_some_and(|held| held.tick < tick) {
            out.append(&mut self.held);
        }
    }

    /// No edge comes any more.
    pub(crate) fn end(&mut self, out: &mut Vec<Edge>) {
        out.append(&mut self.held);
    }

    pub(crate) fn shortest(&self) -> [Option<Shortest>; 2] {
        self.lines.map(|line| line.shortest)
    }
}

impl OneLine {
    fn note(&mut self, ticks: i64) {
        match &mut self.shortest {
            Some(shortest) if shortest.ticks == ticks => shortest.n += 1,
            Some(shortest) if shortest.ticks < ticks => {}
            other => *other = Some(Shortest { ticks, n: 1 }),
        }
    }
}
