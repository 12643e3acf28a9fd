// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths in a browser: a section of a run's page.
//!
//! Everything of a file is escaped by the helpers of the page.

use tailbound_core::paths::{PathsRecord, SectionKind};
use tailbound_core::units::grouped;

use super::{
    begin, behind, checks, cpus, elsewhere, handed_over, heading, longest, picture, remedy,
    sentence, several, tables, title,
};
use crate::html::page::Page;

/// Browsers draw several spaces as one.
const INDENT: &str = "\u{a0}\u{a0}\u{a0}";

/// The section of a run's page; nothing without a record.
pub(crate) fn section(page: &mut Page, paths: Option<&PathsRecord>, kernel: &str, prefix: &str) {
    let Some(paths) = paths else { return };
    page.heading("Exact paths");
    page.text("", &sentence(paths));
    if let Some(legs) = picture::legs(paths) {
        page.figure(&legs, prefix);
    }
    let lines = paths.wakeups.iter().flat_map(|w| behind(w).into_iter().chain(handed_over(w)));
    let lines: Vec<String> = lines.chain(several(paths)).collect();
    page.list(&lines);
    if let Some(latest) = paths.wakeups.first().filter(|w| !w.tree.is_empty()) {
        let n = grouped(latest.activation);
        page.text("soft", &format!("What activation {n} executed from {} on:", begin(paths)));
        let table = tables::tree(&latest.tree, INDENT).html();
        page.push(&table);
    }
    if let Some((heading, lines)) = elsewhere(paths) {
        page.text("soft", &format!("{heading}:"));
        let table = tables::tree(lines, INDENT).html();
        page.push(&table);
    }
    for kind in SectionKind::ALL {
        let Some(first) = longest(paths, kind) else { continue };
        for cpu in cpus(paths) {
            let title = heading(paths, title(kind), cpu);
            page.text("soft", &format!("{title}, the longest sections:"));
            let table = tables::sections(paths, kind, cpu).html();
            page.push(&table);
        }
        if kind == SectionKind::NotPreemptible && !first.tree.is_empty() {
            page.text("soft", "What the longest of them executed:");
            let table = tables::tree(&first.tree, INDENT).html();
            page.push(&table);
        }
    }
    if let Some(curve) = picture::curve(paths) {
        page.figure(&curve, prefix);
    }
    page.list(&remedy::all(paths, kernel));
    page.text("note", &checks(paths));
}
