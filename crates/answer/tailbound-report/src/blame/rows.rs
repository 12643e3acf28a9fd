// SPDX-License-Identifier: MIT OR Apache-2.0
//! The figures about culprits and parts as tables.
//!
//! Units: ns.

use tailbound_core::blame::{BlamePart, BlameRecord, Culprit, Ranking, Sureness};
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::format_ns_i64;

use crate::escape::terminal;
use crate::site::Subject;
use crate::table::{Align, Table, columns, pad, wrap};

/// Cause and name, with how sure it is where it is not sure.
pub(crate) fn what(sentence: &str, sureness: Sureness) -> String {
    match sureness {
        Sureness::Sure => sentence.to_owned(),
        other => format!("{sentence} ({other})"),
    }
}

/// `culprit` in words.
pub(super) fn words(culprit: &Culprit) -> String {
    what(&culprit.cause.sentence(&culprit.who), culprit.sureness)
}

pub(crate) fn percent(part: f64, whole: f64) -> String {
    let share = if whole > 0.0 { part / whole * 100.0 } else { 0.0 };
    if share > 0.0 && share < 1.0 { "< 1 %".to_owned() } else { format!("{share:.0} %") }
}

/// Culprits that made a sample late; where none did, those with a part in one.
pub(super) fn ranked(ranking: &Ranking, most: usize) -> &[Culprit] {
    let led = ranking.culprits.iter().take_while(|c| c.samples > 0).count();
    let end = if led > 0 { led } else { ranking.culprits.len() };
    ranking.culprits.get(..end.min(most)).unwrap_or_default()
}

/// The first of `ranking` that made a sample late.
pub(super) fn culprits(ranking: &Ranking, most: usize) -> Table {
    let head = ["share", "samples", "latest", "most of one", "of all", "what"];
    let mut table = Table::new(&head).with_words(&[5]);
    for c in ranked(ranking, most) {
        table.row(vec![
            percent(c.total_ns.real(), ranking.total_ns.real()),
            c.samples.to_string(),
            format_ns_i64(c.worst_ns),
            format_ns_i64(c.part_ns_max),
            format_ns_i64(c.total_ns),
            words(c),
        ]);
        table.naming(5, Subject::Cause, c.cause.as_str());
    }
    table
}

/// The longest `most` parts of a sample in the order of time, and a row for what is left out.
pub(crate) fn parts(record: &BlameRecord, most: usize) -> Table {
    let mut shown: Vec<&BlamePart> = record.parts.iter().collect();
    order::by_key(&mut shown, |p| std::cmp::Reverse(p.ns));
    let rest = shown.split_off(most.min(shown.len()));
    order::by_key(&mut shown, |p| p.from_ns);
    let mut table = Table::new(&["phase", "length", "share", "what"]).with_words(&[3]);
    let share = |ns: i64| percent(ns.real(), record.latency_ns.real());
    for p in shown {
        table.row(vec![
            p.phase.to_string(),
            format_ns_i64(p.ns),
            share(p.ns),
            what(&p.sentence(), p.sureness),
        ]);
        table.naming(3, Subject::Cause, p.cause.as_str());
    }
    if !rest.is_empty() {
        let ns = rest.iter().fold(0, |a: i64, p| a.saturating_add(p.ns));
        let words = format!("{} shorter parts", rest.len());
        table.row(vec!["the rest".to_owned(), format_ns_i64(ns), share(ns), words]);
    }
    table
}

/// The lines of a table whose last column is words, which are wrapped into what is left of `width`.
pub(crate) fn hanging(table: &Table, width: usize) -> Vec<String> {
    let last = table.head.len().saturating_sub(1);
    let cut = |row: &Vec<String>| row.get(..last).unwrap_or_default().to_vec();
    let figures = Table {
        head: cut(&table.head),
        rows: table.rows.iter().map(cut).collect(),
        words: table.words.clone(),
        ..Table::default()
    };
    let lines = figures.text(width);
    let used = lines.iter().map(|l| columns(l)).max().unwrap_or(0) + 2;
    let words = |row: &Vec<String>| terminal(row.get(last).map_or("", String::as_str));
    // Too narrow, the figures themselves are folded or no word would fit beside them: below them then.
    if lines.len() != table.rows.len() + 1 || used + 16 > width {
        let below = |row: &Vec<String>| {
            let first = terminal(row.first().map_or("", String::as_str));
            wrap(&format!("{first}: {}", words(row)), width, "  ")
        };
        return lines.into_iter().chain(table.rows.iter().flat_map(below)).collect();
    }
    let mut out = Vec::new();
    for (line, row) in lines.iter().zip(std::iter::once(&table.head).chain(&table.rows)) {
        let mut left = pad(line, used, Align::Left);
        for piece in wrap(&words(row), width - used, "  ") {
            out.push(format!("{left}{piece}").trim_end().to_owned());
            left = " ".repeat(used);
        }
    }
    out
}
