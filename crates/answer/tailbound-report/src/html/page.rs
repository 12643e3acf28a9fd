// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page under construction: its head, its policy, its script, its figures as JSON, its glossary.
//!
//! Not here: what stands on it (`sections`, `compare`, and the modules of other answers).
//! Source: Content Security Policy Level 3.

use std::fmt::Write as _;

use base64::Engine as _;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::glossary;
use crate::escape::{script_json, xml};
use crate::pictures::Figure;
use crate::svg::style;

const CSS: &str = include_str!("report.css");
/// Cursor and zoom of pictures: looks for `figure[data-figure]`, and for their numbers in the element `figures`.
pub const CHART_SCRIPT: &str = include_str!("chart.js");
/// Its style.
pub const CHART_CSS: &str = include_str!("chart.css");
const SCRIPT: &str = include_str!("report.js");

/// What a browser may do with a page whose only script is this one.
fn policy(script: &str) -> String {
    let digest = base64::engine::general_purpose::STANDARD.encode(Sha256::digest(script));
    format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; \
         img-src data:; base-uri 'none'; form-action 'none'"
    )
}

/// A page under construction.
#[derive(Debug, Default)]
pub(crate) struct Page {
    pub(crate) body: String,
    figures: Map<String, Value>,
}

impl Page {
    pub(crate) fn push(&mut self, markup: &str) {
        self.body.push_str(markup);
    }

    /// A paragraph of plain text.
    pub(crate) fn text(&mut self, class: &str, text: &str) {
        let _ = write!(self.body, "<p class=\"{class}\">{}</p>", xml(text));
    }

    /// A heading of plain text.
    pub(crate) fn heading(&mut self, text: &str) {
        let _ = write!(self.body, "<h2>{}</h2>", xml(text));
    }

    /// A list of plain texts.
    pub(crate) fn list(&mut self, items: &[String]) {
        self.push("<ul>");
        for i in items {
            let _ = write!(self.body, "<li>{}</li>", xml(i));
        }
        self.push("</ul>");
    }

    /// A picture, its numbers in a table and for the script.
    pub(crate) fn figure(&mut self, f: &Figure, prefix: &str) {
        let key = format!("{prefix}-{}", f.id);
        let caption = match f.caption.as_str() {
            "" => String::new(),
            words => format!("<figcaption>{}</figcaption>", xml(words)),
        };
        let _ = write!(
            self.body,
            "<figure data-figure=\"{key}\"><h3>{}</h3>{}{}<p class=\"readout\" aria-live=\"off\"></p>\
             {caption}<details><summary>The numbers</summary>{}</details></figure>",
            xml(&f.title),
            f.wide,
            f.narrow,
            f.table.html()
        );
        self.figures.insert(key, f.series.clone());
    }

    pub(crate) fn finish(self, title: &str, reports: &[Value]) -> String {
        let figures = script_json(&Value::Object(self.figures));
        let reports = script_json(&json!(reports));
        let script = format!("//<![CDATA[\n{CHART_SCRIPT}{SCRIPT}//]]>");
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\
             <meta name=\"color-scheme\" content=\"light dark\"/>\
             <meta name=\"referrer\" content=\"no-referrer\"/>\
             <title>{}</title><style>{}{}{CHART_CSS}{CSS}</style></head>\n<body><main>{}{}\
             <footer>Written by Tailbound. This file is complete and works offline; its figures are embedded as JSON.</footer>\
             </main>\n<script type=\"application/json\" id=\"figures\">{figures}</script>\
             <script type=\"application/json\" id=\"report\">{reports}</script>\
             <script>{script}</script></body></html>\n",
            xml(&policy(&script)),
            xml(&format!("Tailbound, {title}")),
            style::VARIABLES,
            style::PICTURE,
            self.body,
            glossary::section(&self.body),
        )
    }
}
