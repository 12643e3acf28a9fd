// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one system.
//!
//! Units: ns; days are UTC.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::{Path, Query};
use axum::response::Response;
use serde::Deserialize;
use tailbound_core::printable::excerpt;
use tailbound_core::units::grouped;
use tailbound_core::{Run, utc};
use tailbound_report::digest;
use tailbound_report::escape::xml;
use tailbound_report::pictures as report_pictures;
use tailbound_stats::Analysis;
use tailbound_store::{
    Acknowledgement, Culprit, Histogram, LoadMaxima, RunNote, RunPage, RunPart, RunQuery, RunRow,
    Since, Store, StoreError, SystemRow, Verdict, Whose,
};

use super::app::App;
use super::boards::{self, Board};
use super::frame::ReadRequest;
use super::known::known_words;
use super::listing::{Column, Listing};
use super::morning::{headroom, wrong_clock};
use super::overview::{CulpritScope, culprit_table, minute, worst};
use super::page::{Page, ns, plural, verdict};
use super::problem::Problem;
use super::records::{self, RecordSpan};
use super::remarks::{self, Permission};
use super::runs::is_shown;
use super::runs_page::{self, SHOWN};
use super::{pictures, regressions as regressions_page};
use crate::regressions::Regression;

/// Days that are shown unless others are asked for.
const DAYS: i64 = 365;
/// Most days that can be asked for.
const DAYS_MAX: i64 = 3660;
const CULPRITS: u32 = 10;
/// What is kept in memory of the newest run.
const PROFILE_BYTES_MAX: u64 = 16 << 20;
/// Of what is said of it.
const PROFILE_CHARS: usize = 4000;

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemQuery {
    days: Option<i64>,
}

/// All that the page needs, from one visit to the store.
struct SystemPageData {
    board: Board,
    runs: RunPage,
    notes: Vec<RunNote>,
    histograms: Vec<Histogram>,
    newest: Option<Run>,
    culprits: Vec<Culprit>,
    maxima: Vec<LoadMaxima>,
    step_s: i64,
    known: Vec<Acknowledgement>,
}

/// One system as the first page shows it.
fn read_board(
    store: &mut Store,
    which: &str,
    span: &RecordSpan,
    now_s: i64,
) -> Result<Option<(Board, Vec<Acknowledgement>)>, StoreError> {
    let Some(record) = records::one(store, which, span)? else { return Ok(None) };
    let known = store.acknowledgements()?;
    Ok(Some((boards::board(Arc::new(record), &known, now_s), known)))
}

/// The same for programs.
pub(super) async fn board_of(
    app: &Arc<App>,
    which: String,
    since: Since,
) -> Result<Board, Problem> {
    let (name, now_s) = (which.clone(), app.now_s());
    let span = boards::span(app, since);
    let found = app.ask(move |store| read_board(store, &name, &span, now_s)).await?;
    let found = found.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))?;
    Ok(found.0)
}

/// What the page shows of the newest run, where its file is there, sound and not too large for a page.
fn profile(store: &mut Store, id: &str) -> Option<Run> {
    let fits = |now: tailbound_store::Consumption| match now.weight_bytes {
        0..=PROFILE_BYTES_MAX => Ok(()),
        _ => Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge)),
    };
    store.read(id, RunPart::Profile, fits).ok().filter(is_shown)
}

fn told(
    store: &mut Store,
    which: &str,
    span: &RecordSpan,
    today: &str,
    now_s: i64,
) -> Result<Option<SystemPageData>, StoreError> {
    let Some((board, known)) = read_board(store, which, span, now_s)? else {
        return Ok(None);
    };
    let (system, since) = (board.system(), &span.shown);
    let newest = match &system.last {
        // Pruned or damaged files leave the page as it is, without this picture.
        Some(last) => profile(store, &last.id),
        None => None,
    };
    // As fine as there are days with runs.
    let first = system.days.first().map_or(today, |d| d.day.as_str());
    let step_s = pictures::step_s(first, today);
    let id = system.id.clone();
    let query = RunQuery { system: Some(id.clone()), most: SHOWN, ..RunQuery::default() };
    let runs = store.runs_page(&query)?;
    let ids: Vec<String> = runs.runs.iter().map(|run| run.id.clone()).collect();
    Ok(Some(SystemPageData {
        step_s,
        notes: store.notes(&ids)?,
        runs,
        histograms: store.histograms_of(&id, since)?,
        culprits: store.culprits_of(Whose::System(&id), since, CULPRITS)?,
        maxima: store.maxima_of(&id, since, step_s)?,
        newest,
        board,
        known,
    }))
}

