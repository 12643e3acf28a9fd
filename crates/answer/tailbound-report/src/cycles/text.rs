// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of watched threads, for a terminal.

use tailbound_core::blame::KernelKind;
use tailbound_core::cycle::CycleRecord;

use super::{rows, words};
use crate::blame::{first_up, hanging, latest, sample, title};
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Most causes of a table.
const CAUSES_MAX: usize = 12;
/// Most threads that are told of one by one.
const THREADS_MAX: usize = 32;

/// The answer before everything else: deadline, how many cycles were late, and why; ends in a newline.
#[must_use]
pub fn headline(all: &[CycleRecord], kernel: KernelKind, style: Style) -> String {
    let mut page = Page::new(style);
    headlines(&mut page, all, kernel);
    page.finish()
}

fn headlines(page: &mut Page, all: &[CycleRecord], kernel: KernelKind) {
    for line in words::headlines(all, kernel) {
        let ink = if line.late { Ink::Bad } else { Ink::Plain };
        page.text(&line.text, "  ", ink);
    }
}

/// `all` for a terminal, with the `most` longest cycles of each thread one by one; ends in a newline.
#[must_use]
pub fn text(all: &[CycleRecord], most: usize, style: Style) -> String {
    let mut page = Page::new(style);
    if all.len() > 1 {
        page.heading("Threads");
        let lines = hanging(&rows::threads(all), page.width());
        page.raw(lines, Ink::Plain);
    }
    for c in all.iter().filter(|c| c.cycles > 0 || all.len() == 1).take(THREADS_MAX) {
        thread(&mut page, c, most);
    }
    page.finish()
}

fn thread(page: &mut Page, c: &CycleRecord, most: usize) {
    page.heading(&words::title(c));
    page.text(&words::activation(c), "  ", Ink::Plain);
    page.text(&words::pace(&c.pace), "  ", Ink::Plain);
    if let Some(deadline) = words::deadline(c) {
        let ink = if c.misses > 0 { Ink::Bad } else { Ink::Plain };
        page.text(&deadline, "  ", ink);
    }
    words::notes(c).iter().for_each(|n| page.text(n, "  ", Ink::Warn));
    if c.late_reasons.len() > 1 {
        page.gap();
        page.text("Why cycles were late", "", Ink::Bold);
        let lines = hanging(&rows::late(c, CAUSES_MAX), page.width());
        page.raw(lines, Ink::Plain);
    }
    if c.cycles == 0 {
        return;
    }
    page.gap();
    let lines = rows::figures(c).text(page.width());
    page.raw(lines, Ink::Plain);
    page.gap();
    page.text("What its cycles were made of", "", Ink::Bold);
    let lines = hanging(&rows::causes(c, CAUSES_MAX), page.width());
    page.raw(lines, Ink::Plain);
    latest(&c.worst, most).into_iter().for_each(|r| sample(page, r, &first_up(&title(r))));
}

/// The section of a run's report; nothing without records.
pub(crate) fn short(page: &mut Page, all: &[CycleRecord], kernel: KernelKind) {
    if all.is_empty() {
        return;
    }
    page.heading("Cycles of the watched threads");
    headlines(page, all, kernel);
    page.gap();
    let lines = hanging(&rows::threads(all), page.width());
    page.raw(lines, Ink::Plain);
    for c in all.iter().filter(|c| c.cycles > 0).take(THREADS_MAX) {
        thread(page, c, 1);
    }
}
