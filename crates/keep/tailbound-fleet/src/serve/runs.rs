// SPDX-License-Identifier: MIT OR Apache-2.0
//! Single runs: the report, the file, two beside each other, and what changed on the machine between them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Path, Query};
use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use axum::response::Response;
use serde_json::{Value, json};
use tailbound_core::printable::excerpt;
use tailbound_core::{Run, utc};
use tailbound_report::compare::Answer;
use tailbound_report::escape::xml;
use tailbound_stats::Analysis;
use tailbound_stats::compare::{Settings, Systems};
use tailbound_store::{Cancellation, RunNote, RunPart, RunRow, Store, StoreError, SystemName};

use super::app::App;
use super::body::PieceBody;
use super::frame::ReadRequest;
use super::judge_error::{CPU_NS_MAX, JudgeError, WEIGHT_BYTES_MAX};
use super::judges::cpu_ns;
use super::listing::{Column, Listing};
use super::overview::minute;
use super::page::{self, Page, ns};
use super::problem::Problem;
use super::reply::{plain_answer, report_answer};
use crate::changes::{self, Change};

/// Runs over one another at most: more lines cannot be told apart.
const COMPARED_MAX: usize = 8;
const S_PER_DAY: i64 = 86_400;
/// Of a fact, on a page.
const FACT_CHARS: usize = 600;
/// Of a file, at a time.
const PIECE: usize = 64 << 10;

/// The day after `day`: runs of the day itself began before it.
pub(super) fn behind(day: &str) -> Result<String, Problem> {
    let began = utc::from_date_time(day, "00:00:00").filter(|_| day.len() == 10);
    let began = began.ok_or_else(|| Problem::Wrong(format!("`{day}` is no day: 2026-11-25")))?;
    let mut after = utc::rfc3339(began + S_PER_DAY);
    after.truncate(10);
    Ok(after)
}

/// Runs that are asked for: `run=` of each, or `a=` and `b=`; or `system=` with the days `from=` and `to=`.
struct Chosen {
    runs: Vec<String>,
    /// A system, and the days after the two that are meant.
    days: Option<[String; 3]>,
}

impl Chosen {
    fn of(said: Vec<(String, String)>) -> Result<Self, Problem> {
        let (mut runs, mut days) = (Vec::new(), [None, None, None]);
        for (name, value) in said {
            match name.as_str() {
                "run" | "a" | "b" => runs.push(value),
                "system" => days[0] = Some(value),
                "from" => days[1] = Some(value),
                "to" => days[2] = Some(value),
                other => return Err(Problem::Wrong(format!("there is no field `{other}`"))),
            }
        }
        let days = match days {
            [Some(system), Some(from), Some(to)] => Some([system, behind(&from)?, behind(&to)?]),
            [None, None, None] => None,
            _ => return Err(Problem::Wrong("two days: system, from and to".to_owned())),
        };
        Ok(Self { runs, days })
    }

    /// Their identities, in the order in which they were asked for.
    fn found(&self, store: &mut Store) -> Result<Vec<String>, StoreError> {
        let mut ids = Vec::new();
        for run in &self.runs {
            ids.push(store.identify(run)?);
        }
        let Some([which, from, to]) = &self.days else { return Ok(ids) };
        let system = store.system_named(which)?;
        let system = system.ok_or_else(|| StoreError::NoSuchRun(which.clone()))?;
        let none = |day: &String| StoreError::NoSuchRun(format!("{which}, before {day}"));
        // The later day's newest run, and the one before it in the same series: two runs of one night have other loads.
        let (earlier, later) = if from <= to { (from, to) } else { (to, from) };
        let new = store.run_before(&system.id, later)?.ok_or_else(|| none(later))?;
        let old = match store.run_before_in_series(&new, earlier)? {
            Some(old) => old,
            None => store
                .run_before(&system.id, earlier)?
                .filter(|old| old.id != new.id)
                .ok_or_else(|| none(earlier))?,
        };
        ids.extend([old.id, new.id]);
        Ok(ids)
    }
}

/// Reads whole run files for one answer, within bounds of memory and time, while somebody waits for it.
struct Reading<'a> {
    cancel: &'a Cancellation,
    began_ns: i64,
    weight_bytes: u64,
}

impl<'a> Reading<'a> {
    fn begin(cancel: &'a Cancellation) -> Self {
        Self { cancel, began_ns: cpu_ns(), weight_bytes: 0 }
    }

