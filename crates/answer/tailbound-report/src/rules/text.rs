// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations for a terminal: the answer, the table, each with its way through the program.

use tailbound_core::rules::{Occurrence, ViolationRecord, sentence};

use super::{CHECK_COMMAND, heading, method, rows};
use crate::blame::first_up;
use crate::escape::terminal;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;
use crate::worst::seconds;

/// Most rows of a table, and most frames of a stack.
const ROWS_MAX: usize = 40;
const FRAMES_MAX: usize = 12;

/// `records` for a terminal, with the stacks of the `most` first of them; ends in a newline.
#[must_use]
pub fn text(records: &[ViolationRecord], most: usize, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&format!("{}.", first_up(&sentence(records))), "  ", Ink::Bold);
    table(&mut page, records, ROWS_MAX);
    for v in records.iter().take(most) {
        page.heading(&format!("{}: {} ({})", v.rule, v.site, rows::thread(v)));
        one(&mut page, "worst", &v.worst);
        if v.n > 1 && v.first != v.worst {
            one(&mut page, "first", &v.first);
        }
        if let Some(remedy) = v.rule.remedy_at(&v.site) {
            page.text(&format!("- what to do: {}", remedy.text), "    ", Ink::Plain);
            if let Some(check) = remedy.check {
                let command = CHECK_COMMAND.replace("PID", &v.tid.to_string());
                let line = format!("    while it runs, look at {check}: {command}");
                page.raw(vec![line], Ink::Accent);
            }
        }
    }
    let more = records.len().saturating_sub(most);
    if more > 0 {
        page.text(&format!("{more} more places, see --json"), "  ", Ink::Dim);
    }
    page.finish()
}

/// The section of a run's report.
pub(crate) fn short(page: &mut Page, records: &[ViolationRecord]) {
    if records.is_empty() {
        return;
    }
    page.heading(heading());
    page.text(&format!("{}.", first_up(&sentence(records))), "  ", Ink::Plain);
    table(page, records, 10);
    for (rule, remedy) in rows::remedies(records) {
        page.text(&format!("- {rule}: {}", remedy.text), "  ", Ink::Plain);
    }
}

fn table(page: &mut Page, records: &[ViolationRecord], most: usize) {
    if records.is_empty() {
        return;
    }
    page.gap();
    let lines = crate::blame::hanging(&rows::table(records, most), page.width());
    page.raw(lines, Ink::Plain);
    let more = records.len().saturating_sub(most);
    if more > 0 {
        page.text(&format!("and {more} more, see --json"), "  ", Ink::Dim);
    }
}

fn one(page: &mut Page, which: &str, o: &Occurrence) {
    page.text(&format!("- {which}, at {} s: {}", seconds(o.t_ns, 3), o.text), "    ", Ink::Plain);
    for frame in o.stack.frames.iter().take(FRAMES_MAX) {
        page.raw(vec![format!("      {}", terminal(frame))], Ink::Plain);
    }
    let more = o.stack.frames.len().saturating_sub(FRAMES_MAX);
    if more > 0 {
        page.raw(vec![format!("      and {more} more frames, see --json")], Ink::Dim);
    }
    page.raw(vec![format!("      ({})", terminal(&method(&o.stack)))], Ink::Dim);
}
