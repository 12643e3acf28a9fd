// SPDX-License-Identifier: MIT OR Apache-2.0
//! What stands around every question: who asks, and whether they may.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use serde::Serialize;
use serde_json::json;
use tailbound_store::Act;

use super::app::App;
use super::problem::Problem;
use super::reply::json_answer;
use super::who::{Who, allowed};

/// A question of somebody who may read; who may not is answered before anything else is looked at.
pub(super) struct ReadRequest {
    pub(super) app: Arc<App>,
    pub(super) who: Who,
}

impl FromRequestParts<Arc<App>> for ReadRequest {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let who = parts.extensions.get::<Who>().cloned().ok_or(Problem::Ours)?;
        allowed(app, &who, Act::Read)?;
        Ok(Self { app: Arc::clone(app), who })
    }
}

/// What was asked for, as JSON.
pub(super) fn answered(value: impl Serialize) -> Result<Response, Problem> {
    Ok(json_answer(StatusCode::OK, &json!(value)))
}
