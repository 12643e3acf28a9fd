// SPDX-License-Identifier: MIT OR Apache-2.0
//! Work over the network: an operator hands it out, an agent asks for it, takes it, and says what became of it.
//!
//! State is in the store (`tailbound_store`, work), but for which agents were heard of, which they say anew each
//! half a minute. Requests are idempotent. Source: their form is `tailbound_agent::wire`.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts as _, Path, Query, Request, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;
use serde_json::json;
use tailbound_agent::wire::{
    self, Agents, Ask, End, HandOut, LeaseGrant, Next, Order, PROTOCOL, Refusal, Renewal, Take,
};
use tailbound_core::printable;
use tailbound_series::campaign;
use tailbound_store::{
    Act, Batch, By, Finished, Role, Step, Store, StoreError, Work, WorkRun, WorkState,
};
use tokio::time::Instant;

use super::app::App;
use super::body;
use super::frame::{ReadRequest, answered};
use super::problem::Problem;
use super::reply::json_answer;
use super::upload::system_checked;
use super::who::{Who, allowed};

/// Most bytes that are said about work, a campaign's text among them.
const SAID_BYTES_MAX: u64 = 1 << 20;
/// An agent may let an answer wait for so long.
const WAIT_MOST: Duration = Duration::from_secs(50);
/// How often it is looked whether another server of the same store handed something out.
const LOOK: Duration = Duration::from_secs(10);
/// Pieces of a list.
pub(super) const LISTED: u32 = 200;
/// Of what an agent says: a line.
pub(super) const LINE_CHARS: usize = 600;
const ID_CHARS_MAX: usize = 64;
const RUNS_MAX: usize = 1_000;
/// Of the name of a run of a campaign.
const PART_CHARS: usize = 120;

/// What was said, bounded in bytes and in time.
async fn said<T: DeserializeOwned>(app: &App, who: &Who, body: Body) -> Result<T, Problem> {
    let bytes = body::taken(app, &who.owner(), body, SAID_BYTES_MAX).await?.whole();
    serde_json::from_slice(&bytes).map_err(|e| Problem::Wrong(e.to_string()))
}

/// Changes the store in the name of who asks.
async fn done<T: Send + 'static>(
    app: &Arc<App>,
    who: &Who,
    what: impl FnOnce(&mut Store, By<'_>) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, Problem> {
    let (name, at) = (who.name(), app.now());
    app.ask_quick(move |store| what(store, By { who: &name, at: &at })).await
}

/// Work whose agent is silent is lost; looked for whenever somebody looks.
pub(super) async fn lose(app: &Arc<App>) -> Result<(), Problem> {
    let (now_s, at) = (app.now_s(), app.now());
    let by = "this server".to_owned();
    // Whoever could not be heard has not gone: each has its time anew.
    let anew = app.unheard.swap(false, Ordering::SeqCst);
    let until_s = now_s.saturating_add_unsigned(app.config.lease.as_secs());
    let looked = app.ask_quick(move |store| {
        if anew {
            store.keep_leases(until_s)?;
        }
        store.lose_work(now_s, By { who: &by, at: &at })
    });
    match looked.await {
        Ok(_) => Ok(()),
        // Nothing can be lost now either; what is only read is answered.
        Err(Problem::Full(_)) => Ok(()),
        Err(e) => {
            app.unheard.fetch_or(anew, Ordering::SeqCst);
            Err(e)
        }
    }
}

/// The answer to a step: done, or what stands in its way.
fn answer(step: Step, value: &serde_json::Value) -> Result<Response, Problem> {
    match step {
        Step::Done => Ok(json_answer(StatusCode::OK, value)),
        Step::Missing => Err(Problem::Missing("there is no such work".to_owned())),
        Step::Not(state) => {
            let error = match state {
                WorkState::Running => "another agent has this work".to_owned(),
                WorkState::Waiting => "this work waits: take it first, one at a time".to_owned(),
                over => format!("this work is {} already", over.as_str()),
            };
            let value = json!({"error": error, "state": state});
            Ok(json_answer(StatusCode::CONFLICT, &value))
        }
    }
}

