// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of what became worse.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_core::number::Real as _;
use tailbound_report::escape::xml;
use tailbound_store::Act;

use super::app::App;
use super::overview::{RENEWED_S, minute};
use super::page::{Page, Problem};
use super::who::{Who, allowed};
use crate::regressions::{DAYS, Regression, RegressionSearch, kept};

/// What was found of all systems when their runs arrived.
pub(super) async fn found(app: &Arc<App>) -> Result<RegressionSearch, Problem> {
    let since = app.days_ago(DAYS);
    app.ask(move |store| kept(store, &since, None)).await
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
    if found.waiting > 0 {
        let _ = write!(
            body,
            "<p class=\"soft\">{} series have newer runs, which are looked at one after the other.</p>",
            found.waiting
        );
    }
    body.push_str(&table(&found.regressions));
    if app.teller.receivers() > 0 {
        let told = app.ask_quick(tailbound_store::Store::deliveries).await?;
        let n = |state: &str| told.iter().find(|t| t.state == state).map_or(0, |t| t.n);
        let _ = write!(
            body,
            "<p class=\"soft\">New ones are sent to {} web hook{}: {} sent, {} waiting, {} given up.</p>",
            app.teller.receivers(),
            if app.teller.receivers() == 1 { "" } else { "s" },
            n("sent"),
            n("waiting"),
            n("given-up"),
        );
    }
    let mut page = Page::new(&app, "Regressions").renewed(RENEWED_S);
    page.body = body;
    Ok(page.answer())
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
        let moved: Vec<String> = r.moved.iter().map(|m| xml(&m.to_string())).collect();
        let kernel = r.kernel_words();
        let _ = write!(
            body,
            "<tr><th scope=\"row\"><a href=\"/systems/{0}\">{1}</a></th><td class=\"w\"><a href=\"/runs/{2}\">{3}</a></td><td class=\"w\">{4}</td>\
             <td class=\"long\">{5}</td><td class=\"long\">{6}</td><td class=\"long\"><a href=\"/changed?run={7}&amp;run={2}\">{8}</a></td></tr>",
            xml(&r.system),
            xml(&r.name),
            xml(&r.since_run),
            xml(&minute(&r.since)),
            moved.join("<br/>"),
            xml(&kernel),
            xml(if r.loads.is_empty() { "none" } else { &r.loads }),
            xml(&r.before_run),
            xml(&changed(&r.changed)),
        );
    }
    body.push_str("</tbody></table></div>");
    body
}

/// What else changed, in a few words.
fn changed(facts: &[String]) -> String {
    const NAMED: usize = 3;
    let named = facts.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match facts.len() {
        0 => "no fact that is known".to_owned(),
        n if n <= NAMED => named,
        n => format!("{named} and {} more", n - NAMED),
    }
}
