// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the tables say of a run: pure, from the run file alone.
//!
//! Units: ns. Figures are those of the context that the verdict is about, per due activation, as every report has
//! them. What the run does not know is NULL.

use std::collections::BTreeMap;

use sha2::{Digest as _, Sha256};
use tailbound_core::number::Whole as _;
use tailbound_core::occurrence::Occurrence;
use tailbound_core::printable::excerpt;
use tailbound_core::record::{Event, Facts};
use tailbound_core::{Run, utc};
use tailbound_stats::analysis::Analysis;
use tailbound_stats::change::Features;
use tailbound_stats::summary::Summary;

use crate::arrival::{Arrival, RunClock, Start, Way};
use crate::buckets;
use crate::value::Value;

/// Length of what `maximum` has a row of.
pub const SLOT_S: i64 = 300;
const NS_PER_S: i64 = 1_000_000_000;

/// Texts of strangers are kept on one line and no longer than people read: every overview shows them, and the audit log.
pub(crate) const NAME_CHARS: usize = 120;
pub(crate) const TEXT_CHARS: usize = 400;
pub(crate) const LONG_CHARS: usize = 4000;
/// Of a time, as RFC 3339 has it.
const TIME_CHARS: usize = 40;
/// Facts of a run, and the bytes of one as JSON.
const FACTS_MAX: usize = 2000;
const FACT_BYTES_MAX: usize = 16 << 10;

/// A row: column and value.
pub(crate) type Row = Vec<(&'static str, Value)>;

/// The rows that follow from a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub(crate) system: Row,
    pub(crate) kernel: Row,
    pub(crate) facts: Row,
    pub(crate) workload: Row,
    pub(crate) run: Row,
    pub(crate) histograms: Vec<Row>,
    pub(crate) findings: Vec<Row>,
    pub(crate) culprits: Vec<Row>,
    pub(crate) maxima: Vec<Row>,
}

/// Facts that differ between any two runs of the same machine and say nothing about it.
const OF_THE_MOMENT: [&str; 10] = [
    "clock.frequency_ppm",
    "clock.offset_ns",
    "kernel.loadavg",
    "kernel.pressure_cpu",
    "kernel.pressure_io",
    "kernel.pressure_memory",
    "kernel.uptime_s",
    "mem.available_kb",
    "mem.swap_free_kb",
    "kernel.trace_instances",
];

