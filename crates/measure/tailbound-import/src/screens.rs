// SPDX-License-Identifier: MIT OR Apache-2.0
//! Figures that a tool prints again and again while it runs: where they cannot go on from those before, another run begins.
//!
//! Within a run the count of a row never falls, its least never rises, its greatest never falls, its thread keeps its number and the
//! time that has passed never falls. Rows come in the order of their screen: a run begins at the first row of the screen in which one
//! of them cannot go on, or at the beginning that its tool wrote before it (`runs`).
//! Not here: cyclictest's status lines (`cyclictest::runs`), whose lines may come out of turn.

use std::collections::BTreeMap;

use crate::format::Format;
use crate::{deadline, pairs, rtla_analysis, rtla_top, xenomai_rows};

/// Rows of higher numbers are none of a screen.
const NUMBER_MAX: u32 = 1 << 16;

/// Byte and line at which something begins.
pub(crate) type At = (usize, u64);

/// Whose figures a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    /// The tool's task, thread or CPU of this number.
    Thread(u32),
    /// The figures of a pair, which stand below the lines of all pairs.
    Figures(u32),
}

/// A row as far as it tells runs apart; of what it does not hold nothing is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScreenRow {
    pub(crate) key: Key,
    /// The kernel's number of the thread.
    pub(crate) id: Option<u64>,
    pub(crate) count: Option<u64>,
    pub(crate) least: Option<i64>,
    pub(crate) greatest: Option<i64>,
}

/// What a line is to a format whose figures are repeated.
#[derive(Clone, Copy, Debug)]
enum Sight {
    Nothing,
    /// The time since the run's beginning stands in it; may it be the same as above?
    Elapsed(i64, Redraw),
    ScreenRow(ScreenRow),
    /// No figures of the same run follow; is it a figure itself?
    End(bool),
}

/// May a heading be drawn twice at the same time?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Redraw {
    Usual,
    Never,
}

/// What a line is to the cutting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScreenStep {
    Nothing,
    /// A run begins here, if figures follow.
    Begin,
    /// Figures of the same run.
    GoesOn,
    /// Figures of another run, which begins there.
    Anew(At),
}

/// The last figures of each row.
#[derive(Debug)]
pub(crate) struct Screens {
    format: Format,
    rows: BTreeMap<Key, ScreenRow>,
    /// The rows since the screen began, and where that was.
    screen: Vec<ScreenRow>,
    from: At,
    /// A heading above its rows.
    heading: Option<At>,
    elapsed: Option<i64>,
    ended: bool,
    columns: xenomai_rows::Columns,
}

impl ScreenRow {
    fn goes_on(&self, new: &Self) -> bool {
        let both = |a: Option<i64>, b: Option<i64>| a.zip(b);
        let same_thread = self.id.zip(new.id).is_none_or(|(old, new)| old == new);
        let counts = self.count.zip(new.count);
        let same_figures = self.least == new.least && self.greatest == new.greatest;
        same_thread
            && counts.is_none_or(|(old, new)| old <= new)
            // The same events have the same figures.
            && (same_figures || counts.is_none_or(|(old, new)| old != new || old == 0))
            && (self.count == Some(0)
                || both(self.least, new.least).is_none_or(|(old, new)| new <= old)
                    && both(self.greatest, new.greatest).is_none_or(|(old, new)| new >= old))
    }
}

impl Screens {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            rows: BTreeMap::new(),
            screen: Vec::new(),
            from: (0, 1),
            heading: None,
            elapsed: None,
            ended: false,
            columns: xenomai_rows::Columns::default(),
        }
    }

    /// Takes in a line that begins at `here`.
    pub(crate) fn see(&mut self, line: &str, here: At) -> ScreenStep {
        match self.sight(line) {
            Sight::Nothing => ScreenStep::Nothing,
            Sight::Elapsed(s, redraw) => {
                let back = self.elapsed.is_some_and(|last| match redraw {
                    Redraw::Usual => s < last,
                    Redraw::Never => s <= last,
                });
                self.elapsed = Some(s);
                self.heading = Some(here);
                self.screen.clear();
                if back || self.ended { ScreenStep::Begin } else { ScreenStep::Nothing }
            }
            Sight::End(figures) => {
                let again = self.ended && figures;
                self.ended = true;
                match (figures, again) {
                    (true, true) => ScreenStep::Anew(here),
                    (true, false) => ScreenStep::GoesOn,
                    (false, _) => ScreenStep::Nothing,
                }
            }
            Sight::ScreenRow(row) => self.row(row, here),
        }
    }

    fn row(&mut self, row: ScreenRow, here: At) -> ScreenStep {
        if self.screen.last().is_none_or(|last| row.key <= last.key) {
            self.screen.clear();
            self.from = self.heading.unwrap_or(here);
        }
        self.heading = None;
        self.screen.push(row);
        let anew = self.ended || self.rows.get(&row.key).is_some_and(|old| !old.goes_on(&row));
        self.rows.insert(row.key, row);
        if anew { ScreenStep::Anew(self.from) } else { ScreenStep::GoesOn }
    }

    /// A beginning was seen: rows behind it are of another screen.
    pub(crate) fn begin(&mut self) {
        self.screen.clear();
    }

    /// Another run has begun with the screen.
    pub(crate) fn cut(&mut self) {
        self.rows = self.screen.iter().map(|r| (r.key, *r)).collect();
        self.ended = false;
    }

    fn sight(&mut self, line: &str) -> Sight {
        let row = |row: Option<ScreenRow>| match row {
            Some(row) if number(row.key) <= NUMBER_MAX => Sight::ScreenRow(row),
            _ => Sight::Nothing,
        };
        match self.format {
            Format::CyclicdeadlineText if line.starts_with("# Max Latenc") => Sight::End(true),
            Format::CyclicdeadlineText => row(deadline::row(line)),
            Format::RtTestsText => row(pairs::row(line)),
            Format::XenomaiText | Format::LatmusText => match line.split_once('|') {
                Some(("RTT", rest)) => xenomai_rows::elapsed(rest)
                    .map_or(Sight::Nothing, |s| Sight::Elapsed(s, Redraw::Never)),
                Some(("RTH", rest)) => {
                    self.columns = xenomai_rows::Columns::of(rest);
                    Sight::Nothing
                }
                Some(("RTD", rest)) => row(self.columns.row(rest)),
                Some(("RTS", _)) => Sight::End(true),
                _ => Sight::Nothing,
            },
            Format::RtlaTop if rtla_top::begins(line) => {
                rtla_top::elapsed(line).map_or(Sight::Nothing, |s| Sight::Elapsed(s, Redraw::Usual))
            }
            // The analysis of what stopped the run is behind its last screen.
            Format::RtlaTop if rtla_analysis::begins(line).is_some() => Sight::End(false),
            Format::RtlaTop => row(rtla_top::seen(line)),
            Format::RtlaAnalysis => row(rtla_analysis::begins(line).map(|cpu| ScreenRow {
                key: Key::Thread(cpu),
                // Each CPU is analysed once.
                id: Some(self.rows.get(&Key::Thread(cpu)).map_or(0, |r| r.id.map_or(0, |i| i + 1))),
                count: None,
                least: None,
                greatest: None,
            })),
            _ => Sight::Nothing,
        }
    }
}

const fn number(key: Key) -> u32 {
    match key {
        Key::Thread(n) | Key::Figures(n) => n,
    }
}
