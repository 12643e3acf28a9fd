// SPDX-License-Identifier: MIT OR Apache-2.0
//! What each CPU did during one sample, in letters.
//!
//! One line per CPU, one column per stretch of time; of several activities in a column
//! the one that took most of it is shown. Threads and functions have a letter each.
//! Not here: the picture (`svg`).

use tailbound_core::blame::{Activity, BlameLane, BlameRecord};
use tailbound_core::units::format_ns_i64;

use super::marks::PictureSpan;
use super::nest::{innermost, nested};
use super::{look, marks};
use crate::table::{Align, columns, pad};

/// Most names of one letter in the legend.
const NAMES_MAX: usize = 4;

/// The letters in use: activity, letter, names.
#[derive(Debug, Default)]
struct Letters(Vec<(Activity, char, Vec<String>)>);

impl Letters {
    fn of(&mut self, activity: Activity, who: &str) -> char {
        let fixed = fixed(activity);
        let same = |(a, c, names): &&mut (Activity, char, Vec<String>)| {
            *a == activity && (fixed == Some(*c) || names.iter().any(|n| n == who))
        };
        if let Some((_, letter, names)) = self.0.iter_mut().find(same) {
            if !who.is_empty() && !names.iter().any(|n| n == who) {
                names.push(who.to_owned());
            }
            return *letter;
        }
        let free = || ('a'..='z').find(|c| self.0.iter().all(|(_, used, _)| used != c));
        let letter = fixed.or_else(free).unwrap_or('+');
        self.0.push((activity, letter, vec![who.to_owned()]));
        letter
    }

    fn legend(&self) -> String {
        let others = self.0.iter().filter(|(_, c, _)| *c == '+').count();
        let mut out: Vec<String> = self
            .0
            .iter()
            .filter(|(_, letter, _)| *letter != '+')
            .map(|(activity, letter, names)| {
                let named: Vec<&str> =
                    names.iter().filter(|n| !n.is_empty()).map(String::as_str).collect();
                let more = named.len().saturating_sub(NAMES_MAX);
                let mut who = named.get(..NAMES_MAX.min(named.len())).unwrap_or(&[]).join(", ");
                if more > 0 {
                    who.push_str(&format!(" and {more} more"));
                }
                format!("{letter} {}", look::named(activity, &who))
            })
            .collect();
        if others > 0 {
            out.push(format!("+ {others} others"));
        }
        out.join("; ")
    }
}

/// The letter of an activity of which it does not matter whose it is.
fn fixed(activity: Activity) -> Option<char> {
    match activity {
        Activity::Idle => Some('.'),
        Activity::Target => Some('█'),
        Activity::Interrupt => Some('I'),
        Activity::Timer => Some('T'),
        Activity::Ipi => Some('P'),
        Activity::Softirq => Some('S'),
        Activity::Nmi => Some('N'),
        Activity::Spin => Some('X'),
        Activity::Thread | Activity::Work => None,
        Activity::Unknown(_) => Some('?'),
    }
}

/// Columns over a stretch of time.
struct Across {
    from_ns: i64,
    to_ns: i64,
    columns: usize,
}

impl Across {
    /// When column `c` begins.
    fn at(&self, c: usize) -> i64 {
        let span = i128::from(self.to_ns) - i128::from(self.from_ns);
        let part = span * i128::try_from(c).unwrap_or(0)
            / i128::try_from(self.columns.max(1)).unwrap_or(1);
        i64::try_from(i128::from(self.from_ns) + part).unwrap_or(self.to_ns)
    }

    /// The column of a moment.
    fn column(&self, ns: i64) -> usize {
        (0..self.columns).rev().find(|c| self.at(*c) <= ns).unwrap_or(0)
    }
}

/// The lines of one sample, `width` columns wide, and what the letters mean; nothing without lanes.
pub(crate) fn lines(record: &BlameRecord, width: usize) -> Option<(Vec<String>, String)> {
    let shown = marks::lanes(record);
    let lanes = &shown.shown;
    if lanes.is_empty() {
        return None;
    }
    let names: Vec<String> = lanes.iter().map(|l| format!("CPU {}", l.cpu)).collect();
    let name = names.iter().map(|n| columns(n)).max().unwrap_or(0);
    let PictureSpan { from_ns, to_ns } = marks::window(record);
    let across = Across { from_ns, to_ns, columns: width.saturating_sub(name + 2).max(10) };
    let mut letters = Letters::default();
    let indent = " ".repeat(name + 2);
    let mut out = vec![format!("{indent}{}", marked(record, &across))];
    for (lane, label) in lanes.iter().zip(&names) {
        out.push(format!(
            "{}  {}",
            pad(label, name, Align::Left),
            row(lane, &across, &mut letters)
        ));
    }
    let (first, last) = (format_ns_i64(from_ns), format_ns_i64(to_ns));
    let rule = across.columns.saturating_sub(columns(&first) + columns(&last) + 2);
    out.push(format!("{indent}{first} {} {last}", "─".repeat(rule)));
    let mut legend = letters.legend();
    if let Some(words) = shown.more_words() {
        legend.push_str(&format!(". {words}"));
    }
    Some((out.into_iter().map(|l| l.trim_end().to_owned()).collect(), legend))
}

/// The line above the lanes: where it was due, ready, and at its end.
fn marked(record: &BlameRecord, across: &Across) -> String {
    let mut line = vec![' '; across.columns];
    let mut put = |from: usize, words: &str| {
        let letters: Vec<char> = words.chars().collect();
        let room = line.get_mut(from..from + letters.len());
        // A blank on each side, so that two words do not become one.
        if let Some(room) = room.filter(|r| r.iter().all(|c| *c == ' ')) {
            room.copy_from_slice(&letters);
        }
    };
    let end = across.column(record.latency_ns.saturating_sub(1));
    put((end + 1).saturating_sub("end|".len()), "end|");
    put(across.column(0), "|due ");
    if let Some(ready) = marks::ready_ns(record).filter(|r| *r > 0) {
        put(across.column(ready), "|ready ");
    }
    line.into_iter().collect()
}

fn row(lane: &BlameLane, across: &Across, letters: &mut Letters) -> String {
    let flat = innermost(&nested(lane.spans.iter().map(|s| (s.from_ns, s.to_ns))));
    let letter = |column: usize| {
        let (from, to) = (across.at(column), across.at(column + 1));
        let mut shares: Vec<(Activity, &str, i64)> = Vec::new();
        let begin = flat.partition_point(|n| n.to_ns <= from);
        for n in flat.iter().skip(begin).take_while(|n| n.from_ns < to) {
            let Some(span) = lane.spans.get(n.at) else { continue };
            let ns = n.to_ns.min(to).saturating_sub(n.from_ns.max(from));
            match shares.iter_mut().find(|(a, w, _)| *a == span.activity && *w == span.who) {
                Some((.., sum)) => *sum = sum.saturating_add(ns),
                None => shares.push((span.activity, &span.who, ns)),
            }
        }
        let most = shares.into_iter().max_by_key(|(.., ns)| *ns);
        most.map_or(' ', |(activity, who, _)| letters.of(activity, who))
    };
    (0..across.columns).map(letter).collect()
}
