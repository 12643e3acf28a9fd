// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign for terminals: claims first, then the text's figures beside ours.
//!
//! Context: COLD.

use super::given::Given;
use super::judge::{self, Word};
use super::{notes, tables};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::report::Page;

/// The campaign as text, ending in a newline.
#[must_use]
pub fn text(given: &Given, style: Style) -> String {
    let mut page = Page::new(style);
    let (rows, claims) = (judge::rows(given), judge::claims(given));
    page.text(&notes::headline(given, &claims, &rows), "  ", Ink::Bold);
    page.text(&given.file.reference(), "  ", Ink::Dim);
    if !claims.is_empty() {
        page.heading("What the text claims");
    }
    for claim in &claims {
        let ink = match claim.word {
            Word::Holds => Ink::Good,
            Word::CannotBeTold => Ink::Warn,
            Word::DoesNotHold => Ink::Bad,
        };
        page.text(&format!("{}: {}", claim.word.text(), claim.claim), "  ", ink);
        for j in &claim.judgements {
            let word = if claim.judgements.len() > 1 {
                format!("{}: ", j.word.text())
            } else {
                String::new()
            };
            page.text(&format!("    {word}{}", j.why), "      ", Ink::Plain);
        }
    }
    if !rows.is_empty() {
        page.heading("The text's figures beside ours, per due activation");
        let lines = tables::beside(&rows).text(page.width());
        page.raw(lines, Ink::Plain);
    }
    page.heading("Runs");
    let lines = tables::runs(given).text(page.width());
    page.raw(lines, Ink::Plain);
    let lists = [
        ("What can no longer be claimed", notes::lost(given)),
        ("What casts doubt", notes::doubts(given)),
        ("What differs", notes::differs(given)),
    ];
    for (heading, lines) in lists {
        if !lines.is_empty() {
            page.heading(heading);
            lines.iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
        }
    }
    page.finish()
}
