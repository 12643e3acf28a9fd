// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tables of a task model and its bounds.
//!
//! Units: ns in, text out.

use tailbound_core::tasks::{Arrivals, Task, TaskRecord};
use tailbound_core::units::{format_ns_i64, grouped, trimmed};
use tailbound_stats::tasks::{Bound, NoBound, ResponseTimes, Term, TermKind, Thread};

use crate::table::Table;

/// Nothing, or not known.
const NONE: &str = "-";

/// The model: a row a task.
pub(super) fn model(tasks: &[Task]) -> Table {
    let head = [
        "thread",
        "CPU",
        "policy",
        "jobs",
        "releases",
        "execution",
        "on CPU",
        "2 jobs",
        "asleep",
        "blocked",
        "latency",
        "section",
    ];
    let mut table = Table::new(&head).with_words(&[2, 4]);
    let first = |list: &[i64]| list.first().copied().unwrap_or(0);
    for t in tasks {
        let or_none = |ns: i64| if ns == 0 { NONE.to_owned() } else { format_ns_i64(ns) };
        let nth = |n: usize| {
            t.execution_ns.get(n).map_or_else(|| NONE.to_owned(), |ns| format_ns_i64(*ns))
        };
        table.row(vec![
            t.name.clone(),
            cpus(&t.cpus),
            t.policy.to_string(),
            t.jobs.map_or_else(|| NONE.to_owned(), grouped),
            releases(t),
            t.own_execution_ns.map_or_else(|| nth(0), format_ns_i64),
            nth(0),
            nth(1),
            or_none(first(&t.suspension_ns)),
            or_none(first(&t.blocking_ns).saturating_add(t.blocking_once_ns)),
            or_none(first(&t.latency_ns)),
            or_none(t.section_ns.max(t.non_preemptible_ns)),
        ]);
    }
    table
}

fn cpus(cpus: &[u32]) -> String {
    match cpus {
        [] => NONE.to_owned(),
        [one] => one.to_string(),
        [first, .., last] if cpus.len() > 4 => format!("{first}…{last}"),
        some => some.iter().map(ToString::to_string).collect::<Vec<_>>().join(","),
    }
}

fn releases(t: &Task) -> String {
    let least = match &t.arrivals {
        Arrivals::Periodic { period_ns, .. } => Some(*period_ns),
        Arrivals::Curve(distances) => distances.first().copied(),
    };
    match (t.period_ns, least) {
        (Some(period), _) if t.jitter_ns > 0 => {
            format!("every {} ± {}", format_ns_i64(period), format_ns_i64(t.jitter_ns))
        }
        (Some(period), _) => format!("every {}", format_ns_i64(period)),
        (None, Some(least)) => format!("sporadic, {} apart", format_ns_i64(least)),
        (None, None) => "not known".to_owned(),
    }
}

/// When the largest figures were seen, for a model of a run: a row a thread.
pub(super) fn evidence(records: &[TaskRecord], tasks: &[Task]) -> Table {
    let head = [
        "largest, at",
        "response",
        "asleep",
        "blocked",
        "latency",
        "section",
        "others",
        "lost jobs",
    ];
    let mut table = Table::new(&head);
    for (r, task) in records.iter().zip(tasks) {
        let at = |o: tailbound_core::tasks::Observed| match o.ns {
            0 => NONE.to_owned(),
            ns => format!("{} @ {} s", format_ns_i64(ns), trimmed(o.t_ns as f64 / 1e9, 3)),
        };
        let mut row = vec![task.name.clone()];
        row.extend(
            [r.response, r.suspension, r.blocked, r.latency, r.section, r.unwatched].map(at),
        );
        row.push(grouped(r.lost));
        table.row(row);
    }
    table
}

/// The bounds: a row a thread.
pub(super) fn bounds(answer: &ResponseTimes) -> Table {
    let head = ["thread", "bound", "seen", "deadline", "left", "load", "largest part"];
    let mut table = Table::new(&head).with_words(&[6]);
    for t in &answer.threads {
        let or_none = |ns: Option<i64>| ns.map_or_else(|| NONE.to_owned(), format_ns_i64);
        let part =
            t.bound.as_ref().ok().and_then(Bound::largest).map_or_else(|| NONE.to_owned(), part);
        table.row(vec![
            t.name.clone(),
            bound(t),
            or_none(t.observed_ns),
            or_none(t.deadline_ns),
            or_none(t.slack_ns()),
            t.load.map_or_else(|| NONE.to_owned(), |l| format!("{} %", trimmed(l * 100.0, 1))),
            part,
        ]);
    }
    table
}

