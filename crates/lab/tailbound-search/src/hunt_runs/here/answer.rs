// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a hunt on this machine tells: what `compare` says of the find beside the worst single load, the latest of each
//! set of loads, and the command for each.
//!
//! Units: ns; ratios. JSON, schema `tailbound-hunt-here/1` (members are added, never renamed or removed).

use serde_json::{Value, json};
use tailbound_core::units::{exact, format_ns_i64, format_span};
use tailbound_report::escape::shell;
use tailbound_report::table::Table;
use tailbound_stats::compare::sentence::sentence;

use super::super::answer::{Knowledge, ROWS, entry, head, latest, row};
use super::{FOUND, LAST_ROUNDS, MachineHunt, SINGLE, machine};
use crate::hunt::{Candidate, Entry, Origin, Outcome};

const SCHEMA: &str = "tailbound-hunt-here/1";
const NS_PER_S: u64 = 1_000_000_000;

/// The words of `run` that measure a candidate as here.
fn command(f: &MachineHunt, candidate: &Candidate) -> Vec<String> {
    let mut all: Vec<String> = ["tailbound", "run"].map(str::to_owned).to_vec();
    all.extend(machine::words(candidate));
    all.extend(["--duration".to_owned(), exact(f.how.run_ns)]);
    if let Some(cpus) = &f.how.cpus {
        all.extend(["--cpus".to_owned(), cpus.clone()]);
    }
    all
}

/// What the last measurement says.
fn sentences(f: &MachineHunt) -> Vec<String> {
    let n = f.search.entries().len();
    let single = f.single.as_ref().map_or_else(String::new, |e| e.candidate.without_seed());
    let mut all = Vec::new();
    match (&f.judged, &f.shrunk) {
        (Some(judged), Some(shrunk)) => {
            all.push(format!(
                "What is left of the worst of {n} candidates: {}. It and the worst single load ({single}) were measured again, {LAST_ROUNDS} times each in random order:",
                shrunk.candidate.without_seed()
            ));
            for difference in &judged.differences {
                all.push(match difference {
                    Ok(d) => sentence(d, SINGLE, FOUND, &f.settings),
                    Err(why) => why.to_string(),
                });
            }
        }
        _ if f.interrupted => all.push(format!(
            "Interrupted after {n} candidates: the same command goes on. Nothing was measured again, so that nothing is shown yet."
        )),
        _ => all.push(format!(
            "Nothing later than the worst single load ({single}) was found in {n} candidates."
        )),
    }
    all
}

pub(super) fn text(f: &MachineHunt, width: usize) -> String {
    let mut lines = sentences(f);
    let base_ns = latest(f.single.as_ref());
    let words = head(Knowledge::Latency);
    let mut table = Table::new(&words).with_words(&[words.len() - 1]);
    let found = f.search.latest_by_loads();
    for e in found.iter().take(ROWS) {
        let mut cells = row(e, base_ns, Knowledge::Latency);
        cells.pop();
        cells.push(e.candidate.without_seed());
        table.row(cells);
    }
    lines.push(String::new());
    lines.push(format!(
        "The search, which proves nothing: latest wake-up that each of {} runs of {} reached",
        f.how.rounds,
        format_ns_i64(f.how.run_ns)
    ));
    lines.extend(table.text(width.max(400)));
    lines.push(String::new());
    if let Some(shrunk) = &f.shrunk {
        lines.push("To measure the find, and the worst single load:".to_owned());
        lines.push(format!("  {}", shell(&command(f, &shrunk.candidate))));
        lines.extend(f.single.as_ref().map(|e| format!("  {}", shell(&command(f, &e.candidate)))));
    }
    let failed = f.search.entries().iter();
    let failed = failed.filter(|e| matches!(e.outcome, Outcome::Failed(_))).count();
    if failed > 0 {
        lines.push(format!("{failed} candidates could not be run: see corpus.jsonl."));
    }
    let took_ns = f.took.as_secs().saturating_mul(NS_PER_S);
    let took = format_span(i64::try_from(took_ns).unwrap_or(i64::MAX));
    lines.push(format!("{} runs were made in {took} for the search.", f.runs));
    lines.push(format!("Corpus    {}", f.folder.join("corpus.jsonl").display()));
    lines.join("\n")
}

pub(super) fn json(f: &MachineHunt) -> Value {
    let base_ns = latest(f.single.as_ref());
    let of = |e: &Entry| entry(e, base_ns);
    let base = f.search.entries().iter().filter(|e| e.origin == Origin::Base);
    json!({
        "schema": SCHEMA,
        "sentences": sentences(f),
        "hunt": f.header,
        "evaluations": f.search.entries().len(),
        "interrupted": f.interrupted,
        "worst": f.search.worst().map(of),
        "worst_of_base": f.single.as_ref().map(of),
        "base": base.map(of).collect::<Vec<_>>(),
        "records": f.search.records().into_iter().map(of).collect::<Vec<_>>(),
        "shrunk": f.shrunk.as_ref().map(|s| json!({
            "load": s.candidate.load(),
            "interval_ns": s.candidate.interval_ns,
            "steps": s.steps.len(),
            "command": command(f, &s.candidate),
        })),
        "compared": f.judged.as_ref().map(tailbound_report::compare::Answer::json),
        "runs": f.runs,
        "took_s": f.took.as_secs_f64(),
    })
}