/// `GET /systems/{id}`
pub(super) async fn page(
    ReadRequest { app, who }: ReadRequest,
    Path(which): Path<String>,
    Query(asked): Query<SystemQuery>,
) -> Result<Response, Problem> {
    let days = asked.days.unwrap_or(DAYS).clamp(1, DAYS_MAX);
    let since = Since::From(app.days_ago(days - 1));
    let span = boards::span(&app, since);
    let (name, now_s) = (which.clone(), app.now_s());
    let today = app.days_ago(0);
    let told = app.ask(move |store| told(store, &name, &span, &today, now_s)).await?;
    let told = told.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))?;
    let mut page = Page::new(&app, &told.board.system().name);
    body(&mut page, &told, days, Permission::of(&app, &who));
    Ok(page.answer())
}

fn body(page: &mut Page<'_>, told: &SystemPageData, days: i64, permission: Permission) {
    let system = told.board.system();
    let runs: i64 = system.days.iter().map(|d| d.runs).sum();
    let not_met: i64 = system.days.iter().map(|d| d.not_met).sum();
    lead(&mut page.body, &told.board);
    nights(&mut page.body, &told.board, permission);
    let body = &mut page.body;
    let _ = write!(
        body,
        "<p>{} runs in {days} days, {not_met} not met, worst case {}. {}</p>\
         <form method=\"get\"><label>Days <input type=\"number\" name=\"days\" min=\"1\" max=\"{DAYS_MAX}\" value=\"{days}\"/></label>\
         <button type=\"submit\">Show</button></form>",
        grouped(u64::try_from(runs).unwrap_or(0)),
        ns(worst(system)),
        xml(system.model.as_deref().or(system.cpu_model.as_deref()).unwrap_or("")),
    );
    if !told.board.worse.is_empty() {
        body.push_str("<h2 id=\"worse\">Became worse</h2>");
        let all: Vec<Regression> = told.board.worse.iter().map(|w| w.regression.clone()).collect();
        body.push_str(&regressions_page::table(&all, &told.known, permission));
    }
    if told.board.waiting > 0 {
        let _ = write!(
            body,
            "<p class=\"soft\">{} of its series have newer runs, which are looked at one after the other.</p>",
            told.board.waiting
        );
    }
    changes(body, &told.board);
    let deadline_ns = system.last.as_ref().and_then(|l| l.deadline_ns);
    if let Some(figure) = pictures::surface(&told.histograms, deadline_ns) {
        page.figure(&figure, 2);
    }
    let worse = told.board.worse.iter();
    let worse: Vec<i64> = worse.filter_map(|w| utc::from_rfc3339(&w.regression.since)).collect();
    let figure = pictures::maxima(&told.maxima, told.step_s, deadline_ns, &worse);
    if let Some(figure) = figure {
        page.figure(&figure, 2);
    }
    newest(page, told);
    let body = &mut page.body;
    if !told.culprits.is_empty() {
        body.push_str("<h2>Culprits</h2>");
        body.push_str(&culprit_table(&told.culprits, days, CulpritScope::System));
    }
    list(body, system, told);
}

/// The state in one line.
fn lead(body: &mut String, board: &Board) {
    let Some(night) = &board.system().night else { return };
    let _ = write!(
        body,
        "<p class=\"lead\"><strong{}>{}</strong> in its last night.{}</p>",
        if night.verdict == Verdict::NotMet { " class=\"bad\"" } else { "" },
        xml(&night.words()),
        board.silent_since.as_ref().map_or_else(String::new, |since| {
            format!(" <strong class=\"bad\">Silent since {} UTC.</strong>", xml(&minute(since)))
        })
    );
    if let Some(said) = board.system().last.as_ref().and_then(|l| l.clock_said.as_deref()) {
        let _ = write!(
            body,
            "<p>{} The clock of its newest run cannot be right: the run is ordered by when it arrived.</p>",
            wrong_clock(said)
        );
    }
}

/// Each workload of the last night.
fn nights(body: &mut String, board: &Board, permission: Permission) {
    let Some(night) = &board.system().night else { return };
    let mut listing = Listing::new(&[
        Column::Name("Loads"),
        Column::Words("Verdict"),
        Column::Words("Not met since"),
        Column::Figure("Worst"),
        Column::Figure("Left of the deadline"),
        Column::Figure("Runs"),
        Column::Text("Known"),
    ]);
    for w in &night.workloads {
        let known = board.known.iter().find(|k| k.workload == w.workload);
        let known = match (known, &w.not_met_since) {
            (Some(k), _) => {
                format!("<span class=\"known\">{}</span>", known_words(&k.acknowledged))
            }
            (None, Some(_)) => remarks::form(permission, &board.system().id, &w.workload),
            (None, None) => String::new(),
        };
        let since = w.not_met_since.as_deref().map_or("–", |s| s.get(..10).unwrap_or(s));
        let loads = if w.loads.is_empty() { "none" } else { w.loads.as_str() };
        listing.row(&[
            format!("{} <span class=\"soft\">{}</span>", xml(loads), xml(&w.probe)),
            verdict(w.verdict.as_str()),
            xml(since),
            format!("<a href=\"/runs/{}\">{}</a>", xml(&w.worst_run), ns(w.max_ns)),
            headroom(w.headroom(), w.deadline_ns),
            w.runs.to_string(),
            if known.is_empty() { "–".to_owned() } else { known },
        ]);
    }
    let _ = write!(
        body,
        "<h2>Last night</h2><p class=\"soft\">The 24 hours up to {} UTC, when its newest run began. A workload counts by the worst verdict of its \
         runs; the run shown is the one that came nearest to its deadline.</p>{}",
        xml(&minute(&night.newest)),
        listing.html()
    );
}

