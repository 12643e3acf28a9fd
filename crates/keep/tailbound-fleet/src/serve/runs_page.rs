// SPDX-License-Identifier: MIT OR Apache-2.0
//! All runs: a page at a time, by system, load, kernel, verdict and date, and by words.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::extract::Query;
use axum::response::Response;
use serde::Deserialize;
use tailbound_core::units::grouped;
use tailbound_report::escape::xml;
use tailbound_store::{
    RunKinds, RunNote, RunPage, RunQuery, RunRow, StoreError, SystemName, Verdict,
};

use super::app::App;
use super::frame::ReadRequest;
use super::listing::{Column, Listing};
use super::morning::wrong_clock;
use super::overview::{choice, minute};
use super::page::{Page, ns, verdict};
use super::problem::Problem;
use super::runs::behind;

/// Runs of a page.
pub(super) const SHOWN: u32 = 60;
/// Runs of an answer of the API at most.
const ANSWERED: u32 = 1000;

/// What is asked for. A form sends what was left empty, too: that is not asked.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListedBy {
    system: Option<String>,
    load: Option<String>,
    kernel: Option<String>,
    verdict: Option<String>,
    from: Option<String>,
    to: Option<String>,
    words: Option<String>,
    page: Option<u64>,
    limit: Option<u32>,
}

/// The word for "without load" in an address, where an empty one means "any".
const NO_LOAD: &str = "none";

impl ListedBy {
    /// As the store is asked; `of`: the identity of the system that is named.
    fn query(&self, of: Option<String>, most: u32) -> Result<RunQuery, Problem> {
        let given = |it: &Option<String>| it.clone().filter(|text| !text.trim().is_empty());
        let page = self.page.unwrap_or(1).max(1);
        let outcome = given(&self.verdict);
        if let Some(word) = outcome.as_deref().filter(|w| Verdict::of(w).as_str() != *w) {
            return Err(Problem::Wrong(format!("verdict: there is no `{word}`")));
        }
        Ok(RunQuery {
            system: of,
            since: given(&self.from),
            until: given(&self.to).map(|day| behind(&day)).transpose()?,
            loads: given(&self.load).map(|l| if l == NO_LOAD { String::new() } else { l }),
            kernel: given(&self.kernel),
            outcome,
            words: given(&self.words),
            skip: (page - 1).saturating_mul(most.into()),
            most,
        })
    }

    /// The address of another page of the same list.
    fn address(&self, page: u64) -> String {
        let mut to = "/runs?".to_owned();
        let fields = [
            ("system", &self.system),
            ("load", &self.load),
            ("kernel", &self.kernel),
            ("verdict", &self.verdict),
            ("from", &self.from),
            ("to", &self.to),
            ("words", &self.words),
        ];
        for (name, value) in fields {
            if let Some(value) = value.as_deref().filter(|v| !v.is_empty()) {
                let _ = write!(to, "{name}={}&", encoded(value));
            }
        }
        let _ = write!(to, "page={page}");
        to
    }
}

/// A value in an address.
pub(super) fn encoded(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte));
            }
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// A page of a list with all that it shows.
struct Listed {
    found: RunPage,
    names: BTreeMap<String, String>,
    kinds: RunKinds,
    notes: Vec<RunNote>,
}

async fn listed(app: &Arc<App>, by: &ListedBy, most: u32) -> Result<Listed, Problem> {
    let named = by.system.clone().filter(|name| !name.trim().is_empty());
    let wanted = named.clone();
    let system = app
        .ask(move |store| wanted.map(|name| store.system_named(&name)).transpose())
        .await?
        .flatten();
    if let (Some(name), None) = (&named, &system) {
        return Err(Problem::Missing(format!("there is no system `{name}`")));
    }
    let query = by.query(system.map(|s| s.id), most)?;
    app.ask(move |store| {
        let found = store.runs_page(&query)?;
        let ids: Vec<String> = found.runs.iter().map(|run| run.id.clone()).collect();
        let names = store.system_names()?;
        Ok::<_, StoreError>(Listed {
            names: names.into_iter().map(|SystemName { id, name }| (id, name)).collect(),
            kinds: store.run_kinds()?,
            notes: store.notes(&ids)?,
            found,
        })
    })
    .await
}

/// The same for programs.
pub(super) async fn answer(app: &Arc<App>, by: &ListedBy) -> Result<serde_json::Value, Problem> {
    let most = by.limit.unwrap_or(SHOWN).clamp(1, ANSWERED);
    let all = listed(app, by, most).await?;
    Ok(serde_json::json!({
        "total": all.found.total,
        "page": by.page.unwrap_or(1).max(1),
        "limit": most,
        "runs": all.found.runs,
        "notes": all.notes,
    }))
}

/// `GET /runs`
pub(super) async fn page(
    ReadRequest { app, .. }: ReadRequest,
    Query(by): Query<ListedBy>,
) -> Result<Response, Problem> {
    let all = listed(&app, &by, SHOWN).await?;
    let mut page = Page::new(&app, "Runs");
    form(&mut page.body, &by, &all);
    let at = by.page.unwrap_or(1).max(1);
    let pages = all.found.total.div_ceil(u64::from(SHOWN)).max(1);
    let first = (at - 1).saturating_mul(SHOWN.into());
    let shown = all.found.runs.len() as u64;
    let words = match shown {
        0 => format!("No run on this page; {} in all.", grouped(all.found.total)),
        n => format!(
            "Runs {} to {} of {}, the newest first.",
            grouped(first + 1),
            grouped(first + n),
            grouped(all.found.total)
        ),
    };
    let mut turn = String::new();
    for (name, to, there) in [
        ("Newest", 1, at > 1),
        ("Newer", at.saturating_sub(1).max(1), at > 1),
        ("Older", at + 1, at < pages),
        ("Oldest", pages, at < pages),
    ] {
        if there {
            let _ = write!(turn, "<a href=\"{}\">{name}</a> ", xml(&by.address(to)));
        }
    }
    let turn = format!("<p class=\"pages\">{words} {turn}</p>");
    page.body.push_str(&turn);
    let table = table(&all.found.runs, &all.notes, Some(&all.names));
    let _ = write!(
        page.body,
        "<form method=\"get\" action=\"/compare\" class=\"list\"><button type=\"submit\">Compare the chosen</button>\
         <button type=\"submit\" formaction=\"/changed\">What changed between two chosen</button>{table}</form>{turn}"
    );
    Ok(page.answer())
}

