// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a hunt tells: a sentence, the worst finds beside the single loads, what is left of the worst, the command.
//!
//! Units: ns; ratios. JSON, schema `tailbound-hunt/1` (members are added, never renamed or removed).

use serde_json::{Value, json};
use tailbound_core::number::Real as _;
use tailbound_core::order;
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_report::Style;
use tailbound_report::escape::shell;
use tailbound_report::table::Table;

use super::LabHunt;
use crate::hunt::{Entry, Origin, Outcome};

/// Version of the JSON answer.
const SCHEMA: &str = "tailbound-hunt/1";
/// Rows of the table of finds.
pub(super) const ROWS: usize = 8;

fn ratio(ns: i64, of_ns: i64) -> Option<f64> {
    (of_ns > 0).then(|| ns.real() / of_ns.real())
}

pub(super) fn times(ns: i64, of_ns: i64) -> String {
    ratio(ns, of_ns).map_or_else(String::new, |r| format!("{r:.2}"))
}

pub(super) fn latest(entry: Option<&Entry>) -> i64 {
    entry.and_then(Entry::latest_ns).unwrap_or(0)
}

fn seconds(f: &LabHunt) -> i64 {
    i64::try_from(f.took.as_secs()).unwrap_or(i64::MAX)
}

fn failed(f: &LabHunt) -> usize {
    let failed = |e: &&Entry| matches!(e.outcome, Outcome::Failed(_));
    f.search.entries().iter().filter(failed).count()
}

fn sentence(f: &LabHunt) -> String {
    let (worst, base) = (f.search.worst(), f.search.worst_of_base());
    let (worst_ns, base_ns) = (latest(worst), latest(base));
    let of_base = base.map_or_else(String::new, |e| {
        format!("{} under the worst single load ({})", format_ns_i64(base_ns), e.candidate.load())
    });
    let n = f.search.entries().len();
    if worst.is_some_and(|e| e.origin == Origin::Base) {
        return format!(
            "Nothing worse than the worst single load was found for {} in {n} candidates: {of_base}.",
            f.header.kernel
        );
    }
    format!(
        "The worst workload found for {} makes a wake-up {} late: {} times the {of_base}, in {} candidates{}.",
        f.header.kernel,
        format_ns_i64(worst_ns),
        times(worst_ns, base_ns),
        grouped(n as u64),
        if f.header.random { " drawn at random" } else { "" },
    )
}

/// What is known of each candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Knowledge {
    /// How late it was.
    Latency,
    /// And its sections: they were watched.
    Sections,
}

pub(super) fn row(e: &Entry, base_ns: i64, known: Knowledge) -> Vec<String> {
    let latest = e.latest_ns().unwrap_or(0);
    let mut cells = vec![e.nr.to_string(), format_ns_i64(latest), times(latest, base_ns)];
    if known == Knowledge::Sections {
        let figures = e.outcome.figures();
        let ns = |ns: Option<i64>| ns.map_or_else(|| "unknown".to_owned(), format_ns_i64);
        cells.push(ns(figures.and_then(|f| f.section_ns)));
        cells.push(ns(figures.and_then(|f| f.pending_ns)));
    }
    cells.push(e.candidate.to_string());
    cells
}

pub(super) fn head(known: Knowledge) -> Vec<&'static str> {
    let mut head = vec!["candidate", "latest", "times"];
    if known == Knowledge::Sections {
        head.extend(["not preemptible", "pending"]);
    }
    head.push("workload");
    head
}

/// For people.
pub(super) fn text(f: &LabHunt, style: Style) -> String {
    let mut lines = vec![sentence(f), String::new()];
    let base_ns = latest(f.search.worst_of_base());
    let watched = f.header.watched;
    let known = if watched { Knowledge::Sections } else { Knowledge::Latency };
    let words = head(known);
    let last = words.len() - 1;
    let mut table = Table::new(&words).with_words(&[last]);
    let found = f.search.latest_by_loads();
    for e in found.iter().take(ROWS) {
        table.row(row(e, base_ns, known));
    }
    lines.push("The latest of each set of loads".to_owned());
    // A workload is as long as it is: a line that is wrapped can still be copied.
    lines.extend(table.text(style.width.max(400)));
    let base: Vec<&&Entry> = found.iter().filter(|e| e.candidate.loads.len() < 2).collect();
    let mut single: Vec<&Entry> =
        f.search.entries().iter().filter(|e| e.origin == Origin::Base).collect();
    order::by_key(&mut single, |e| (std::cmp::Reverse(e.latest_ns()), e.nr));
    if !base.is_empty() {
        let all: Vec<String> = single
            .iter()
            .filter_map(|e| {
                Some(format!("{} {}", e.candidate.load(), format_ns_i64(e.latest_ns()?)))
            })
            .collect();
        lines.extend([String::new(), format!("Single loads as they come: {}.", all.join(", "))]);
    }
    lines.push(String::new());
    remains(f, &mut lines);
    let failed = failed(f);
    if failed > 0 {
        lines.push(format!("{failed} candidates could not be run: see corpus.jsonl."));
    }
    let pairs = if watched {
        format!(
            " {} pairs of functions were seen around sections. {}",
            grouped(f.search.pairs() as u64),
            reached(f)
        )
    } else {
        let why = f.unwatched.clone().unwrap_or_else(|| "--no-paths".to_owned());
        format!(
            " Neither sections nor the code that was reached are known ({why}): the latest wake-ups alone led the search."
        )
    };
    lines.push(format!(
        "{} guests were run in {}.{pairs}",
        f.runs,
        format_span(seconds(f).saturating_mul(1_000_000_000))
    ));
    lines.push(format!("Corpus    {}", f.folder.join("corpus.jsonl").display()));
    lines.join("\n")
}