/// What an agent says of a piece of work, which is for its machine.
pub(super) struct AgentStep<T> {
    app: Arc<App>,
    who: Who,
    id: String,
    said: T,
}

impl<T: DeserializeOwned> FromRequest<Arc<App>> for AgentStep<T> {
    type Rejection = Response;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let path = Path::<String>::from_request_parts(&mut parts, app).await;
        let Path(id) = path.map_err(IntoResponse::into_response)?;
        let who = parts.extensions.get::<Who>().cloned();
        let step = async {
            let who = who.ok_or(Problem::Ours)?;
            let machine = who.machine().unwrap_or_default().to_owned();
            allowed(app, &who, Act::Take(&machine))?;
            let work = named(app, &id).await?;
            allowed(app, &who, Act::Take(&work.system))?;
            let said = said(app, &who, body).await?;
            Ok::<Self, Problem>(Self { app: Arc::clone(app), who, id, said })
        };
        step.await.map_err(IntoResponse::into_response)
    }
}

async fn named(app: &Arc<App>, id: &str) -> Result<Work, Problem> {
    lose(app).await?;
    let id = id.to_owned();
    let found = app.ask_quick(move |store| store.work(&id)).await?;
    found.ok_or_else(|| Problem::Missing("there is no such work".to_owned()))
}

/// `GET /api/v1/work`: an agent is answered with its next work, a reader with all.
pub(super) async fn asked(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    uri: Uri,
) -> Result<Response, Problem> {
    let Some(machine) = who.machine().map(str::to_owned) else {
        allowed(&app, &who, Act::Read)?;
        lose(&app).await?;
        let all = app.ask(|store| store.all_work(LISTED)).await?;
        return answered(json!({"work": all}));
    };
    allowed(&app, &who, Act::Take(&machine))?;
    let Query(ask) = Query::<Ask>::try_from_uri(&uri).map_err(|e| Problem::Wrong(e.body_text()))?;
    if ask.protocol != PROTOCOL {
        return Err(Problem::Wrong(format!(
            "this server speaks version {PROTOCOL} of the agents' protocol, and the agent {}: update the older one",
            ask.protocol
        )));
    }
    let wait = Duration::from_secs(ask.wait_s.into()).min(WAIT_MOST);
    let is_held = ask.held.is_some();
    let line = |text: String| printable::excerpt(&text, LINE_CHARS);
    let said = Ask {
        version: line(ask.version),
        architecture: line(ask.architecture),
        kernel: line(ask.kernel),
        held: ask.held.map(line),
        ..ask
    };
    app.agents.note(&machine, said, app.now_s());
    let work = if is_held { None } else { waited(&app, &machine, wait).await? };
    let work = work.map(|w| Order {
        id: w.id,
        system: w.system,
        campaign: w.campaign,
        parts: w.parts,
        scale: w.scale,
        cpus: w.cpus,
    });
    answered(Next { protocol: PROTOCOL, work })
}

/// The machine's next work, as soon as there is some.
async fn waited(app: &Arc<App>, machine: &str, wait: Duration) -> Result<Option<Work>, Problem> {
    let end = Instant::now() + wait;
    let mut ending = app.ending.subscribe();
    loop {
        // Before the look, so that nothing is handed out between it and the wait.
        let handed_out = app.handed_out.notified();
        tokio::pin!(handed_out);
        handed_out.as_mut().enable();
        lose(app).await?;
        let name = machine.to_owned();
        let next = app.ask_quick(move |store| store.next_work(&name)).await?;
        if next.is_some() || Instant::now() >= end {
            return Ok(next);
        }
        tokio::select! {
            () = &mut handed_out => {}
            () = tokio::time::sleep_until(end.min(Instant::now() + LOOK)) => {}
            _ = ending.wait_for(|it| *it) => return Ok(None),
        }
    }
}

