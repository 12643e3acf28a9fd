// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of work: which agents there are, and what became of what was handed out.
//!
//! What agents say is text from strangers.

use std::fmt::Write as _;
use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::response::Response;
use tailbound_agent::wire::AgentStatus;
use tailbound_report::escape::xml;
use tailbound_store::{Act, Work, WorkState};

use super::app::App;
use super::campaigns::{self, UnderWay};
use super::overview::minute;
use super::page::{Page, Problem};
use super::who::{Who, allowed};

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
    let (under_way, all) = campaigns::under_way(&app).await?;
    let known = app.agents.all(app.now_s());
    let waiting = all.iter().filter(|w| w.state == WorkState::Waiting).count();
    let running = all.iter().filter(|w| w.state == WorkState::Running).count();
    let mut body = format!(
        "<p class=\"lead\">{} agent{} heard of since the server began; {running} running, {waiting} waiting.</p>",
        known.len(),
        if known.len() == 1 { "" } else { "s" },
    );
    if !under_way.is_empty() {
        progress(&mut body, &under_way, &app.days_ago(0));
    }
    if !known.is_empty() {
        let busy: Vec<&str> = all
            .iter()
            .filter(|w| w.state == WorkState::Running)
            .map(|w| w.system.as_str())
            .collect();
        agents(&mut body, &known, &busy);
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

fn progress(body: &mut String, all: &[UnderWay], today: &str) {
    body.push_str(
        "<h2>Under way</h2><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">System</th><th scope=\"col\" class=\"w\">Campaign</th>\
         <th scope=\"col\" class=\"w\">Progress</th><th scope=\"col\" class=\"w\">Run</th><th scope=\"col\" class=\"w\">Since (UTC)</th>\
         <th scope=\"col\" class=\"w\">Run ends</th><th scope=\"col\" class=\"w\">All ends</th><th scope=\"col\" class=\"w\">Heard of</th></tr></thead><tbody>",
    );
    let known = |it: Option<String>| it.unwrap_or_else(|| "unknown".to_owned());
    let clock = |at: &Option<String>| {
        known(at.as_ref().map(|at| match minute(at).strip_prefix(today) {
            Some(time) => format!("about{time}"),
            None => format!("about {}", minute(at)),
        }))
    };
    for u in all {
        let bar = match u.share {
            Some(share) => {
                format!("<progress max=\"1\" value=\"{share:.3}\" aria-label=\"done\"></progress> ")
            }
            None => String::new(),
        };
        let count = match (u.at, u.of) {
            (Some(at), Some(of)) => format!("run {at} of {of}"),
            (None, Some(of)) => format!("{of} run{}", if of == 1 { "" } else { "s" }),
            _ => "runs: unknown".to_owned(),
        };
        let failed = match u.not_complete {
            0 => String::new(),
            n => format!(", {n} not complete"),
        };
        let part = u.part.as_deref().unwrap_or("unknown");
        let part = match u.state {
            "running" => part.to_owned(),
            "waiting" => format!("{part} waits for the agent"),
            _ => format!("{part} is over, the next one is not handed out yet"),
        };
        let heard = match (u.state, u.said_s_ago) {
            ("running", Some(s)) => format!("{s} s ago"),
            ("running", None) => "says no progress".to_owned(),
            _ => "–".to_owned(),
        };
        let _ = write!(
            body,
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td><td class=\"w\">{bar}{count}{failed}</td><td class=\"w\">{}</td>\
             <td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"w\">{}</td><td class=\"w\">{heard}</td></tr>",
            xml(&u.system),
            xml(&u.campaign),
            xml(&part),
            xml(&known(u.began.as_deref().map(minute))),
            clock(&u.run_ends),
            clock(&u.ends),
        );
    }
    body.push_str(
        "</tbody></table></div><p class=\"soft\">Ends are what the agents expect; of a campaign of several runs, by the mean length of those before. \
         Agents say how far they are when a run begins, and each minute.</p>",
    );
}

/// `busy`: systems that have work; their agents do not ask meanwhile.
fn agents(body: &mut String, known: &[AgentStatus], busy: &[&str]) {
    body.push_str(
        "<h2>Agents</h2><div class=\"scroll\" tabindex=\"0\"><table><thead><tr><th scope=\"col\">System</th><th scope=\"col\" class=\"w\">State</th>\
         <th scope=\"col\" class=\"w opt\">Kernel</th><th scope=\"col\" class=\"w opt\">Version</th></tr></thead><tbody>",
    );
    for agent in known {
        let state = match (&agent.said.held, agent.seen_s_ago) {
            _ if busy.contains(&agent.system.as_str()) => "has work".to_owned(),
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
            "<tr><th scope=\"row\">{}</th><td class=\"w\">{}</td><td class=\"w\">{}{}</td><td class=\"w\">{}</td><td class=\"long\">{}</td>\
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
