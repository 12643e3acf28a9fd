// SPDX-License-Identifier: MIT OR Apache-2.0
//! sysjitter: interruptions of a busy loop above a threshold, on each core.
//!
//! Units: ns, as the labels say. Layout: `label: value value …`, a value for each core; `core_i` first, then
//! `threshold(ns)`, `runtime(s)`, `int_n`, `int_min(ns)`, `int_median`, `int_mean`, `int_90` to `int_99999`, `int_max`, `int_total(ns)`, and
//! `int_total(%)` last. A quantile is the value of index `p * n`, from 0. `int_mean` is cut to a whole cycle.
//! Without an interruption all of a core's figures are 0.
//! Source: sysjitter 1.0 to 1.4, its sources.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, format_span};
use tailbound_core::{Context, Finding, Impact};

use crate::draft::{Draft, Stated, coarse, quoted};
use crate::error::Fault;
use crate::text::{self, Lines, THREADS_MAX};

const QUANTILES: [(&str, f64); 6] = [
    ("int_median(ns)", 0.5),
    ("int_90(ns)", 0.9),
    ("int_99(ns)", 0.99),
    ("int_999(ns)", 0.999),
    ("int_9999(ns)", 0.9999),
    ("int_99999(ns)", 0.99999),
];

/// The rows by their labels, as long as the first.
#[derive(Default)]
struct Table {
    rows: BTreeMap<String, (u64, Vec<String>)>,
    cores: Vec<u32>,
    /// The line that names them.
    begun: Option<u64>,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("sysjitter", "text");
    let mut table = Table::default();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let Some((label, values)) = line.split_once(':') else { continue };
        let label = label.trim();
        let values: Vec<&str> = values.split_whitespace().take(THREADS_MAX + 1).collect();
        if label == "core_i" {
            if table.rows.contains_key("int_n") {
                crate::fields::run_without_figures(&mut draft, n);
                break;
            }
            if let Some(before) = table.begun {
                crate::fields::run_without_figures(&mut draft, before);
            }
            table = Table { begun: Some(n), cores: cores(&values, n)?, ..Table::default() };
        } else if table.cores.is_empty() || !is_label(label) {
            continue;
        } else if values.len() == table.cores.len() {
            let values = values.iter().map(|v| (*v).to_owned()).collect();
            table.rows.insert(label.to_owned(), (n, values));
        } else {
            return Err(Fault::line(
                n,
                format!("{} values for {} cores", values.len(), table.cores.len()),
            ));
        }
    }
    if table.cores.is_empty() {
        return Err(Fault::file("there is no line `core_i:`"));
    }
    if !table.rows.contains_key("int_max(ns)") {
        return Err(Fault::file(
            "there is no line `int_max(ns):`: the file was cut off before the greatest",
        ));
    }
    finish(&mut draft, &table)?;
    Ok(draft)
}

fn is_label(label: &str) -> bool {
    ["int_", "runtime(", "threshold(", "cpu_mhz"].iter().any(|l| label.starts_with(l))
}

fn cores(values: &[&str], n: u64) -> Result<Vec<u32>, Fault> {
    if values.is_empty() || values.len() > THREADS_MAX {
        return Err(Fault::line(
            n,
            format!("{} cores, where 1 to {THREADS_MAX} are read", values.len()),
        ));
    }
    let core = |v: &&str| v.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
    values
        .iter()
        .map(|v| core(v).ok_or_else(|| Fault::line(n, format!("{} is no core", quoted(v)))))
        .collect()
}

impl Table {
    fn field(&self, label: &str, core: usize) -> Option<(u64, &str)> {
        let (n, values) = self.rows.get(label)?;
        Some((*n, values.get(core)?.as_str()))
    }

    fn ns(&self, label: &str, core: usize) -> Result<Option<i64>, Fault> {
        self.field(label, core).map(|(n, v)| text::ns(v, 1, n, label)).transpose()
    }
}

fn finish(draft: &mut Draft, table: &Table) -> Result<(), Fault> {
    draft.no_schedule = true;
    draft.event = Some("interruption");
    for core in 0..table.cores.len() {
        let seconds =
            table.field("runtime(s)", core).and_then(|(_, v)| text::scaled(v, 1_000_000_000));
        let length = table.ns("runtime(ns)", core)?.or(seconds);
        draft.duration_ns = draft.duration_ns.max(length);
    }
    let threshold = table.ns("threshold(ns)", 0)?;
    let (mut shares, mut idle) = (Vec::new(), Vec::new());
    for (core, cpu) in table.cores.iter().enumerate() {
        let n = table.field("int_n", core).map(|(n, v)| text::count(v, n, "int_n")).transpose()?;
        let n = n.ok_or_else(|| Fault::file("there is no line `int_n:`: the file was cut off"))?;
        if n == 0 {
            idle.push(cpu.to_string());
            draft.thread(number(core), Some(*cpu), Context::User, coarse())?;
            continue;
        }
        let d = one(draft, table, core, *cpu, n)?;
        draft.thread(number(core), Some(*cpu), Context::User, d)?;
        if let Some((_, share)) = table.field("int_total(%)", core) {
            shares.push(format!("{} % of CPU {cpu}", crate::error::excerpt(share)));
        }
    }
    words(draft, threshold, &shares, &idle);
    Ok(())
}

fn number(core: usize) -> u32 {
    u32::try_from(core).unwrap_or(u32::MAX)
}

fn one(
    draft: &mut Draft,
    table: &Table,
    core: usize,
    cpu: u32,
    n: u64,
) -> Result<tailbound_core::Distribution, Fault> {
    let min_ns = table.ns("int_min(ns)", core)?;
    let stated = Stated {
        n: Some(n),
        min_ns,
        max_ns: table.ns("int_max(ns)", core)?,
        mean_ns: table.ns("int_mean(ns)", core)?.map(|ns| ns.real()),
        resolution_ns: 1,
        beyond_ns: min_ns,
    };
    let mut pairs = Vec::new();
    for (label, p) in QUANTILES {
        pairs.extend(table.ns(label, core)?.map(|ns| (p, ns)));
    }
    let who = format!("CPU {cpu}");
    let mut d = draft.settle(&who, coarse(), stated);
    draft.state(&who, &mut d, pairs);
    Ok(d)
}

fn words(draft: &mut Draft, threshold: Option<i64>, shares: &[String], idle: &[String]) {
    let threshold = threshold.map_or_else(|| "the threshold".to_owned(), format_ns_i64);
    if !shares.is_empty() {
        let length =
            draft.duration_ns.map_or_else(String::new, |ns| format!(" in {}", format_span(ns)));
        draft.note(Finding::listed(
            "source-taken",
            Impact::Notice,
            format!("interruptions above {threshold} took {}{length}", shares.join(", ")),
        ));
    }
    if !idle.is_empty() {
        let title =
            format!("sysjitter found no interruption above {threshold} on CPU {}", idle.join(", "));
        draft.note(Finding::listed(tailbound_core::finding::NOTHING_FOUND, Impact::Notice, title));
    }
    draft.lose(format!("Interruptions of {threshold} and less are not recorded."));
    draft.lose("When each interruption came is not in the file.");
    draft.note(
        Finding::new(
            "source-other-quantity",
            Impact::Notice,
            "sysjitter measures interruptions of a busy loop, not wake-up latencies",
        )
        .meaning("There is no schedule, so there are no due or missed activations; quantiles are of what was above the threshold.")
        .remedy("Compare with runs of sysjitter; measure wake-ups with a wake-up probe."),
    );
}
