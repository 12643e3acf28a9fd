// SPDX-License-Identifier: MIT OR Apache-2.0
//! What every page has: frame, style, headers, and the answers when something is wrong.
//!
//! Everything that a run file says is text from strangers: it reaches a page through `xml` alone. No script is
//! allowed but the server's own file, nothing is loaded from elsewhere, no other page may frame these.

use std::fmt::Write as _;

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER,
    WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use tailbound_report::escape::{script_json, xml};
use tailbound_report::html::{CHART_CSS, CHART_SCRIPT};
use tailbound_report::pictures::Figure;
use tailbound_report::svg::style;
use tailbound_store::StoreError;

use super::app::App;
use super::judges::JudgeError;

/// What the browser may do with these pages.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The same for a report, which has a script of its own and says in itself which; it knows nothing of this site.
pub(super) const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads";
/// The way to all pages.
pub(super) const NAVIGATION: &str = "<a class=\"brand\" href=\"/\">Tailbound</a> <a href=\"/\">Systems</a> <a href=\"/runs\">Runs</a> \
    <a href=\"/regressions\">Regressions</a> <a href=\"/culprits\">Culprits</a> <a href=\"/work\">Campaigns</a> ";
const CSS: &str = include_str!("page.css");
const LIVE: &str = include_str!("live.js");

/// Why there is no answer.
#[derive(Debug)]
pub(super) enum Problem {
    /// No valid token.
    Unknown,
    /// A valid token that may not.
    Forbidden,
    /// A name that is not this server's.
    WrongHost,
    /// There is no such thing.
    Missing(String),
    /// What was sent is wrong.
    Wrong(String),
    /// What was sent is too large.
    TooLarge(String),
    /// It took too long.
    TooSlow,
    /// Too many wait already.
    Busy,
    /// Nothing more fits on the store's disk.
    Full(String),
    /// The store cannot: database gone, disk broken.
    Store(String),
    /// The server ends.
    Ending,
    /// Ours to mend.
    Ours,
}

impl From<StoreError> for Problem {
    fn from(e: StoreError) -> Self {
        match e {
            ref e if e.io().and_then(JudgeError::of).is_some() => {
                e.io().and_then(JudgeError::of).map_or(Self::Ours, JudgeError::problem)
            }
            StoreError::NoSuchRun(_) | StoreError::Several { .. } => Self::Missing(e.to_string()),
            StoreError::Run(_) => Self::Wrong(e.to_string()),
            StoreError::TooLarge { .. } | StoreError::TooMany { .. } => {
                Self::TooLarge(e.to_string())
            }
            StoreError::Full { .. } => Self::Full(e.to_string()),
            StoreError::Cancelled => Self::Ending,
            _ => Self::Store(e.to_string()),
        }
    }
}

impl Problem {
    fn status(&self) -> StatusCode {
        match self {
            Self::Unknown => StatusCode::UNAUTHORIZED,
            Self::Forbidden => StatusCode::FORBIDDEN,
            Self::WrongHost => StatusCode::MISDIRECTED_REQUEST,
            Self::Missing(_) => StatusCode::NOT_FOUND,
            Self::Wrong(_) => StatusCode::UNPROCESSABLE_ENTITY,
            Self::TooLarge(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::TooSlow => StatusCode::REQUEST_TIMEOUT,
            Self::Busy | Self::Ending | Self::Store(_) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Full(_) => StatusCode::INSUFFICIENT_STORAGE,
            Self::Ours => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    fn words(&self) -> String {
        match self {
            Self::Unknown => {
                "a valid token is needed: `Authorization: Bearer TOKEN`, or /login in a browser"
                    .to_owned()
            }
            Self::Forbidden => "this token may not do that".to_owned(),
            Self::WrongHost => "this server does not answer under that name: see --host".to_owned(),
            Self::Missing(what) | Self::Wrong(what) | Self::TooLarge(what) => what.clone(),
            Self::TooSlow => "the request took too long".to_owned(),
            Self::Busy => "too much waits already: come again".to_owned(),
            Self::Full(_) => {
                "the server's disk is full: nothing of this was kept; come again when there is room"
                    .to_owned()
            }
            // Paths and addresses of the store are nobody's business who only reaches the server.
            Self::Store(_) => {
                "the store cannot be read or written; the server's log says why".to_owned()
            }
            Self::Ending => "the server ends: come again".to_owned(),
            Self::Ours => "an error in the server".to_owned(),
        }
    }
}

/// What a problem is called, for the page that a person gets of it.
#[derive(Clone, Debug)]
pub(super) struct ProblemWords(pub(super) String);

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        if let Self::Store(why) | Self::Full(why) = &self {
            log(why);
        }
        let status = self.status();
        let mut answer = json_answer(status, &json!({"error": self.words()}));
        answer.extensions_mut().insert(ProblemWords(self.words()));
        let headers = answer.headers_mut();
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("5"));
            }
            StatusCode::INSUFFICIENT_STORAGE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("60"));
            }
            _ => {}
        }
        answer
    }
}

/// A line of the server's log: standard error, which systemd keeps.
pub(super) fn log(what: &str) {
    use std::io::Write as _;
    // Nobody to tell if it cannot be written.
    let _ = writeln!(std::io::stderr(), "serve: {}", tailbound_core::printable::line(what));
}

fn with_headers(mut answer: Response, kind: &'static str, policy: &'static str) -> Response {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// An answer of the API.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Response {
    let body = format!("{value}\n");
    with_headers((status, body).into_response(), "application/json", POLICY)
}

/// Bytes of another kind.
pub(super) fn plain_answer(body: impl IntoResponse, kind: &'static str) -> Response {
    with_headers(body.into_response(), kind, POLICY)
}

/// A report as a page.
pub(super) fn report_answer(html: String) -> Response {
    with_headers(html.into_response(), "text/html; charset=utf-8", REPORT_POLICY)
}

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
        let way_out = if self.app.config.open { "" } else { "<a href=\"/login\">Log out</a>" };
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/><title>{title} · Tailbound</title>\
             <link rel=\"stylesheet\" href=\"/style.css\"/><link rel=\"icon\" href=\"data:,\"/>{head}\
             <script src=\"/script.js\" defer=\"\"></script></head><body>\
             <a class=\"skip\" href=\"#main\">Skip to the content</a>\
             <header><nav aria-label=\"Pages\">{NAVIGATION}{way_out}</nav></header>\
             <main id=\"main\"><h1>{title}</h1>{}{foot}</main></body></html>\n",
            self.body
        );
        with_headers(html.into_response(), "text/html; charset=utf-8", POLICY)
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
