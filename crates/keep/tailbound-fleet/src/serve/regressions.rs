// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of what became worse.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::response::Response;
use tailbound_core::number::Real as _;
use tailbound_report::escape::xml;
use tailbound_stats::change::FactChange;
use tailbound_store::{Acknowledgement, Since, acknowledged};

use super::app::App;
use super::frame::ReadRequest;
use super::known::known_words;
use super::listing::{Column, Listing};
use super::overview::{RENEWED_S, minute};
use super::page::Page;
use super::problem::Problem;
use super::remarks::{self, Permission};
use crate::changes::fact_words;
use crate::regressions::{DAYS, NO_FACT, Regression, RegressionSearch, kept};

/// What was found of all systems when their runs arrived.
pub(super) async fn found(app: &Arc<App>) -> Result<RegressionSearch, Problem> {
    let since = Since::From(app.days_ago(DAYS));
    app.ask(move |store| kept(store, &since, None)).await
}

/// `GET /regressions`
pub(super) async fn page(ReadRequest { app, who }: ReadRequest) -> Result<Response, Problem> {
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
    let known = app.ask(tailbound_store::Store::acknowledgements).await?;
    body.push_str(&table(&found.regressions, &known, Permission::of(&app, &who)));
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

/// Facts that a row names.
const FACTS: usize = 4;

/// The regressions as a table, each with who knows it; nothing where there are none.
pub(super) fn table(
    all: &[Regression],
    known: &[Acknowledgement],
    permission: Permission,
) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut listing = Listing::new(&[
        Column::Name("System"),
        Column::Words("Since (UTC)"),
        Column::Words("What moved"),
        Column::Text("Loads"),
        Column::Text("What else changed near it"),
        Column::Text("Known"),
    ]);
    for r in all {
        let moved: Vec<String> = r.moved.iter().map(|m| xml(&m.to_string())).collect();
        let who = acknowledged(known, &r.system, &r.workload, &r.since);
        let who = who.map_or_else(
            || remarks::form(permission, &r.system, &r.workload),
            |a| format!("<span class=\"known\">{}</span>", known_words(a)),
        );
        listing.row(&[
            format!("<a href=\"/systems/{}\">{}</a>", xml(&r.system), xml(&r.name)),
            format!("<a href=\"/runs/{}\">{}</a>", xml(&r.since_run), xml(&minute(&r.since))),
            moved.join("<br/>"),
            xml(if r.loads.is_empty() { "none" } else { &r.loads }),
            format!(
                "<a href=\"/changed?run={}&amp;run={}\">{}</a>",
                xml(&r.before_run),
                xml(&r.since_run),
                changed(&r.facts)
            ),
            if who.is_empty() { "–".to_owned() } else { who },
        ]);
    }
    listing.html()
}

/// What else changed, the nearest first.
fn changed(facts: &[FactChange]) -> String {
    if facts.is_empty() {
        return NO_FACT.to_owned();
    }
    let mut named: Vec<String> = facts.iter().take(FACTS).map(|f| xml(&fact_words(f))).collect();
    if facts.len() > FACTS {
        named.push(format!("and {} more", facts.len() - FACTS));
    }
    named.join("<br/>")
}
