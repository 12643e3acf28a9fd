// SPDX-License-Identifier: MIT OR Apache-2.0
//! The live view: one frame of text from one snapshot, at most ten times a second.
//!
//! Context: COLD (another thread and another CPU than the measured ones). Units: ns.
//! Lines never exceed the width given, frames never the height: the caller moves the
//! cursor up by the number of lines of the frame before and writes this one over it.
//! Not here: the terminal, the clock, taking snapshots.

use std::collections::BTreeSet;
use tailbound_core::order;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::progress::{Phase, Progress, ThreadProgress};
use tailbound_core::units::{format_ns, format_ns_i64, format_span, grouped};
use tailbound_core::{Context, Histogram, TerminalSize};

use crate::svg::Unit;
use crate::table::{Align, columns, pad};
use crate::text::bars::Across;
use crate::text::ink::{Color, Ink, InkLine};

/// The latest wake-up of all threads and its CPU.
fn worst(s: &Progress) -> Option<(i64, String)> {
    // Of another context there is another figure.
    let judged = s.threads.iter().enumerate().filter(|(_, t)| t.context == Context::User);
    let late = judged.filter_map(|(i, t)| t.max_ns.map(|m| (m, i, t)));
    late.max_by_key(|(m, _, _)| *m).map(|(m, i, t)| (m, name(i, t)))
}

fn name(i: usize, t: &ThreadProgress) -> String {
    let place = t.cpu.map_or_else(|| format!("thread {i}"), |c| format!("CPU {c}"));
    match t.context {
        Context::User => place,
        other => format!("{place} {other}"),
    }
}

fn missed(s: &Progress) -> u64 {
    s.threads.iter().fold(0, |a, t| a.saturating_add(t.missed))
}

/// Frames that replace each other on a terminal; below each stands the cursor.
#[derive(Clone, Debug, Default)]
pub struct FrameView {
    /// Of the last frame.
    lines: usize,
    /// The terminal that it was drawn in.
    size: TerminalSize,
}

impl FrameView {
    /// What is to be written so that `snapshot` stands where the last frame did, in a terminal of `size`.
    pub fn draw(&mut self, snapshot: &Progress, size: TerminalSize, color: Color) -> String {
        let text = frame(snapshot, size.columns, below(size.rows), color);
        let mut out = up(self.lines, self.size, size);
        self.size = size;
        for line in text.lines() {
            out.push_str(line);
            out.push_str("\x1b[K\n");
        }
        out.push_str("\x1b[J");
        self.lines = text.lines().count();
        out
    }

    /// What takes the last frame away; none where there is none.
    pub fn clear(&mut self, size: TerminalSize) -> Option<String> {
        let lines = std::mem::take(&mut self.lines);
        (lines > 0).then(|| format!("{}\x1b[J", up(lines, self.size, size)))
    }
}

/// Lines for a frame in a terminal of `rows`: the cursor stands below the frame, and a frame of all rows would
/// push its first line out.
fn below(rows: usize) -> usize {
    rows.saturating_sub(1).max(1)
}

/// From below the last frame of so many `lines` to its first line. A terminal whose size changed may have
/// folded those lines or not, so that nobody knows where they are: it is cleared.
fn up(lines: usize, drawn_in: TerminalSize, now: TerminalSize) -> String {
    match lines {
        0 => String::new(),
        _ if drawn_in != now => "\x1b[H\x1b[2J".to_owned(),
        _ => format!("\x1b[{lines}A"),
    }
}

/// One frame: lines without a trailing newline, each at most `width` columns, at most `height` of them.
#[must_use]
pub fn frame(snapshot: &Progress, width: usize, height: usize, color: Color) -> String {
    let mut top = vec![progress(snapshot, width), state(snapshot)];
    let mut bottom: Vec<InkLine> = Vec::new();
    if let Some(line) = loads(snapshot) {
        bottom.push(line);
    }
    if let Some(words) = &snapshot.statement {
        bottom.push(InkLine::of(words, Ink::Plain));
    }
    for note in snapshot.notes.iter().take(2) {
        bottom.push(InkLine::of(&format!("! {note}"), Ink::Warn));
    }
    if snapshot.notes.len() > 2 {
        let more = snapshot.notes.len() - 2;
        let notes = if more == 1 { "note" } else { "notes" };
        let line = format!("! and {more} more {notes}, see the report");
        bottom.push(InkLine::of(&line, Ink::Warn));
    }
    // The table may take what the smallest useful picture (three lines and two of axis) leaves.
    let used = top.len() + bottom.len();
    let table_room = height.saturating_sub(used + 6).max(3);
    top.extend(table(snapshot, width, table_room));
    let room = height.saturating_sub(top.len() + bottom.len());
    top.extend(picture(snapshot, width, room));
    top.extend(bottom);
    top.truncate(height);
    let lines: Vec<String> = top.iter().map(|l| l.render(width, color)).collect();
    lines.join("\n")
}

