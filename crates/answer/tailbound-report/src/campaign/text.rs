// SPDX-License-Identifier: MIT OR Apache-2.0
//! A campaign for terminals: claims first, then the published figures beside ours.

use tailbound_stats::campaign::{self, CampaignEvidence, Row, Word};

use super::{notes, tables};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// The campaign as text, ending in a newline.
#[must_use]
pub fn text(given: &CampaignEvidence, style: Style) -> String {
    let mut page = Page::new(style);
    let (rows, claims) = (campaign::rows(given), campaign::claims(given));
    page.text(&notes::headline(given, &claims, &rows), "  ", Ink::Bold);
    page.text(&given.file.reference(), "  ", Ink::Dim);
    if !claims.is_empty() {
        page.heading("Published claims");
    }
    for claim in &claims {
        let ink = match claim.word {
            Word::Holds => Ink::Good,
            Word::Undecidable => Ink::Warn,
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
    figures(&mut page, &rows);
    for system in &given.systems {
        page.heading(&format!("Runs on {}", system.name));
        let lines = tables::runs(given, Some(&system.name)).text(page.width());
        page.raw(lines, Ink::Plain);
    }
    let lists = [
        ("What can no longer be claimed", notes::lost(given)),
        ("What makes results unreliable", notes::doubts(given)),
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

/// A table for each of the publication's systems and each of ours that stands beside it.
fn figures(page: &mut Page, rows: &[Row]) {
    let mut pairs: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let pair = (row.system.as_str(), row.measured_on.as_str());
        if !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    for (system, measured) in pairs {
        let of = |r: &&Row| r.system == system && r.measured_on == measured;
        page.heading(&match (system, measured) {
            ("", m) => format!("{m}, no published system to compare with"),
            (s, "") => format!("{s}: nothing of ours stands beside it"),
            (s, m) => format!("{s} (published) and {m} (here), per due activation"),
        });
        if measured.is_empty() {
            for row in rows.iter().filter(of) {
                let why = if row.words.starts_with("not measured") {
                    format!("; {}", row.words)
                } else {
                    String::new()
                };
                page.text(&format!("- {}: {}{why}", row.figure, row.told), "  ", Ink::Plain);
            }
            continue;
        }
        let lines = tables::pair(&rows.iter().filter(of).collect::<Vec<_>>()).text(page.width());
        page.raw(lines, Ink::Plain);
    }
}
