// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cells of the tables, and lines of cells: the same for a pipe, a terminal and the interactive view.
//!
//! Units: columns of a terminal. The last column takes what the width leaves.

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::{grouped, trimmed};
use tailbound_core::{CpuSet, Policy};

use super::rows::{ClassRow, InterruptRow, MachineFact, ThreadRow};
use super::sums::{per_second, total};
use crate::escape::terminal;
use crate::table::{Align, columns, cut, pad};

/// Widest list of CPUs in a terminal.
const CPUS_MAX: usize = 14;
/// What stands where nothing is known.
const UNKNOWN: &str = "?";

/// What a table counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amounts {
    /// Since boot.
    Totals,
    /// A second, between two looks.
    Rates,
}

impl Amounts {
    fn head(self, totals: &'static str, rates: &'static str) -> &'static str {
        match self {
            Self::Totals => totals,
            Self::Rates => rates,
        }
    }
}

/// For whom a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// A person before a terminal: long lists of CPUs are cut, so that no line is wrapped.
    Terminal,
    /// A pipe: nothing is cut.
    Whole,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Column {
    head: &'static str,
    /// Aligned right.
    figure: bool,
    width: usize,
}

/// A table whose last column is as wide as there is room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Grid {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Grid {
    /// `figures` are the columns aligned right.
    fn new(heads: &[&'static str], figures: &[usize], rows: Vec<Vec<String>>) -> Self {
        let widest = |i: usize, head: &str| {
            let cells = rows.iter().filter_map(|r| r.get(i)).map(|c| columns(c));
            cells.max().unwrap_or(0).max(columns(head))
        };
        let one = |(i, head): (usize, &&'static str)| Column {
            head,
            figure: figures.contains(&i),
            width: widest(i, head),
        };
        Self { columns: heads.iter().enumerate().map(one).collect(), rows }
    }

    /// How many rows there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// No row at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The line of heads.
    #[must_use]
    pub fn head(&self, width: usize) -> String {
        let heads: Vec<String> = self.columns.iter().map(|c| c.head.to_owned()).collect();
        self.line(&heads, width)
    }

    /// The line of row `at`, of at most `width` columns.
    #[must_use]
    pub fn row(&self, at: usize, width: usize) -> Option<String> {
        Some(self.line(self.rows.get(at)?, width))
    }

    fn line(&self, cells: &[String], width: usize) -> String {
        let mut out = String::new();
        let last = self.columns.len().saturating_sub(1);
        for (i, (column, cell)) in self.columns.iter().zip(cells).enumerate() {
            if i > 0 {
                out.push_str("  ");
            }
            match i == last {
                true => out.push_str(&cut(cell, width.saturating_sub(columns(&out)))),
                false => {
                    let align = if column.figure { Align::Right } else { Align::Left };
                    out.push_str(&pad(cell, column.width, align));
                }
            }
        }
        cut(out.trim_end(), width)
    }
}

/// The table of threads.
#[must_use]
pub fn thread_grid(rows: &[ThreadRow], amounts: Amounts, fit: Fit) -> Grid {
    let [voluntary, involuntary] = [amounts.head("VOL", "VOL/s"), amounts.head("INVOL", "INVOL/s")];
    let heads = ["TID", "POLICY", "AFFINITY", "CPU", voluntary, involuntary, "COMMAND"];
    let cells = rows.iter().map(|t| {
        let affinity = cpus(&t.affinity, fit);
        let switches = |rate: Option<f64>, total: Option<u64>| match (amounts, rate, total) {
            (Amounts::Rates, Some(r), _) => rate_text(r),
            (Amounts::Totals, _, Some(n)) => n.to_string(),
            _ => UNKNOWN.to_owned(),
        };
        let totals = t.switches.as_ref().ok();
        vec![
            t.id.tid.to_string(),
            policy(t.policy, t.nice),
            if t.fixed { format!("{affinity}!") } else { affinity },
            t.last_cpu.to_string(),
            switches(t.rate.map(|r| r.voluntary), totals.map(|s| s.voluntary)),
            switches(t.rate.map(|r| r.involuntary), totals.map(|s| s.involuntary)),
            command(t),
        ]
    });
    Grid::new(&heads, &[0, 3, 4, 5], cells.collect())
}

/// The table of interrupts.
#[must_use]
pub fn interrupt_grid(rows: &[InterruptRow], amounts: Amounts, fit: Fit) -> Grid {
    let amount = amounts.head("COUNT", "RATE/s");
    let heads = ["IRQ", "CPU", "AFFINITY", amount, "MANAGED", "THREAD", "USERS"];
    let cells = rows.iter().map(|i| {
        let amount = match (amounts, &i.rates) {
            (Amounts::Totals, _) => total(&i.counts).to_string(),
            (Amounts::Rates, Some(rates)) => rate_text(per_second(rates)),
            (Amounts::Rates, None) => UNKNOWN.to_owned(),
        };
        let managed = match i.managed {
            Ok(true) => "yes",
            Ok(false) => "no",
            Err(_) => UNKNOWN,
        };
        vec![
            i.number.to_string(),
            cpus(&i.effective, fit),
            cpus(&i.affinity, fit),
            amount,
            managed.to_owned(),
            i.handler().map_or_else(|| "-".to_owned(), |h| policy(h.policy, 0)),
            if i.users.is_empty() { "-".to_owned() } else { terminal(&i.users.join(", ")) },
        ]
    });
    Grid::new(&heads, &[0, 1, 3], cells.collect())
}

