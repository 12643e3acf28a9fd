// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who asks, and whether they may.
//!
//! By a bearer token, or by the session of a browser, which may read, and write notes from these pages alone: so no foreign
//! page can make a browser write. Who has neither may read where the server is open to all who reach it.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tailbound_store::{Act, Role, Token, Way};

use super::app::App;
use super::counters::count;
use super::hosts::{self, OtherNames};
use super::problem::Problem;
use super::{sessions, tokens};

tokio::task_local! {
    /// Who asks the question that is answered, for what is on every page.
    static ASKS: Who;
}

/// Who asks, where that is known.
pub(super) fn asks() -> Option<Who> {
    ASKS.try_with(Who::clone).ok()
}

/// Who asks.
#[derive(Clone, Debug)]
pub(super) enum Who {
    /// Nobody that is known.
    Anybody,
    /// A program with a token.
    Token(Token),
    /// A browser's session, begun with this token.
    Session(Token),
}

impl Who {
    /// As the audit log names them.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Anybody => "anybody".to_owned(),
            Self::Token(t) | Self::Session(t) => {
                format!("{} {} ({})", t.role.as_str(), t.name, t.id)
            }
        }
    }

    /// In whose name memory and places are taken.
    pub(super) fn owner(&self) -> String {
        match self {
            Self::Anybody => String::new(),
            Self::Token(t) | Self::Session(t) => t.id.clone(),
        }
    }

    /// How a run comes that they hand in.
    pub(super) fn way(&self) -> Way {
        match self {
            Self::Token(token) if token.role == Role::Agent => Way::Machine,
            Self::Token(_) | Self::Session(_) | Self::Anybody => Way::Archive,
        }
    }

    /// What people call them.
    pub(super) fn author(&self) -> &str {
        match self {
            Self::Anybody => "anybody",
            Self::Token(token) | Self::Session(token) => &token.name,
        }
    }

    /// Of an agent: its machine.
    pub(super) fn machine(&self) -> Option<&str> {
        match self {
            Self::Token(token) => token.system.as_deref(),
            Self::Anybody | Self::Session(_) => None,
        }
    }
}

/// May they?
pub(super) fn may(app: &App, who: &Who, act: Act<'_>) -> bool {
    match who {
        Who::Anybody => app.config.open && act == Act::Read,
        Who::Token(token) => token.may(act),
        Who::Session(token) => matches!(act, Act::Read | Act::Audit | Act::Note) && token.may(act),
    }
}

/// A form of a browser: only one of these pages may send it, and browsers say which did.
pub(super) fn from_own_page(who: &Who, headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|v| v.to_str().ok());
    match who {
        Who::Session(_) if site != Some("same-origin") => Err(Problem::Forbidden),
        _ => Ok(()),
    }
}

/// The answer to those who may not.
pub(super) fn allowed(app: &App, who: &Who, act: Act<'_>) -> Result<(), Problem> {
    if may(app, who, act) {
        return Ok(());
    }
    count(&app.counters.forbidden);
    Err(match who {
        Who::Anybody => Problem::Unknown,
        Who::Token(_) | Who::Session(_) => Problem::Forbidden,
    })
}

/// The value of the session's cookie.
pub(super) fn cookie(headers: &HeaderMap) -> Option<&str> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|all| all.split(';'))
        .filter_map(|one| one.trim().split_once('='))
        .find(|(name, _)| *name == sessions::COOKIE)
        .map(|(_, value)| value)
}

/// Finds out who asks, before anything else is done.
pub(super) async fn find(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let host = request.headers().get(HOST).and_then(|h| h.to_str().ok());
    let others = if app.config.open { OtherNames::Refused } else { OtherNames::Answered };
    if !hosts::known(host, &app.config.hosts, others) {
        return Problem::WrongHost.into_response();
    }
    match found(&app, request.headers()).await {
        Ok(who) => {
            let under_way = match who {
                Who::Anybody => None,
                Who::Token(_) | Who::Session(_) => match app.under_way.begin(who.owner()) {
                    Ok(under_way) => Some(under_way),
                    Err(problem) => return problem.into_response(),
                },
            };
            request.extensions_mut().insert(who.clone());
            let answer = ASKS.scope(who, next.run(request)).await;
            drop(under_way);
            answer
        }
        Err(problem) => {
            count(&app.counters.forbidden);
            problem.into_response()
        }
    }
}

/// The token of the scheme, whose name is `Bearer` in any case (RFC 9110, 11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.trim().split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

async fn found(app: &Arc<App>, headers: &HeaderMap) -> Result<Who, Problem> {
    if let Some(value) = headers.get(AUTHORIZATION) {
        let sha256 = tokens::hashed(bearer(value).ok_or(Problem::Unknown)?);
        let token = app.ask_quick(move |store| store.token_of(&sha256)).await?;
        return token.map(Who::Token).ok_or(Problem::Unknown);
    }
    let Some(sha256) = cookie(headers).and_then(|it| app.sessions.token(it, app.now_s())) else {
        return Ok(Who::Anybody);
    };
    let token = app.ask_quick(move |store| store.token_of(&sha256)).await?;
    Ok(token.map_or(Who::Anybody, Who::Session))
}
