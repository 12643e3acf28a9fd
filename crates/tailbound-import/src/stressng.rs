// SPDX-License-Identifier: MIT OR Apache-2.0
//! stress-ng's `cyclic` stressor on standard output.
//!
//! Context: COLD. Units: ns. Layout: every line after `stress-ng: info:  [pid] cyclic:`; the
//! policy and delay, `mean`, `min`/`max`, percentiles, and with `--cyclic-dist` rows `lower-edge
//! frequency` under `latency distribution (N ns intervals)`, which may stop at the first M
//! buckets or at `..`. All figures are of the first `--cyclic-samples` sleeps only; a note says
//! how many there were. Sleeps are relative, timed on CLOCK_REALTIME.
//! Source: stress-ng(1); output of stress-ng 0.15.06.

use tailbound_core::plan::Means;
use tailbound_core::units::grouped;
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
    let kept = found.needed.map(|n| n.min(found.limit.unwrap_or(n)));
    if kept.is_none() && binned == 0 {
        let d = extremes(draft, &found)?;
        settings(draft);
        return draft.thread(0, None, Context::User, d);
    }
    let width = i64::try_from(found.width_ns).unwrap_or(i64::MAX);
    let end = found.last.map(|l| l.saturating_add(width));
    let cut = end.zip(found.stated.max_ns).is_some_and(|(e, m)| m >= e);
    let n = kept.unwrap_or_else(|| {
        if cut {
            draft.lose(
                "How many samples are beyond the distribution is not in the file; at least one is.",
            );
        }
        binned.saturating_add(u64::from(cut))
    });
    let stated = Stated {
        n: Some(n),
        resolution_ns: found.width_ns.max(1),
        beyond_ns: if cut { end } else { found.stated.min_ns.filter(|_| binned == 0) },
        ..found.stated
    };
    if let Some(needed) = found.needed.filter(|needed| *needed > n) {
        draft.doubt(
            "source-samples-lost",
            format!(
                "stress-ng kept the first {} of {} samples; all its figures are of these.",
                grouped(n),
                grouped(needed)
            ),
            "The latest wake-up may be among the samples that were not kept.",
            "Run stress-ng with --cyclic-samples large enough.",
        );
    }
    settings(draft);
    let d = draft.settle("The stressor", d, stated);
    draft.thread(0, None, Context::User, d)
}

fn settings(draft: &mut Draft) {
    draft.means = Some(Means::NanosleepRelative);
    realtime_clock(draft);
    not_realtime(draft);
    missed::relative(draft);
    draft.lose("The way into the sleeping system call is part of each figure.");
}

/// Without a distribution and without the note there are the extremes and the average, of an
/// unknown number of samples: as many stand in the run as are certain.
fn extremes(draft: &mut Draft, found: &Found) -> Result<Distribution, Fault> {
    let (Some(min), Some(max)) = (found.stated.min_ns, found.stated.max_ns) else {
        return Err(Fault::file(
            "neither a distribution nor the extremes are in the output: run stress-ng with --cyclic-dist",
        ));
    };
    let certain = if min < max { 2 } else { 1 };
    let most = found.limit.map_or_else(String::new, |n| format!(" and at most {}", grouped(n)));
    draft.doubt(
        "source-no-histogram",
        format!(
            "The output has no histogram and does not say how many samples there were, at least {certain}{most}: only the extremes and the average are known, and the run counts {certain}."
        ),
        "Quantiles, any tail bound and how much was measured are unknown.",
        "Run stress-ng with --cyclic-dist, or measure with tailbound itself.",
    );
    Ok(Distribution {
        n: certain,
        min_ns: Some(min),
        max_ns: Some(max),
        mean_ns: found.stated.mean_ns.filter(|m| m.is_finite()),
        unbinned: certain,
        unbinned_from_ns: Some(min),
        ..coarse()
    })
}
