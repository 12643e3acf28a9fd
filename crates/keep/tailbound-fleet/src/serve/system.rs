// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one system.
//!
//! Units: ns; days are UTC.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use tailbound_core::units::grouped;
use tailbound_core::{Run, utc};
use tailbound_report::digest;
use tailbound_report::escape::xml;
use tailbound_report::pictures as report_pictures;
use tailbound_stats::Analysis;
use tailbound_store::{
    Act, Culprit, Histogram, Maximum, RunPart, RunRow, Store, StoreError, SystemRow,
};

use super::app::App;
use super::overview::{choice, culprit_table, minute, worst};
use super::page::{Page, Problem, ns, verdict};
use super::pictures;
use super::regressions;
use super::who::{Who, allowed};
use crate::regressions::{RegressionSearch, kept};

/// Days that are shown unless others are asked for.
const DAYS: i64 = 365;
/// Most days that can be asked for.
const DAYS_MAX: i64 = 3660;
/// Rows of the list of runs.
const RUNS: u32 = 60;
const CULPRITS: u32 = 10;
/// What is kept in memory of the newest run.
const PROFILE_BYTES_MAX: u64 = 16 << 20;

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SystemQuery {
    days: Option<i64>,
}

/// All that the page needs, from one visit to the store.
struct SystemPageData {
    system: SystemRow,
    runs: Vec<RunRow>,
    histograms: Vec<Histogram>,
    newest: Option<Run>,
    found: RegressionSearch,
    culprits: Vec<Culprit>,
    maxima: Vec<Maximum>,
    step_s: i64,
}

/// What the page shows of the newest run, where its file is there, sound and not too large for a page.
fn profile(store: &mut Store, id: &str) -> Option<Run> {
    let fits = |now: tailbound_store::Consumption| match now.weight_bytes {
        0..=PROFILE_BYTES_MAX => Ok(()),
        _ => Err(std::io::Error::from(std::io::ErrorKind::FileTooLarge)),
    };
    store.read(id, RunPart::Profile, fits).ok()
}

fn told(
    store: &mut Store,
    which: &str,
    since: &str,
    today: &str,
) -> Result<Option<SystemPageData>, StoreError> {
    let Some(system) = store.system(which, since)? else { return Ok(None) };
    let newest = match &system.last {
        // Pruned or damaged files leave the page as it is, without this picture.
        Some(last) => profile(store, &last.id),
        None => None,
    };
    // As fine as there are days with runs.
    let first = system.days.first().map_or(today, |d| d.day.as_str());
    let step_s = pictures::step_s(first, today);
    Ok(Some(SystemPageData {
        step_s,
        runs: store.runs_of(&system.id, since, RUNS)?,
        histograms: store.histograms_of(&system.id, since)?,
        found: kept(store, since, Some(&system))?,
        culprits: store.culprits_of(&system.id, since, CULPRITS)?,
        maxima: store.maxima_of(&system.id, since, step_s)?,
        newest,
        system,
    }))
}

/// `GET /systems/{id}`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Path(which): Path<String>,
    Query(asked): Query<SystemQuery>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let days = asked.days.unwrap_or(DAYS).clamp(1, DAYS_MAX);
    let since = app.days_ago(days - 1);
    let name = which.clone();
    let today = app.days_ago(0);
    let told = app.ask(move |store| told(store, &name, &since, &today)).await?;
    let told = told.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))?;
    let mut page = Page::new(&app, &told.system.name);
    body(&mut page, &told, days);
    Ok(page.answer())
}

