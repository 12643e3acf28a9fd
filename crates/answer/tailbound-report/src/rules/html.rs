// SPDX-License-Identifier: MIT OR Apache-2.0
//! Violations for a browser: a section of a page.
//!
//! Everything of a file is escaped by the helpers of the page.

use std::fmt::Write as _;

use tailbound_core::rules::{ViolationRecord, sentence};

use super::{CHECK_COMMAND, heading, method, rows};
use crate::blame::first_up;
use crate::escape::xml;
use crate::html::page::Page;
use crate::site::{Subject, linked};

/// Most rows of the table, and most places with their stacks.
const ROWS_MAX: usize = 100;
const PLACES_MAX: usize = 20;

/// The section of a run's page; nothing without records.
pub(crate) fn section(page: &mut Page, records: &[ViolationRecord]) {
    if records.is_empty() {
        return;
    }
    page.heading(heading());
    page.text("", &format!("{}.", first_up(&sentence(records))));
    let table = rows::table(records, ROWS_MAX).html();
    page.push(&table);
    page.push("<h3>What to do</h3><ul>");
    for (rule, remedy) in rows::remedies(records) {
        let name = linked(Subject::Rule, rule.as_str(), rule.as_str());
        let _ = write!(page.body, "<li>{name}: {}", xml(remedy.text));
        if let Some(id) = remedy.check {
            let check = linked(Subject::Check, id, id);
            let _ = write!(page.body, "<br/>look at {check}: <code>{CHECK_COMMAND}</code>");
        }
        page.push("</li>");
    }
    page.push("</ul>");
    for v in records.iter().take(PLACES_MAX) {
        let _ = write!(page.body, "<h3>{}: {}</h3>", xml(v.rule.as_str()), xml(&v.site));
        page.text("", &format!("{}.", v.worst.text));
        if !v.worst.stack.frames.is_empty() {
            page.list(&v.worst.stack.frames);
        }
        page.text("soft", &format!("{}.", first_up(&method(&v.worst.stack))));
    }
}
