// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which path is answered by what.
//!
//! Context: COLD.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::app::App;
use super::page::{self, Problem};
use super::{api, metrics, overview, regressions, runs, system, upload, who};

/// All of them.
pub(super) fn all(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(overview::page))
        .route("/systems/{id}", get(system::page))
        .route("/runs/{id}", get(runs::report))
        .route("/runs/{id}/file", get(runs::file))
        .route("/compare", get(runs::compare))
        .route("/changed", get(runs::changed))
        .route("/regressions", get(regressions::page))
        .route("/culprits", get(overview::culprits))
        .route("/login", get(overview::login).post(overview::log_in))
        .route("/api/v1/runs", post(upload::run))
        .route("/api/v1/runs/{id}", get(api::run))
        .route("/api/v1/runs/{id}/file", get(runs::file))
        .route("/api/v1/systems", get(api::systems))
        .route("/api/v1/systems/{id}", get(api::system))
        .route("/api/v1/systems/{id}/runs", get(api::runs))
        .route("/api/v1/regressions", get(api::regressions))
        .route("/api/v1/audit", get(api::audit))
        .route("/metrics", get(metrics::all))
        .layer(from_fn_with_state(Arc::clone(&app), who::find))
        // What says nothing about anybody.
        .route(
            "/style.css",
            get(async || page::plain_answer(page::css(), "text/css; charset=utf-8")),
        )
        .route("/healthz", get(async || page::plain_answer("ok\n", "text/plain; charset=utf-8")))
        .route("/api/v1/openapi.json", get(api::description))
        .fallback(async || Problem::Missing("there is no such page".to_owned()))
        .with_state(app)
}
