// SPDX-License-Identifier: MIT OR Apache-2.0
//! oslat: gaps between successive clock reads of a busy loop, as text and as JSON.
//!
//! Layout: buckets are named by their upper edge: `001 (us)` is 0 to 1 µs.
//! Whole keys: minimum and maximum are µs, rounded up. Keys with three decimals (2.10, `-W`):
//! keys are µs, and in the JSON minimum and maximum are ns (in the text µs with decimals).
//! The last bucket also holds everything beyond; with `-B` the first holds everything below.
//! Zero buckets may be missing; the width of a bucket is taken as the greatest common divisor
//! of the keys, never less than the true one. Source: output of rt-tests 2.4 and 2.10.

use serde_json::Value;

use tailbound_core::number::Real as _;
use tailbound_core::{Context, Finding, Impact, Policy};

use crate::command::{Arguments, OSLAT, not_realtime};
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::json::{self, Object};
use crate::rttests;
use crate::text::{self, Lines, THREADS_MAX, gcd, scaled};

/// What the file says of one thread.
#[derive(Default)]
struct Core {
    cpu: Option<u32>,
    /// Upper edge in ns and count.
    buckets: Vec<(i64, u64)>,
    min_ns: Option<i64>,
    max_ns: Option<i64>,
    mean_ns: Option<f64>,
    duration_ns: Option<i64>,
}

pub(crate) fn json(bytes: &[u8]) -> Result<Draft, Fault> {
    let o = json::parse(bytes)?;
    let mut draft = Draft::new("oslat", "json v1");
    let line = rttests::header(&mut draft, &o)?;
    draft.command = line.split_whitespace().map(str::to_owned).collect();
    let words = Arguments::new(&draft.command, &OSLAT);
    let priority = words.number("f").and_then(|p| u8::try_from(p).ok());
    draft.policy =
        Some(priority.filter(|p| (1..=99).contains(p)).map_or(Policy::Other, Policy::Fifo));
    let width = words.number("W").and_then(|w| i64::try_from(w).ok()).filter(|w| *w > 0);
    let threads = json::object(&o, "thread", "")?;
    let mut cores = Vec::new();
    for (_, t, path) in json::numbered(threads, "thread")? {
        cores.push(core(t, &path)?);
    }
    let keys = keys_of(threads);
    finish(&mut draft, cores, keys, width)?;
    Ok(draft)
}

/// What the keys of a histogram count in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keys {
    /// Whole µs, rounded up.
    Whole,
    /// µs with decimals: minimum and maximum are in ns then.
    Decimal,
}

impl Keys {
    fn of<'k>(mut keys: impl Iterator<Item = &'k String>) -> Self {
        if keys.any(|key| key.contains('.')) { Self::Decimal } else { Self::Whole }
    }
}

fn keys_of(threads: &Object) -> Keys {
    let histograms = threads.values().filter_map(|t| t.get("histogram").and_then(Value::as_object));
    Keys::of(histograms.flat_map(|h| h.keys()))
}

fn core(t: &Object, path: &str) -> Result<Core, Fault> {
    let histogram = json::object(t, "histogram", path)?;
    let path_h = json::join(path, "histogram");
    let mut buckets = Vec::new();
    for key in histogram.keys() {
        let edge = scaled(key, 1000).filter(|e| *e > 0).ok_or_else(|| {
            Fault::path(json::join(&path_h, key), "the key is not a time within 292 years")
        })?;
        buckets.push((edge, json::count(histogram, key, &path_h)?.unwrap_or(0)));
    }
    buckets.sort_unstable();
    let unit = match Keys::of(histogram.keys()) {
        Keys::Whole => 1000,
        Keys::Decimal => 1,
    };
    let duration = t.get("duration").and_then(Value::as_f64);
    Ok(Core {
        cpu: json::cpu(t, "cpu"),
        buckets,
        min_ns: json::ns(t, "min", unit, path)?,
        max_ns: json::ns(t, "max", unit, path)?,
        // The average comes from the µs buckets in either case.
        mean_ns: json::mean_ns(t, "avg", 1000),
        duration_ns: duration.and_then(|s| text::float_ns(s * 1e9)),
    })
}

