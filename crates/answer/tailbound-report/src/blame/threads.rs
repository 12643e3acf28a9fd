// SPDX-License-Identifier: MIT OR Apache-2.0
//! How late each followed thread got its CPU.
//!
//! Units: ns.

use serde_json::{Value, json};
use tailbound_core::Distribution;
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::{format_ns_i64, grouped};

use super::rows;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// What a thread is to the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadPriority {
    /// An ordinary thread.
    Ordinary,
    /// A real-time priority as POSIX counts it, 1 to 99.
    Realtime(u32),
    /// A deadline.
    Deadline,
    /// The source does not say.
    Unknown,
}

impl ThreadPriority {
    /// From the kernel's number: 0 to 99 real-time, 0 the highest; 100 and above ordinary; -1 deadline; `i32::MAX` unknown.
    #[must_use]
    pub fn of_kernel(prio: i32) -> Self {
        match prio {
            -1 => Self::Deadline,
            0..=98 => Self::Realtime(prio.abs_diff(99)),
            i32::MAX => Self::Unknown,
            _ => Self::Ordinary,
        }
    }
}

/// One thread.
#[derive(Clone, Copy, Debug)]
pub struct ThreadRow<'a> {
    /// Its number.
    pub pid: i32,
    /// Its name.
    pub comm: &'a str,
    /// What it is to the scheduler.
    pub priority: ThreadPriority,
    /// The CPU it woke on, where it was always the same.
    pub cpu: Option<u32>,
    /// How late it got its CPU.
    pub wakeups: &'a Distribution,
}

impl ThreadRow<'_> {
    fn priority(&self) -> String {
        match self.priority {
            ThreadPriority::Ordinary => "ordinary".to_owned(),
            ThreadPriority::Deadline => "deadline".to_owned(),
            ThreadPriority::Realtime(p) => p.to_string(),
            ThreadPriority::Unknown => "unknown".to_owned(),
        }
    }
}

/// The `most` threads with the latest wake-ups, for a terminal; ends in a newline.
#[must_use]
pub fn threads(all: &[ThreadRow<'_>], most: usize, style: Style) -> String {
    let mut sorted: Vec<&ThreadRow<'_>> = all.iter().collect();
    order::by_key(&mut sorted, |t| (std::cmp::Reverse(t.wakeups.max_ns), t.pid));
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
        ..Table::default()
    }
}

/// The same for scripts: a list of `pid`, `name`, `priority` (1 to 99, 100 for a deadline, `null` for an ordinary thread;
/// absent where the source does not say), `cpu` (`null` for several), `wakeups`, `mean_ns`, `max_ns`.
#[must_use]
pub fn threads_json(all: &[ThreadRow<'_>]) -> Value {
    let one = |t: &ThreadRow<'_>| {
        let mut row = json!({
            "pid": t.pid,
            "name": t.comm,
            "cpu": t.cpu,
            "wakeups": t.wakeups.n,
            "mean_ns": t.wakeups.mean(),
            "max_ns": t.wakeups.max_ns,
        });
        let priority = match t.priority {
            ThreadPriority::Unknown => return row,
            ThreadPriority::Ordinary => Value::Null,
            ThreadPriority::Realtime(p) => json!(p),
            ThreadPriority::Deadline => json!(100),
        };
        if let Some(members) = row.as_object_mut() {
            members.insert("priority".to_owned(), priority);
        }
        row
    };
    all.iter().map(one).collect()
}

/// To the nearest ns.
#[expect(clippy::cast_possible_truncation, reason = "latencies are far below 2^63 ns")]
fn whole(ns: f64) -> i64 {
    debug_assert!(ns.abs() < i64::MAX.real(), "a mean of latencies");
    ns.round() as i64
}