    fn run(&mut self, store: &mut Store, id: &str) -> Result<Run, StoreError> {
        let id = store.identify(id)?;
        let before = self.weight_bytes;
        let run = store.read(&id, RunPart::Report, |now| {
            self.weight_bytes = before + now.weight_bytes;
            if self.cancel.is_cancelled() {
                return Err(JudgeError::Cancelled.into());
            }
            if self.weight_bytes > WEIGHT_BYTES_MAX {
                return Err(JudgeError::Weight.into());
            }
            if cpu_ns() - self.began_ns > CPU_NS_MAX {
                return Err(JudgeError::Time.into());
            }
            Ok(())
        })?;
        match is_shown(&run) {
            true => Ok(run),
            false => Err(std::io::Error::from(JudgeError::Listed).into()),
        }
    }
}

/// Threads and contexts that a page shows, and records that it shows one by one: their pictures and rows take many times what they
/// take in the file.
const THREADS_SHOWN_MAX: usize = 1024;
const RECORDS_SHOWN_MAX: usize = 4000;

/// Has it no more than a page can show?
pub(super) fn is_shown(run: &Run) -> bool {
    let records = [
        run.violations.len(),
        run.pulse_joins.len(),
        run.benchmarks.len(),
        run.figures.len(),
        run.timelines.len(),
    ];
    run.threads.len() <= THREADS_SHOWN_MAX && records.iter().sum::<usize>() <= RECORDS_SHOWN_MAX
}

/// `GET /runs/{id}`: the report that `tailbound report --html` writes, below the way to its system, its file and its notes.
pub(super) async fn report(
    ReadRequest { app, .. }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let html = app
        .ask_large(move |store, cancel| {
            let id = store.identify(&id)?;
            let run = Reading::begin(cancel).run(store, &id)?;
            let row = store.run(&id)?;
            let system = row.as_ref().map(|r| r.system.clone()).unwrap_or_default();
            let system = store.system_named(&system)?;
            let older = row.as_ref().map(|r| store.run_before_in_series(r, &r.started));
            let older = older.transpose()?.flatten();
            let notes = store.notes(std::slice::from_ref(&id))?;
            let name = match (&system, &row) {
                (Some(s), Some(r)) => format!("{}, {} UTC", s.name, minute(&r.started)),
                _ => run.header.id.clone(),
            };
            let html = tailbound_report::html(&[Analysis::of(&run)], &[name]);
            let bar = bar(&id, row.as_ref(), system.as_ref(), older.as_ref(), &notes);
            Ok(html.replacen("<body>", &format!("<body>{bar}"), 1))
        })
        .await?;
    Ok(report_answer(html))
}

/// Above a report: the pages, and what is beside the run.
fn bar(
    id: &str,
    row: Option<&RunRow>,
    system: Option<&SystemName>,
    older: Option<&RunRow>,
    notes: &[RunNote],
) -> String {
    let id = xml(id);
    let mut bar = format!(
        "<nav class=\"serve-bar\" aria-label=\"Pages\" style=\"{BAR}\">{}",
        page::NAVIGATION
    );
    if let Some(s) = system {
        let name = xml(&s.name);
        let _ = write!(
            bar,
            "<a href=\"/systems/{0}\">{name}</a> <a href=\"/runs?system={0}\">All runs of {name}</a> ",
            xml(&s.id)
        );
    }
    if let Some(row) = row {
        let _ = write!(bar, "<span>{} UTC</span> ", xml(&minute(&row.started)));
        if let Some(said) = &row.clock_said {
            let _ = write!(
                bar,
                "<strong>Its clock was wrong: it said {}. The time is that of its arrival.</strong> ",
                xml(&minute(said))
            );
        }
    }
    let _ = write!(bar, "<a href=\"/runs/{id}/file\" download=\"\">Download the run file</a> ");
    if let Some(older) = older {
        let _ = write!(
            bar,
            "<a href=\"/changed?run={0}&amp;run={id}\">What changed since the run before</a> <a href=\"/compare?run={0}&amp;run={id}\">Compare with it</a> ",
            xml(&older.id)
        );
    }
    for note in notes {
        let _ = write!(bar, "<span>Note of {}: {}</span> ", xml(&note.author), xml(&note.message));
    }
    let _ = write!(bar, "<a href=\"/runs/{id}/note\">Add a note</a></nav>");
    bar
}

/// The style of that bar: a report has its own style sheet.
const BAR: &str = "display:flex;flex-wrap:wrap;gap:4px 16px;padding:10px 20px;border-bottom:1px solid var(--line);font-size:14px";

