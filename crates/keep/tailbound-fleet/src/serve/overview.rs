// SPDX-License-Identifier: MIT OR Apache-2.0
//! A page that is about no single system: culprits.
//!
//! Units: ns; days are UTC.

use axum::response::Response;
use tailbound_report::escape::xml;
use tailbound_store::{Culprit, Since, SystemRow, Whose};

use super::frame::ReadRequest;
use super::listing::{Column, Listing};
use super::page::{Page, ns};
use super::problem::Problem;

/// Days of the trend.
pub(super) const TREND_DAYS: i64 = 30;
/// Rows of the page of culprits.
pub(super) const CULPRITS: u32 = 50;
/// The pages about all systems are as old at most.
pub(super) const RENEWED_S: u32 = 30;

/// The worst case on `day`.
pub(super) fn on(row: &SystemRow, day: &str) -> Option<i64> {
    row.days.iter().find(|d| d.day == day).and_then(|d| d.max_ns)
}

/// The worst case of the days that are known.
pub(super) fn worst(row: &SystemRow) -> Option<i64> {
    row.days.iter().filter_map(|d| d.max_ns).max()
}

/// A box by which a run is chosen, for `/compare`.
pub(super) fn choice(run: &str, name: &str) -> String {
    format!(
        "<input type=\"checkbox\" name=\"run\" value=\"{}\" aria-label=\"choose {}\"/> ",
        xml(run),
        xml(name)
    )
}

/// A time without its seconds, for people.
pub(super) fn minute(rfc3339: &str) -> String {
    rfc3339.get(..16).unwrap_or(rfc3339).replace('T', " ")
}

/// `GET /culprits`
pub(super) async fn culprits(
    ReadRequest { app, who: _ }: ReadRequest,
) -> Result<Response, Problem> {
    let since = Since::From(app.days_ago(TREND_DAYS - 1));
    let rows = app.ask(move |store| store.culprits_of(Whose::All, &since, CULPRITS)).await?;
    let mut page = Page::new(&app, "Culprits").renewed(RENEWED_S);
    page.body = if rows.is_empty() {
        format!(
            "<p class=\"lead\">No run of the last {TREND_DAYS} days says who made it late.</p>\
             <p>Runs with <code>--blame</code> do.</p>"
        )
    } else {
        let more = match u32::try_from(rows.len()) {
            Ok(CULPRITS) => {
                format!("<p class=\"soft\">The first {CULPRITS}; more are in the API.</p>")
            }
            _ => String::new(),
        };
        culprit_table(&rows, TREND_DAYS, CulpritScope::Farm) + &more
    };
    Ok(page.answer())
}

/// Whose late wake-ups a table is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CulpritScope {
    /// Of all systems, which are named.
    Farm,
    /// Of one.
    System,
}

/// Who made it late, as a table.
pub(super) fn culprit_table(rows: &[Culprit], days: i64, scope: CulpritScope) -> String {
    let mut columns = vec![
        Column::Name("Who"),
        Column::Words("Cause"),
        Column::Figure("Late wake-ups"),
        Column::Figure("Longest share"),
    ];
    if scope == CulpritScope::Farm {
        columns.push(Column::Words("Systems"));
    }
    let mut listing = Listing::new(&columns);
    for c in rows {
        // Nobody: the machine itself, as the cause says.
        let who = if c.who.is_empty() { "–" } else { c.who.as_str() };
        let on = match c.systems {
            1 => format!("<a href=\"/systems/{}\">{}</a>", xml(&c.system), xml(&c.system_name)),
            n => n.to_string(),
        };
        listing.row(&[xml(who), xml(&c.cause), c.wakeups.to_string(), ns(Some(c.longest_ns)), on]);
    }
    format!(
        "<p class=\"soft\">Of the last {days} days, from runs with <code>--blame</code>: who had the greatest share of late wake-ups.</p>{}",
        listing.html()
    )
}
