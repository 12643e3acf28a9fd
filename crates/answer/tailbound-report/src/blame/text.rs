// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made the samples late, for a terminal: the answer, the ranking, what to do, the worst samples.

use tailbound_core::blame::{BlameRecord, KernelKind, Ranking};

use super::{advice, lanes, latest, notes, rows, title};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Most culprits of a table.
const CULPRITS_MAX: usize = 10;
/// Most culprits with advice.
const ADVICE_MAX: usize = 3;
/// Most parts of a sample, and most sentences about it.
const PARTS_MAX: usize = 16;

/// The heading of all that is about late samples in reports.
pub(crate) fn heading() -> &'static str {
    "Who made the worst samples late"
}

/// `records`, made on a kernel of that kind, for a terminal, with the `most` latest of them one by one; ends in a newline.
#[must_use]
pub fn text(records: &[BlameRecord], kernel: KernelKind, most: usize, style: Style) -> String {
    let ranking = Ranking::of(records);
    let mut page = Page::new(style);
    page.text(&first_up(&ranking.sentence()), "  ", Ink::Bold);
    if records.is_empty() {
        return page.finish();
    }
    page.gap();
    culprits(&mut page, &ranking, CULPRITS_MAX);
    let advice = advice::advice(records, &ranking, kernel, ADVICE_MAX);
    if !advice.is_empty() {
        page.heading("What to do");
    }
    for a in advice {
        page.text(&format!("- {}: {}", a.about, a.text), "  ", Ink::Plain);
        for (for_what, command) in a.commands {
            // In one line, however long: two halves of a command are no command.
            page.raw(vec![format!("    {for_what}: {command}")], Ink::Accent);
        }
    }
    latest(records, most).into_iter().for_each(|r| sample(&mut page, r, &title(r)));
    page.finish()
}

/// The section of a run's report.
pub(crate) fn short(page: &mut Page, records: &[BlameRecord]) {
    if records.is_empty() {
        return;
    }
    let ranking = Ranking::of(records);
    page.heading(heading());
    page.text(&first_up(&ranking.sentence()), "  ", Ink::Plain);
    culprits(page, &ranking, 5);
    page.text("`tailbound blame FILE` shows each sample and what to do.", "  ", Ink::Dim);
}

fn culprits(page: &mut Page, ranking: &Ranking, most: usize) {
    let lines = rows::hanging(&rows::culprits(ranking, most), page.width());
    page.raw(lines, Ink::Plain);
    let more = rows::ranked(ranking, usize::MAX).len().saturating_sub(most);
    if more > 0 {
        page.text(&format!("and {more} more, see --json"), "  ", Ink::Dim);
    }
}

/// A record below its heading: what each CPU did, the parts, the sentences, what a reader must know.
pub(crate) fn sample(page: &mut Page, record: &BlameRecord, heading: &str) {
    page.heading(heading);
    if let Some((lines, legend)) = lanes::lines(record, page.width().min(100)) {
        page.raw(lines, Ink::Plain);
        page.text(&legend, "  ", Ink::Dim);
        page.gap();
    }
    let lines = rows::hanging(&rows::parts(record, PARTS_MAX), page.width());
    page.raw(lines, Ink::Plain);
    for sentence in record.chain.iter().take(PARTS_MAX) {
        page.text(&format!("- {sentence}"), "  ", Ink::Plain);
    }
    let more = record.chain.len().saturating_sub(PARTS_MAX);
    if more > 0 {
        page.text(&format!("- and {more} more, see --json"), "  ", Ink::Dim);
    }
    let ink = if record.lost { Ink::Warn } else { Ink::Dim };
    notes(record).iter().for_each(|n| page.text(n, "  ", ink));
}

/// A sentence that stands alone begins with a capital letter.
pub(crate) fn first_up(sentence: &str) -> String {
    let mut letters = sentence.chars();
    let first = letters.next().map(|c| c.to_uppercase().collect::<String>());
    first.unwrap_or_default() + letters.as_str()
}