fn progress(s: &Progress, width: usize) -> InkLine {
    let share = if s.total_ns > 0 {
        (s.elapsed_ns.real() / s.total_ns.real()).clamp(0.0, 1.0)
    } else {
        0.0
    };
    let whole = |ns: i64| format_span(ns.max(0) / 1_000_000_000 * 1_000_000_000);
    let head = format!(
        "{}  {} of {}",
        s.phase.word(),
        whole(s.elapsed_ns),
        format_span(s.total_ns.max(0))
    );
    let left = s.total_ns.saturating_sub(s.elapsed_ns).max(0);
    // Rounded up: "0 s left" while it still runs would be wrong.
    let left = left.saturating_add(999_999_999);
    let tail = format!("{} left", whole(left));
    let bar_width = width.saturating_sub(columns(&head) + columns(&tail) + 6).min(40);
    let head_ink = if s.phase == Phase::WarmUp { Ink::Warn } else { Ink::Bold };
    let line = InkLine::of(&head, head_ink);
    if bar_width < 6 {
        return line.and(&format!("  {tail}"), Ink::Plain);
    }
    let full = (share * bar_width.real()).whole_usize();
    line.and("  ", Ink::Plain)
        .and(&"█".repeat(full), Ink::Accent)
        .and(&"░".repeat(bar_width - full), Ink::Dim)
        .and(&format!("  {tail}"), Ink::Plain)
}

fn state(s: &Progress) -> InkLine {
    let mut line = match worst(s) {
        None => InkLine::of("no wake-up yet", Ink::Dim),
        Some((max, who)) => {
            let words = format!("latest {} on {who}", format_ns_i64(max));
            match s.deadline_ns {
                Some(d) if max > d => InkLine::of(&words, Ink::Bad)
                    .and(&format!(", later than the deadline of {}", format_ns_i64(d)), Ink::Bad),
                Some(d) => InkLine::of(&words, Ink::Good)
                    .and(&format!(", deadline {}", format_ns_i64(d)), Ink::Plain),
                None => InkLine::of(&words, Ink::Bold).and(", no deadline given", Ink::Plain),
            }
        }
    };
    let missed = missed(s);
    if missed > 0 {
        line = line.and(&format!("; missed {}", grouped(missed)), Ink::Bad);
    }
    line
}

fn loads(s: &Progress) -> Option<InkLine> {
    let one = |(name, rate, unit): &(String, f64, String)| {
        if rate.is_finite() {
            format!("{name} {} {unit}/s", Unit::Count.label(rate.round()))
        } else {
            format!("{name} rate unknown")
        }
    };
    let all: Vec<String> = s.loads.iter().map(one).collect();
    (!all.is_empty()).then(|| InkLine::of("load: ", Ink::Dim).and(&all.join(", "), Ink::Plain))
}

/// Columns of the table, those that are given up first on a narrow terminal last.
const COLUMNS: [&str; 7] = ["max", "p99", "p99 10s", "last", "missed", "mean", "min"];

/// A cell of `COLUMNS`; "-" where nothing is known yet.
fn cell(t: &ThreadProgress, column: &str) -> String {
    let whole = |v: Option<i64>| v.map_or_else(|| "-".to_owned(), format_ns_i64);
    let real = |v: Option<f64>| v.map_or_else(|| "-".to_owned(), format_ns);
    match column {
        "max" => whole(t.max_ns),
        "p99" => real(t.p99_ns),
        "p99 10s" => real(t.p99_10s_ns),
        "last" => whole(t.last_ns),
        "missed" => grouped(t.missed),
        "mean" => real(t.mean_ns),
        _ => whole(t.min_ns),
    }
}

fn table(s: &Progress, width: usize, room: usize) -> Vec<InkLine> {
    const CELL: usize = 8;
    let names: Vec<String> = s.threads.iter().enumerate().map(|(i, t)| name(i, t)).collect();
    let first = names.iter().map(|n| columns(n)).max().unwrap_or(0).max(6);
    let count = 11;
    let fits = width.saturating_sub(first + count) / (CELL + 1);
    let shown: Vec<&str> = ["min", "mean", "p99", "p99 10s", "max", "last", "missed"]
        .into_iter()
        .filter(|c| COLUMNS.iter().take(fits).any(|k| k == c))
        .collect();
    let line = |head: &str, n: &str, cells: &[String]| {
        let mut text = format!("{}{}", pad(head, first, Align::Left), pad(n, count, Align::Right));
        for c in cells {
            text.push(' ');
            text.push_str(&pad(c, CELL, Align::Right));
        }
        text
    };
    let head: Vec<String> = shown.iter().map(|c| (*c).to_owned()).collect();
    let mut out = vec![InkLine::of(&line("", "wake-ups", &head), Ink::Dim)];
    // When not all fit, the worst are shown, in the order of the CPUs.
    let mut order: Vec<usize> = (0..s.threads.len()).collect();
    let rows = room.saturating_sub(1);
    let hidden = s.threads.len().saturating_sub(rows);
    if hidden > 0 {
        order::by_key(&mut order, |i| std::cmp::Reverse(s.threads.get(*i).and_then(|t| t.max_ns)));
        order.truncate(rows.saturating_sub(1));
        order.sort_unstable();
    }
    for i in order.iter().copied() {
        let (Some(t), Some(name)) = (s.threads.get(i), names.get(i)) else { continue };
        let cells: Vec<String> = shown.iter().map(|c| cell(t, c)).collect();
        let late = s.deadline_ns.zip(t.max_ns).is_some_and(|(d, m)| m > d);
        let ink = if late { Ink::Bad } else { Ink::Plain };
        out.push(InkLine::of(&line(name, &grouped(t.n), &cells), ink));
    }
    if hidden > 0 {
        let rest = s.threads.len() - order.len();
        out.push(InkLine::of(&format!("and {rest} more, none of them later"), Ink::Dim));
    }
    out
}

