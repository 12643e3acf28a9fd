// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of one system.
//!
//! Context: COLD. Units: ns; days are UTC.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use tailbound_core::Run;
use tailbound_core::units::grouped;
use tailbound_report::digest;
use tailbound_report::escape::xml;
use tailbound_report::pictures::{self as report_pictures, Figure};
use tailbound_stats::Analysis;
use tailbound_store::{Act, Histogram, RunRow, Store, StoreError, SystemRow, judged};

use super::app::App;
use super::overview::{culprit_table, minute, worst};
use super::page::{self, Problem, ns, verdict};
use super::pictures;
use super::regressions;
use super::who::{Who, allowed};
use crate::regressions::{Found, search};

/// Days that are shown unless others are asked for.
const DAYS: i64 = 365;
/// Most days that can be asked for.
const DAYS_MAX: i64 = 3660;
/// Rows of the list of runs.
const RUNS: u32 = 60;
const CULPRITS: u32 = 10;

/// What may be asked.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Asked {
    days: Option<i64>,
}

/// All that the page needs, from one visit to the store.
struct Told {
    system: SystemRow,
    runs: Vec<RunRow>,
    histograms: Vec<Histogram>,
    newest: Option<Run>,
    found: Found,
    culprits: Vec<(String, String, i64, i64)>,
}

fn told(store: &mut Store, which: &str, since: &str) -> Result<Option<Told>, StoreError> {
    let Some(system) = store.system(which, since)? else { return Ok(None) };
    let newest = match &system.last {
        // Pruned or damaged files leave the page as it is, without this picture.
        Some(last) => store.file(&last.id).and_then(|file| judged(file.as_slice())).ok(),
        None => None,
    };
    Ok(Some(Told {
        runs: store.runs_of(&system.id, since, RUNS)?,
        histograms: store.histograms_of(&system.id, since)?,
        found: search(store, since, Some(&system))?,
        culprits: store.culprits_of(&system.id, since, CULPRITS)?,
        newest,
        system,
    }))
}

/// `GET /systems/{id}`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Path(which): Path<String>,
    Query(asked): Query<Asked>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let days = asked.days.unwrap_or(DAYS).clamp(1, DAYS_MAX);
    let since = app.days_ago(days - 1);
    let name = which.clone();
    let told = app.ask(move |store| told(store, &name, &since)).await?;
    let told = told.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))?;
    Ok(page::page(&told.system.name, &body(&told, days)))
}

fn body(told: &Told, days: i64) -> String {
    let system = &told.system;
    let runs: i64 = system.days.iter().map(|d| d.runs).sum();
    let not_met: i64 = system.days.iter().map(|d| d.not_met).sum();
    let mut body = String::new();
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
    if let Some(svg) = pictures::surface(&told.histograms, deadline_ns) {
        let _ = write!(
            body,
            "<h2>All days</h2><figure><div class=\"across\" tabindex=\"0\">{svg}</div><figcaption>Latency of due activations (upwards, logarithmic) by day; the darker, the more \
             activations. Dots: the latest of a day.{} Days without runs are left out.</figcaption></figure>",
            if deadline_ns.is_some() { " Dashed: the deadline of the newest run." } else { "" },
        );
    }
    newest(&mut body, told);
    if !told.culprits.is_empty() {
        body.push_str("<h2>Culprits</h2>");
        body.push_str(&culprit_table(&told.culprits, days));
    }
    list(&mut body, &told.runs);
    body
}

/// The newest run by CPU, and what it ran on.
fn newest(body: &mut String, told: &Told) {
    let Some(run) = &told.newest else { return };
    let analysis = Analysis::of(run);
    let figure = |f: &Figure| {
        format!(
            "<figure><h3>{}</h3>{}{}<figcaption>{}</figcaption></figure>",
            xml(&f.title),
            f.wide,
            f.narrow,
            xml(&f.caption)
        )
    };
    body.push_str("<h2>Newest run</h2>");
    let threads = report_pictures::threads(run);
    if let Some(f) = report_pictures::late(&threads, run.header.plan.requirement.deadline_ns) {
        body.push_str(&figure(&f));
    }
    if let Some(f) = report_pictures::of_run(&analysis).iter().find(|f| f.id == "maxima") {
        body.push_str(&figure(f));
    }
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
fn list(body: &mut String, runs: &[RunRow]) {
    if runs.is_empty() {
        return;
    }
    let options = |chosen: usize| {
        let one = |(at, run): (usize, &RunRow)| {
            format!(
                "<option value=\"{}\"{}>{} {}</option>",
                xml(&run.id),
                if at == chosen { " selected=\"\"" } else { "" },
                xml(&minute(&run.started)),
                xml(run.kernel.as_deref().unwrap_or("")),
            )
        };
        runs.iter().enumerate().map(one).collect::<String>()
    };
    let _ = write!(
        body,
        "<h2>Runs</h2><form method=\"get\" action=\"/changed\"><label>From <select name=\"a\">{}</select></label>\
         <label>to <select name=\"b\">{}</select></label><button type=\"submit\">What changed?</button>\
         <button type=\"submit\" formaction=\"/compare\">Compare latencies</button></form>\
         <div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Began (UTC)</th><th scope=\"col\" class=\"w\">Verdict</th>\
         <th scope=\"col\">Median</th><th scope=\"col\">99.9 %</th><th scope=\"col\">Latest</th><th scope=\"col\">Activations</th>\
         <th scope=\"col\" class=\"w\">Loads</th><th scope=\"col\" class=\"w\">Kernel</th><th scope=\"col\" class=\"w\">Doubts</th></tr></thead><tbody>",
        options(1),
        options(0),
    );
    for (at, run) in runs.iter().enumerate() {
        let [p50, _, p999, ..] = run.quantiles_ns;
        let other = runs.get(at + 1).filter(|older| older.kernel_id != run.kernel_id);
        let kernel = xml(run.kernel.as_deref().unwrap_or("unknown"));
        let kernel = match other {
            None => kernel,
            Some(older) => format!(
                "<a href=\"/changed?a={}&amp;b={}\">{kernel}, changed</a>",
                xml(&older.id),
                xml(&run.id)
            ),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\"><a href=\"/runs/{}\">{}</a></th><td class=\"w\">{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>\
             <td class=\"w\">{}</td><td class=\"w\">{kernel}</td><td class=\"w\">{}</td></tr>",
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
    body.push_str("</tbody></table></div>");
}