/// The same as `tailbound report --json` says it.
pub(super) async fn report_of(app: &Arc<App>, id: String) -> Result<Value, Problem> {
    app.ask_large(move |store, cancel| {
        let run = Reading::begin(cancel).run(store, &id)?;
        Ok(tailbound_report::json(&Analysis::of(&run)))
    })
    .await
}

/// `GET /runs/{id}/file`: byte for byte.
pub(super) async fn file(
    ReadRequest { app, who: _ }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let packed = app
        .ask_large(move |store, _| {
            let id = store.identify(&id)?;
            let packed = store.packed(&id)?;
            packed.check()?;
            Ok(packed)
        })
        .await?;
    let id = packed.id.clone();
    let mut held = app.answers.reservation("");
    held.hold(packed.zstd.len() as u64).map_err(|_| Problem::Busy)?;
    let (to, pieces) = tokio::sync::mpsc::channel(2);
    // As fast as it is read: who does not read is let go, and then this ends.
    tokio::task::spawn_blocking(move || {
        let _held = held;
        let sent = packed.pieces(PIECE, |piece| to.blocking_send(Ok(piece.into())).is_ok());
        if let Err(e) = sent {
            let _ = to.blocking_send(Err(std::io::Error::other(e)));
        }
    });
    let mut answer = plain_answer(Body::new(PieceBody(pieces)), "application/jsonl");
    // An identity is hexadecimal.
    let name =
        format!("attachment; filename=\"{}.tailbound.jsonl\"", id.get(..12).unwrap_or("run"));
    if let Ok(name) = HeaderValue::from_str(&name) {
        answer.headers_mut().insert(CONTENT_DISPOSITION, name);
    }
    Ok(answer)
}

/// Runs beside one another, with names for people.
struct Beside {
    runs: Vec<Run>,
    names: Vec<String>,
    systems: Vec<Option<String>>,
}

impl Beside {
    /// What is compared: two runs of one system are one system.
    fn heading(&self) -> String {
        let known: BTreeSet<&String> = self.systems.iter().flatten().collect();
        let n = self.runs.len();
        match known.len() {
            0 => format!("{n} runs compared"),
            1 => {
                let name = known.first().map_or("", |name| name.as_str());
                format!("{n} runs of one system compared: {name}")
            }
            systems => format!("{n} runs of {systems} systems compared"),
        }
    }
}

/// Those that are asked for; `Err`: so many, and that is too few or too many.
fn beside(
    store: &mut Store,
    chosen: &Chosen,
    cancel: &Cancellation,
) -> Result<Result<Beside, usize>, StoreError> {
    let ids = chosen.found(store)?;
    if !(2..=COMPARED_MAX).contains(&ids.len()) {
        return Ok(Err(ids.len()));
    }
    let mut reading = Reading::begin(cancel);
    let mut all = Beside { runs: Vec::new(), names: Vec::new(), systems: Vec::new() };
    for id in &ids {
        let row = store.run(id)?;
        let began = row.as_ref().map_or_else(String::new, |r| minute(&r.started));
        let system = row.map(|r| store.system_named(&r.system)).transpose()?.flatten();
        let run = reading.run(store, id)?;
        let name = system.as_ref().map_or_else(String::new, |s| format!("{}, ", s.name));
        all.names.push(format!("{name}{began}"));
        all.systems.push(system.map(|s| s.name));
        all.runs.push(run);
    }
    // All runs of the lab begin at one instant.
    let told = all.names.clone();
    for (name, id) in all.names.iter_mut().zip(&ids) {
        if told.iter().filter(|other| *other == name).count() > 1 {
            *name = format!("{name}, {}", id.get(..12).unwrap_or(id));
        }
    }
    Ok(Ok(all))
}

fn wrong_number(n: usize) -> Problem {
    Problem::Wrong(format!("{n} runs were chosen; 2 to {COMPARED_MAX} can be compared"))
}

/// `GET /compare?run=RUN&run=RUN…`
pub(super) async fn compare(
    ReadRequest { app, .. }: ReadRequest,
    Query(said): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let chosen = Chosen::of(said)?;
    let html = app
        .ask_large(move |store, cancel| {
            let all = beside(store, &chosen, cancel)?;
            Ok(all.map(|all| {
                let runs: Vec<Analysis<'_>> = all.runs.iter().map(Analysis::of).collect();
                let html = tailbound_report::html::html_under(&runs, &all.names, &all.heading());
                let bar =
                    format!("<nav aria-label=\"Pages\" style=\"{BAR}\">{}</nav>", page::NAVIGATION);
                html.replacen("<body>", &format!("<body>{bar}"), 1)
            }))
        })
        .await?;
    html.map(report_answer).map_err(wrong_number)
}

