// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where the time of the latest pulses from outside went: [`PulseJoin`] for people, by a terminal or a browser.
//!
//! Units: ns. Everything of a file is escaped by the helpers of the pages.
//! Not here: the join (`tailbound-stimulus`).

use tailbound_core::pulses::{PulseJoin, PulseSplit};
use tailbound_core::units::{format_ns_i64, grouped};

use crate::html::page::Page as HtmlPage;
use crate::table::Table;
use crate::text::ink::Ink;
use crate::text::page::Page;

const HEADING: &str = "Where the time of the latest pulses went";
const LEGEND: &str = "start: from the kernel's stamp of the pulse until the thread ran; work: from then until the answer was given; \
outside alone: line and interrupt before the stamp, and the answer's way out.";
/// Most rows of the table.
const ROWS_MAX: usize = 10;

fn sentence(join: &PulseJoin) -> String {
    let joined = join.splits.len() as u64;
    format!(
        "{} of the {} longest pulses are joined with the answers of run {}.",
        grouped(joined),
        grouped(join.worst),
        join.answers
    )
}

fn not_joined(join: &PulseJoin) -> Vec<String> {
    let of = join.not_joined.iter();
    of.map(|not| format!("{} not joined: {}.", grouped(not.n), not.reason)).collect()
}

fn table(splits: &[PulseSplit]) -> Table {
    let mut table = Table::new(&["pulse", "outside", "start", "work", "outside alone", "±"]);
    for split in splits.iter().take(ROWS_MAX) {
        let times =
            [split.outside_ns, split.start_ns, split.work_ns, split.rest_ns, split.error_ns];
        let mut row = vec![grouped(split.activation)];
        row.extend(times.map(format_ns_i64));
        table.row(row);
    }
    table
}

/// A part of a run's report; nothing where nothing was to be joined.
pub(crate) fn short(page: &mut Page, joins: &[PulseJoin]) {
    for join in joins {
        page.heading(HEADING);
        page.text(&sentence(join), "  ", Ink::Plain);
        if !join.splits.is_empty() {
            let lines = table(&join.splits).text(page.width());
            page.raw(lines, Ink::Plain);
            page.text(LEGEND, "  ", Ink::Dim);
        }
        not_joined(join).iter().for_each(|line| page.text(line, "  ", Ink::Plain));
    }
}

/// The section of a run's page; nothing where nothing was to be joined.
pub(crate) fn section(page: &mut HtmlPage, joins: &[PulseJoin]) {
    for join in joins {
        page.heading(HEADING);
        page.text("", &sentence(join));
        if !join.splits.is_empty() {
            let table = table(&join.splits).html();
            page.push(&table);
            page.text("soft", LEGEND);
        }
        let lines = not_joined(join);
        if !lines.is_empty() {
            page.list(&lines);
        }
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::pulses::NotJoined;

    use super::*;
    use crate::text::Style;

    #[test]
    fn the_latest_have_their_parts_and_the_others_their_reason() {
        let split = PulseSplit {
            activation: 40_007,
            outside_ns: 81_000,
            start_ns: 60_000,
            work_ns: 4_000,
            rest_ns: 17_000,
            error_ns: 40,
            ..PulseSplit::default()
        };
        let join = PulseJoin {
            answers: "board<1>".to_owned(),
            worst: 3,
            not_joined: vec![NotJoined { n: 2, reason: "its number came twice".to_owned() }],
            splits: vec![split],
            ..PulseJoin::default()
        };
        let mut page = Page::new(Style::default());
        short(&mut page, std::slice::from_ref(&join));
        let text = page.finish();
        assert!(text.contains("1 of the 3 longest pulses are joined"), "{text}");
        assert!(text.contains("2 not joined: its number came twice."), "{text}");
        let row = text.lines().find(|line| line.contains("40,007")).unwrap_or_default();
        for part in ["81.0 µs", "60.0 µs", "4.00 µs", "17.0 µs", "40 ns"] {
            assert!(row.contains(part), "{row}");
        }
        let mut page = HtmlPage::default();
        section(&mut page, &[join]);
        assert!(page.body.contains("board&lt;1&gt;"), "{}", page.body);
    }
}
