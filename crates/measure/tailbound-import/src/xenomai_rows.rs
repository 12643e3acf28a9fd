// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rows that Xenomai's `latency` and EVL's `latmus` print each second, where there is no histogram: extremes, average and overruns.
//!
//! Units: µs with three decimals. Layout: `RTH|----lat min|----lat avg|…` names the columns (Xenomai 2.5 and before has no
//! `msw`), `RTD|` is a row of a second, in which overruns, best and worst are those since the beginning; `RTS|` is the whole run.
//! A row that a message of something else cut through is passed over and counted.
//! The number of samples is in the statistics (`-s`) only; else it follows from the length and the period.
//! Not here: the histogram (`xenomai`), latmus's file (`latmus`). Source: output of Xenomai 2.x and 3.x, libevl r27 to r47.

use tailbound_core::number::Real as _;
use tailbound_core::units::grouped;

use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::screens::{Key, ScreenRow};
use crate::text;
use tailbound_core::utc::hms;

/// What a column holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Least,
    Average,
    Greatest,
    Overruns,
    Switches,
    Best,
    Worst,
    Other,
}

const USUAL: [Column; 7] = [
    Column::Least,
    Column::Average,
    Column::Greatest,
    Column::Overruns,
    Column::Switches,
    Column::Best,
    Column::Worst,
];

/// The columns of the rows, in their order.
#[derive(Debug, Default)]
pub(crate) struct Columns(Vec<Column>);

impl Columns {
    /// `RTH|`: their names.
    pub(crate) fn of(rest: &str) -> Self {
        let of = |name: &str| match name.trim_matches(['-', ' ']) {
            "lat min" => Column::Least,
            "lat avg" => Column::Average,
            "lat max" => Column::Greatest,
            "overrun" | "overruns" => Column::Overruns,
            "msw" => Column::Switches,
            "lat best" => Column::Best,
            "lat worst" => Column::Worst,
            _ => Column::Other,
        };
        Self(rest.split('|').map(of).collect())
    }

    fn get(&self) -> &[Column] {
        if self.0.is_empty() { &USUAL } else { &self.0 }
    }

    /// A second's row, as far as it tells runs apart: overruns, best and worst are since the beginning.
    pub(crate) fn row(&self, rest: &str) -> Option<ScreenRow> {
        let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
        if fields.len() != self.get().len() {
            return None;
        }
        let field = |column: Column| {
            let at = self.get().iter().position(|c| *c == column)?;
            fields.get(at).copied()
        };
        // One without its last digits tells nothing.
        let whole = |f: &&str| f.rsplit_once('.').is_some_and(|(_, d)| d.len() == 3);
        let time = |column| field(column).filter(whole).and_then(|f| text::scaled(f, 1000));
        Some(ScreenRow {
            key: Key::Thread(0),
            id: None,
            // Seconds without an overrun have the same count and other figures.
            count: None,
            least: time(Column::Best),
            greatest: time(Column::Worst),
        })
    }
}

/// `00:00:22 (periodic user-mode task, …)`: seconds since the beginning.
pub(crate) fn elapsed(rest: &str) -> Option<i64> {
    hms(rest.split_whitespace().next()?)
}

/// What rows and summary say together.
#[derive(Debug, Default)]
pub(crate) struct Rows {
    columns: Columns,
    pub(crate) n: u64,
    broken: u64,
    broken_line: u64,
    /// One of them has a number with a comma.
    comma: bool,
    pub(crate) min_ns: Option<i64>,
    pub(crate) max_ns: Option<i64>,
    averages: i128,
    pub(crate) overruns: u64,
    pub(crate) switches: u64,
    /// The average of the whole run.
    mean_ns: Option<i64>,
    summed_up: bool,
}

/// Is it a row to its last digit?
pub(crate) fn is_whole_row(line: &str) -> bool {
    let last = line.trim().rsplit('|').next().unwrap_or("");
    let decimals = last.trim().rsplit_once('.').map_or(0, |(_, d)| d.len());
    line.trim().starts_with("RTD|") && decimals == 3
}

impl Rows {
    /// `RTH|`: the names of the columns.
    pub(crate) fn header(&mut self, rest: &str) {
        self.columns = Columns::of(rest);
    }

    /// `RTD|`: a second.
    pub(crate) fn row(&mut self, rest: &str, line: u64) {
        if self.second(rest).is_none() {
            self.broken += 1;
            self.broken_line = line;
            self.comma |= rest.split('|').any(text::has_comma);
        }
    }

    fn second(&mut self, rest: &str) -> Option<()> {
        let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
        if fields.len() != self.columns.get().len() {
            return None;
        }
        let (mut least, mut average, mut greatest) = (None, None, None);
        let (mut overruns, mut switches, mut best, mut worst) = (0, 0, None, None);
        for (column, field) in self.columns.get().iter().zip(fields) {
            let time = || text::scaled(field, 1000);
            match column {
                Column::Least => least = Some(time()?),
                Column::Average => average = Some(time()?),
                Column::Greatest => greatest = Some(time()?),
                Column::Overruns => overruns = field.parse().ok()?,
                Column::Switches => switches = field.parse().ok()?,
                Column::Best => best = Some(time()?),
                Column::Worst => worst = Some(time()?),
                Column::Other => {}
            }
        }
        let (least, average, greatest) = (least?, average?, greatest?);
        // Digits that something else cut away.
        if least > average || average > greatest {
            return None;
        }
        self.n += 1;
        self.averages = self.averages.saturating_add(average.into());
        self.overruns = self.overruns.max(overruns);
        self.switches = self.switches.max(switches);
        self.extremes(
            best.map_or(least, |b| b.min(least)),
            worst.map_or(greatest, |w| w.max(greatest)),
        );
        Some(())
    }