/// The histogram since the start and, below it on the same axis, that of the last second.
fn picture(s: &Progress, width: usize, room: usize) -> Vec<InkLine> {
    if room < 4 || s.histogram.total() == 0 {
        return Vec::new();
    }
    const LEFT: usize = 4;
    let across = Across::over(&s.histogram, s.deadline_ns, width.saturating_sub(LEFT));
    let recent_rows = if room >= 8 { 2 } else { 0 };
    let rows = (room - 2 - recent_rows - usize::from(room >= 6)).min(12);
    let mut out = Vec::new();
    if room >= 6 {
        out.push(InkLine::default());
    }
    let panel = |h: &Histogram, rows: usize, word: &str, ink: Ink, out: &mut Vec<InkLine>| {
        for (i, row) in across.rows(h, rows).into_iter().enumerate() {
            let head = pad(if i + 1 == rows { word } else { "" }, LEFT, Align::Left);
            out.push(InkLine::of(&head, Ink::Dim).and(&row, ink));
        }
    };
    panel(&s.histogram, rows, "all", Ink::Accent, &mut out);
    let (ticks, labels) = across.axis(s.deadline_ns);
    let (before, mark) =
        ticks.split_once('┃').map_or((ticks.as_str(), None), |(a, b)| (a, Some(b)));
    let mut axis = InkLine::of(&" ".repeat(LEFT), Ink::Dim).and(before, Ink::Dim);
    if let Some(after) = mark {
        axis = axis.and("┃", Ink::Bad).and(after, Ink::Dim);
    }
    out.push(axis);
    if recent_rows > 0 {
        panel(&s.recent, recent_rows, "now", Ink::Good, &mut out);
    }
    out.push(InkLine::of(&format!("{}{labels}", " ".repeat(LEFT)), Ink::Dim));
    out
}

/// One line for pipes and logs: what a frame says, without picture. A note stands in the first line
/// after it came up; `said` keeps those that were.
#[must_use]
pub fn plain_line(snapshot: &Progress, said: &mut BTreeSet<String>) -> String {
    let s = snapshot;
    let n = s.threads.iter().fold(0u64, |a, t| a.saturating_add(t.n));
    let mut parts = vec![
        format!(
            "{} {} of {}",
            s.phase.word(),
            format_span(s.elapsed_ns / 1_000_000_000 * 1_000_000_000),
            format_span(s.total_ns)
        ),
        format!("{} wake-ups", grouped(n)),
        match worst(s) {
            Some((max, who)) => format!("latest {} on {who}", format_ns_i64(max)),
            None => "no wake-up yet".to_owned(),
        },
        format!("missed {}", grouped(missed(s))),
    ];
    if let Some(d) = s.deadline_ns {
        let late = worst(s).is_some_and(|(m, _)| m > d);
        parts.push(format!(
            "deadline {} {}",
            format_ns_i64(d),
            if late { "exceeded" } else { "kept so far" }
        ));
    }
    parts.extend(s.statement.clone());
    parts.extend(loads(s).map(|l| l.render(usize::MAX, Color::Off)));
    parts
        .extend(s.notes.iter().filter(|n| said.insert((*n).clone())).map(|n| format!("note: {n}")));
    crate::escape::terminal(&parts.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_frame_pushes_its_first_line_out_of_the_terminal() {
        // Each line ends with a line feed; that a frame keeps to the lines it is given, its own tests say.
        assert!((2..200).all(|rows| below(rows) == rows - 1));
        assert_eq!(below(1), 1);
    }

    #[test]
    fn a_frame_begins_where_the_last_one_did() {
        let (size, narrow) =
            (TerminalSize::default(), TerminalSize { columns: 60, ..TerminalSize::default() });
        assert_eq!(up(0, size, narrow), "", "the first one");
        assert_eq!(up(7, size, size), "\x1b[7A");
        assert_eq!(up(7, size, narrow), "\x1b[H\x1b[2J", "folded lines are unknown lines");
    }
}