fn options(
    body: &mut String,
    name: &str,
    label: &str,
    chosen: Option<&str>,
    all: &[(String, String)],
) {
    let _ = write!(body, "<label>{label} <select name=\"{name}\"><option value=\"\">any</option>");
    for (value, shown) in all {
        let mark = if chosen == Some(value) { " selected=\"\"" } else { "" };
        let _ = write!(body, "<option value=\"{}\"{mark}>{}</option>", xml(value), xml(shown));
    }
    body.push_str("</select></label>");
}

fn form(body: &mut String, by: &ListedBy, all: &Listed) {
    let same = |texts: &[String]| -> Vec<(String, String)> {
        texts.iter().map(|t| (t.clone(), t.clone())).collect()
    };
    let loads: Vec<(String, String)> = all
        .kinds
        .loads
        .iter()
        .map(|l| if l.is_empty() { NO_LOAD.to_owned() } else { l.clone() })
        .map(|l| (l.clone(), l))
        .collect();
    let names: Vec<String> = all.names.values().cloned().collect();
    let verdicts: Vec<(String, String)> =
        Verdict::ALL.map(|v| (v.as_str().to_owned(), v.as_str().replace('-', " "))).into();
    let system = by.system.as_deref();
    let system = system.and_then(|s| all.names.get(s)).map(String::as_str).or(system);
    body.push_str("<form method=\"get\" action=\"/runs\" class=\"filter\">");
    options(body, "system", "System", system, &same(&names));
    options(body, "load", "Load", by.load.as_deref(), &loads);
    options(body, "kernel", "Kernel", by.kernel.as_deref(), &same(&all.kinds.kernels));
    options(body, "verdict", "Verdict", by.verdict.as_deref(), &verdicts);
    for (name, label, kind, value) in [
        ("from", "From", "date", &by.from),
        ("to", "To", "date", &by.to),
        ("words", "Words", "search", &by.words),
    ] {
        let value = xml(value.as_deref().unwrap_or_default());
        let _ = write!(
            body,
            "<label>{label} <input type=\"{kind}\" name=\"{name}\" value=\"{value}\"/></label>"
        );
    }
    body.push_str("<button type=\"submit\">Show</button> <a href=\"/runs\">All runs</a></form>");
}

/// Runs as a table; `names`: of their systems, where there are several.
pub(super) fn table(
    runs: &[RunRow],
    notes: &[RunNote],
    names: Option<&BTreeMap<String, String>>,
) -> String {
    let mut columns = vec![Column::Name("Began (UTC)")];
    columns.extend(names.map(|_| Column::Words("System")));
    columns.extend([
        Column::Words("Verdict"),
        Column::Words("Loads"),
        Column::Figure("Median"),
        Column::Figure("99.9 %"),
        Column::Figure("Latest"),
        Column::Figure("Deadline"),
        Column::Figure("Activations"),
        Column::Words("Kernel"),
        Column::Text("Doubts and notes"),
    ]);
    let mut listing = Listing::new(&columns);
    for (at, run) in runs.iter().enumerate() {
        let [p50, _, p999, ..] = run.quantiles_ns;
        // Of the run before it in the same series.
        let older = runs
            .iter()
            .skip(at + 1)
            .find(|o| o.system == run.system && o.workload == run.workload)
            .filter(|older| older.kernel_id != run.kernel_id);
        let kernel = xml(run.kernel.as_deref().unwrap_or("unknown"));
        let kernel = older.map_or_else(
            || kernel.clone(),
            |older| {
                format!(
                    "<a href=\"/changed?run={}&amp;run={}\">{kernel}, changed</a>",
                    xml(&older.id),
                    xml(&run.id)
                )
            },
        );
        let clock = run.clock_said.as_deref();
        let clock = clock.map_or_else(String::new, |said| format!("<br/>{}", wrong_clock(said)));
        let mut cells = vec![format!(
            "{}<a href=\"/runs/{}\">{}</a>{clock}",
            choice(&run.id, &minute(&run.started)),
            xml(&run.id),
            xml(&minute(&run.started))
        )];
        if let Some(names) = names {
            let name = names.get(&run.system).unwrap_or(&run.system);
            cells.push(format!("<a href=\"/systems/{}\">{}</a>", xml(&run.system), xml(name)));
        }
        let said = notes.iter().filter(|n| n.run == run.id).map(|n| {
            format!("<br/><span class=\"known\">{}: {}</span>", xml(&n.author), xml(&n.message))
        });
        cells.extend([
            verdict(&run.outcome),
            xml(if run.loads.is_empty() { NO_LOAD } else { &run.loads }),
            ns(p50),
            ns(p999),
            ns(run.max_ns()),
            ns(run.deadline_ns),
            grouped(u64::try_from(run.activations).unwrap_or(0)),
            kernel,
            format!("{}{}", xml(&run.reasons), said.collect::<String>()),
        ]);
        listing.row(&cells);
    }
    listing.html()
}
