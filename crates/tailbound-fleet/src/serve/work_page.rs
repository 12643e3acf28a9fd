// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of work: which agents there are, and what became of what was handed out.
//!
//! Context: COLD. What agents say is text from strangers.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_agent::wire::Known;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Work, WorkState};

use super::app::App;
use super::overview::minute;
use super::page::{Page, Problem};
use super::who::{Who, allowed};
use super::work;

/// An agent asks at least so often.
const SILENT_S: u64 = 180;
/// The page is as old at most.
const RENEWED_S: u32 = 5;

/// `GET /work`
pub(super) async fn page(
    State(app): State<Arc<App>>,
    Extension(who): Extension<Who>,
) -> Result<Response, Problem> {
    allowed(&app, &who, Act::Read)?;
    work::lose(&app).await?;
    let all = app.ask(|store| store.all_work(work::LISTED)).await?;
    let known = app.agents.all(app.now_s());
    let waiting = all.iter().filter(|w| w.state == WorkState::Waiting).count();
    let running = all.iter().filter(|w| w.state == WorkState::Running).count();
    let mut body = format!(
        "<p class=\"lead\">{} agent{} heard of since the server began; {running} running, {waiting} waiting.</p>",
        known.len(),
        if known.len() == 1 { "" } else { "s" },
    );
    if !known.is_empty() {
        agents(&mut body, &known);
    }
    if all.is_empty() {
        body.push_str("<p>No work was handed out yet: <code>tailbound fleet run</code> does, with targets whose engine is <code>agent</code>.</p>");
    } else {
        pieces(&mut body, &all);
    }
    let mut page = Page::new(&app, "Campaigns").renewed(RENEWED_S);
    page.body = body;
    Ok(page.answer())
}

fn agents(body: &mut String, known: &[Known]) {
    body.push_str(
        "<h2>Agents</h2><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">System</th><th scope=\"col\" class=\"w\">State</th>\
         <th scope=\"col\" class=\"w opt\">Kernel</th><th scope=\"col\" class=\"w opt\">Version</th></tr></thead><tbody>",
    );
    for agent in known {
        let state = match (&agent.said.held, agent.seen_s_ago) {
            (_, ago) if ago > SILENT_S => format!("silent for {} min", ago / 60),
            (Some(who), _) => format!("held: {who}"),
            (None, _) => "asks for work".to_owned(),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td><td class=\"w opt\">{}</td><td class=\"w opt\">{}</td></tr>",
            xml(&agent.system),
            xml(&state),
            xml(&agent.said.kernel),
            xml(&agent.said.version),
        );
    }
    body.push_str("</tbody></table></div>");
}

fn pieces(body: &mut String, all: &[Work]) {
    body.push_str(
        "<h2>Work</h2><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">Handed out</th><th scope=\"col\" class=\"w\">System</th>\
         <th scope=\"col\" class=\"w\">Campaign</th><th scope=\"col\" class=\"w\">State</th><th scope=\"col\" class=\"w\">Why, or what it says</th>\
         <th scope=\"col\" class=\"w\">Runs</th><th scope=\"col\" class=\"w opt\">By</th></tr></thead><tbody>",
    );
    for w in all {
        let parts =
            if w.parts.is_empty() { String::new() } else { format!(": {}", w.parts.join(", ")) };
        let words = w.reason.as_deref().or(w.progress.as_deref()).unwrap_or_default();
        let mut runs = String::new();
        for run in &w.runs {
            let _ = write!(runs, "<a href=\"/runs/{}\">{}</a> ", xml(&run.run), xml(&run.part));
        }
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td><td class=\"w\">{}{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td>\
             <td class=\"w\">{runs}</td><td class=\"w opt\">{}</td></tr>",
            xml(&minute(&w.created)),
            xml(&w.system),
            xml(&w.name),
            xml(&parts),
            w.state.as_str(),
            xml(words),
            xml(&w.handed_out_by),
        );
    }
    body.push_str("</tbody></table></div>");
}
