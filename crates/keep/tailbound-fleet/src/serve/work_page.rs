// SPDX-License-Identifier: MIT OR Apache-2.0
//! The page of work: which agents there are, and what became of what was handed out.
//!
//! What agents say is text from strangers.

use std::fmt::Write as _;

use axum::response::Response;
use tailbound_agent::wire::AgentStatus;
use tailbound_core::printable::excerpt;
use tailbound_report::escape::xml;
use tailbound_store::{Work, WorkState};

use super::boards::UNHEARD_S;
use super::campaigns::{self, CampaignState, UnderWay};
use super::frame::ReadRequest;
use super::listing::{Column, Listing};
use super::overview::minute;
use super::page::Page;
use super::problem::Problem;
use super::work;

/// Runs of a piece that are named.
const SHOWN: usize = 20;
/// The page is as old at most.
const RENEWED_S: u32 = 5;

/// `GET /work`
pub(super) async fn page(ReadRequest { app, .. }: ReadRequest) -> Result<Response, Problem> {
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
    let mut listing = Listing::new(&[
        Column::Name("System"),
        Column::Words("Campaign"),
        Column::Words("Progress"),
        Column::Words("Run"),
        Column::Words("Since (UTC)"),
        Column::Words("Run ends"),
        Column::Words("All ends"),
        Column::Words("Heard of"),
    ]);
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
            CampaignState::Running => part.to_owned(),
            CampaignState::Waiting => format!("{part} waits for the agent"),
            CampaignState::Between => format!("{part} is over, the next one is not handed out yet"),
        };
        let heard = match (u.state, u.said_s_ago) {
            (CampaignState::Running, Some(s)) => format!("{s} s ago"),
            (CampaignState::Running, None) => "says no progress".to_owned(),
            _ => "–".to_owned(),
        };
        listing.row(&[
            xml(&u.system),
            xml(&u.campaign),
            format!("{bar}{count}{failed}"),
            xml(&part),
            xml(&known(u.began.as_deref().map(minute))),
            clock(&u.run_ends),
            clock(&u.ends),
            heard,
        ]);
    }
    let _ = write!(
        body,
        "<h2>Under way</h2>{}<p class=\"soft\">Ends are what the agents expect; of a campaign of several runs, by the mean length of those before. \
         Agents say how far they are when a run begins, and each minute.</p>",
        listing.html()
    );
}

/// `busy`: systems that have work; their agents do not ask meanwhile.
fn agents(body: &mut String, known: &[AgentStatus], busy: &[&str]) {
    let mut listing = Listing::new(&[
        Column::Name("System"),
        Column::Words("State"),
        Column::Aside("Kernel"),
        Column::Aside("Version"),
    ]);
    for agent in known {
        let state = match (&agent.said.held, agent.seen_s_ago) {
            _ if busy.contains(&agent.system.as_str()) => "has work".to_owned(),
            (_, ago) if ago > UNHEARD_S.unsigned_abs() => format!("silent for {} min", ago / 60),
            (Some(who), _) => format!("held: {who}"),
            (None, _) => "asks for work".to_owned(),
        };
        let (kernel, version) = (xml(&agent.said.kernel), xml(&agent.said.version));
        listing.row(&[xml(&agent.system), xml(&state), kernel, version]);
    }
    let _ = write!(body, "<h2>Agents</h2>{}", listing.html());
}

fn pieces(body: &mut String, all: &[Work]) {
    let mut listing = Listing::new(&[
        Column::Name("Handed out"),
        Column::Words("System"),
        Column::Words("Campaign"),
        Column::Words("State"),
        Column::Text("Why, or what it says"),
        Column::Words("Runs"),
        Column::Aside("By"),
    ]);
    for w in all {
        let parts = w.parts.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(", ");
        let parts = match w.parts.len() {
            0 => String::new(),
            n if n > SHOWN => format!(": {parts} and {} more", n - SHOWN),
            _ => format!(": {parts}"),
        };
        let words = w.reason.as_deref().or(w.progress.as_deref()).unwrap_or_default();
        let mut runs = String::new();
        for run in w.runs.iter().take(SHOWN) {
            let _ = write!(runs, "<a href=\"/runs/{}\">{}</a> ", xml(&run.run), xml(&run.part));
        }
        if w.runs.len() > SHOWN {
            let _ = write!(runs, "and {} more", w.runs.len() - SHOWN);
        }
        listing.row(&[
            xml(&minute(&w.created)),
            xml(&w.system),
            xml(&excerpt(&format!("{}{parts}", w.name), work::LINE_CHARS)),
            w.state.as_str().to_owned(),
            xml(words),
            runs,
            xml(&w.handed_out_by),
        ]);
    }
    let more = match u32::try_from(all.len()) {
        Ok(n) if n >= work::LISTED => format!(
            "<p class=\"soft\">The newest {n}; earlier ones are in the table <code>work</code>.</p>"
        ),
        _ => String::new(),
    };
    let _ = write!(body, "<h2>Work</h2>{}{more}", listing.html());
}
