// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late each followed thread got its CPU.
//!
//! Units: ns.

use serde_json::{Value, json};
use tailbound_core::Distribution;
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, grouped};

use super::rows;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// One thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRow<'a> {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub comm: &'a str,
    /// Its real-time priority as POSIX counts it, 1 to 99; `None` for an ordinary thread, 100 for a deadline.
    pub priority: Option<u32>,
    /// The CPU it woke on, where it was always the same.
    pub cpu: Option<u32>,
    /// How late it got its CPU.
    pub wakeups: &'a Distribution,
}

impl ThreadRow<'_> {
    fn priority(&self) -> String {
        match self.priority {
            None => "ordinary".to_owned(),
            Some(100) => "deadline".to_owned(),
            Some(p) => p.to_string(),
        }
    }
}

/// The `most` threads with the latest wake-ups, for a terminal; ends in a newline.
#[must_use]
pub fn threads(all: &[ThreadRow<'_>], most: usize, style: Style) -> String {
    let mut sorted: Vec<&ThreadRow<'_>> = all.iter().collect();
    sorted.sort_by_key(|t| (std::cmp::Reverse(t.wakeups.max_ns), t.pid));
    let mut table =
        Table::new(&["thread", "priority", "CPU", "wake-ups", "mean", "latest"]).with_words(&[0]);
    let time = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns_i64);
    for t in sorted.iter().take(most) {
        table.row(vec![
            format!("{} {}", t.comm, t.pid),
            t.priority(),
            t.cpu.map_or_else(|| "several".to_owned(), |c| c.to_string()),
            grouped(t.wakeups.n),
            time(t.wakeups.mean().map(whole)),
            time(t.wakeups.max_ns),
        ]);
    }
    let mut page = Page::new(style);
    page.heading("Threads");
    let lines = rows::hanging(&reordered(&table), page.width());
    page.raw(lines, Ink::Plain);
    let more = sorted.len().saturating_sub(most);
    if more > 0 {
        page.text(&format!("and {more} more, see --json"), "  ", Ink::Dim);
    }
    page.finish()
}

/// The name last, where it may be as long as it is.
fn reordered(table: &Table) -> Table {
    let turn = |row: &Vec<String>| -> Vec<String> {
        row.iter().skip(1).chain(row.first()).cloned().collect()
    };
    Table {
        head: turn(&table.head),
        rows: table.rows.iter().map(turn).collect(),
        words: vec![table.head.len().saturating_sub(1)],
    }
}

/// The same for scripts: a list of `pid`, `name`, `priority` (`null` for an ordinary thread), `cpu` (`null` for several),
/// `wakeups`, `mean_ns`, `max_ns`.
#[must_use]
pub fn threads_json(all: &[ThreadRow<'_>]) -> Value {
    let one = |t: &ThreadRow<'_>| {
        json!({
            "pid": t.pid,
            "name": t.comm,
            "priority": t.priority,
            "cpu": t.cpu,
            "wakeups": t.wakeups.n,
            "mean_ns": t.wakeups.mean(),
            "max_ns": t.wakeups.max_ns,
        })
    };
    all.iter().map(one).collect()
}

/// To the nearest ns.
#[expect(clippy::cast_possible_truncation, reason = "latencies are far below 2^63 ns")]
fn whole(ns: f64) -> i64 {
    debug_assert!(ns.abs() < i64::MAX.real(), "a mean of latencies");
    ns.round() as i64
}
