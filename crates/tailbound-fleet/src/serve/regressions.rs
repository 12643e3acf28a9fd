// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became worse: the change search of `history` over the figures that the store keeps of each run.
//!
//! Context: COLD. Units: ns. A series is the same system and the same workload. With many series some changes are found by chance:
//! the page says how many to expect.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use serde::Serialize;
use tailbound_core::number::Real as _;
use tailbound_report::escape::xml;
use tailbound_stats::change::{self, Features, Settings};
use tailbound_store::{Act, RunRow, Store, StoreError, SystemRow};

use super::app::App;
use super::overview::minute;
use super::page::{self, Problem, ns};
use super::who::{Who, allowed};

/// How far back.
const DAYS: i64 = 180;
/// Newest runs of a system that are looked at.
const RUNS: u32 = 400;

/// A series whose newest change made it worse.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Regression {
    /// Which system.
    pub(super) system: String,
    /// Its name.
    pub(super) name: String,
    /// Loads of the series.
    pub(super) loads: String,
    /// The first run after the change.
    pub(super) since_run: String,
    /// When it began.
    pub(super) since: String,
    /// The last run before the change.
    pub(super) before_run: String,
    /// What moved beyond the margin.
    pub(super) moved: Vec<Moved>,
    /// The kernel before and after, where it is not the same.
    pub(super) kernel: Option<[String; 2]>,
}

/// A figure before and after.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Moved {
    pub(super) figure: &'static str,
    pub(super) before_ns: f64,
    pub(super) after_ns: f64,
    pub(super) ratio: f64,
}

/// What was looked at and what was found.
#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct Found {
    /// Series that were long enough.
    pub(super) series: usize,
    /// Series with fewer runs than a change can be told from.
    pub(super) short: usize,
    /// Chance level of each search.
    pub(super) level: f64,
    /// The newest first.
    pub(super) regressions: Vec<Regression>,
}

/// The figures that a row has, in the order of `change::FIGURES`; those it has not are absent from the search.
fn features(run: &RunRow) -> Features {
    let [p50, p99, p999, p9999, ..] = run.quantiles_ns;
    let real = |it: Option<i64>| it.map(|ns| ns.real());
    Features { ns: [real(p50), None, real(p99), real(p999), real(p9999), None] }
}

/// Looks for changes in all series of a system.
fn of_system(system: &SystemRow, runs: Vec<RunRow>, settings: Settings, found: &mut Found) {
    let mut series: BTreeMap<String, Vec<RunRow>> = BTreeMap::new();
    // The newest come first.
    for run in runs.into_iter().rev() {
        series.entry(run.workload.clone()).or_default().push(run);
    }
    for runs in series.values() {
        let features: Vec<Features> = runs.iter().map(features).collect();
        let history = change::history(&features, settings);
        if history.why_not.is_some() {
            found.short += 1;
            continue;
        }
        found.series += 1;
        let Some(change) = history.changes.last().filter(|c| c.worse) else { continue };
        let after = runs.get(change.at);
        let before = change.at.checked_sub(1).and_then(|at| runs.get(at));
        let (Some(after), Some(before)) = (after, before) else { continue };
        let moved = change.moved.iter().filter(|m| m.beyond_margin).map(|m| Moved {
            figure: m.figure,
            before_ns: m.before_ns,
            after_ns: m.after_ns,
            ratio: m.ratio,
        });
        let kernel = |run: &RunRow| run.kernel.clone().unwrap_or_else(|| "unknown".to_owned());
        found.regressions.push(Regression {
            system: system.id.clone(),
            name: system.name.clone(),
            loads: after.loads.clone(),
            since_run: after.id.clone(),
            since: after.started.clone(),
            before_run: before.id.clone(),
            moved: moved.collect(),
            kernel: (before.kernel_id != after.kernel_id).then(|| [kernel(before), kernel(after)]),
        });
    }
}

/// Looks at all systems, or at one.
pub(super) fn search(
    store: &mut Store,
    since: &str,
    only: Option<&SystemRow>,
) -> Result<Found, StoreError> {
    let settings = Settings::default();
    let systems = match only {
        Some(one) => vec![one.clone()],
        None => store.systems(since)?,
    };
    let mut found = Found { level: settings.level, ..Found::default() };
    for system in &systems {
        let runs = store.runs_of(&system.id, since, RUNS)?;
        of_system(system, runs, settings, &mut found);
    }
    found.regressions.sort_by(|a, b| b.since.cmp(&a.since));
    Ok(found)
}

/// The search over all systems.
pub(super) async fn found(app: &Arc<App>) -> Result<Found, Problem> {
    let since = app.days_ago(DAYS);
    app.ask(move |store| search(store, &since, None)).await
}

/// `GET /regressions`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let found = found(&app).await?;
    let by_chance = found.series.real() * found.level;
    let n = found.regressions.len();
    let mut body = format!(
        "<p class=\"lead\">{} of {} series became worse and stayed so ({DAYS} days).</p>\
         <p class=\"soft\">A series: the same system and workload. {} more are too short to tell. Each search is wrong in at most {} % of \
         series without a change: about {by_chance:.1} here could be chance.</p>",
        if n == 0 { "None".to_owned() } else { n.to_string() },
        found.series,
        found.short,
        found.level * 100.0,
    );
    body.push_str(&table(&found.regressions));
    Ok(page::page("Regressions", &body))
}

/// The regressions as a table; nothing where there are none.
pub(super) fn table(all: &[Regression]) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut body = "<div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">System</th><th scope=\"col\" class=\"w\">Since</th>\
         <th scope=\"col\" class=\"w\">What moved</th><th scope=\"col\" class=\"w\">Kernel</th><th scope=\"col\" class=\"w\">Loads</th>\
         <th scope=\"col\" class=\"w\">What else changed</th></tr></thead><tbody>"
        .to_owned();
    for r in all {
        let moved: Vec<String> = r
            .moved
            .iter()
            .map(|m| {
                let of = |v: f64| ns(Some(tailbound_core::number::Whole::whole_i64(v)));
                format!(
                    "{} {} → {} ({:+.0} %)",
                    m.figure,
                    of(m.before_ns),
                    of(m.after_ns),
                    (m.ratio - 1.0) * 100.0
                )
            })
            .collect();
        let kernel = match &r.kernel {
            None => "the same".to_owned(),
            Some([a, b]) if a == b => format!("{a}, built or configured anew"),
            Some([a, b]) => format!("{a} → {b}"),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\"><a href=\"/systems/{0}\">{1}</a></th><td class=\"w\"><a href=\"/runs/{2}\">{3}</a></td><td class=\"w\">{4}</td>\
             <td class=\"w\">{5}</td><td class=\"w\">{6}</td><td class=\"w\"><a href=\"/changed?a={7}&amp;b={2}\">facts before and after</a></td></tr>",
            xml(&r.system),
            xml(&r.name),
            xml(&r.since_run),
            xml(&minute(&r.since)),
            moved.iter().map(|m| xml(m)).collect::<Vec<_>>().join("<br/>"),
            xml(&kernel),
            xml(if r.loads.is_empty() { "none" } else { &r.loads }),
            xml(&r.before_run),
        );
    }
    body.push_str("</tbody></table></div>");
    body
}
