// SPDX-License-Identifier: MIT OR Apache-2.0
//! Exact paths in a terminal.

use tailbound_core::paths::{PathsRecord, SectionKind, TreeLine};
use tailbound_core::units::grouped;
use tailbound_stats::theory::TheoreticalBound;

use super::{
    ESTIMATE, NOT_ESTIMATED, SPLIT, begin, behind, checks, cpus, elsewhere, handed_over, heading,
    length, longest, place, remedy, sentence, several, tables, title,
};
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

fn table(page: &mut Page, table: &Table) {
    let lines = crate::blame::hanging(table, page.width());
    page.raw(lines, Ink::Plain);
}

fn tree(page: &mut Page, heading: &str, lines: &[TreeLine]) {
    page.heading(heading);
    table(page, &tables::tree(lines, "  "));
}

fn wakeups(page: &mut Page, paths: &PathsRecord) {
    table(page, &tables::wakeups(paths));
    for line in paths.wakeups.iter().flat_map(|w| behind(w).into_iter().chain(handed_over(w))) {
        page.text(&line, "  ", Ink::Plain);
    }
    if let Some(line) = several(paths) {
        page.text(&line, "  ", Ink::Plain);
    }
}

fn advice(page: &mut Page, paths: &PathsRecord, kernel: &str) {
    let remedies = remedy::all(paths, kernel);
    if !remedies.is_empty() {
        page.heading("What to do");
        remedies.iter().for_each(|r| page.text(&format!("- {r}"), "  ", Ink::Plain));
    }
}

/// A part of a run's report; nothing where there is none.
pub(crate) fn short(page: &mut Page, paths: Option<&PathsRecord>, kernel: &str) {
    let Some(paths) = paths else { return };
    page.heading("Exact paths");
    page.text(&sentence(paths), "  ", Ink::Plain);
    page.gap();
    wakeups(page, paths);
    advice(page, paths, kernel);
}

/// For a terminal; ends in a newline. `kernel` is what `-k` was given.
#[must_use]
pub fn text(
    paths: &PathsRecord,
    bound: Option<&TheoreticalBound>,
    kernel: &str,
    style: Style,
) -> String {
    let mut page = Page::new(style);
    page.text(&sentence(paths), "  ", Ink::Bold);
    if !paths.split.is_empty() {
        page.heading(SPLIT);
        table(&mut page, &tables::split(paths));
    }
    page.heading("Latest wake-ups");
    wakeups(&mut page, paths);
    if let Some(latest) = paths.wakeups.first().filter(|w| !w.tree.is_empty()) {
        let n = grouped(latest.activation);
        let heading = format!("What activation {n} executed from {} on", begin(paths));
        tree(&mut page, &heading, &latest.tree);
    }
    if let Some((heading, lines)) = elsewhere(paths) {
        tree(&mut page, &heading, lines);
    }
    for kind in SectionKind::ALL {
        let any =
            |cpu: &Option<u32>| paths.sections.iter().any(|s| s.kind == kind && s.cpu == *cpu);
        for cpu in cpus(paths).into_iter().filter(any) {
            page.heading(&heading(paths, title(kind), cpu));
            table(&mut page, &tables::sections(paths, kind, cpu));
        }
    }
    let whole = longest(paths, SectionKind::NotPreemptible).filter(|s| !s.tree.is_empty());
    if let Some(s) = whole {
        let (place, ns) = (place(&s.from, &s.to), length(s.longest_ns, s.own_ns));
        tree(&mut page, &format!("What the longest one executed ({place}, {ns})"), &s.tree);
    }
    if paths.curve.is_empty() && paths.checks.several.is_some() {
        page.heading("How likely a wake-up is later");
        page.text(NOT_ESTIMATED, "  ", Ink::Plain);
    } else if !paths.curve.is_empty() {
        page.heading("How likely a wake-up is later");
        table(&mut page, &tables::curve(paths));
        page.text(ESTIMATE, "  ", Ink::Dim);
    }
    advice(&mut page, paths, kernel);
    if let (Some(record), Some(answer)) = (&paths.theory, bound) {
        crate::theory::section(&mut page, record, answer);
    }
    page.text(&checks(paths), "  ", Ink::Dim);
    page.finish()
}