/// The code of the kernel that was executed.
fn reached(f: &LabHunt) -> String {
    let Some((code, firsts)) = f.search.reached() else {
        return "Which code of the kernel was reached is not known.".to_owned();
    };
    format!(
        "{} KiB of the kernel's code were executed; {} candidates behind the single loads executed some that none had before.",
        grouped(code.bytes() / 1024),
        grouped(firsts as u64)
    )
}

/// What is left of the worst.
fn remains(f: &LabHunt, lines: &mut Vec<String>) {
    let Some(shrunk) = &f.shrunk else {
        lines.push("Interrupted before the worst was made smaller: the same command goes on; with --for 0s it does that at once.".to_owned());
        lines.extend([
            "The worst as it was found:".to_owned(),
            format!("  {}", shell(&f.command)),
            String::new(),
        ]);
        return;
    };
    let of = f.shrinks.map_or_else(|| "it".to_owned(), |nr| format!("candidate {nr}"));
    lines.push(format!(
        "What is left of {of} after {} steps: {} with {}.",
        shrunk.steps.len(),
        format_ns_i64(shrunk.latest_ns),
        shrunk.candidate
    ));
    match &f.remains {
        Some(r) if r.same() => {
            lines.push(format!(
                "Repeat it; run once more, its latest wake-up was the same {} ns:",
                grouped(r.latest_ns.unsigned_abs())
            ));
        }
        Some(r) => lines.push(format!(
            "Run once more it was NOT the same: {} ns instead of {} ns. The command:",
            r.latest_ns, r.expected_ns
        )),
        None => lines.push("Interrupted: the same command goes on. So far:".to_owned()),
    }
    lines.push(format!("  {}", shell(&f.command)));
    if let Some(r) = &f.remains {
        lines.push(format!(
            "As a campaign, whose job bears a name, {} ({} ns):",
            format_ns_i64(r.campaign_ns),
            grouped(r.campaign_ns.unsigned_abs())
        ));
        lines.push(format!("  {}", shell(&r.campaign)));
        if let Some(program) = &r.program {
            lines.push(format!("Its system calls as a C program: {}", program.display()));
        }
    }
    lines.push(String::new());
}

pub(super) fn entry(e: &Entry, base_ns: i64) -> Value {
    json!({
        "nr": e.nr,
        "origin": e.origin,
        "load": e.candidate.load(),
        "interval_ns": e.candidate.interval_ns,
        "seed": e.candidate.seed,
        "latest_ns": e.latest_ns(),
        "times_base": e.latest_ns().and_then(|ns| ratio(ns, base_ns)),
        "section_ns": e.outcome.figures().and_then(|f| f.section_ns),
        "pending_ns": e.outcome.figures().and_then(|f| f.pending_ns),
    })
}

/// For scripts.
pub(super) fn json(f: &LabHunt) -> Value {
    let base_ns = latest(f.search.worst_of_base());
    let of = |e: &Entry| entry(e, base_ns);
    let found = f.search.latest_by_loads();
    let base = f.search.entries().iter().filter(|e| e.origin == Origin::Base);
    json!({
        "schema": SCHEMA,
        "sentence": sentence(f),
        "hunt": f.header,
        "evaluations": f.search.entries().len(),
        "failed": failed(f),
        "pairs": f.header.watched.then(|| f.search.pairs()),
        "code": f.search.reached().map(|(code, firsts)| json!({
            "bytes": code.bytes(),
            "ranges": code.ranges(),
            "first": firsts,
        })),
        "unwatched": f.unwatched,
        "interrupted": f.interrupted,
        "worst": f.search.worst().map(of),
        "worst_of_base": f.search.worst_of_base().map(of),
        "base": base.map(of).collect::<Vec<_>>(),
        "records": f.search.records().into_iter().map(of).collect::<Vec<_>>(),
        "finds": found.into_iter().take(ROWS).map(of).collect::<Vec<_>>(),
        "shrunk": f.shrunk.as_ref().map(|s| json!({
            "candidate": f.shrinks.or_else(|| f.search.worst().map(|e| e.nr)),
            "load": s.candidate.load(),
            "interval_ns": s.candidate.interval_ns,
            "seed": s.candidate.seed,
            "latest_ns": s.latest_ns,
            "steps": s.steps.len(),
            "complete": s.end == crate::hunt::End::Done,
        })),
        "verified": f.remains.as_ref().map(|r| json!({
            "same": r.same(),
            "latest_ns": r.latest_ns,
            "campaign_latest_ns": r.campaign_ns,
            "campaign": r.campaign,
            "c_program": r.program,
        })),
        "command": f.command,
        "runs": f.runs,
        "took_s": f.took.as_secs_f64(),
    })
}
