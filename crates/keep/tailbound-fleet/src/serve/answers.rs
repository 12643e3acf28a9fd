// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done with every answer: its memory is counted until it is sent, and people are told in a page what went wrong.
//!
//! Programs get an error as JSON. Who asks for text/html outside the API is a person with a browser; who of them is not known is led to the
//! login, and back. Source: RFC 9110, 12.5.1 (Accept).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Body as _;
use tailbound_report::escape::xml;

use super::app::App;
use super::body::HeldBody;
use super::login;
use super::page::Page;
use super::problem::{Problem, ProblemWords};

/// An answer is counted in nobody's name: who reads slowly is not who asked much.
const READERS: &str = "";

/// See the module.
pub(super) async fn finished(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|v| v.to_str().ok());
    let path = request.uri().path();
    let is_person = !path.starts_with("/api/")
        && path != "/metrics"
        && accepts.is_some_and(|all| all.contains("text/html"));
    let asked = request.uri().path_and_query().map(|it| it.as_str().to_owned());
    let asked = asked.filter(|_| request.method() == Method::GET);
    let mut answer = next.run(request).await;
    if is_person && let Some(words) = answer.extensions_mut().remove::<ProblemWords>() {
        answer = for_people(&app, &answer, &words, asked.as_deref());
    }
    held(&app, answer)
}

/// The page of an error; or the login.
fn for_people(app: &App, answer: &Response, words: &ProblemWords, asked: Option<&str>) -> Response {
    let status = answer.status();
    if status == StatusCode::UNAUTHORIZED
        && let Some(asked) = asked.filter(|path| !path.starts_with("/login"))
    {
        return login::first(asked);
    }
    let title = status.canonical_reason().unwrap_or("Error");
    let mut page = Page::new(app, title);
    page.body = format!("<p class=\"lead\">{}</p>", xml(&words.0));
    let mut shown = page.answer();
    *shown.status_mut() = status;
    for name in [RETRY_AFTER, WWW_AUTHENTICATE] {
        if let Some(value) = answer.headers().get(&name) {
            let value: HeaderValue = value.clone();
            shown.headers_mut().insert(name, value);
        }
    }
    shown
}

/// Counts its bytes while they are there.
fn held(app: &App, answer: Response) -> Response {
    let Some(bytes) = answer.body().size_hint().exact() else { return answer };
    let mut held = app.answers.reservation(READERS);
    if held.hold(bytes).is_err() {
        return Problem::Busy.into_response();
    }
    answer.map(|body| Body::new(HeldBody::new(body, held)))
}
