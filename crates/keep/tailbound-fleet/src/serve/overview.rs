// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pages that are about no single system: culprits, and the way in.
//!
//! Units: ns; days are UTC.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Form, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Culprit, Since, SystemRow, Whose};

use super::app::App;
use super::listing::{Column, Listing};
use super::page::{Page, Problem, ns};
use super::who::{Who, allowed, cookie};
use super::{sessions, tokens};

/// Days of the trend.
pub(super) const TREND_DAYS: i64 = 30;
/// Rows of the page of culprits.
pub(super) const CULPRITS: u32 = 50;
/// The pages about all systems are as old at most.
pub(super) const RENEWED_S: u32 = 30;

/// The worst case on `day`.
pub(super) fn on(row: &SystemRow, day: &str) -> Option<i64> {
    row.days.iter().find(|d| d.day == day).and_then(|d| d.max_ns)
}

/// The worst case of the days that are known.
pub(super) fn worst(row: &SystemRow) -> Option<i64> {
    row.days.iter().filter_map(|d| d.max_ns).max()
}

/// A box by which a run is chosen, for `/compare`.
pub(super) fn choice(run: &str, name: &str) -> String {
    format!(
        "<input type=\"checkbox\" name=\"run\" value=\"{}\" aria-label=\"choose {}\"/> ",
        xml(run),
        xml(name)
    )
}

/// A time without its seconds, for people.
pub(super) fn minute(rfc3339: &str) -> String {
    rfc3339.get(..16).unwrap_or(rfc3339).replace('T', " ")
}

/// `GET /culprits`
pub(super) async fn culprits(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let since = Since::From(app.days_ago(TREND_DAYS - 1));
    let rows = app.ask(move |store| store.culprits_of(Whose::All, &since, CULPRITS)).await?;
    let mut page = Page::new(&app, "Culprits").renewed(RENEWED_S);
    page.body = if rows.is_empty() {
        format!(
            "<p class=\"lead\">No run of the last {TREND_DAYS} days says who made it late.</p>\
             <p>Runs with <code>--blame</code> do.</p>"
        )
    } else {
        let more = match u32::try_from(rows.len()) {
            Ok(CULPRITS) => {
                format!("<p class=\"soft\">The first {CULPRITS}; more are in the API.</p>")
            }
            _ => String::new(),
        };
        culprit_table(&rows, TREND_DAYS, true) + &more
    };
    Ok(page.answer())
}

/// Who made it late, as a table.
pub(super) fn culprit_table(rows: &[Culprit], days: i64, systems: bool) -> String {
    let mut columns = vec![
        Column::Name("Who"),
        Column::Words("Cause"),
        Column::Figure("Late wake-ups"),
        Column::Figure("Longest share"),
    ];
    columns.extend(systems.then_some(Column::Words("Systems")));
    let mut listing = Listing::new(&columns);
    for c in rows {
        // Nobody: the machine itself, as the cause says.
        let who = if c.who.is_empty() { "–" } else { c.who.as_str() };
        let on = match c.systems {
            1 => format!("<a href=\"/systems/{}\">{}</a>", xml(&c.system), xml(&c.system_name)),
            n => n.to_string(),
        };
        listing.row(&[xml(who), xml(&c.cause), c.wakeups.to_string(), ns(Some(c.longest_ns)), on]);
    }
    format!(
        "<p class=\"soft\">Of the last {days} days, from runs with <code>--blame</code>: who had the greatest share of late wake-ups.</p>{}",
        listing.html()
    )
}

/// Another page.
pub(super) fn to(place: &'static str) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    answer.headers_mut().insert(LOCATION, HeaderValue::from_static(place));
    answer
}

const LOGIN: &str = "<form method=\"post\" action=\"/login\"><label>Token \
    <input type=\"password\" name=\"token\" required=\"\" autocomplete=\"current-password\" size=\"48\"/></label>\
    <button type=\"submit\">Log in</button></form>\
    <p class=\"soft\">A token of a reader or an operator, from <code>tailbound serve token add</code>. It is sent once; \
    a cookie stands for it for twelve hours, and can read; an operator's can write notes.</p>";

/// `GET /login`
pub(super) async fn login(State(app): State<Arc<App>>) -> Response {
    let mut page = Page::new(&app, "Log in");
    page.body.push_str(LOGIN);
    page.answer()
}

/// What the form sends.
#[derive(Debug, Deserialize)]
pub(super) struct Login {
    token: String,
}

/// `POST /login`
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Form(login): Form<Login>,
) -> Result<Response, Problem> {
    // A form of somebody else's page: browsers say so.
    let site = headers.get("sec-fetch-site").and_then(|v| v.to_str().ok());
    if site.is_some_and(|site| site != "same-origin" && site != "none") {
        return Err(Problem::Forbidden);
    }
    let sha256 = tokens::hashed(login.token.trim());
    let known = sha256.clone();
    let token = app.ask(move |store| store.token_of(&known)).await?;
    let Some(token) = token.filter(|t| t.may(Act::Read)) else {
        super::counters::count(&app.counters.forbidden);
        return Err(Problem::Unknown);
    };
    if let Some(old) = cookie(&headers) {
        app.sessions.end(old);
    }
    let value = app.sessions.begin(sha256, app.now_s()).map_err(|_| Problem::Ours)?;
    let who = Who::Session(token).name();
    let at = app.now();
    app.ask(move |store| {
        store.audit(&tailbound_store::Audited { at, who, what: "logged in".to_owned() })
    })
    .await?;
    let secure = if app.config.tls.is_some() { "; Secure" } else { "" };
    let cookie = format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{secure}", sessions::COOKIE);
    let mut answer = to("/");
    let cookie = HeaderValue::from_str(&cookie).map_err(|_| Problem::Ours)?;
    answer.headers_mut().insert(SET_COOKIE, cookie);
    Ok(answer)
}
