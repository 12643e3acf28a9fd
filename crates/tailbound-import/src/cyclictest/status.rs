// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest's status lines, live or at the end: extremes and average only.
//!
//! Context: COLD. Layout: `T: 0 ( 2026) P:95 I:1000 C: 9 Min: 35 Act: 41 Avg: 43 Max: 60`,
//! between terminal control sequences when live; the last line of each thread counts.
//! `Act:` is five characters wide in µs and eight in ns, which is the only trace of `-N`.
//! Source: output of rt-tests 2.4.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::cyclictest::{break_line, unit};
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::read::Options;
use crate::text::{self, Lines, THREADS_MAX};

#[derive(Clone, Copy)]
struct Status {
    priority: u64,
    interval_us: Option<u64>,
    cycles: u64,
    min: i64,
    avg: i64,
    max: i64,
    act_width: usize,
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclictest", "status lines");
    let mut threads: BTreeMap<u32, Status> = BTreeMap::new();
    let (mut policy, mut spikes, mut stopped) = (None, 0u64, None);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if line.contains(" Spike:") {
            spikes += 1;
        } else if line.starts_with("T:") {
            let (number, status) = status(line, n)?;
            if threads.len() >= THREADS_MAX && !threads.contains_key(&number) {
                return Err(Fault::line(n, format!("more than {THREADS_MAX} threads")));
            }
            threads.insert(number, status);
        } else if let Some(rest) = line.strip_prefix("policy:") {
            policy = rest.trim().split(':').next().map(str::to_owned);
        } else if line.starts_with("# /dev/cpu_dma_latency set to 0us") {
            crate::command::dma_latency(&mut draft, 0);
        } else if line.starts_with('#') {
            break_line(&mut draft, line, &mut stopped);
        }
    }
    settings(&mut draft, &threads, policy.as_deref());
    options.apply(&mut draft);
    let unit_ns = match threads.values().map(|s| s.act_width).max() {
        Some(8..) if options.unit_ns.is_none() => 1,
        Some(5..8) if options.unit_ns.is_none() => 1000,
        // The layout was changed on the way, or the user says it.
        _ => {
            let sampled = threads.values().filter(|s| s.cycles > 0);
            unit(sampled.map(|s| s.min).min(), options, &mut draft)?
        }
    };
    for (number, s) in threads {
        one(&mut draft, number, s, unit_ns)?;
    }
    if spikes > 0 {
        draft.lose(format!("{spikes} spikes are listed in the file without their cycle numbers; they are not imported."));
    }
    missed::skipped_uncounted(&mut draft, Context::User);
    draft.lose("Status lines hold the least, the average (cut to whole units) and the greatest latency, and no distribution.");
    Ok(draft)
}

fn settings(draft: &mut Draft, threads: &BTreeMap<u32, Status>, policy: Option<&str>) {
    let us = |n: u64| i64::try_from(n).ok().and_then(|n| n.checked_mul(1000));
    let mut intervals = threads.values().filter_map(|s| s.interval_us).filter_map(us);
    draft.interval_ns = intervals.next().filter(|i| *i > 0);
    if let (Some(first), Some(second)) = (draft.interval_ns, intervals.next()) {
        draft.distance_ns = second.saturating_sub(first).max(0);
    }
    let top = threads.values().map(|s| s.priority).max().and_then(|p| u8::try_from(p).ok());
    draft.policy = match (policy, top.filter(|p| (1..=99).contains(p))) {
        (Some("rr"), Some(p)) => Some(Policy::Rr(p)),
        (_, Some(p)) => Some(Policy::Fifo(p)),
        (_, None) if threads.is_empty() => None,
        (_, None) => Some(Policy::Other),
    };
    if policy.is_none() && draft.policy.is_some_and(Policy::is_realtime) {
        draft.lose("The policy's name is not in the file; with a priority cyclictest takes fifo.");
    }
    crate::command::not_realtime(draft);
    if draft.distance_ns > 0 {
        draft.note(Finding::new(
            "source-distance",
            Impact::Notice,
            "the threads had different intervals; the plan holds that of the first",
        ));
    }
}

fn one(draft: &mut Draft, number: u32, s: Status, unit_ns: u64) -> Result<(), Fault> {
    let scale = |v: i64| i64::try_from(unit_ns).ok().and_then(|u| v.checked_mul(u));
    let mean_ns = scale(s.avg).map(|v| v.real());
    let stated = Stated {
        n: Some(s.cycles),
        min_ns: scale(s.min),
        max_ns: scale(s.max),
        mean_ns,
        resolution_ns: unit_ns,
        beyond_ns: scale(s.min),
    };
    let d = draft.settle(&format!("Thread {number}"), coarse(), stated);
    draft.thread(number, None, Context::User, d)
}

/// Takes a status line apart by its labels: widths and versions differ.
fn status(line: &str, n: u64) -> Result<(u32, Status), Fault> {
    let field = |label: &str| -> Option<&str> {
        let at = line.find(label)?.checked_add(label.len())?;
        line.get(at..)?.split_whitespace().next()
    };
    let need = |label: &str| {
        field(label).ok_or_else(|| {
            Fault::line(n, format!("no `{label}` in the status line `{}`", excerpt(line)))
        })
    };
    let whole = |label: &str| -> Result<i64, Fault> {
        let f = need(label)?;
        f.parse().map_err(|_| {
            Fault::line(n, format!("`{label}` is `{}`, not a whole number", excerpt(f)))
        })
    };
    let number = text::count(need("T:")?, n, "the thread number")?;
    let number =
        u32::try_from(number).map_err(|_| Fault::line(n, "the thread number is beyond 2^32"))?;
    let act = line.find("Act:").zip(line.find(" Avg:")).map_or(0, |(a, b)| b.saturating_sub(a + 4));
    let status = Status {
        priority: text::count(need("P:")?, n, "the priority")?,
        interval_us: field("I:").and_then(|f| f.parse().ok()),
        cycles: text::count(need("C:")?, n, "the cycle count")?,
        min: whole("Min:")?,
        avg: whole("Avg:")?,
        max: whole("Max:")?,
        act_width: act,
    };
    Ok((number, status))
}
