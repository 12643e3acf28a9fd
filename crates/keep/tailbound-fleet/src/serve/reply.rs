// SPDX-License-Identifier: MIT OR Apache-2.0
//! Answers with the headers that each has: what it is, and what a browser may do with it.
//!
//! No script is allowed but the server's own file, nothing is loaded from elsewhere, no other page may frame these.

use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// What the browser may do with these pages.
const POLICY: &str = "default-src 'none'; style-src 'self' 'unsafe-inline'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
    form-action 'self'; base-uri 'none'; frame-ancestors 'none'";
/// The same for a report, which has a script of its own and says in itself which; it knows nothing of this site.
pub(super) const REPORT_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; sandbox allow-scripts allow-downloads";

fn with_headers(mut answer: Response, kind: &'static str, policy: &'static str) -> Response {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// An answer of the API.
pub(super) fn json_answer(status: StatusCode, value: &Value) -> Response {
    let body = format!("{value}\n");
    with_headers((status, body).into_response(), "application/json", POLICY)
}

/// Bytes of another kind.
pub(super) fn plain_answer(body: impl IntoResponse, kind: &'static str) -> Response {
    with_headers(body.into_response(), kind, POLICY)
}

/// A report as a page.
pub(super) fn report_answer(html: String) -> Response {
    with_headers(html.into_response(), "text/html; charset=utf-8", REPORT_POLICY)
}

/// A page of this server.
pub(super) fn page_answer(html: String) -> Response {
    with_headers(html.into_response(), "text/html; charset=utf-8", POLICY)
}