fn bound(t: &Thread) -> String {
    t.bound.as_ref().map_or_else(|_| "none".to_owned(), |b| format_ns_i64(b.ns))
}

/// Before and after: a row a thread that is in either.
pub(super) fn change(before: &ResponseTimes, after: &ResponseTimes) -> Table {
    let head = ["thread", "now", "then", "change", "left then"];
    let mut table = Table::new(&head);
    for t in &after.threads {
        let old = before.threads.iter().find(|o| o.name == t.name && o.policy.is_realtime());
        let old = old.or_else(|| before.threads.iter().find(|o| o.name == t.name));
        let ns = |t: &Thread| t.bound.as_ref().ok().map(|b| b.ns);
        let change = match (old.and_then(ns), ns(t)) {
            (Some(a), Some(b)) if a == b => "same".to_owned(),
            (Some(a), Some(b)) if b > a => format!("+{}", format_ns_i64(b - a)),
            (Some(a), Some(b)) => format!("−{}", format_ns_i64(a - b)),
            _ => NONE.to_owned(),
        };
        let now = old.map_or_else(|| NONE.to_owned(), bound);
        let left = t.slack_ns().map_or_else(|| NONE.to_owned(), format_ns_i64);
        table.row(vec![t.name.clone(), now, bound(t), change, left]);
    }
    table
}

/// A part in words.
pub(super) fn part(t: &Term) -> String {
    let jobs = |n: u64| if n == 1 { String::new() } else { format!(" ({} jobs)", grouped(n)) };
    let what = match &t.kind {
        TermKind::Execution => format!("own execution{}", jobs(t.jobs)),
        TermKind::Suspension => format!("asleep{}", jobs(t.jobs)),
        TermKind::Blocking => "blocked by lower threads".to_owned(),
        TermKind::Latency => "latency and sections".to_owned(),
        TermKind::Unwatched => "threads not watched".to_owned(),
        TermKind::Interference(who) => format!("{who}{}", jobs(t.jobs)),
        TermKind::Later => "released later than the first job of its window".to_owned(),
    };
    format!("{} {what}", format_ns_i64(t.ns))
}

/// The sum in words: `260 µs = 210 µs own execution + 50 µs latency and sections`.
pub(super) fn sum(b: &Bound) -> String {
    let parts: Vec<String> = b.terms.iter().map(part).collect();
    format!("{} = {}", format_ns_i64(b.ns), parts.join(" + ").replace("+ -", "− "))
}

/// A bar of the parts, each with its letter; `width` columns for the longest of `most_ns`.
pub(super) fn bar(b: &Bound, most_ns: i64, width: usize) -> String {
    let mut out = String::new();
    let scale = |ns: i64| {
        usize::try_from(i128::from(ns.max(0)) * width as i128 / i128::from(most_ns.max(1)))
            .unwrap_or(0)
    };
    let mut sum = 0;
    for term in b.terms.iter().filter(|t| t.ns > 0) {
        sum += term.ns;
        let letter = match term.kind {
            TermKind::Execution => '█',
            TermKind::Interference(_) => '▒',
            TermKind::Later => ' ',
            TermKind::Suspension => 'z',
            TermKind::Blocking => 'b',
            TermKind::Latency => 'l',
            TermKind::Unwatched => 'o',
        };
        let have = out.chars().count();
        out.extend(std::iter::repeat_n(letter, scale(sum).min(width).saturating_sub(have)));
    }
    out
}

/// Why threads have no bound: name and reason, those without a fixed priority last and together.
pub(super) fn refusals(answer: &ResponseTimes) -> Vec<String> {
    let mut out = Vec::new();
    let mut ordinary = Vec::new();
    for t in &answer.threads {
        match &t.bound {
            Err(NoBound::Policy(policy)) if !policy.is_realtime() => ordinary.push(t.name.as_str()),
            Err(why) => out.push(format!("{}: {why}.", t.name)),
            Ok(_) => {}
        }
    }
    if !ordinary.is_empty() {
        out.push(format!("{}: no fixed priority (fifo, rr), so no bound.", ordinary.join(", ")));
    }
    out
}