/// The same as JSON: the answer of `tailbound compare --json`, or why there is none, and the report of each run.
pub(super) async fn comparison(
    app: &Arc<App>,
    said: Vec<(String, String)>,
) -> Result<Value, Problem> {
    let chosen = Chosen::of(said)?;
    let found = app
        .ask_large(move |store, cancel| {
            Ok(beside(store, &chosen, cancel)?.map(|all| {
                let reports: Vec<Value> = all
                    .runs
                    .iter()
                    .zip(&all.names)
                    .zip(&all.systems)
                    .map(|((run, name), system)| {
                        let report = tailbound_report::json(&Analysis::of(run));
                        json!({"name": name, "system": system, "report": report})
                    })
                    .collect();
                let heading = all.heading();
                let given: Vec<(String, Vec<Run>)> =
                    all.names.into_iter().zip(all.runs.into_iter().map(|r| vec![r])).collect();
                let (comparison, why_not) = match Systems::of(&given, &[]) {
                    Ok(systems) => (Some(Answer::of(systems, Settings::default()).json()), None),
                    Err(why) => (None, Some(why.to_string())),
                };
                json!({"heading": heading, "comparison": comparison, "why_not": why_not, "runs": reports})
            }))
        })
        .await?;
    found.map_err(wrong_number)
}

/// What differs between two runs: the older one, the newer one, and each fact before and after.
#[derive(serde::Serialize)]
pub(super) struct Difference {
    pub(super) a: RunRow,
    pub(super) b: RunRow,
    pub(super) facts: Vec<Change>,
}

/// Between the two runs that are asked for.
pub(super) async fn difference(
    app: &Arc<App>,
    said: Vec<(String, String)>,
) -> Result<Difference, Problem> {
    let chosen = Chosen::of(said)?;
    let found = app
        .ask(move |store| {
            let ids = chosen.found(store)?;
            let [a, b] = ids.as_slice() else { return Ok(Err(several(ids.len()))) };
            if a == b {
                return Ok(Err(
                    "both are the same run: choose another one, or another day".to_owned()
                ));
            }
            let mut row = |id: &String| -> Result<RunRow, StoreError> {
                store.run(id)?.ok_or_else(|| StoreError::NoSuchRun(id.clone()))
            };
            let (mut a, mut b) = (row(a)?, row(b)?);
            if a.started > b.started {
                std::mem::swap(&mut a, &mut b);
            }
            let facts = changes::between(store, &a.id, &b.id)?;
            Ok(Ok(Difference { a, b, facts }))
        })
        .await?;
    found.map_err(Problem::Wrong)
}

fn several(n: usize) -> String {
    format!("{n} runs were chosen; what changed is asked of two")
}

/// `GET /changed?run=RUN&run=RUN`, or `?system=NAME&from=DAY&to=DAY`: what the machine knew of itself, before and after.
pub(super) async fn changed(
    ReadRequest { app, .. }: ReadRequest,
    Query(said): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    let Difference { a, b, facts: rows } = difference(&app, said).await?;
    let mut body = format!(
        "<p class=\"lead\">{} fact{} of the machine differ{} between <a href=\"/runs/{4}\">{3}</a> and <a href=\"/runs/{6}\">{5}</a> UTC.</p>\
         <p>Latest activation: {7} → {8}. <a href=\"/compare?run={4}&amp;run={6}\">Compare the latencies</a></p>",
        if rows.is_empty() { "No".to_owned() } else { rows.len().to_string() },
        if rows.len() == 1 { "" } else { "s" },
        if rows.len() == 1 { "s" } else { "" },
        xml(&minute(&a.started)),
        xml(&a.id),
        xml(&minute(&b.started)),
        xml(&b.id),
        ns(a.max_ns()),
        ns(b.max_ns()),
    );
    if !rows.is_empty() {
        let mut listing =
            Listing::new(&[Column::Name("Fact"), Column::Text("Before"), Column::Text("After")]);
        for change in &rows {
            listing.row(&[
                xml(&change.fact),
                xml(&excerpt(&changes::words(change.before.as_ref()), FACT_CHARS)),
                xml(&excerpt(&changes::words(change.after.as_ref()), FACT_CHARS)),
            ]);
        }
        body.push_str(&listing.html());
    }
    let mut page = Page::new(&app, "What changed");
    page.body = body;
    Ok(page.answer())
}
