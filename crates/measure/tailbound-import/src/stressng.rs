// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `cyclic` stressor on standard output.
//!
//! Units: ns. Layout: every line after `stress-ng: info:  [pid] cyclic:`; the
//! policy, delay and number of samples, `mean`, `min`/`max`, percentiles, and with `--cyclic-dist` rows
//! `lower-edge frequency` under `latency distribution (N ns intervals)`, which may stop at the first M
//! buckets or at `..`. All figures are of the first `--cyclic-samples` sleeps only (10,000 before that option);
//! a note of later versions says how many there were. A percentile is the value of index `p * n`, from 0.
//! Sleeps are relative, timed on CLOCK_REALTIME.
//! Source: stress-ng(1); its sources of 0.11; output of stress-ng 0.15.06 and 0.17.

use tailbound_core::plan::Means;
use tailbound_core::units::{format_span, grouped};
use tailbound_core::{Context, Distribution, Policy};

use crate::command::{not_realtime, realtime_clock};
use crate::draft::{Draft, Stated, coarse, quoted};
use crate::error::Fault;
use crate::missed;
use crate::text::{self, Lines};

#[derive(Default)]
struct Found {
    pid: Option<String>,
    limit: Option<u64>,
    needed: Option<u64>,
    width_ns: u64,
    stated: Stated,
    rows: bool,
    last: Option<i64>,
    percentiles: Vec<(f64, i64)>,
    /// The tool itself says that it has none.
    no_latency: bool,
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("stress-ng", "cyclic text");
    let mut found = Found::default();
    let mut d = coarse();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        if let Some(s) =
            line.split_once("completed in ").and_then(|(_, r)| r.split(['s', ' ']).next())
        {
            draft.duration_ns = text::scaled(s, 1_000_000_000).or(draft.duration_ns);
        }
        let Some((head, rest)) = line.split_once("cyclic:") else { continue };
        let pid = head.rsplit('[').next().unwrap_or("").trim().trim_end_matches(']').to_owned();
        if *found.pid.get_or_insert_with(|| pid.clone()) != pid {
            draft.doubt(
                "source-mixed",
                "More than one instance of the stressor wrote figures; only the first was read."
                    .to_owned(),
                "The other instances' latencies are missing.",
                "Import the output of one instance.",
            );
            continue;
        }
        if rest.trim().starts_with("sched SCHED_") && found.limit.is_some() {
            crate::fields::second_run(&mut draft, n);
            break;
        }
        row(&mut draft, &mut found, &mut d, rest.trim(), n)?;
    }
    finish(&mut draft, found, d)?;
    Ok(draft)
}

fn row(
    draft: &mut Draft,
    found: &mut Found,
    d: &mut Distribution,
    text: &str,
    n: u64,
) -> Result<(), Fault> {
    let after = |key: &str| text.split_once(key).and_then(|(_, r)| r.split_whitespace().next());
    if let Some(policy) = text.strip_prefix("sched SCHED_") {
        draft.interval_ns = after(": ").map(|f| text::ns(f, 1, n, "the delay")).transpose()?;
        found.limit = after("delay, ").map(|f| text::count(f, n, "the samples")).transpose()?;
        policy_of(draft, policy.split(':').next().unwrap_or(""));
    } else if text.starts_with("mean:") {
        found.stated.mean_ns = after("mean:").and_then(|f| f.parse().ok());
    } else if text.starts_with("min:") {
        found.stated.min_ns = after("min:").map(|f| text::ns(f, 1, n, "min")).transpose()?;
        found.stated.max_ns = after("max:").map(|f| text::ns(f, 1, n, "max")).transpose()?;
    } else if text.starts_with("latency distribution (") {
        let width = after("distribution (").unwrap_or("");
        found.width_ns = text::count(width, n, "the bucket's width")?.max(1);
    } else if text.starts_with("latency (ns)") {
        found.rows = true;
    } else if text.starts_with("Note:") {
        found.needed =
            after("needed to be ").map(|f| text::count(f, n, "the samples")).transpose()?;
    } else if text.contains("no latency information") {
        found.no_latency = true;
    } else if let Some((share, value)) = text.split_once("%:") {
        let share: Option<f64> = share.trim().parse().ok();
        let value = value.split_whitespace().next().unwrap_or("");
        let value = text::ns(value, 1, n, "the percentile")?;
        found.percentiles.extend(share.map(|p| (p / 100.0, value)));
    } else if found.rows && text.starts_with(|c: char| c.is_ascii_digit()) {
        let mut words = text.split_whitespace();
        let low = text::ns(words.next().unwrap_or(""), 1, n, "the latency")?;
        let count = text::count(words.next().unwrap_or(""), n, "the frequency")?;
        if found.last.is_some_and(|l| low <= l) {
            return Err(Fault::line(n, "the bucket does not follow the one above"));
        }
        found.last = Some(low);
        d.add_many(low, count);
    }
    Ok(())
}

