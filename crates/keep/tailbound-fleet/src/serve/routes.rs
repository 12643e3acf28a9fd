// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which path is answered by what.

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};

use super::app::App;
use super::page;
use super::problem::Problem;
use super::reply::plain_answer;
use super::{
    answers, api, login, metrics, morning, overview, regressions, remarks, runs, runs_page, system,
    upload, who, work, work_page,
};

/// All of them.
pub(super) fn all(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(morning::page))
        .route("/systems/{id}", get(system::page))
        .route("/systems/{id}/acknowledge", post(remarks::acknowledge))
        .route("/runs", get(runs_page::page))
        .route("/runs/{id}", get(runs::report))
        .route("/runs/{id}/note", get(remarks::notes).post(remarks::note))
        .route("/runs/{id}/file", get(runs::file))
        .route("/compare", get(runs::compare))
        .route("/changed", get(runs::changed))
        .route("/regressions", get(regressions::page))
        .route("/culprits", get(overview::culprits))
        .route("/login", get(login::page).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/api/v1/runs", get(api::runs).post(upload::run))
        .route("/api/v1/runs/{id}", get(api::run))
        .route("/api/v1/runs/{id}/notes", post(remarks::note))
        .route("/api/v1/systems/{id}/acknowledge", post(remarks::acknowledge))
        .route("/api/v1/runs/{id}/file", get(runs::file))
        .route("/api/v1/runs/{id}/report", get(api::report))
        .route("/api/v1/compare", get(api::compare))
        .route("/api/v1/systems", get(api::systems))
        .route("/api/v1/systems/{id}", get(api::system))
        .route("/api/v1/systems/{id}/runs", get(api::runs_of))
        .route("/api/v1/regressions", get(api::regressions))
        .route("/api/v1/systems/{id}/maxima", get(api::maxima))
        .route("/api/v1/systems/{id}/histograms", get(api::histograms))
        .route("/api/v1/culprits", get(api::culprits))
        .route("/api/v1/changed", get(api::changed))
        .route("/api/v1/campaigns", get(api::campaigns))
        .route("/api/v1/audit", get(api::audit))
        .route("/work", get(work_page::page))
        .route("/api/v1/agents", get(work::agents))
        .route("/api/v1/work", get(work::asked).post(work::hand_out))
        .route("/api/v1/work/{id}", get(work::one))
        .route("/api/v1/work/{id}/take", post(work::take))
        .route("/api/v1/work/{id}/refuse", post(work::refuse))
        .route("/api/v1/work/{id}/renew", post(work::renew))
        .route("/api/v1/work/{id}/end", post(work::end))
        .route("/api/v1/work/{id}/cancel", post(work::cancel))
        .route("/metrics", get(metrics::all))
        .layer(from_fn_with_state(Arc::clone(&app), who::find))
        // What says nothing about anybody.
        .route("/style.css", get(async || plain_answer(page::css(), "text/css; charset=utf-8")))
        .route(
            "/script.js",
            get(async || plain_answer(page::script(), "text/javascript; charset=utf-8")),
        )
        .route("/healthz", get(async || plain_answer("ok\n", "text/plain; charset=utf-8")))
        .route("/api/v1/openapi.json", get(api::description))
        .fallback(async || Problem::Missing("there is no such page".to_owned()))
        .layer(from_fn_with_state(Arc::clone(&app), answers::finished))
        .with_state(app)
}
