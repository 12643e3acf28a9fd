// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first page: all systems. And the page of culprits, which is about all of them.
//!
//! Units: ns; days are UTC.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Culprit, SystemRow};

use super::app::App;
use super::page::{Page, Problem, ns, verdict};
use super::who::{Who, allowed};
use super::{login, pictures};

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

/// `GET /`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    if matches!(who, Who::Anybody) && !app.config.open {
        return Ok(login::first("/"));
    }
    allowed(&app, &who, Act::Read)?;
    let since = app.days_ago(TREND_DAYS - 1);
    let mut rows = app.ask(move |store| store.systems(&since)).await?;
    let today = app.days_ago(0);
    // What needs a look first: not met, then what was seen longest ago.
    let urgent = |row: &SystemRow| row.last.as_ref().map(|l| l.outcome != "not-met");
    rows.sort_by(|a, b| (urgent(a), &a.name).cmp(&(urgent(b), &b.name)));
    if rows.is_empty() {
        let body = "<p class=\"lead\">There is no run in this store yet.</p>\
            <p>A machine hands in its run files with a token (<code>tailbound serve token add NAME --role agent --system NAME</code>), \
            or they are added here with <code>tailbound store add</code>.</p>";
        let mut page = Page::new(&app, "Systems").renewed(RENEWED_S);
        page.body.push_str(body);
        return Ok(page.answer());
    }
    let not_met = rows.iter().filter(|r| urgent(r) == Some(false)).count();
    let today_n = rows.iter().filter(|r| r.days.iter().any(|d| d.day == today)).count();
    let mut body = format!(
        "<p class=\"lead\">{} system{}: {today_n} measured today, {not_met} not met in the newest run.</p>\
         <form method=\"get\" action=\"/compare\" class=\"list\"><button type=\"submit\">Compare the newest runs of the chosen</button>\
         <div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">System</th>\
         <th scope=\"col\" class=\"w\">Verdict</th><th scope=\"col\">Worst today</th><th scope=\"col\">Worst of {TREND_DAYS} days</th>\
         <th scope=\"col\" class=\"w\">Trend</th><th scope=\"col\">Newest run</th><th scope=\"col\" class=\"w opt\">Kernel</th><th scope=\"col\" class=\"w opt\">Loads</th></tr></thead><tbody>",
        rows.len(),
        if rows.len() == 1 { "" } else { "s" },
    );
    for row in &rows {
        one(&mut body, row, &today);
    }
    body.push_str(
        "</tbody></table></div></form><p class=\"soft\">Worst: the latest activation of all runs that began on a day (UTC), whatever their loads. \
         Trend: the worst of each day, on a logarithmic scale; a dot marks the worst.</p>",
    );
    let mut page = Page::new(&app, "Systems").renewed(RENEWED_S);
    page.body = body;
    Ok(page.answer())
}

fn one(body: &mut String, row: &SystemRow, today: &str) {
    let Some(last) = &row.last else { return };
    let loads = if last.loads.is_empty() { "none" } else { last.loads.as_str() };
    let _ = write!(
        body,
        "<tr><th scope=\"row\">{}<a href=\"/systems/{}\">{}</a></th><td class=\"w\">{}</td><td>{}</td><td>{}</td>\
         <td class=\"w\">{}</td><td>{}</td><td class=\"opt long\">{}</td><td class=\"opt long\">{}</td></tr>",
        choice(&last.id, &row.name),
        xml(&row.id),
        xml(&row.name),
        verdict(&last.outcome),
        ns(on(row, today)),
        ns(worst(row)),
        pictures::spark(&row.days),
        xml(&minute(&last.started)),
        xml(last.kernel.as_deref().unwrap_or("unknown")),
        xml(loads),
    );
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
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    let since = app.days_ago(TREND_DAYS - 1);
    let rows = app.ask(move |store| store.culprits_of("", &since, CULPRITS)).await?;
    let mut page = Page::new(&app, "Culprits").renewed(RENEWED_S);
    page.body = if rows.is_empty() {
        format!(
            "<p class=\"lead\">No run of the last {TREND_DAYS} days says who made it late.</p>\
             <p>Runs with <code>--blame</code> do.</p>"
        )
    } else {
        culprit_table(&rows, TREND_DAYS, true)
    };
    Ok(page.answer())
}

/// Who made it late, as a table.
pub(super) fn culprit_table(rows: &[Culprit], days: i64, systems: bool) -> String {
    let mut body = format!(
        "<p class=\"soft\">Of the last {days} days, from runs with <code>--blame</code>: who had the greatest share of late wake-ups.</p>\
         <div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Who</th><th scope=\"col\" class=\"w\">Cause</th>\
         <th scope=\"col\">Late wake-ups</th><th scope=\"col\">Longest share</th>{}</tr></thead><tbody>",
        if systems { "<th scope=\"col\" class=\"w\">Systems</th>" } else { "" },
    );
    for c in rows {
        let on = match (systems, c.systems) {
            (false, _) => String::new(),
            (true, 1) => format!(
                "<td class=\"w\"><a href=\"/systems/{}\">{}</a></td>",
                xml(&c.system),
                xml(&c.system_name)
            ),
            (true, n) => format!("<td class=\"w\">{n}</td>"),
        };
        // Nobody: the machine itself, as the cause says.
        let who = if c.who.is_empty() { "–" } else { c.who.as_str() };
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td><td>{}</td><td>{}</td>{on}</tr>",
            xml(who),
            xml(&c.cause),
            c.wakeups,
            ns(Some(c.longest_ns)),
        );
    }
    body.push_str("</tbody></table></div>");
    body
}
