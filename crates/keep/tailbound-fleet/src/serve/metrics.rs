// SPDX-License-Identifier: MIT OR Apache-2.0
//! `/metrics`: for Prometheus.
//!
//! Units: s. Source: the Prometheus text exposition format 0.0.4. A figure that is not known is not there.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;

use axum::response::Response;
use tailbound_core::exposition::{Family, label};
use tailbound_core::number::Real as _;
use tailbound_core::utc;
use tailbound_store::{Since, SystemRow, Verdict};

use super::boards::{self, Boards};
use super::frame::ReadRequest;
use super::overview::{TREND_DAYS, on, worst};
use super::problem::Problem;
use super::reply::plain_answer;

const NS_PER_S: f64 = 1e9;

fn head(out: &mut String, name: &str, kind: &str, help: &str) {
    Family { name, kind, help }.text(out);
}

/// `GET /metrics`
pub(super) async fn all(ReadRequest { app, .. }: ReadRequest) -> Result<Response, Problem> {
    let all = boards::all(&app, Since::From(app.days_ago(TREND_DAYS - 1))).await?;
    let (runs, told) = app.ask(|store| Ok((store.count()?, store.deliveries()?))).await?;
    let mut out = String::new();
    let rows: Vec<&SystemRow> = all.systems.iter().map(|b| b.system()).collect();
    systems(&mut out, &rows, &app.days_ago(0));
    nights(&mut out, &all);
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
    Ok(plain_answer(out, "text/plain; version=0.0.4; charset=utf-8"))
}

fn systems(out: &mut String, rows: &[&SystemRow], today: &str) {
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
        let at = row.last.as_ref().and_then(|l| utc::from_rfc3339(&l.started));
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

/// The state of each system, as the first page shows it.
fn nights(out: &mut String, all: &Boards) {
    let nights = || {
        all.systems
            .iter()
            .filter_map(|b| Some((b, label(&b.system().name), b.system().night.as_ref()?)))
    };
    let name = "tailbound_last_night_workloads";
    head(out, name, "gauge", "Workloads of a system's last night, by their worst verdict in it.");
    for (_, system, night) in nights() {
        for verdict in Verdict::ALL {
            let (word, n) = (verdict.as_str(), night.count(verdict));
            let _ = writeln!(out, "{name}{{system=\"{system}\",verdict=\"{word}\"}} {n}");
        }
    }
    let name = "tailbound_not_met_since_timestamp_seconds";
    head(
        out,
        name,
        "gauge",
        "Since when a workload of the last night is not met, night after night.",
    );
    for (_, system, night) in nights() {
        if let Some(at) = night.not_met_since.as_deref().and_then(utc::from_rfc3339) {
            let _ = writeln!(out, "{name}{{system=\"{system}\"}} {at}");
        }
    }
    let name = "tailbound_last_night_headroom_ratio";
    head(
        out,
        name,
        "gauge",
        "What is left of the deadline in the last night where it is least; negative: missed.",
    );
    for (board, system, _) in nights() {
        if let Some(left) = board.headroom {
            let _ = writeln!(out, "{name}{{system=\"{system}\"}} {left}");
        }
    }
    let name = "tailbound_regressions";
    head(out, name, "gauge", "Series of a system that became worse and stayed so.");
    for board in &all.systems {
        let (system, n) = (label(&board.system().name), board.worse.len());
        let _ = writeln!(out, "{name}{{system=\"{system}\"}} {n}");
    }
    let name = "tailbound_series_waiting";
    head(out, name, "gauge", "Series with runs that were not looked at yet.");
    let _ = writeln!(out, "{name} {}", all.morning.waiting);
    let name = "tailbound_agents_unheard";
    head(out, name, "gauge", "Agents that ask no more.");
    let _ = writeln!(out, "{name} {}", all.morning.unheard.len());
}