fn policy_of(draft: &mut Draft, name: &str) {
    draft.policy = match name {
        "FIFO" | "RR" => {
            draft.lose("The priority is not in the file: the plan says 1.");
            Some(if name == "RR" { Policy::Rr(1) } else { Policy::Fifo(1) })
        }
        "BATCH" => Some(Policy::Batch),
        "IDLE" => Some(Policy::Idle),
        "OTHER" => Some(Policy::Other),
        other => {
            draft.lose(format!(
                "The policy is SCHED_{}, whose parameters are not in the file.",
                quoted(other)
            ));
            None
        }
    };
}

fn finish(draft: &mut Draft, found: Found, d: Distribution) -> Result<(), Fault> {
    let binned = d.n;
    let kept = match (found.limit, found.needed) {
        (Some(limit), Some(needed)) => Some(needed.min(limit)),
        (limit, needed) => limit.or(needed),
    };
    if binned == 0 && (found.stated.min_ns.is_none() || found.stated.max_ns.is_none()) {
        return Err(Fault::file(if found.no_latency {
            "stress-ng has no latency information: it took no sample, often because it may not use the policy (run it as root)"
        } else {
            "neither a distribution nor the extremes are in the output: run stress-ng with --cyclic-dist"
        }));
    }
    let width = i64::try_from(found.width_ns).unwrap_or(i64::MAX);
    let end = found.last.map(|l| l.saturating_add(width));
    let end_of = match end.zip(found.stated.max_ns) {
        Some((end, max)) if max >= end => DistributionEnd::Cut,
        _ => DistributionEnd::Whole,
    };
    let n = kept.unwrap_or_else(|| at_least(draft, &found, binned, end_of)).max(binned);
    let stated = Stated {
        n: Some(n),
        resolution_ns: found.width_ns.max(1),
        beyond_ns: if end_of == DistributionEnd::Cut {
            end
        } else {
            found.stated.min_ns.filter(|_| binned == 0)
        },
        ..found.stated
    };
    not_all(draft, &found, n);
    settings(draft);
    let mut d = draft.settle("The stressor", d, stated);
    draft.state("The stressor", &mut d, found.percentiles);
    draft.thread(0, None, Context::User, d)
}

/// Does the distribution hold the greatest latency?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DistributionEnd {
    Whole,
    /// Samples lie beyond it.
    Cut,
}

/// The number of samples that is certain where none is told.
fn at_least(draft: &mut Draft, found: &Found, binned: u64, end: DistributionEnd) -> u64 {
    if binned == 0 {
        draft.lose("How many samples there were is not in the file; the run counts those that are certain.");
        return if found.stated.min_ns < found.stated.max_ns { 2 } else { 1 };
    }
    match end {
        DistributionEnd::Whole => binned,
        DistributionEnd::Cut => {
            draft.lose(
                "How many samples are beyond the distribution is not in the file; at least one is.",
            );
            binned.saturating_add(1)
        }
    }
}

/// Only the first samples are kept: a note says how many more there were, and else the length of the run.
fn not_all(draft: &mut Draft, found: &Found, n: u64) {
    let of = match found.needed {
        Some(needed) if needed > n => {
            format!("the first {} of {} samples", grouped(n), grouped(needed))
        }
        Some(_) => return,
        None => {
            let Some((length, interval)) = draft.duration_ns.zip(draft.interval_ns) else { return };
            // Each sleep begins when the one before is over.
            let mean = found.stated.mean_ns.filter(|m| *m >= 0.0).and_then(text::float_ns);
            let each = interval.saturating_add(mean.unwrap_or(0));
            let covered = each.saturating_mul(i64::try_from(n).unwrap_or(i64::MAX));
            if covered <= 0 || covered.saturating_mul(5) / 4 > length {
                return;
            }
            format!(
                "the first {} samples, about {} of the {}",
                grouped(n),
                format_span(covered),
                format_span(length)
            )
        }
    };
    draft.doubt(
        "source-samples-lost",
        format!("stress-ng kept {of}; all its figures are of these."),
        "The latest wake-up may be among the samples that were not kept.",
        "Run stress-ng with --cyclic-samples large enough.",
    );
}

fn settings(draft: &mut Draft) {
    draft.means = Some(Means::NanosleepRelative);
    realtime_clock(draft);
    not_realtime(draft);
    missed::relative(draft);
    draft.lose("The way into the sleeping system call is part of each figure.");
}
