// SPDX-License-Identifier: MIT OR Apache-2.0
//! The way in for people, back to where they wanted to go, and out.
//!
//! Both are forms of this site alone: browsers say so (Fetch Metadata, `Sec-Fetch-Site`).

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::{LOCATION, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Audited};

use super::app::App;
use super::body;
use super::counters::count;
use super::page::Page;
use super::problem::Problem;
use super::who::{Who, cookie};
use super::{sessions, tokens};

/// Most bytes of the form.
const FORM_BYTES_MAX: u64 = 8 << 10;
/// Longest path that is gone back to.
const PATH_BYTES_MAX: usize = 2000;

/// Where to, after it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Afterwards {
    to: Option<String>,
}

/// What the form sends.
#[derive(Debug, Deserialize)]
struct Login {
    token: String,
    to: Option<String>,
}

/// A path of this server, and of no other: `//host` and `/\host` are addresses of others to a browser.
fn own(path: &str) -> Option<&str> {
    let rest = path.strip_prefix('/')?;
    let other = rest.starts_with(['/', '\\']);
    let plain = path.bytes().all(|b| b.is_ascii_graphic());
    (!other && plain && path.len() <= PATH_BYTES_MAX).then_some(path)
}

fn to(place: &str) -> Response {
    let mut answer = StatusCode::SEE_OTHER.into_response();
    let place = HeaderValue::from_str(place).unwrap_or(HeaderValue::from_static("/"));
    answer.headers_mut().insert(LOCATION, place);
    answer
}

/// Text as a value of a query.
fn escaped(text: &str) -> String {
    let one = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
            char::from(byte).to_string()
        }
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

/// Logs in first, then goes to the path that was asked for.
pub(super) fn first(asked: &str) -> Response {
    to(&address(asked))
}

/// Where one logs in and comes back to `asked`.
pub(super) fn address(asked: &str) -> String {
    match own(asked).filter(|path| *path != "/") {
        Some(path) => format!("/login?to={}", escaped(path)),
        None => "/login".to_owned(),
    }
}

/// `GET /login`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
    Query(afterwards): Query<Afterwards>,
) -> Response {
    let mut page = Page::new(&app, "Log in");
    if let Who::Session(token) = &who {
        page.body = format!(
            "<p class=\"lead\">Logged in with the token {} ({}).</p>\
             <form method=\"post\" action=\"/logout\"><button type=\"submit\">Log out</button></form>",
            xml(&token.name),
            token.role.as_str()
        );
        return page.answer();
    }
    page.body = form(afterwards.to.as_deref());
    page.answer()
}

/// The form, which leads to the path `to` of this server.
fn form(to: Option<&str>) -> String {
    let back = to.and_then(own).map_or_else(String::new, |path| {
        format!("<input type=\"hidden\" name=\"to\" value=\"{}\"/>", xml(path))
    });
    format!(
        "<form method=\"post\" action=\"/login\">{back}<label>Token \
         <input type=\"password\" name=\"token\" required=\"\" autocomplete=\"current-password\" size=\"48\"/></label>\
         <button type=\"submit\">Log in</button></form>\
         <p class=\"soft\">A token of a reader or an operator, from <code>tailbound serve token add</code>. It is sent once; \
         a cookie stands for it for twelve hours, and can read; an operator's can write notes.</p>"
    )
}

/// Is it a form of this site?
fn of_this_site(headers: &HeaderMap) -> Result<(), Problem> {
    let site = headers.get("sec-fetch-site").and_then(|v| v.to_str().ok());
    match site {
        Some("same-origin" | "none") | None => Ok(()),
        Some(_) => Err(Problem::Forbidden),
    }
}

/// The cookie's value, as the browser is to keep it.
fn kept(app: &App, value: &str, until: &str) -> Result<HeaderValue, Problem> {
    let secure = if app.config.tls.is_some() { "; Secure" } else { "" };
    let cookie =
        format!("{}={value}; HttpOnly; SameSite=Strict; Path=/{secure}{until}", sessions::COOKIE);
    HeaderValue::from_str(&cookie).map_err(|_| Problem::Ours)
}

/// `POST /login`
pub(super) async fn log_in(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    of_this_site(&headers)?;
    // Nobody is known yet: all who log in share what one token may take.
    let sent = body::taken(&app, "login", body, FORM_BYTES_MAX).await?.whole();
    let wrong = |why: String| Problem::Wrong(format!("the form: {why}"));
    let sent = String::from_utf8(sent).map_err(|e| wrong(e.to_string()))?;
    let form: axum::http::Uri =
        format!("/login?{sent}").parse().map_err(|_| wrong("it is none".to_owned()))?;
    let Query(login) = Query::<Login>::try_from_uri(&form).map_err(|e| wrong(e.body_text()))?;
    let sha256 = tokens::hashed(login.token.trim());
    let known = sha256.clone();
    let token = app.ask_quick(move |store| store.token_of(&known)).await?;
    let Some(token) = token.filter(|t| t.may(Act::Read)) else {
        count(&app.counters.forbidden);
        let mut page = Page::new(&app, "Log in");
        page.body = format!(
            "<p class=\"lead\">This is no valid token of a reader or an operator.</p>{}",
            self::form(login.to.as_deref())
        );
        let mut answer = page.answer();
        *answer.status_mut() = StatusCode::UNAUTHORIZED;
        return Ok(answer);
    };
    if let Some(old) = cookie(&headers) {
        app.sessions.end(old);
    }
    let value = app.sessions.begin(sha256, app.now_s()).map_err(|_| Problem::Ours)?;
    let (who, at) = (Who::Session(token).name(), app.now());
    let line = Audited { at, who, what: "logged in".to_owned() };
    app.ask_quick(move |store| store.audit(&line)).await?;
    let mut answer = to(login.to.as_deref().and_then(own).unwrap_or("/"));
    answer.headers_mut().insert(SET_COOKIE, kept(&app, &value, "")?);
    Ok(answer)
}

/// `POST /logout`
pub(super) async fn log_out(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    of_this_site(&headers)?;
    if let Some(old) = cookie(&headers) {
        app.sessions.end(old);
    }
    let mut answer = to("/login");
    answer.headers_mut().insert(SET_COOKIE, kept(&app, "", "; Max-Age=0")?);
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_comes_back_to_this_server_alone() {
        for path in ["/", "/systems/press?days=30", "/compare?run=a&run=b"] {
            assert_eq!(own(path), Some(path));
        }
        for path in [
            "",
            "systems",
            "//evil.example/",
            "/\\evil.example",
            "https://evil.example",
            "/a\r\nb: c",
            "/a b",
        ] {
            assert_eq!(own(path), None, "{path:?}");
        }
        assert_eq!(escaped("/changed?run=a&run=b"), "/changed%3Frun%3Da%26run%3Db");
    }
}
