// SPDX-License-Identifier: MIT OR Apache-2.0
//! What people write: notes of runs, and what they know already of a series.
//!
//! From a program with an operator's token, or from a form of these pages in an operator's session.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::header::LOCATION;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Audited};

use super::app::App;
use super::body;
use super::frame::ReadRequest;
use super::overview::minute;
use super::page::Page;
use super::problem::Problem;
use super::reply::json_answer;
use super::who::{Who, allowed, from_own_page, may};

/// Characters of a text at most.
const CHARS_MAX: usize = 400;

/// What a form or a program sends of a run.
#[derive(Debug, Deserialize)]
pub(super) struct NoteForm {
    message: String,
}

/// What a form or a program sends of a series.
#[derive(Debug, Deserialize)]
pub(super) struct KnownForm {
    workload: String,
    message: String,
}

/// Bytes of a form at most.
const BYTES_MAX: u64 = 16 * 1024;

/// What was sent: JSON from a program, a form from a browser.
async fn sent<T: DeserializeOwned>(app: &App, who: &Who, body: Body) -> Result<T, Problem> {
    let bytes = body::taken(app, &who.owner(), body, BYTES_MAX).await?.whole();
    let wrong =
        |e: &dyn std::fmt::Display| Problem::Wrong(format!("what was sent is no note: {e}"));
    if bytes.first() == Some(&b'{') {
        return serde_json::from_slice(&bytes).map_err(|e| wrong(&e));
    }
    let text = std::str::from_utf8(&bytes).map_err(|e| wrong(&e))?;
    let fields: Uri = format!("/?{text}").parse().map_err(|e| wrong(&e))?;
    Query::<T>::try_from_uri(&fields).map(|Query(it)| it).map_err(|e| wrong(&e))
}

/// One line that a person wrote.
fn checked(message: &str) -> Result<String, Problem> {
    let text: String =
        message.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.is_empty() || text.chars().count() > CHARS_MAX {
        return Err(Problem::Wrong(format!("message: 1 to {CHARS_MAX} characters")));
    }
    Ok(text)
}

/// A browser goes on to a page; a program gets an answer.
fn done(who: &Who, page: &str, value: &serde_json::Value) -> Result<Response, Problem> {
    if !matches!(who, Who::Session(_)) {
        return Ok(json_answer(StatusCode::CREATED, value));
    }
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let to = HeaderValue::from_str(page).map_err(|_| Problem::Ours)?;
    answer.headers_mut().insert(LOCATION, to);
    Ok(answer)
}

/// `POST /runs/{id}/note`, `POST /api/v1/runs/{id}/notes`
pub(super) async fn note(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    headers: HeaderMap,
    Path(id): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Note)?;
    from_own_page(&who, &headers)?;
    let id = app.ask_quick(move |store| store.identify(&id)).await?;
    let form: NoteForm = sent(&app, &who, body).await?;
    let message = checked(&form.message)?;
    let (at, author, name) = (app.now(), who.author().to_owned(), who.name());
    let run = id.clone();
    app.ask_quick(move |store| {
        store.note(&run, &at, &author, &message)?;
        store.audit(&Audited { at, who: name, what: format!("wrote a note of run {run}") })
    })
    .await?;
    done(&who, &format!("/runs/{id}/note"), &json!({"run": id}))
}

/// `GET /runs/{id}/note`: the notes of a run, and where one is written.
pub(super) async fn notes(
    ReadRequest { app, who }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let (id, name, run, notes) = app
        .ask(move |store| {
            let id = store.identify(&id)?;
            let run = store.run(&id)?;
            let system = run.as_ref().map(|r| r.system.clone()).unwrap_or_default();
            let name = store.system_named(&system)?.map(|s| s.name).unwrap_or_default();
            let notes = store.notes(std::slice::from_ref(&id))?;
            Ok((id, name, run, notes))
        })
        .await?;
    let began = run.map_or_else(String::new, |r| minute(&r.started));
    let mut page = Page::new(&app, "Notes of a run");
    page.body = format!(
        "<p class=\"lead\"><a href=\"/runs/{}\">{}, {} UTC</a></p>",
        xml(&id),
        xml(&name),
        xml(&began)
    );
    for note in &notes {
        page.body.push_str(&format!(
            "<p><span class=\"soft\">{}, {}</span><br/>{}</p>",
            xml(&note.author),
            xml(&minute(&note.at)),
            xml(&note.message)
        ));
    }
    if notes.is_empty() {
        page.body.push_str("<p>No note yet. A run with a note is never pruned.</p>");
    }
    page.body.push_str(&match may(&app, &who, Act::Note) {
        true => format!(
            "<form method=\"post\" action=\"/runs/{}/note\"><label>Note <input name=\"message\" required=\"\" maxlength=\"{CHARS_MAX}\" size=\"60\"/></label>\
             <button type=\"submit\">Add</button></form>",
            xml(&id)
        ),
        false => "<p class=\"soft\">An operator who has <a href=\"/login\">logged in</a> can add one.</p>".to_owned(),
    });
    Ok(page.answer())
}

/// `POST /systems/{id}/acknowledge`, `POST /api/v1/systems/{id}/acknowledge`
pub(super) async fn acknowledge(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    headers: HeaderMap,
    Path(which): Path<String>,
    body: Body,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Note)?;
    from_own_page(&who, &headers)?;
    let asked = which.clone();
    let system = app.ask_quick(move |store| store.system_named(&asked)).await?;
    let missing = |what: &str| Problem::Missing(format!("there is no {what} `{which}`"));
    let system = system.ok_or_else(|| missing("system"))?;
    let form: KnownForm = sent(&app, &who, body).await?;
    let message = checked(&form.message)?;
    let (at, author, name) = (app.now(), who.author().to_owned(), who.name());
    let kept = app
        .ask_quick(move |store| {
            let series = [system.id.as_str(), form.workload.as_str()];
            let kept = store.acknowledge(series, &at, &author, &message)?;
            if kept.is_some() {
                let what = format!("acknowledged a series of {}", system.name);
                store.audit(&Audited { at, who: name, what })?;
            }
            Ok(kept)
        })
        .await?;
    let kept = kept.ok_or_else(|| missing("such series of the system"))?;
    done(&who, &format!("/systems/{}", kept.system), &json!(kept))
}

/// What the reader of a page may do on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    Read,
    /// And acknowledge.
    Note,
}

impl Permission {
    pub(super) fn of(app: &App, who: &Who) -> Self {
        if may(app, who, Act::Note) { Self::Note } else { Self::Read }
    }
}

/// The form by which a series is acknowledged; nothing for those who may not.
pub(super) fn form(permission: Permission, system: &str, workload: &str) -> String {
    if permission == Permission::Read {
        return String::new();
    }
    format!(
        "<form method=\"post\" action=\"/systems/{}/acknowledge\"><input type=\"hidden\" name=\"workload\" value=\"{}\"/>\
         <input name=\"message\" required=\"\" maxlength=\"{CHARS_MAX}\" aria-label=\"what is known of it\" placeholder=\"what is known of it\"/>\
         <button type=\"submit\">Acknowledge</button></form>",
        xml(system),
        xml(workload)
    )
}
