// SPDX-License-Identifier: MIT OR Apache-2.0
//! Cycles of watched threads, for a browser: a page of its own, or a section of a run's page.
//!
//! Everything of a file is escaped by the helpers of the page.

use std::fmt::Write as _;

use tailbound_core::blame::KernelKind;
use tailbound_core::cycle::CycleRecord;
use tailbound_core::rules::ViolationRecord;

use super::{rows, words};
use crate::blame::{latest, notes, parts, picture_as};
use crate::escape::xml;
use crate::html::page::Page;
use crate::rules;

/// Most causes of a table, and most parts of a cycle.
const CAUSES_MAX: usize = 40;
const PARTS_MAX: usize = 40;
/// Most threads that are told of one by one, and pictures of each.
const THREADS_MAX: usize = 16;
const PICTURES_OF_ONE: usize = 3;

/// Names of the pictures of a page.
const IDS: [&str; 24] = [
    "cycle-1", "cycle-2", "cycle-3", "cycle-4", "cycle-5", "cycle-6", "cycle-7", "cycle-8",
    "cycle-9", "cycle-10", "cycle-11", "cycle-12", "cycle-13", "cycle-14", "cycle-15", "cycle-16",
    "cycle-17", "cycle-18", "cycle-19", "cycle-20", "cycle-21", "cycle-22", "cycle-23", "cycle-24",
];

/// A page of its own about what is called `name`, with the rules that were broken.
#[must_use]
pub fn html(
    all: &[CycleRecord],
    violations: &[ViolationRecord],
    kernel: KernelKind,
    name: &str,
) -> String {
    let mut page = Page::default();
    let _ = write!(page.body, "<h1>Tailbound watch: {}</h1>", xml(name));
    if all.is_empty() {
        page.text("note", "No thread was watched.");
    }
    rules::section(&mut page, violations);
    section(&mut page, all, kernel, "c");
    page.finish(&format!("watch: {name}"), &[super::json(all)])
}

/// The section of a run's page; nothing without records.
pub(crate) fn section(page: &mut Page, all: &[CycleRecord], kernel: KernelKind, prefix: &str) {
    if all.is_empty() {
        return;
    }
    page.heading("Cycles of the watched threads");
    for line in words::headlines(all, kernel) {
        page.text(if line.late { "note" } else { "" }, &line.text);
    }
    page.text(
        "soft",
        "A cycle goes from its release (its timer's due time, else the waking that starts it) to where the \
         thread goes to sleep for the next one. Its parts adjoin: their sum is its length, to the ns.",
    );
    let table = rows::threads(all).html();
    page.push(&table);
    let mut ids = IDS.into_iter();
    for c in all.iter().filter(|c| c.cycles > 0).take(THREADS_MAX) {
        let _ = write!(page.body, "<h3>{}</h3>", xml(&words::title(c)));
        page.text("", &words::activation(c));
        page.text("", &words::pace(&c.pace));
        if let Some(deadline) = words::deadline(c) {
            page.text("", &deadline);
        }
        words::notes(c).iter().for_each(|n| page.text("note", n));
        if c.late_reasons.len() > 1 {
            let late = rows::late(c, CAUSES_MAX).html();
            page.push(&late);
        }
        let (figures, causes) = (rows::figures(c).html(), rows::causes(c, CAUSES_MAX).html());
        page.push(&figures);
        page.push(&causes);
        for record in latest(&c.worst, PICTURES_OF_ONE) {
            let Some(id) = ids.next() else { break };
            page.figure(&picture_as(record, id), prefix);
            let table = parts(record, PARTS_MAX).html();
            page.push(&table);
            let chain: Vec<String> = record.chain.iter().take(PARTS_MAX).cloned().collect();
            if !chain.is_empty() {
                page.list(&chain);
            }
            notes(record).iter().for_each(|n| page.text("note", n));
        }
    }
}
