// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single runs: the report, the file, two beside each other, and what changed on the machine between them.
//!
//! Context: COLD.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::Response;
use serde::Deserialize;
use serde_json::Value;
use tailbound_core::Run;
use tailbound_report::escape::xml;
use tailbound_stats::Analysis;
use tailbound_store::{Act, RunRow, Store, StoreError, judged};

use super::app::App;
use super::overview::minute;
use super::page::{self, Problem, ns, report_answer};
use super::who::{Who, allowed};

/// Two runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Two {
    a: String,
    b: String,
}

fn read(store: &mut Store, id: &str) -> Result<Run, StoreError> {
    let id = store.identify(id)?;
    judged(store.file(&id)?.as_slice())
}

/// `GET /runs/{id}`: the report that `tailbound report --html` writes.
pub(super) async fn report(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let html = app
        .ask(move |store| {
            let run = read(store, &id)?;
            Ok(tailbound_report::html(&[Analysis::of(&run)], std::slice::from_ref(&run.header.id)))
        })
        .await?;
    Ok(report_answer(html))
}

/// `GET /runs/{id}/file`: byte for byte.
pub(super) async fn file(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let (id, bytes) = app
        .ask(move |store| {
            let id = store.identify(&id)?;
            store.file(&id).map(|bytes| (id, bytes))
        })
        .await?;
    let mut answer = page::plain_answer(bytes, "application/jsonl");
    // An identity is hexadecimal.
    let name =
        format!("attachment; filename=\"{}.tailbound.jsonl\"", id.get(..12).unwrap_or("run"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(answer)
}

/// `GET /compare?a=RUN&b=RUN`
pub(super) async fn compare(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(Two { a, b }): Query<Two>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let html = app
        .ask(move |store| {
            let runs = [read(store, &a)?, read(store, &b)?];
            let names: Vec<String> = runs.iter().map(|r| minute(&r.header.started)).collect();
            let runs: Vec<Analysis<'_>> = runs.iter().map(Analysis::of).collect();
            Ok(tailbound_report::html(&runs, &names))
        })
        .await?;
    Ok(report_answer(html))
}

/// A run and the facts it knew.
type Known = (RunRow, BTreeMap<String, Value>);

fn known(store: &mut Store, id: &str) -> Result<Known, StoreError> {
    let id = store.identify(id)?;
    let row = store.run(&id)?.ok_or_else(|| StoreError::NoSuchRun(id.clone()))?;
    let json = store.facts_of(&id)?.unwrap_or_default();
    Ok((row, serde_json::from_str(&json).unwrap_or_default()))
}

/// Facts that differ: name, before, after; a fact that one did not know is a dash.
fn differing(a: &BTreeMap<String, Value>, b: &BTreeMap<String, Value>) -> Vec<[String; 3]> {
    let word = |value: Option<&Value>| match value {
        None => "–".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    let names: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    names
        .into_iter()
        .filter(|name| a.get(*name) != b.get(*name))
        .map(|name| [name.clone(), word(a.get(name)), word(b.get(name))])
        .collect()
}

/// `GET /changed?a=RUN&b=RUN`: what the machine knew of itself, before and after.
pub(super) async fn changed(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(Two { a, b }): Query<Two>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let ((a, facts_a), (b, facts_b)) =
        app.ask(move |store| Ok((known(store, &a)?, known(store, &b)?))).await?;
    let rows = differing(&facts_a, &facts_b);
    let mut body = format!(
        "<p class=\"lead\">{} fact{} of the machine differ{} between {} and {} UTC.</p>\
         <p>Latest activation: {} → {}. <a href=\"/compare?a={}&amp;b={}\">Compare the latencies</a></p>",
        if rows.is_empty() { "No".to_owned() } else { rows.len().to_string() },
        if rows.len() == 1 { "" } else { "s" },
        if rows.len() == 1 { "s" } else { "" },
        xml(&minute(&a.started)),
        xml(&minute(&b.started)),
        ns(a.max_ns()),
        ns(b.max_ns()),
        xml(&a.id),
        xml(&b.id),
    );
    if !rows.is_empty() {
        body.push_str(
            "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Fact</th><th scope=\"col\" class=\"w\">Before</th>\
             <th scope=\"col\" class=\"w\">After</th></tr></thead><tbody>",
        );
        for [name, before, after] in &rows {
            let _ = write!(
                body,
                "<tr><th scope=\"row\">{}</th><td class=\"long\">{}</td><td class=\"long\">{}</td></tr>",
                xml(name),
                xml(before),
                xml(after)
            );
        }
        body.push_str("</tbody></table></div>");
    }
    Ok(page::page("What changed", &body))
}
