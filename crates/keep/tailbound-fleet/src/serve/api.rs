// SPDX-License-Identifier: MIT OR Apache-2.0
//! The JSON API: the answers of the pages, for programs. Described by `/api/v1/openapi.json`.
//!
//! Units: ns. Fields are added in later versions; none changes its meaning under `/api/v1`.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;
use tailbound_store::{
    Act, Histogram, RunQuery, SLOT_S, Since, Store, StoreError, Whose, together,
};

use super::app::App;
use super::boards;
use super::campaigns;
use super::frame::{ReadRequest, answered};
use super::overview::{CULPRITS, TREND_DAYS};
use super::problem::Problem;
use super::reply::plain_answer;
use super::runs_page::{self, ListedBy};
use super::who::{Who, allowed};
use super::{regressions, runs, system};

const DESCRIPTION: &str = include_str!("openapi.json");
/// Runs of one answer, unless fewer are asked for.
const RUNS: u32 = 1000;
const AUDITED: u32 = 1000;

/// Since when, and how many.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    since: Option<String>,
    limit: Option<u32>,
}

/// `GET /api/v1/openapi.json`
pub(super) async fn description() -> Response {
    plain_answer(DESCRIPTION, "application/json")
}

/// `GET /api/v1/systems`
pub(super) async fn systems(
    ReadRequest { app, .. }: ReadRequest,
    Query(asked): Query<ListQuery>,
) -> Result<Response, Problem> {
    let since = Since::From(asked.since.unwrap_or_else(|| app.days_ago(TREND_DAYS - 1)));
    let all = boards::all(&app, since).await?;
    answered(all)
}

/// `GET /api/v1/systems/{id}`
pub(super) async fn system(
    ReadRequest { app, .. }: ReadRequest,
    Path(which): Path<String>,
    Query(asked): Query<ListQuery>,
) -> Result<Response, Problem> {
    let since = Since::from(asked.since);
    let board = system::board_of(&app, which, since).await?;
    answered(board)
}

/// What the store has of one system, whose identity or name is given.
async fn of_system<T: Send + 'static>(
    app: &Arc<App>,
    which: String,
    ask: impl FnOnce(&mut Store, &str) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let name = which.clone();
    let found = app
        .ask(move |store| {
            let system = store.system_named(&name)?;
            system.map(|system| ask(store, &system.id)).transpose()
        })
        .await?;
    found.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))
}

/// `GET /api/v1/systems/{id}/runs`
pub(super) async fn runs_of(
    ReadRequest { app, .. }: ReadRequest,
    Path(which): Path<String>,
    Query(asked): Query<ListQuery>,
) -> Result<Response, Problem> {
    let most = asked.limit.unwrap_or(RUNS).min(RUNS);
    let found = of_system(&app, which, move |store, id| {
        let system = Some(id.to_owned());
        store.runs_page(&RunQuery { system, since: asked.since, most, ..RunQuery::default() })
    });
    answered(found.await?)
}

/// `GET /api/v1/runs`
pub(super) async fn runs(
    ReadRequest { app, .. }: ReadRequest,
    Query(by): Query<ListedBy>,
) -> Result<Response, Problem> {
    answered(runs_page::answer(&app, &by).await?)
}

/// `GET /api/v1/runs/{id}`
pub(super) async fn run(
    ReadRequest { app, .. }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (run, notes) = app
        .ask(move |store| {
            let id = store.identify(&id)?;
            Ok((store.run(&id)?, store.notes(&[id])?))
        })
        .await?;
    let run = run.ok_or_else(|| Problem::Missing("there is no such run".to_owned()))?;
    let mut all = json!(run);
    if let Some(all) = all.as_object_mut() {
        all.insert("notes".to_owned(), json!(notes));
    }
    answered(all)
}

/// `GET /api/v1/runs/{id}/report`
pub(super) async fn report(
    ReadRequest { app, .. }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    answered(runs::report_of(&app, id).await?)
}

/// `GET /api/v1/compare`
pub(super) async fn compare(
    ReadRequest { app, .. }: ReadRequest,
    Query(said): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    answered(runs::comparison(&app, said).await?)
}

/// `GET /api/v1/regressions`
pub(super) async fn regressions(ReadRequest { app, .. }: ReadRequest) -> Result<Response, Problem> {
    answered(regressions::found(&app).await?)
}