pub(crate) fn text(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("oslat", "text");
    let mut cores: Vec<Core> = Vec::new();
    let (mut keys, mut ended) = (Keys::Whole, false);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(v) = line.strip_prefix("oslat V") {
            draft.version = Some(excerpt(v.trim()));
            continue;
        }
        let Some((label, rest)) = line.split_once(':') else { continue };
        let fields: Vec<&str> = rest
            .split_whitespace()
            .take_while(|f| !f.starts_with('('))
            .take(THREADS_MAX + 1)
            .collect();
        match label {
            "Thread priority" => draft.policy = Some(priority(rest.trim())),
            "Core" => {
                if fields.len() > THREADS_MAX || !cores.is_empty() {
                    return Err(Fault::line(
                        n,
                        "a second block of cores, or too many of them: import one run at a time",
                    ));
                }
                cores = fields
                    .iter()
                    .map(|f| Core { cpu: f.parse().ok().filter(|c| *c <= 8191), ..Core::default() })
                    .collect();
            }
            "Minimum" | "Maximum" | "Average" | "Duration" if !cores.is_empty() => {
                same(&fields, &cores, n)?;
                for (core, f) in cores.iter_mut().zip(&fields) {
                    let v = text::ns(
                        f,
                        if label == "Duration" { 1_000_000_000 } else { 1000 },
                        n,
                        label,
                    )?;
                    match label {
                        "Minimum" => core.min_ns = Some(v),
                        "Maximum" => core.max_ns = Some(v),
                        "Average" => core.mean_ns = Some(v.real()),
                        _ => core.duration_ns = Some(v),
                    }
                }
                ended |= label == "Duration";
            }
            _ if label.ends_with("(us)") && !cores.is_empty() => {
                let key = label.trim_end_matches("(us)").trim();
                if key.contains('.') {
                    keys = Keys::Decimal;
                }
                let edge = scaled(key, 1000).filter(|e| *e > 0).ok_or_else(|| {
                    Fault::line(n, format!("the bucket `{}` is not a time", excerpt(key)))
                })?;
                same(&fields, &cores, n)?;
                for (core, f) in cores.iter_mut().zip(&fields) {
                    core.buckets.push((edge, text::count(f, n, "the count")?));
                }
            }
            _ => {}
        }
    }
    draft.cut_off = !ended;
    finish(&mut draft, cores, keys, None)?;
    Ok(draft)
}

fn same(fields: &[&str], cores: &[Core], n: u64) -> Result<(), Fault> {
    if fields.len() == cores.len() {
        return Ok(());
    }
    Err(Fault::line(n, format!("{} values for {} cores", fields.len(), cores.len())))
}

fn priority(text: &str) -> Policy {
    text.strip_prefix("SCHED_FIFO:")
        .and_then(|p| p.trim().parse().ok())
        .filter(|p| (1..=99).contains(p))
        .map_or(Policy::Other, Policy::Fifo)
}

fn finish(
    draft: &mut Draft,
    cores: Vec<Core>,
    keys: Keys,
    width: Option<i64>,
) -> Result<(), Fault> {
    draft.no_schedule = true;
    let edges = || cores.iter().flat_map(|c| c.buckets.iter().map(|b| b.0.unsigned_abs()));
    let common = edges().fold(0, gcd).max(1);
    // A width of whole µs is what keys without decimals count in.
    let width = width
        .filter(|w| edges().all(|e| e.is_multiple_of(w.unsigned_abs())))
        .unwrap_or(i64::try_from(common).unwrap_or(i64::MAX));
    let top = edges().max().and_then(|e| i64::try_from(e).ok());
    for (i, c) in cores.into_iter().enumerate() {
        draft.duration_ns = draft.duration_ns.max(c.duration_ns);
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        let cpu = c.cpu;
        let d = one(draft, i, c, keys, width, top);
        draft.thread(number, cpu, Context::User, d)?;
    }
    not_realtime(draft);
    if keys == Keys::Whole {
        draft.lose("oslat rounds up to whole µs: a gap of 1 µs in the file is one of 0 to 1 µs.");
    }
    draft.lose("oslat's average takes every gap as its bucket's upper edge, and adds the first thread's gaps beyond the buckets to every thread.");
    draft.lose("oslat does not say what made the gaps; at a real-time priority, throttling makes gaps of 50 ms.");
    draft.note(
        Finding::new(
            "source-other-quantity",
            Impact::Notice,
            "oslat measures gaps in a busy loop, not wake-up latencies",
        )
        .meaning("There is no schedule, so there are no due or missed activations; nearly all values are the loop's own length.")
        .remedy("Compare with runs of oslat; measure wake-ups with a wake-up probe."),
    );
    Ok(())
}

fn one(
    draft: &mut Draft,
    i: usize,
    c: Core,
    keys: Keys,
    width: i64,
    top: Option<i64>,
) -> tailbound_core::Distribution {
    let step = match keys {
        Keys::Whole => 1000,
        Keys::Decimal => 0,
    };
    let least = c.min_ns.map(|m| m.saturating_sub(step).max(0));
    let mut d = coarse();
    let (mut all, mut beyond_ns) = (0u64, None);
    for (k, (edge, n)) in c.buckets.iter().enumerate() {
        all = all.saturating_add(*n);
        let mut low = edge.saturating_sub(width).max(0);
        if k == 0 {
            low = low.min(least.unwrap_or(low));
        }
        if Some(*edge) == top && c.max_ns.is_none_or(|m| m > *edge) {
            beyond_ns = Some(low);
        } else {
            d.add_many(low, *n);
        }
    }
    let stated = Stated {
        n: Some(all),
        min_ns: least,
        max_ns: c.max_ns,
        mean_ns: c.mean_ns,
        resolution_ns: width.unsigned_abs(),
        beyond_ns,
    };
    draft.settle(&format!("Thread {i}"), d, stated)
}