/// What is handed out has an identity, a machine, a place in its batch and a scale, within their limits.
fn checked(new: &HandOut) -> Result<(), Problem> {
    let wrong = |why: String| Problem::Wrong(why);
    if !(1..=ID_CHARS_MAX).contains(&new.id.len()) || !new.id.bytes().all(|b| b.is_ascii_hexdigit())
    {
        return Err(wrong(format!("id: 1 to {ID_CHARS_MAX} hexadecimal digits")));
    }
    system_checked(&new.system)?;
    let is_one = |b: &wire::Batch| {
        (1..=ID_CHARS_MAX).contains(&b.id.len())
            && b.id.bytes().all(|c| c.is_ascii_hexdigit())
            && (1..=b.of).contains(&b.at)
    };
    if new.batch.as_ref().is_some_and(|b| !is_one(b)) {
        return Err(wrong(format!(
            "batch: an id of 1 to {ID_CHARS_MAX} hexadecimal digits, and a place within it"
        )));
    }
    if new.cpus.as_ref().is_some_and(|cpus| cpus.len() > LINE_CHARS) {
        return Err(wrong(format!("cpus: a list of at most {LINE_CHARS} characters")));
    }
    if !(new.scale > 0.0 && new.scale <= 1.0) {
        return Err(wrong("scale: a share above 0 and up to 1".to_owned()));
    }
    Ok(())
}

/// `POST /api/v1/work`
pub(super) async fn hand_out(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    body: Body,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::HandOut)?;
    let new: HandOut = said(&app, &who, body).await?;
    checked(&new)?;
    let wrong = |why: String| Problem::Wrong(why);
    let chosen = campaign::parse("campaign", new.campaign).map_err(|e| wrong(e.to_string()))?;
    campaign::wanted(&chosen, &new.parts).map_err(|e| wrong(e.to_string()))?;
    let work = Work {
        id: new.id,
        system: new.system,
        name: chosen.file.name,
        campaign: chosen.text,
        parts: new.parts,
        scale: new.scale,
        cpus: new.cpus,
        handed_out_by: who.name(),
        created: app.now(),
        state: WorkState::Waiting,
        reason: None,
        lease: None,
        began: None,
        ended: None,
        progress: None,
        runs: Vec::new(),
        batch: new.batch.map(|b| Batch { id: b.id, at: b.at.into(), of: b.of.into() }),
    };
    let machine = work.system.clone();
    let has_agent = app
        .ask_quick(move |store| {
            let is = |t: &tailbound_store::Token| {
                t.role == Role::Agent
                    && t.revoked.is_none()
                    && t.system.as_deref() == Some(&machine)
            };
            Ok(store.tokens()?.iter().any(is))
        })
        .await?;
    if !has_agent {
        return Err(wrong(format!(
            "no valid token of an agent is for the machine `{}`: tailbound serve token add NAME --role agent --system NAME",
            work.system
        )));
    }
    let id = work.id.clone();
    let (is_new, there) = done(&app, &who, move |store, by| {
        let is_new = store.hand_out(&work, by)?;
        let there = store.work(&work.id)?;
        let same = there.as_ref().is_some_and(|w| {
            (&w.system, &w.campaign, &w.parts, w.scale.to_bits(), &w.cpus)
                == (&work.system, &work.campaign, &work.parts, work.scale.to_bits(), &work.cpus)
        });
        Ok((is_new, there.filter(|_| same)))
    })
    .await?;
    let there = there.ok_or_else(|| wrong(format!("other work has the identity {id}")))?;
    if is_new {
        app.handed_out.notify_waiters();
    }
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(json_answer(status, &json!({"id": id, "state": there.state})))
}

/// `GET /api/v1/work/{id}`
pub(super) async fn one(
    ReadRequest { app, .. }: ReadRequest,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    answered(named(&app, &id).await?)
}