/// `GET /api/v1/campaigns`
pub(super) async fn campaigns(ReadRequest { app, .. }: ReadRequest) -> Result<Response, Problem> {
    let (campaigns, _) = campaigns::under_way(&app).await?;
    answered(json!({"campaigns": campaigns}))
}

/// Whose culprits, since when, and how many.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CulpritQuery {
    system: Option<String>,
    since: Option<String>,
    limit: Option<u32>,
}

/// `GET /api/v1/culprits`
pub(super) async fn culprits(
    ReadRequest { app, .. }: ReadRequest,
    Query(asked): Query<CulpritQuery>,
) -> Result<Response, Problem> {
    let since = Since::From(asked.since.unwrap_or_else(|| app.days_ago(TREND_DAYS - 1)));
    let most = asked.limit.unwrap_or(CULPRITS).min(RUNS);
    let culprits = match asked.system {
        None => app.ask(move |store| store.culprits_of(Whose::All, &since, most)).await?,
        Some(which) => {
            of_system(&app, which, move |store, id| {
                store.culprits_of(Whose::System(id), &since, most)
            })
            .await?
        }
    };
    answered(json!({"culprits": culprits}))
}

/// `GET /api/v1/changed`
pub(super) async fn changed(
    ReadRequest { app, .. }: ReadRequest,
    Query(said): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    answered(runs::difference(&app, said).await?)
}

/// Since when, and how finely.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fine {
    since: Option<String>,
    step_s: Option<i64>,
}

/// `GET /api/v1/systems/{id}/maxima`
pub(super) async fn maxima(
    ReadRequest { app, .. }: ReadRequest,
    Path(which): Path<String>,
    Query(asked): Query<Fine>,
) -> Result<Response, Problem> {
    let since = Since::From(asked.since.unwrap_or_else(|| app.days_ago(TREND_DAYS - 1)));
    let step_s = asked.step_s.unwrap_or(SLOT_S);
    if step_s < SLOT_S || step_s % SLOT_S != 0 {
        return Err(Problem::Wrong(format!("step_s: a multiple of {SLOT_S}")));
    }
    let by_load =
        of_system(&app, which, move |store, id| store.maxima_of(id, &since, step_s)).await?;
    let all = json!({"step_s": step_s, "maxima": together(&by_load), "by_load": by_load});
    answered(all)
}

/// Since when.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SinceQuery {
    since: Option<String>,
}

/// `GET /api/v1/systems/{id}/histograms`
pub(super) async fn histograms(
    ReadRequest { app, .. }: ReadRequest,
    Path(which): Path<String>,
    Query(asked): Query<SinceQuery>,
) -> Result<Response, Problem> {
    let since = Since::From(asked.since.unwrap_or_else(|| app.days_ago(TREND_DAYS - 1)));
    let name = which.clone();
    let text = app
        .ask_large(move |store, _| {
            let Some(system) = store.system_named(&name)? else { return Ok(None) };
            Ok(Some(histograms_json(&store.histograms_of(&system.id, &since)?)))
        })
        .await?;
    let text = text.ok_or_else(|| Problem::Missing(format!("there is no system `{which}`")))?;
    Ok(plain_answer(text, "application/json"))
}

/// Written as it is: a tree of all these numbers would be many times as large.
fn histograms_json(all: &[Histogram]) -> String {
    let mut text = "{\"histograms\":[".to_owned();
    for (nth, h) in all.iter().enumerate() {
        let head = json!({
            "run": h.run, "started": h.started, "thread": h.thread, "cpu": h.cpu,
            "context": h.context, "max_ns": h.max_ns,
        })
        .to_string();
        let comma = if nth > 0 { "," } else { "" };
        let _ = write!(text, "{comma}{},\"buckets\":[", head.trim_end_matches('}'));
        for (nth, b) in h.buckets.iter().enumerate() {
            let comma = if nth > 0 { "," } else { "" };
            let _ = write!(text, "{comma}[{},{},{}]", b.low_ns, b.width_ns, b.count);
        }
        text.push_str("]}");
    }
    text.push_str("]}\n");
    text
}

/// `GET /api/v1/audit`
pub(super) async fn audit(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Audit)?;
    let lines = app.ask(|store| store.audited(AUDITED)).await?;
    answered(json!({"audit": lines}))
}
