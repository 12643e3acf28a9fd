// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every page has: frame and style.
//!
//! Everything that a run file says is text from strangers: it reaches a page through `xml` alone.

use std::fmt::Write as _;

use axum::response::Response;
use serde_json::{Map, Value};
use tailbound_report::escape::{script_json, xml};
use tailbound_report::html::{CHART_CSS, CHART_SCRIPT};
use tailbound_report::pictures::Figure;
use tailbound_report::svg::style;

use super::app::App;
use super::reply::page_answer;
use super::who::{self, Who};

/// The way to all pages.
pub(super) const NAVIGATION: &str = "<a class=\"brand\" href=\"/\">Tailbound</a> <a href=\"/\">Systems</a> <a href=\"/runs\">Runs</a> \
    <a href=\"/regressions\">Regressions</a> <a href=\"/culprits\">Culprits</a> <a href=\"/work\">Campaigns</a> ";
const CSS: &str = include_str!("page.css");
const LIVE: &str = include_str!("live.js");

/// The style of all pages.
pub(super) fn css() -> String {
    format!("{}{}{CHART_CSS}{CSS}", style::VARIABLES, style::PICTURE)
}

/// The script of all pages, without which they are complete: cursor and zoom, and a page that renews itself.
pub(super) fn script() -> String {
    format!("{CHART_SCRIPT}{LIVE}")
}

/// A page under construction.
pub(super) struct Page<'a> {
    app: &'a App,
    title: String,
    pub(super) body: String,
    figures: Map<String, Value>,
    renewed_s: Option<u32>,
}

impl<'a> Page<'a> {
    /// An empty page; `title` is plain text.
    pub(super) fn new(app: &'a App, title: &str) -> Self {
        let (title, body) = (title.to_owned(), String::new());
        Self { app, title, body, figures: Map::new(), renewed_s: None }
    }

    /// It shows what is so now: it renews itself as often.
    pub(super) fn renewed(mut self, every_s: u32) -> Self {
        self.renewed_s = Some(every_s);
        self
    }

    /// A picture with its numbers, under a heading of its own where `level` is 2.
    pub(super) fn figure(&mut self, f: &Figure, level: u8) {
        let _ = write!(
            self.body,
            "<figure class=\"{0}\" data-figure=\"{0}\"><h{level}>{1}</h{level}>{2}{3}<p class=\"readout\" aria-live=\"off\"></p>\
             <figcaption>{4}</figcaption><details><summary>The numbers</summary>{5}</details></figure>",
            f.id,
            xml(&f.title),
            f.wide,
            f.narrow,
            xml(&f.caption),
            f.table.html()
        );
        self.figures.insert(f.id.to_owned(), f.series.clone());
    }

    /// The answer.
    pub(super) fn answer(self) -> Response {
        let title = xml(&self.title);
        let (mut head, mut foot) = (String::new(), String::new());
        if let Some(s) = self.renewed_s {
            // Without script the browser loads the page again.
            let _ = write!(
                head,
                "<noscript><meta http-equiv=\"refresh\" content=\"{}\"/></noscript>",
                s.max(30)
            );
            let now = self.app.now().replace('T', " ").replace('Z', "");
            let _ = write!(
                foot,
                "<p class=\"soft\" id=\"as-of\" data-every=\"{s}\" role=\"status\">As of {now} UTC.</p>"
            );
        }
        if !self.figures.is_empty() {
            let numbers = script_json(&Value::Object(self.figures));
            let _ =
                write!(foot, "<script type=\"application/json\" id=\"figures\">{numbers}</script>");
        }
        let way = match who::asks() {
            Some(Who::Session(_)) => "<a href=\"/login\">Log out</a>",
            Some(Who::Anybody | Who::Token(_)) => "<a href=\"/login\">Log in</a>",
            None => "",
        };
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>{title} · Tailbound</title>\
             <link rel=\"stylesheet\" href=\"/style.css\"/><link rel=\"icon\" href=\"data:,\"/>{head}\
             <script src=\"/script.js\" defer=\"\"></script></head><body>\
             <a class=\"skip\" href=\"#main\">Skip to the content</a>\
             <header><nav aria-label=\"Pages\">{NAVIGATION}{way}</nav></header>\
             <main id=\"main\"><h1>{title}</h1>{}{foot}</main></body></html>\n",
            self.body
        );
        page_answer(html)
    }
}

/// A duration for people, or a dash.
pub(super) fn ns(value: Option<i64>) -> String {
    value.map_or_else(|| "–".to_owned(), tailbound_core::units::format_ns_i64)
}

/// The word for one or for several.
pub(super) fn plural(n: usize, one: &'static str, several: &'static str) -> &'static str {
    if n == 1 { one } else { several }
}

/// A verdict as a mark.
pub(super) fn verdict(outcome: &str) -> String {
    let known = ["met", "not-met", "undecided", "unfit", "measured"];
    let class = if known.contains(&outcome) { outcome } else { "undecided" };
    format!("<span class=\"tag {class}\">{}</span>", xml(&outcome.replace('-', " ")))
}