fn body(page: &mut Page<'_>, told: &SystemPageData, days: i64) {
    let system = &told.system;
    let runs: i64 = system.days.iter().map(|d| d.runs).sum();
    let not_met: i64 = system.days.iter().map(|d| d.not_met).sum();
    let body = &mut page.body;
    if let Some(last) = &system.last {
        let _ = write!(
            body,
            "<p class=\"lead\">{} Newest run {} UTC: latest {}{}.</p>",
            verdict(&last.outcome),
            xml(&minute(&last.started)),
            ns(last.max_ns()),
            last.deadline_ns.map_or_else(String::new, |d| format!(", deadline {}", ns(Some(d)))),
        );
    }
    let _ = write!(
        body,
        "<p>{} runs in {days} days, {not_met} not met, worst case {}. {}</p>\
         <form method=\"get\"><label>Days <input type=\"number\" name=\"days\" min=\"1\" max=\"{DAYS_MAX}\" value=\"{days}\"/></label>\
         <button type=\"submit\">Show</button></form>",
        grouped(u64::try_from(runs).unwrap_or(0)),
        ns(worst(system)),
        xml(system.model.as_deref().or(system.cpu_model.as_deref()).unwrap_or("")),
    );
    if !told.found.regressions.is_empty() {
        body.push_str("<h2>Became worse</h2>");
        body.push_str(&regressions::table(&told.found.regressions));
    }
    let deadline_ns = system.last.as_ref().and_then(|l| l.deadline_ns);
    if let Some(figure) = pictures::surface(&told.histograms, deadline_ns) {
        page.figure(&figure, 2);
    }
    let worse = told.found.regressions.iter();
    let worse: Vec<i64> = worse.filter_map(|r| since_s(&r.since)).collect();
    let figure = pictures::maxima(&told.maxima, told.step_s, deadline_ns, &worse);
    if let Some(figure) = figure {
        page.figure(&figure, 2);
    }
    newest(page, told);
    let body = &mut page.body;
    if !told.culprits.is_empty() {
        body.push_str("<h2>Culprits</h2>");
        body.push_str(&culprit_table(&told.culprits, days, false));
    }
    list(body, system, &told.runs);
}

fn since_s(rfc3339: &str) -> Option<i64> {
    utc::from_date_time(rfc3339.get(..10)?, rfc3339.get(11..19)?)
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
    body.push_str("<h2>Profile</h2><div class=\"scroll\" tabindex=\"0\"><table><tbody>");
    for (name, value) in rows {
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"long\">{}</td></tr>",
            xml(name),
            xml(&value)
        );
    }
    body.push_str("</tbody></table></div>");
}

/// The list of runs; what changed from one to the next is marked.
fn list(body: &mut String, system: &SystemRow, runs: &[RunRow]) {
    let (Some(newest), Some(oldest)) = (runs.first(), runs.get(1).or(runs.first())) else { return };
    let day = |run: &RunRow| xml(run.started.get(..10).unwrap_or(""));
    let _ = write!(
        body,
        "<h2>Runs</h2><form method=\"get\" action=\"/changed\"><input type=\"hidden\" name=\"system\" value=\"{}\"/>\
         <label>Day <input type=\"date\" name=\"from\" required=\"\" value=\"{}\"/></label>\
         <label>and <input type=\"date\" name=\"to\" required=\"\" value=\"{}\"/></label><button type=\"submit\">What changed?</button>\
         <button type=\"submit\" formaction=\"/compare\">Compare latencies</button></form>\
         <p class=\"soft\">Of each day its newest run; of one without runs the newest before it.</p>\
         <form method=\"get\" action=\"/compare\" class=\"list\"><button type=\"submit\">Compare the chosen</button>\
         <button type=\"submit\" formaction=\"/changed\">What changed between two chosen</button>\
         <div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Began (UTC)</th><th scope=\"col\" class=\"w\">Verdict</th>\
         <th scope=\"col\">Median</th><th scope=\"col\">99.9 %</th><th scope=\"col\">Latest</th><th scope=\"col\">Activations</th>\
         <th scope=\"col\" class=\"w\">Loads</th><th scope=\"col\" class=\"w\">Kernel</th><th scope=\"col\" class=\"w\">Doubts</th></tr></thead><tbody>",
        xml(&system.id),
        day(oldest),
        day(newest),
    );
    for (at, run) in runs.iter().enumerate() {
        let [p50, _, p999, ..] = run.quantiles_ns;
        let other = runs.get(at + 1).filter(|older| older.kernel_id != run.kernel_id);
        let kernel = xml(run.kernel.as_deref().unwrap_or("unknown"));
        let kernel = match other {
            None => kernel,
            Some(older) => format!(
                "<a href=\"/changed?run={}&amp;run={}\">{kernel}, changed</a>",
                xml(&older.id),
                xml(&run.id)
            ),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}<a href=\"/runs/{}\">{}</a></th><td class=\"w\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"w\">{}</td><td class=\"w\">{kernel}</td><td class=\"w\">{}</td></tr>",
            choice(&run.id, &minute(&run.started)),
            xml(&run.id),
            xml(&minute(&run.started)),
            verdict(&run.outcome),
            ns(p50),
            ns(p999),
            ns(run.max_ns()),
            grouped(u64::try_from(run.activations).unwrap_or(0)),
            xml(if run.loads.is_empty() { "none" } else { &run.loads }),
            xml(&run.reasons),
        );
    }
    body.push_str("</tbody></table></div></form>");
}
