// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is done with every answer: its memory is counted until it is sent, and people are told in a page what went wrong.
//!
//! Programs get an error as JSON. Who asks for text/html outside the API is a person with a browser; who of them is not known is led to the
//! login, and back. Source: RFC 9110, 12.5.1 (Accept).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{ACCEPT, ALLOW, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use hyper::body::Body as _;
use serde_json::json;
use tailbound_core::printable::excerpt;
use tailbound_report::escape::xml;

use super::app::App;
use super::body::HeldBody;
use super::login;
use super::page::Page;
use super::problem::{Problem, ProblemWords};
use super::reply::json_answer;

/// An answer is counted in nobody's name: who reads slowly is not who asked much.
const READERS: &str = "";

/// See the module.
pub(super) async fn finished(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let accepts = request.headers().get(ACCEPT).and_then(|v| v.to_str().ok());
    let path = request.uri().path().to_owned();
    let is_person = !path.starts_with("/api/")
        && path != "/metrics"
        && accepts.is_some_and(|all| all.to_ascii_lowercase().contains("text/html"));
    let address = request.uri().path_and_query().map(|it| it.as_str().to_owned());
    let asked = match *request.method() {
        Method::GET => Asked::Page(address.unwrap_or_default()),
        _ => Asked::Other(path),
    };
    let mut answer = worded(next.run(request).await, &asked).await;
    if is_person && let Some(words) = answer.extensions_mut().remove::<ProblemWords>() {
        answer = for_people(&app, &answer, &words, &asked);
    }
    held(&app, answer)
}

/// What was asked for.
enum Asked {
    /// A page, with what stands behind its path.
    Page(String),
    /// Something to be done there.
    Other(String),
}

/// Words of the server's framework are read up to here.
const WORDS_BYTES: usize = 4096;

/// A refusal of the framework's own, in a text or without words, as all others are.
async fn worded(answer: Response, asked: &Asked) -> Response {
    let is_ours = answer.extensions().get::<ProblemWords>().is_some();
    let kind = answer.headers().get(CONTENT_TYPE).map_or(&b""[..], HeaderValue::as_bytes);
    let is_plain = kind.is_empty() || kind.starts_with(b"text/plain");
    if is_ours || !is_plain || !answer.status().is_client_error() {
        return answer;
    }
    let (head, body) = answer.into_parts();
    let said = axum::body::to_bytes(body, WORDS_BYTES).await.unwrap_or_default();
    let said =
        String::from_utf8_lossy(&said).replace("Failed to deserialize query string", "the address");
    let words = match (head.status, asked) {
        (StatusCode::METHOD_NOT_ALLOWED, Asked::Page(_)) => {
            "nothing is shown at this address".to_owned()
        }
        (StatusCode::METHOD_NOT_ALLOWED, Asked::Other(_)) => {
            "this address is not asked in this way".to_owned()
        }
        _ if said.trim().is_empty() => {
            head.status.canonical_reason().unwrap_or("refused").to_lowercase()
        }
        _ => excerpt(&said, WORDS_CHARS),
    };
    let mut told = json_answer(head.status, &json!({"error": words}));
    told.extensions_mut().insert(ProblemWords(words));
    if let Some(allow) = head.headers.get(ALLOW) {
        told.headers_mut().insert(ALLOW, allow.clone());
    }
    told
}

/// Of them, so much is shown.
const WORDS_CHARS: usize = 600;

/// The page of an error; or the login.
fn for_people(app: &App, answer: &Response, words: &ProblemWords, asked: &Asked) -> Response {
    let status = answer.status();
    let title = status.canonical_reason().unwrap_or("Error");
    let mut page = Page::new(app, title);
    page.body = match (status, asked) {
        (StatusCode::UNAUTHORIZED, Asked::Page(address)) => return login::first(address),
        // What was written stands in the browser's page before this one.
        (StatusCode::UNAUTHORIZED, Asked::Other(path)) => format!(
            "<p class=\"lead\">You are not logged in, or not any more. <a href=\"{}\">Log in</a>, then write it again.</p>",
            xml(&login::address(path.trim_end_matches("/acknowledge")))
        ),
        _ => format!("<p class=\"lead\">{}</p>", xml(&words.0)),
    };
    let mut shown = page.answer();
    *shown.status_mut() = status;
    for name in [RETRY_AFTER, WWW_AUTHENTICATE, ALLOW] {
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