/// The first half of the SHA-256 of `parts`, in hexadecimal: the identity of what has no name of its own.
fn identity(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

fn fact(facts: &Facts, name: &str) -> Option<String> {
    facts.get(name).and_then(|f| f.as_str()).map(str::to_owned)
}

/// A name for a machine that nobody named: what it is. Two boards alike have one, unless they are told apart by
/// `--system`.
#[must_use]
pub fn system_name(run: &Run) -> String {
    let facts = &run.header.machine;
    let known = |name: &str| fact(facts, name).filter(|s| !s.trim().is_empty());
    let what =
        known("machine.model").or_else(|| known("machine.board")).or_else(|| known("cpu.model"));
    let what =
        what.or_else(|| known("machine.architecture")).unwrap_or_else(|| "unknown".to_owned());
    let name = match &run.header.lab {
        Some(lab) => {
            format!("lab, {}, {} CPU{}", lab.machine, lab.smp, if lab.smp == 1 { "" } else { "s" })
        }
        None => what,
    };
    excerpt(&name, NAME_CHARS)
}

/// What lasts of what a run knew of its machine, as JSON.
fn lasting(facts: &Facts) -> String {
    let mut kept: BTreeMap<String, serde_json::Value> = BTreeMap::new();
    let lasting = facts.iter().filter(|(name, _)| !OF_THE_MOMENT.contains(&name.as_str()));
    for (name, fact) in lasting.take(FACTS_MAX) {
        let json = serde_json::to_value(fact).unwrap_or_default();
        let bytes = json.to_string().len();
        let json = match bytes {
            0..=FACT_BYTES_MAX => json,
            _ => serde_json::json!({"unknown": format!("a store keeps no fact of {bytes} bytes")}),
        };
        kept.insert(excerpt(name, NAME_CHARS), json);
    }
    serde_json::to_string(&kept).unwrap_or_default()
}

/// The rows of `run`, judged, of an archive, on the machine `system`, whose file has the identity `id`.
#[must_use]
pub fn rows(run: &Run, id: &str, system: &str, added: &str) -> Rows {
    rows_of(run, id, system, Arrival { at: added, way: Way::Archive })
}

/// The same of a run that arrived so.
pub(crate) fn rows_of(run: &Run, id: &str, system: &str, arrival: Arrival<'_>) -> Rows {
    let (header, plan) = (&run.header, &run.header.plan);
    let facts = &header.machine;
    let text = |name: &str| Value::from(fact(facts, name).map(|text| excerpt(&text, TEXT_CHARS)));
    let json = lasting(facts);
    let system = excerpt(system, NAME_CHARS);
    let system = system.as_str();
    let facts_id = identity(&[&json]);
    let of = |name: &str| fact(facts, name).unwrap_or_default();
    let kernel_id = identity(&[
        &of("kernel.release"),
        &of("kernel.version"),
        &of("kernel.preempt"),
        &of("kernel.command_line"),
        &of("kernel.config_fingerprint"),
    ]);
    let loads: Vec<String> = plan.loads.iter().map(ToString::to_string).collect();
    let loads = loads.join(",");
    let probe = plan.probe_words();
    let (cpus, policy) =
        (plan.cpus.to_string(), format!("{}, {}", plan.policy, plan.means_words()));
    let is_virtual = header.lab.as_ref().is_some_and(|l| l.accelerator == "tcg");
    let workload_id = identity(&[
        &probe,
        &plan.every(),
        &cpus,
        &policy,
        &loads,
        if is_virtual { "virtual" } else { "" },
    ]);
    let system_id = identity(&[system]);
    let clock = if is_virtual { RunClock::Virtual } else { RunClock::Machine };
    let start = Start::of(&header.started, arrival, clock);
    Rows {
        system: vec![
            ("id", system_id.clone().into()),
            ("name", system.into()),
            ("model", text("machine.model")),
            ("cpu_model", text("cpu.model")),
            ("architecture", text("machine.architecture")),
        ],
        kernel: vec![
            ("id", kernel_id.clone().into()),
            ("release", text("kernel.release")),
            ("version", text("kernel.version")),
            ("preempt", text("kernel.preempt")),
            (
                "command_line",
                fact(facts, "kernel.command_line").map(|text| excerpt(&text, LONG_CHARS)).into(),
            ),
            ("config_fingerprint", text("kernel.config_fingerprint")),
        ],
        facts: vec![("id", facts_id.clone().into()), ("json", json.into())],
        workload: vec![
            ("id", workload_id.clone().into()),
            ("probe", excerpt(&probe, TEXT_CHARS).into()),
            ("interval_ns", plan.interval().into()),
            ("cpus", excerpt(&cpus, TEXT_CHARS).into()),
            ("policy", excerpt(&policy, TEXT_CHARS).into()),
            ("loads", excerpt(&loads, TEXT_CHARS).into()),
            ("virtual_time", is_virtual.into()),
        ],
        run: run_row(run, id, [&system_id, &kernel_id, &facts_id, &workload_id], &start, arrival),
        histograms: histograms(run, id),
        findings: findings(run, id),
        culprits: culprits(run, id),
        maxima: maxima(run, id, start.instead_of_clock()),
    }
}

fn run_row(
    run: &Run,
    id: &str,
    [system, kernel, facts, workload]: [&str; 4],
    start: &Start,
    arrival: Arrival<'_>,
) -> Row {
    let header = &run.header;
    let analysis = Analysis::of(run);
    let due: Option<&Summary> = analysis.judged().map(|f| &f.due);
    let missed = analysis.judged().map_or(0, |f| f.missed());
    let quantile = |p: f64| {
        let ns = due.and_then(|d| d.quantile(p)).and_then(|q| q.ns());
        Value::from(ns.map(|ns| ns.round().whole_i64()))
    };
    // The figure that a series has of it beside its quantiles.
    let block_max = Features::of(run).ns.last().copied().flatten();
    let reasons: Vec<&str> = run
        .findings
        .iter()
        .filter(|f| f.impact != tailbound_core::Impact::Notice)
        .map(|f| f.id.as_str())
        .collect();
    vec![
        ("id", id.into()),
        ("name", excerpt(&header.id, NAME_CHARS).into()),
        ("system", system.into()),
        ("kernel", kernel.into()),
        ("facts", facts.into()),
        ("workload", workload.into()),
        ("started", excerpt(start.at(), TIME_CHARS).into()),
        ("added", arrival.at.into()),
        ("tool", excerpt(&header.tool, NAME_CHARS).into()),
        ("command", excerpt(&header.command.join(" "), LONG_CHARS).into()),
        ("measured_ns", run.measured_ns().into()),
        ("ended", run.end_reason().as_str().into()),
        ("outcome", analysis.outcome().as_str().into()),
        ("reasons", excerpt(&reasons.join(" "), LONG_CHARS).into()),
        ("deadline_ns", header.plan.requirement.deadline_ns.into()),
        ("context", run.judged_context().map(|c| c.as_str().to_owned()).into()),
        ("activations", due.map_or(0, |d| d.n).into()),
        ("missed", missed.into()),
        ("over_range", due.map_or(0, |d| d.over_range).into()),
        ("min_ns", due.and_then(|d| d.min_ns).into()),
        ("mean_ns", due.and_then(|d| d.mean_ns).filter(|m| m.is_finite()).into()),
        ("p50_ns", quantile(0.5)),
        ("p99_ns", quantile(0.99)),
        ("p999_ns", quantile(0.999)),
        ("p9999_ns", quantile(0.9999)),
        ("p99999_ns", quantile(0.99999)),
        ("max_ns", due.and_then(|d| d.max_ns).into()),
        ("clock_said", start.clock_said().map(|said| excerpt(said, TIME_CHARS)).into()),
        ("arrival", arrival.way.as_str().into()),
        ("p90_ns", quantile(0.9)),
        ("block_max_ns", Value::from(block_max.map(|ns| ns.round().whole_i64()))),
    ]
}

fn histograms(run: &Run, id: &str) -> Vec<Row> {
    let one = |t: &tailbound_core::record::ThreadRecord| {
        let due = t.due();
        vec![
            ("run", id.into()),
            ("thread", u64::from(t.thread).into()),
            ("cpu", t.cpu.map(u64::from).into()),
            ("context", t.context.as_str().into()),
            ("n", due.n.into()),
            ("min_ns", due.min_ns.into()),
            ("max_ns", due.max_ns.into()),
            ("buckets", buckets::packed(&due.late).into()),
        ]
    };
    run.threads.iter().map(one).collect()
}

fn findings(run: &Run, id: &str) -> Vec<Row> {
    let one = |f: &tailbound_core::Finding| {
        vec![
            ("run", id.into()),
            ("id", excerpt(&f.id, NAME_CHARS).into()),
            ("impact", f.impact.as_str().into()),
            ("message", excerpt(&f.title, TEXT_CHARS).into()),
        ]
    };
    // A file may say the same twice; the last word counts, as everywhere.
    let last: BTreeMap<&str, &tailbound_core::Finding> =
        run.findings.iter().map(|f| (f.id.as_str(), f)).collect();
    last.values().map(|f| one(f)).collect()
}

fn culprits(run: &Run, id: &str) -> Vec<Row> {
    let mut by: BTreeMap<(String, String), (u64, i64, i64)> = BTreeMap::new();
    for blame in run.blames.iter().filter(|b| !b.near) {
        let (cause, who) = blame.culprit();
        let share_ns = blame.share_ns(cause, who);
        let it = by.entry((cause.as_str().to_owned(), excerpt(who, NAME_CHARS))).or_default();
        *it = (it.0 + 1, it.1.saturating_add(share_ns), it.2.max(share_ns));
    }
    let one =
        |((cause, who), (wakeups, total_ns, longest_ns)): ((String, String), (u64, i64, i64))| {
            vec![
                ("run", id.into()),
                ("cause", cause.into()),
                ("who", who.into()),
                ("wakeups", wakeups.into()),
                ("total_ns", total_ns.into()),
                ("longest_ns", longest_ns.into()),
            ]
        };
    by.into_iter().map(one).collect()
}

/// The latest wake-up of each five minutes of the day, over all threads that the verdict is about, from the records of its seconds.
/// None where the file has no such records. `began`: when the run began, where its own clock does not tell.
fn maxima(run: &Run, id: &str, began: Option<&str>) -> Vec<Row> {
    let is_begin = |e: &&Event| matches!(Occurrence::of(e), Occurrence::WarmUpOver { .. });
    let own = run.events.iter().filter(is_begin).find(|e| e.t_ns == 0);
    let own = own.and_then(|e| e.clocks).map(|c| c.realtime_ns.div_euclid(NS_PER_S));
    let started = began.unwrap_or(&run.header.started);
    let started = || utc::from_rfc3339(started);
    let warm_up_s = run.header.plan.warm_up_ns.div_euclid(NS_PER_S);
    let own = own.filter(|_| began.is_none());
    let Some(zero_s) = own.or_else(|| Some(started()?.saturating_add(warm_up_s))) else {
        return Vec::new();
    };
    let judged = run.judged_context();
    let is_judged = |thread: u32| {
        run.threads.iter().any(|t| t.thread == thread && Some(&t.context) == judged.as_ref())
    };
    let mut by: BTreeMap<i64, (u64, i64)> = BTreeMap::new();
    for second in run.seconds.iter().filter(|s| s.n > 0 && is_judged(s.thread)) {
        let at_s = zero_s.saturating_add_unsigned(second.second).div_euclid(SLOT_S) * SLOT_S;
        let slot = by.entry(at_s).or_insert((0, second.max_ns));
        *slot = (slot.0.saturating_add(second.n), slot.1.max(second.max_ns));
    }
    let one = |(began_s, (wakeups, max_ns)): (i64, (u64, i64))| {
        vec![
            ("run", id.into()),
            ("began_s", began_s.into()),
            ("wakeups", wakeups.into()),
            ("max_ns", max_ns.into()),
        ]
    };
    by.into_iter().map(one).collect()
}