/// The table of interrupts without a number, those that came at all.
#[must_use]
pub fn class_grid(rows: &[ClassRow], amounts: Amounts) -> Grid {
    let amount = |c: &ClassRow| match (amounts, &c.rates) {
        (Amounts::Totals, _) => (total(&c.counts).real(), total(&c.counts).to_string()),
        (Amounts::Rates, Some(r)) => (per_second(r), rate_text(per_second(r))),
        (Amounts::Rates, None) => (0.0, UNKNOWN.to_owned()),
    };
    let came = rows.iter().map(|c| (c, amount(c))).filter(|(_, (n, _))| *n > 0.0);
    let cells = came.map(|(c, (_, text))| vec![terminal(&c.name), text, terminal(&c.about)]);
    Grid::new(&["KIND", amounts.head("COUNT", "RATE/s"), "ABOUT"], &[1], cells.collect())
}

/// Policy and priority; of ordinary threads the nice value, where it is not 0.
pub(crate) fn policy(policy: Policy, nice: i32) -> String {
    match policy {
        Policy::Other | Policy::Batch if nice != 0 => format!("{policy}:{nice:+}"),
        _ => policy.to_string(),
    }
}

/// Its name, and that of its process where it is another one.
fn command(t: &ThreadRow) -> String {
    match (&t.process, t.kernel) {
        (_, true) => terminal(&format!("[{}]", t.name)),
        (Some(process), false) => terminal(&format!("{} ({process})", t.name)),
        (None, false) => terminal(&t.name),
    }
}

fn cpus(set: &MachineFact<CpuSet>, fit: Fit) -> String {
    match set {
        Err(_) => UNKNOWN.to_owned(),
        Ok(set) if set.is_empty() => "-".to_owned(),
        Ok(set) if fit == Fit::Terminal => cut(&set.to_string(), CPUS_MAX),
        Ok(set) => set.to_string(),
    }
}

/// A rate a second: small ones with a decimal, so that once in a minute is not never.
fn rate_text(rate: f64) -> String {
    match rate {
        _ if rate >= 9.95 => grouped(rate.round().whole_u64()),
        _ if rate > 0.0 && rate < 0.05 => "<0.1".to_owned(),
        _ => trimmed(rate, 1),
    }
}

#[cfg(test)]
mod tests {
    use super::super::look::tests::{interrupt, thread};
    use super::super::rows::UnknownFact;
    use super::*;

    #[test]
    fn lines_keep_to_the_width_and_the_last_column_takes_the_rest() {
        let rows = vec![
            thread(1, "systemd", Policy::Other),
            ThreadRow { nice: -5, fixed: true, ..thread(23, "irq/4-ttyS0", Policy::Other) },
            ThreadRow {
                affinity: Err(UnknownFact { reason: "gone".to_owned() }),
                process: Some("a very long name of a process".to_owned()),
                ..thread(4_194_304, "worker", Policy::Fifo(99))
            },
        ];
        let grid = thread_grid(&rows, Amounts::Totals, Fit::Terminal);
        assert_eq!(grid.head(200), "    TID  POLICY    AFFINITY  CPU  VOL  INVOL  COMMAND");
        assert_eq!(
            grid.row(1, 200).as_deref(),
            Some("     23  other:-5  0-1!        0   10      2  [irq/4-ttyS0]")
        );
        let line = grid.row(2, 60).unwrap_or_default();
        assert!(line.ends_with("worker (a ver…") && line.contains("  ?  "), "{line:?}");
        for width in 0..100 {
            let fits = |line: String| columns(&line) <= width;
            assert!(
                (0..3).filter_map(|at| grid.row(at, width)).all(fits) && fits(grid.head(width))
            );
        }
        assert_eq!(grid.row(3, 80), None);
    }

    #[test]
    fn rates_and_unknown_rates_are_told_apart() {
        let mut rows = vec![interrupt(4, &["a", "b"]), interrupt(5, &[])];
        if let Some(four) = rows.first_mut() {
            four.rates = Some([(0, 1500.2), (1, 0.0)].into_iter().collect());
        }
        let grid = interrupt_grid(&rows, Amounts::Rates, Fit::Whole);
        let lines: Vec<String> = (0..2).filter_map(|at| grid.row(at, 80)).collect();
        assert!(lines.first().is_some_and(|l| l.contains("1,500") && l.ends_with("a, b")));
        assert!(lines.last().is_some_and(|l| l.contains("  ?  ") && l.ends_with('-')), "{lines:?}");
        let texts = [0.0, 0.01, 0.26, 9.96].map(rate_text);
        assert_eq!(texts, ["0", "<0.1", "0.3", "10"]);
    }
}