/// The newest days on which kernel, configuration or method changed.
const CHANGES: usize = 20;

fn changes(body: &mut String, board: &Board) {
    if board.record.changes.is_empty() {
        return;
    }
    let shown = board.record.changes.iter().rev().take(CHANGES);
    let words: Vec<String> = shown
        .map(|c| {
            let what: Vec<&str> = c.what.iter().map(|w| w.as_str()).collect();
            format!("<li>{}: {}</li>", xml(&c.day), what.join(", "))
        })
        .collect();
    let more = match board.record.changes.len().saturating_sub(CHANGES) {
        0 => String::new(),
        n => format!("<p class=\"soft\">And {n} earlier ones.</p>"),
    };
    let _ = write!(
        body,
        "<details><summary>{} {} on which kernel, configuration or method changed</summary><ul>{}</ul>{more}</details>",
        board.record.changes.len(),
        plural(board.record.changes.len(), "day", "days"),
        words.concat()
    );
}

/// The newest run by CPU, and what it ran on.
fn newest(page: &mut Page<'_>, told: &SystemPageData) {
    let Some(run) = &told.newest else { return };
    let analysis = Analysis::of(run);
    page.body.push_str("<h2>Newest run</h2>");
    let threads = report_pictures::threads(run);
    if let Some(f) = report_pictures::late(&threads, run.header.plan.requirement.deadline_ns) {
        page.figure(&f, 3);
    }
    if let Some(f) = report_pictures::maxima(&analysis) {
        page.figure(&f, 3);
    }
    let body = &mut page.body;
    let fact = |name: &str| {
        run.header.machine.get(name).and_then(|f| f.as_str()).unwrap_or("unknown").to_owned()
    };
    let rows = [
        ("Model", fact("machine.model")),
        ("CPU", fact("cpu.model")),
        ("Kernel", format!("{} {}", fact("kernel.release"), fact("kernel.version"))),
        ("Preemption", fact("kernel.preempt")),
        ("Command line of the kernel", fact("kernel.command_line")),
        ("Measured by", run.header.tool.clone()),
        ("Command", run.header.command.join(" ")),
        ("Set-up", digest::set_up(run)),
    ];
    body.push_str(
        "<h2>Profile</h2><div class=\"scroll\" tabindex=\"0\"><table class=\"cards\"><tbody>",
    );
    for (name, value) in rows {
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"long\">{}</td></tr>",
            xml(name),
            xml(&excerpt(&value, PROFILE_CHARS))
        );
    }
    body.push_str("</tbody></table></div>");
}

/// The newest runs, and the way to all of them.
fn list(body: &mut String, system: &SystemRow, told: &SystemPageData) {
    let runs = &told.runs.runs;
    let Some(newest) = runs.first() else { return };
    // The day before it in its series: what changed in between is asked most.
    let before = runs.iter().skip(1).find(|r| r.workload == newest.workload).or(runs.get(1));
    let day = |run: &RunRow| xml(run.started.get(..10).unwrap_or(""));
    let ask = before.map_or_else(String::new, |before| {
        format!(
            "<form method=\"get\" action=\"/changed\"><input type=\"hidden\" name=\"system\" value=\"{}\"/>\
             <label>Day <input type=\"date\" name=\"from\" required=\"\" value=\"{}\"/></label>\
             <label>and <input type=\"date\" name=\"to\" required=\"\" value=\"{}\"/></label><button type=\"submit\">What changed?</button>\
             <button type=\"submit\" formaction=\"/compare\">Compare latencies</button></form>\
             <p class=\"soft\">Of the later day its newest run; of the other one the newest before it with the same loads.</p>",
            xml(&system.id),
            day(before),
            day(newest),
        )
    });
    let (shown, total) = (runs.len() as u64, told.runs.total);
    let all = format!(
        "<a href=\"/runs?system={}\">All runs, by load, kernel, verdict and date</a>",
        xml(&system.id)
    );
    let count = if shown < total {
        format!("The newest {shown} of {}. {all}", grouped(total))
    } else {
        format!("All {}. {all}", grouped(total))
    };
    let _ = write!(
        body,
        "<h2>Runs</h2>{ask}<p class=\"pages\">{count}</p>\
         <form method=\"get\" action=\"/compare\" class=\"list\"><button type=\"submit\">Compare the chosen</button>\
         <button type=\"submit\" formaction=\"/changed\">What changed between two chosen</button>{}</form><p class=\"pages\">{count}</p>",
        runs_page::table(runs, &told.notes, None)
    );
}