/// `POST /api/v1/work/{id}/take`
pub(super) async fn take(
    AgentStep { app, who, id, said }: AgentStep<Take>,
) -> Result<Response, Problem> {
    let Take { lease } = said;
    if !(1..=ID_CHARS_MAX).contains(&lease.chars().count()) {
        return Err(Problem::Wrong(format!("lease: 1 to {ID_CHARS_MAX} characters")));
    }
    let lease_s = app.config.lease.as_secs();
    let until_s = app.now_s().saturating_add_unsigned(lease_s);
    let step = done(&app, &who, move |store, by| store.take_work(&id, &lease, until_s, by)).await?;
    answer(step, &json!(LeaseGrant { lease_s }))
}

/// `POST /api/v1/work/{id}/refuse`
pub(super) async fn refuse(
    AgentStep { app, who, id, said }: AgentStep<Refusal>,
) -> Result<Response, Problem> {
    let Refusal { reason } = said;
    let reason = printable::excerpt(&reason, LINE_CHARS);
    let step = done(&app, &who, move |store, by| store.refuse_work(&id, &reason, by)).await?;
    answer(step, &json!({"state": WorkState::Refused}))
}

/// `POST /api/v1/work/{id}/renew`
pub(super) async fn renew(
    AgentStep { app, who, id, said }: AgentStep<Renewal>,
) -> Result<Response, Problem> {
    let Renewal { lease, progress, doing } = said;
    let progress = progress.map(|p| printable::excerpt(&p, LINE_CHARS));
    let until_s = app.now_s().saturating_add_unsigned(app.config.lease.as_secs());
    let work = id.clone();
    let step = done(&app, &who, move |store, _| {
        store.renew_work(&id, &lease, until_s, progress.as_deref())
    })
    .await?;
    if let (Step::Done, Some(doing)) = (step, doing) {
        let part = printable::excerpt(&doing.part, LINE_CHARS);
        app.doing.note(&work, wire::Doing { part, ..doing }, app.now_s());
    }
    answer(step, &json!({"state": WorkState::Running}))
}

/// `POST /api/v1/work/{id}/end`
pub(super) async fn end(
    AgentStep { app, who, id, said }: AgentStep<End>,
) -> Result<Response, Problem> {
    let End { lease, complete, reason, runs } = said;
    if runs.len() > RUNS_MAX {
        return Err(Problem::Wrong(format!("runs: at most {RUNS_MAX}")));
    }
    if runs
        .iter()
        .any(|m| m.run.len() > ID_CHARS_MAX || !m.run.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        return Err(Problem::Wrong("runs: the identity of each is hexadecimal".to_owned()));
    }
    let reason = reason.map(|r| printable::excerpt(&r, LINE_CHARS));
    let runs: Vec<WorkRun> = runs
        .into_iter()
        .map(|m| WorkRun { part: printable::excerpt(&m.part, PART_CHARS), run: m.run })
        .collect();
    let step = done(&app, &who, move |store, by| {
        let how = Finished { complete, reason: reason.as_deref(), runs: &runs };
        store.end_work(&id, &lease, &how, by)
    });
    let step = step.await?;
    // The machine's next work may be asked for already, by another agent of it.
    app.handed_out.notify_waiters();
    answer(step, &json!({"state": if complete { WorkState::Done } else { WorkState::Failed }}))
}

/// `POST /api/v1/work/{id}/cancel`
pub(super) async fn cancel(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::HandOut)?;
    named(&app, &id).await?;
    let step = done(&app, &who, move |store, by| store.cancel_work(&id, by)).await?;
    answer(step, &json!({"state": WorkState::Cancelled}))
}

/// `GET /api/v1/agents`
pub(super) async fn agents(ReadRequest { app, .. }: ReadRequest) -> Result<Response, Problem> {
    let agents = app.agents.all(app.now_s());
    answered(Agents { agents })
}