    fn extremes(&mut self, least: i64, greatest: i64) {
        self.min_ns = Some(self.min_ns.map_or(least, |m| m.min(least)));
        self.max_ns = Some(self.max_ns.map_or(greatest, |m| m.max(greatest)));
    }

    /// `RTS|`: the whole run. Of columns without `msw` the times follow the overruns.
    pub(crate) fn summary(&mut self, rest: &str, line: u64) -> Result<(), Fault> {
        let fields: Vec<&str> = rest.split('|').map(str::trim).collect();
        let [least, average, greatest, overruns, more @ ..] = fields.as_slice() else {
            return Err(Fault::line(line, "fewer than five columns"));
        };
        let ns = |field: &str, what| text::ns(field, 1000, line, what);
        self.mean_ns = Some(ns(average, "the average")?);
        self.extremes(ns(least, "the least")?, ns(greatest, "the greatest")?);
        self.overruns = self.overruns.max(text::count(overruns, line, "the overruns")?);
        if let [switches, _, ..] = more {
            self.switches = self.switches.max(text::count(switches, line, "the mode switches")?);
        }
        self.summed_up = true;
        Ok(())
    }

    /// Is there anything?
    pub(crate) fn is_empty(&self) -> bool {
        self.n == 0 && !self.summed_up
    }

    /// Why there is nothing although there are rows.
    pub(crate) fn unreadable(&self) -> Option<Fault> {
        let why = if self.comma {
            format!("a number in it {}", text::COMMA)
        } else {
            "another message cut through it, or its columns are of another version".to_owned()
        };
        (self.is_empty() && self.broken > 0).then(|| {
            let rows = grouped(self.broken);
            Fault::line(
                self.broken_line,
                format!("none of {rows} rows can be read, this one the last of them: {why}"),
            )
        })
    }

    /// The task's distribution: extremes and average alone.
    pub(crate) fn distribution(
        &self,
        draft: &mut Draft,
        samples: Option<u64>,
    ) -> Result<tailbound_core::Distribution, Fault> {
        if self.broken > 0 {
            draft.doubt(
                "source-rows-broken",
                format!(
                    "{} of {} rows cannot be read, the last of them line {}: another message cut through it.",
                    grouped(self.broken),
                    grouped(self.broken.saturating_add(self.n)),
                    self.broken_line
                ),
                "What these seconds held is known only from the figures that later rows give of the whole run.",
                "Write the tool's output to a file of its own.",
            );
        }
        let seconds = i64::try_from(self.n.saturating_add(self.broken)).unwrap_or(i64::MAX);
        let rows_ns = seconds.saturating_mul(1_000_000_000);
        if !self.summed_up || draft.duration_ns.is_none() {
            draft.duration_ns = Some(rows_ns).filter(|ns| *ns > 0);
        }
        let due = draft
            .duration_ns
            .zip(draft.interval_ns.filter(|i| *i > 0))
            .and_then(|(d, i)| u64::try_from(d / i).ok());
        let certain = if self.min_ns < self.max_ns { 2 } else { 1 };
        match (samples, due) {
            (None, Some(_)) => draft.lose("The number of samples is not in the file: it is that of the periods of its seconds."),
            (None, None) => draft.no_count("the task"),
            (Some(_), _) => {}
        }
        let mean_ns = match self.mean_ns {
            Some(ns) => Some(ns.real()),
            None => self.averages.checked_div(i128::from(self.n)).map(|ns| ns.real()),
        };
        let stated = Stated {
            n: Some(samples.or(due).unwrap_or(0).max(certain)),
            min_ns: self.min_ns,
            max_ns: self.max_ns,
            mean_ns,
            resolution_ns: 1,
            beyond_ns: self.min_ns,
        };
        Ok(draft.settle("The task", coarse(), stated))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_every_version_are_read_by_their_header() {
        let mut old = Rows::default();
        old.header("-----lat min|-----lat avg|-----lat max|-overrun|----lat best|---lat worst");
        old.row("  -1.2|  0.4|  9.0|  3|  -1.5|  11.0", 2);
        assert_eq!(
            (old.n, old.min_ns, old.max_ns, old.overruns),
            (1, Some(-1500), Some(11_000), 3)
        );
        assert!(old.summary(" -1.5| 0.4| 11.0| 4| 00:00:05/00:00:05", 3).is_ok());
        assert_eq!((old.overruns, old.switches), (4, 0));
        let mut new = Rows::default();
        new.row("1.4|2.9|21.7|0|2|1.4|21.7", 1);
        assert_eq!((new.n, new.switches), (1, 2));
    }

    #[test]
    fn a_row_that_is_cut_through_is_counted_and_not_read() {
        let mut rows = Rows::default();
        for bad in [
            "1.592|2.847|82.516|    with",
            "1.4|2.9|",
            "9.4|2.9|21.7|0|0|1.4|21.7",
            "-nan|1|2|0|0|1|2",
        ] {
            rows.row(bad, 7);
        }
        assert_eq!((rows.n, rows.broken, rows.max_ns), (0, 4, None));
        assert!(is_whole_row("RTD|  1|  2| 11.038 ") && !is_whole_row("RTD|  1|  2| 11.03"));
    }
}
