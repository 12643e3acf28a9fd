// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made the samples late, for a browser: a section of a run's page, or a page of its own.
//!
//! Everything of a file is escaped by the helpers of the page.

use std::fmt::Write as _;

use tailbound_core::blame::{BlameRecord, KernelKind, Ranking};

use super::text::first_up;
use super::{PICTURES_MAX, advice, heading, latest, notes, rows, svg};
use crate::escape::xml;
use crate::html::page::Page;
use crate::site::{Subject, linked};

/// Most culprits of the table, and of the advice.
const CULPRITS_MAX: usize = 20;
const ADVICE_MAX: usize = 5;
/// Most parts of a sample, and most sentences about it.
const PARTS_MAX: usize = 24;
/// Most functions of a stack.
const STACK_MAX: usize = 64;

/// A page of its own about `records` of what is called `name`, made on a kernel of that kind.
#[must_use]
pub fn html(records: &[BlameRecord], kernel: KernelKind, name: &str) -> String {
    let mut page = Page::default();
    let _ = write!(page.body, "<h1>Tailbound blame: {}</h1>", xml(name));
    if records.is_empty() {
        page.text("note", &first_up(&Ranking::of(records).sentence()));
    }
    section(&mut page, records, kernel, "b");
    page.finish(&format!("blame: {name}"), &[super::json(records, kernel)])
}

/// The section of a run's page; nothing without records.
pub(crate) fn section(page: &mut Page, records: &[BlameRecord], kernel: KernelKind, prefix: &str) {
    if records.is_empty() {
        return;
    }
    let ranking = Ranking::of(records);
    page.heading(heading());
    page.text("", &format!("{}.", first_up(&ranking.sentence())));
    page.text(
        "soft",
        "The culprit of a sample is who took most of it; the kernel's ordinary path is one only where nobody \
         else took a quarter as much. Most of one and of all: the time that it took.",
    );
    let table = rows::culprits(&ranking, CULPRITS_MAX).html();
    page.push(&table);
    let more = rows::ranked(&ranking, usize::MAX).len().saturating_sub(CULPRITS_MAX);
    if more > 0 {
        page.text("soft", &format!("{more} more culprits are in the figures of this page."));
    }
    remedies(page, records, &ranking, kernel);
    for (i, record) in latest(records, PICTURES_MAX).into_iter().enumerate() {
        page.figure(&svg::picture(record, i), prefix);
        sample(page, record);
    }
    let rest = records.len().saturating_sub(PICTURES_MAX);
    if rest > 0 {
        page.text("note", &format!("{rest} more samples are in the run file."));
    }
}

fn remedies(page: &mut Page, records: &[BlameRecord], ranking: &Ranking, kernel: KernelKind) {
    let all = advice::advice(records, ranking, kernel, ADVICE_MAX);
    if all.is_empty() {
        return;
    }
    page.push("<h3>What to do</h3><ul>");
    for a in all {
        let _ = write!(page.body, "<li>{}: {}", xml(&a.about), xml(a.text));
        for (for_what, command) in a.commands {
            let mut what = xml(&for_what);
            if let Some(id) = a.check {
                what = what.replace(id, &linked(Subject::Check, id, id));
            }
            let _ = write!(page.body, "<br/>{what}: <code>{}</code>", xml(&command));
        }
        page.push("</li>");
    }
    page.push("</ul>");
}

fn sample(page: &mut Page, record: &BlameRecord) {
    let table = rows::parts(record, PARTS_MAX).html();
    page.push(&table);
    for part in record.parts.iter().filter(|p| !p.stack.is_empty()) {
        let stack: Vec<String> = part.stack.iter().take(STACK_MAX).map(|f| xml(f)).collect();
        let (about, stack) = (xml(&part.cause.sentence(&part.who)), stack.join("\n"));
        let _ = write!(
            page.body,
            "<details><summary>Kernel stack: {about}</summary><pre>{stack}</pre></details>"
        );
    }
    let mut chain: Vec<String> = record.chain.iter().take(PARTS_MAX).cloned().collect();
    let more = record.chain.len().saturating_sub(PARTS_MAX);
    if more > 0 {
        chain.push(format!("and {more} more, in the run file"));
    }
    if !chain.is_empty() {
        page.list(&chain);
    }
    notes(record).iter().for_each(|n| page.text("note", n));
}
