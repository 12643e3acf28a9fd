// SPDX-License-Identifier: MIT OR Apache-2.0
//! The head of a report: what an auditor files it by.
//!
//! What persons did not state is "not stated", so that its place is not overlooked.
//! Not here: the verdict and everything below it (`sections`).

use std::fmt::Write as _;

use tailbound_core::Run;

use super::Page;
use crate::digest;
use crate::escape::xml;

/// Heading and head of the report on the run in the file `name`.
pub(super) fn section(page: &mut Page, run: &Run, name: &str) {
    let title = digest::title(run);
    let _ = write!(page.body, "<h1>Tailbound report: {}</h1>", xml(title.unwrap_or(name)));
    page.push("<dl class=\"head\">");
    for (what, text) in digest::head(run) {
        let _ = write!(page.body, "<div><dt>{what}</dt><dd>{}</dd></div>", xml(&text));
    }
    page.push("</dl>");
}
