// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/metrics`: for Prometheus.
//!
//! Units: s. Source: the Prometheus text exposition format 0.0.4. A figure that is not known is not there.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_core::number::Real as _;
use tailbound_core::utc;
use tailbound_store::{Act, SystemRow};

use super::app::App;
use super::overview::{TREND_DAYS, on, worst};
use super::page::{self, Problem};
use super::who::{Who, allowed};

const NS_PER_S: f64 = 1e9;

/// A label's value: backslash, quote and line feed are escaped, as the format has it.
fn label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

/// `GET /metrics`
pub(super) async fn all(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let since = app.days_ago(TREND_DAYS - 1);
    let (rows, runs, told) = app
        .ask(move |store| Ok((store.systems(&since)?, store.count()?, store.deliveries()?)))
        .await?;
    let mut out = String::new();
    systems(&mut out, &rows, &app.days_ago(0));
    head(&mut out, "tailbound_store_runs", "gauge", "Runs in the store.");
    let _ = writeln!(out, "tailbound_store_runs {runs}");
    head(&mut out, "tailbound_uploads_total", "counter", "Uploads since the server began.");
    let counters = &app.counters;
    for (result, counter) in
        [("new", &counters.added), ("already", &counters.again), ("refused", &counters.refused)]
    {
        let n = counter.load(Ordering::Relaxed);
        let _ = writeln!(out, "tailbound_uploads_total{{result=\"{result}\"}} {n}");
    }
    head(
        &mut out,
        "tailbound_webhook_deliveries",
        "gauge",
        "Notices of regressions for web hooks, by what became of them.",
    );
    for state in ["waiting", "sent", "given-up"] {
        let n = told.iter().find(|t| t.state == state).map_or(0, |t| t.n);
        let _ = writeln!(out, "tailbound_webhook_deliveries{{state=\"{state}\"}} {n}");
    }
    head(&mut out, "tailbound_forbidden_total", "counter", "Requests that were not allowed.");
    let _ =
        writeln!(out, "tailbound_forbidden_total {}", counters.forbidden.load(Ordering::Relaxed));
    Ok(page::plain_answer(out, "text/plain; version=0.0.4; charset=utf-8"))
}

fn systems(out: &mut String, rows: &[SystemRow], today: &str) {
    head(
        out,
        "tailbound_latency_max_seconds",
        "gauge",
        "The latest activation of a system's runs, by days (UTC).",
    );
    for row in rows {
        let thirty = format!("{TREND_DAYS}d");
        for (window, max) in [("today", on(row, today)), (thirty.as_str(), worst(row))] {
            if let Some(max) = max {
                let _ = writeln!(
                    out,
                    "tailbound_latency_max_seconds{{system=\"{}\",window=\"{window}\"}} {}",
                    label(&row.name),
                    max.real() / NS_PER_S
                );
            }
        }
    }
    head(out, "tailbound_last_run_timestamp_seconds", "gauge", "When a system's newest run began.");
    for row in rows {
        let at = row
            .last
            .as_ref()
            .and_then(|l| utc::from_date_time(l.started.get(..10)?, l.started.get(11..19)?));
        if let Some(at) = at {
            let _ = writeln!(
                out,
                "tailbound_last_run_timestamp_seconds{{system=\"{}\"}} {at}",
                label(&row.name)
            );
        }
    }
    head(out, "tailbound_last_run_outcome", "gauge", "1 for the verdict of a system's newest run.");
    for row in rows {
        if let Some(last) = &row.last {
            let _ = writeln!(
                out,
                "tailbound_last_run_outcome{{system=\"{}\",outcome=\"{}\"}} 1",
                label(&row.name),
                label(&last.outcome)
            );
        }
    }
}
