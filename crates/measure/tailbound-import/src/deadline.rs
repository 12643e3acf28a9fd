// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclicdeadline of rt-tests: how late threads of SCHED_DEADLINE wake up, as text and as JSON.
//!
//! Units: µs, or ns with `-N`. Layout of a line: `T: 0 (163306) I:1000 C:  60001 Min: 1 Act: 4 Avg: 2 Max: 33`, without
//! cyclictest's `P:`, repeated while the screen is live: the last one of a thread counts. `Act:` is five characters wide in µs and
//! eight in ns, the only trace of `-N`. JSON: `thread.N{cycles, min, max, avg}`, later also `histogram`, `cpu`, `node`;
//! `resolution_in_ns` is 1 for ns.
//! A period that is over when the thread wakes is passed over without being counted.
//! Source: cyclicdeadline(8); output of rt-tests 1.x to 2.8.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means};
use tailbound_core::{Context, Policy};

use crate::command::{Arguments, CYCLICDEADLINE};
use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::json;
use crate::read::Options;
use crate::screens::{Key, ScreenRow};
use crate::text::{Lines, THREADS_MAX};
use crate::{cyclictest, fields, missed, rttests};

/// The last line of a thread, in the file's unit.
#[derive(Clone, Copy)]
struct Status {
    interval_us: i64,
    cycles: u64,
    min: i64,
    avg: i64,
    max: i64,
    /// Characters of `Act:`, and digits in them.
    act: (usize, usize),
}

/// Is it a line of cyclicdeadline, and none of cyclictest or signaltest?
pub(crate) fn is_line(line: &str) -> bool {
    let has = |words: &[&str]| words.iter().all(|w| line.contains(w));
    line.starts_with("T:") && has(&[" I:", " C:", "Min:", "Max:"]) && !line.contains(" P:")
}

pub(crate) fn text(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclicdeadline", "text");
    draft.command = fields::command(bytes, &["cyclicdeadline"]);
    let mut threads: BTreeMap<u32, Status> = BTreeMap::new();
    let mut runtime = None;
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if let Some(pair) = line.strip_prefix("INFO: interval:") {
            runtime = runtime.or_else(|| runtime_of(pair));
        }
        if !is_line(line) {
            continue;
        }
        let (number, status) = status(line, n)?;
        if threads.len() >= THREADS_MAX && !threads.contains_key(&number) {
            return Err(Fault::line(n, format!("more than {THREADS_MAX} threads")));
        }
        threads.insert(number, status);
    }
    // `-h` prints cyclictest's histogram behind the lines.
    let mut lines = Lines::new(bytes).filter_map(Result::ok);
    if lines.any(|(_, line)| line.starts_with("# Histogram")) {
        return with_histogram(bytes, draft, &threads, runtime, options);
    }
    let intervals: Vec<i64> = threads.values().map(|s| s.interval_us).collect();
    paces(&mut draft, &intervals);
    let unit_ns = unit(&threads, options)?;
    settings(&mut draft, runtime);
    for (number, s) in &threads {
        let scaled = |v: i64| v.checked_mul(i64::try_from(unit_ns).ok()?);
        let range = || Fault::file(format!("thread {number}: a time beyond 292 years"));
        let min_ns = Some(scaled(s.min).ok_or_else(range)?);
        let stated = Stated {
            n: Some(s.cycles),
            min_ns,
            max_ns: Some(scaled(s.max).ok_or_else(range)?),
            mean_ns: Some(scaled(s.avg).ok_or_else(range)?.real()),
            resolution_ns: unit_ns,
            beyond_ns: min_ns,
        };
        let d = draft.settle(&format!("Thread {number}"), coarse(), stated);
        draft.thread(*number, None, Context::User, d)?;
    }
    draft.cut_values(unit_ns);
    draft.lose("The average is cut to a whole unit.");
    options.apply(&mut draft);
    missed::skipped_uncounted(&mut draft, Context::User);
    Ok(draft)
}

/// A thread's line, as far as it tells runs apart.
pub(crate) fn row(line: &str) -> Option<ScreenRow> {
    let (number, status) = is_line(line).then(|| status(line, 0).ok())??;
    Some(ScreenRow {
        key: Key::Thread(number),
        id: fields::thread_id(line),
        count: Some(status.cycles),
        least: Some(status.min),
        greatest: Some(status.max),
    })
}

/// The histogram behind the lines, which holds more than they; interval and policy are theirs.
fn with_histogram(
    bytes: &[u8],
    told: Draft,
    threads: &BTreeMap<u32, Status>,
    runtime: Option<Policy>,
    options: &Options,
) -> Result<Draft, Fault> {
    let first = threads.values().next().and_then(|s| s.interval_us.checked_mul(1000));
    let words = Arguments::new(&told.command, &CYCLICDEADLINE);
    let known = Options {
        interval_ns: options.interval_ns.or(first).filter(|i| *i > 0),
        duration_ns: options.duration_ns.or(words.span_ns("D")).filter(|d| *d > 0),
        ..options.clone()
    };
    // To cyclictest's reader lines without a priority are broken.
    let mut rows = Vec::with_capacity(bytes.len());
    for line in bytes.split_inclusive(|b| *b == b'\n') {
        let own = Lines::new(line).filter_map(Result::ok).any(|(_, l)| is_line(l.trim()));
        rows.extend_from_slice(if own { b"\n" } else { line });
    }
    let mut draft = cyclictest::histogram::parse(&rows, &known)?;
    draft.tool = "cyclicdeadline".to_owned();
    draft.command = told.command;
    settings(&mut draft, runtime);
    options.apply(&mut draft);
    draft.duration_ns = draft.duration_ns.or(known.duration_ns);
    let named = |text: &mut String| *text = text.replace("cyclictest", "cyclicdeadline");
    draft.lost.iter_mut().for_each(named);
    draft
        .findings
        .iter_mut()
        .for_each(|f| f.title = f.title.replace("cyclictest", "cyclicdeadline"));
    Ok(draft)
}

fn status(line: &str, n: u64) -> Result<(u32, Status), Fault> {
    let number = line.trim_start_matches("T:").trim_start();
    let digits: String = number.chars().take_while(char::is_ascii_digit).collect();
    let number =
        digits.parse().map_err(|_| Fault::line(n, "`T:` is not followed by a thread number"))?;
    let act = line.split_once("Act:").and_then(|(_, rest)| rest.split_once(" Avg:"));
    let act = act.map_or((0, 0), |(field, _)| (field.chars().count(), field.trim().len()));
    let whole = |label: &str| fields::time(line, label, 1, n);
    let status = Status {
        interval_us: whole(" I:")?,
        cycles: fields::count(line, " C:", n)?,
        min: whole("Min:")?,
        avg: whole("Avg:")?,
        max: whole("Max:")?,
        act,
    };
    Ok((number, status))
}

/// `Act:` has five places in µs and eight in ns: known where a value did not outgrow them.
fn unit(threads: &BTreeMap<u32, Status>, options: &Options) -> Result<u64, Fault> {
    if let Some(unit) = options.unit_ns {
        return Ok(unit);
    }
    let widths = threads.values().map(|s| s.act);
    let padded: Vec<usize> = widths.filter(|(w, digits)| digits < w).map(|a| a.0).collect();
    let all = |width: usize| !padded.is_empty() && padded.iter().all(|w| *w == width);
    if threads.is_empty() || all(5) {
        Ok(1000)
    } else if all(8) {
        Ok(1)
    } else {
        Err(Fault::file(
            "whether the values are µs or ns (-N) cannot be told from the lines: give the unit with --unit us or --unit ns",
        ))
    }
}

/// The first thread's interval, and by how much each next one is longer.
fn paces(draft: &mut Draft, intervals_us: &[i64]) {
    let Some(first) = intervals_us.first().filter(|i| **i > 0) else { return };
    draft.interval_ns = first.checked_mul(1000);
    let mut steps = intervals_us.windows(2).filter_map(|w| w.last()?.checked_sub(*w.first()?));
    let step = steps.next().unwrap_or(0);
    if steps.all(|s| s == step) {
        draft.distance_ns = step.saturating_mul(1000);
    }
    if step != 0 {
        draft.lose("Each thread has an interval of its own; the plan says the first one's.");
    }
}

/// `600:1000`, runtime and period of the first thread.
fn runtime_of(pair: &str) -> Option<Policy> {
    let (runtime, period) = pair.trim().split_once(':')?;
    let ns = |us: &str| us.trim().parse::<u64>().ok()?.checked_mul(1000);
    Some(Policy::Deadline { runtime_ns: ns(runtime)?, period_ns: ns(period)? })
        .filter(|_| ns(runtime) <= ns(period))
}

fn settings(draft: &mut Draft, runtime: Option<Policy>) {
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::NotTold);
    draft.lose("The threads sleep in sched_yield(2) until their next period.");
    let words = Arguments::new(&draft.command, &CYCLICDEADLINE);
    draft.duration_ns = words.span_ns("D").filter(|d| *d > 0);
    let period = draft.interval_ns.and_then(|ns| u64::try_from(ns).ok());
    draft.policy = runtime.or_else(|| {
        draft.lose("The runtime of the threads under SCHED_DEADLINE is not in the file: the plan says the whole period.");
        period.map(|period_ns| Policy::Deadline { runtime_ns: period_ns, period_ns })
    });
}

pub(crate) fn json(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let o = json::parse(bytes)?;
    let mut draft = Draft::new("cyclicdeadline", "json v1");
    let line = rttests::header(&mut draft, &o)?;
    draft.command = line.split_whitespace().map(str::to_owned).collect();
    let words = Arguments::new(&draft.command, &CYCLICDEADLINE);
    let us = |n: u64| i64::try_from(n).ok().and_then(|n| n.checked_mul(1000));
    draft.interval_ns = words.number("i").and_then(us).filter(|i| *i > 0);
    draft.distance_ns = words.number("s").and_then(us).unwrap_or(0);
    let top = words.number("h");
    settings(&mut draft, None);
    rttests::elapsed(&mut draft, &o);
    let unit_ns = match json::count(&o, "resolution_in_ns", "")? {
        Some(0) | None => options.unit_ns.unwrap_or(1000),
        Some(_) => 1,
    };
    let threads = json::object(&o, "thread", "")?;
    for (number, t, path) in json::numbered(threads, "thread")? {
        let mut d = coarse();
        let mut highest = None;
        if let Some(serde_json::Value::Object(h)) = t.get("histogram") {
            highest = json::histogram(&mut d, h, unit_ns, &json::join(&path, "histogram"))?;
        }
        let min_ns = json::ns(t, "min", unit_ns, &path)?;
        let limit = top.and_then(|h| i64::try_from(h.checked_mul(unit_ns)?).ok());
        let stated = Stated {
            n: json::count(t, "cycles", &path)?,
            min_ns,
            max_ns: json::ns(t, "max", unit_ns, &path)?,
            mean_ns: json::mean_ns(t, "avg", unit_ns),
            resolution_ns: unit_ns,
            beyond_ns: if d.n > 0 { limit.or(highest) } else { min_ns },
        };
        if stated.n.is_none() || stated.max_ns.is_none() {
            return Err(Fault::path(path, "`cycles` or `max` is missing"));
        }
        let d = draft.settle(&format!("Thread {number}"), d, stated);
        draft.thread(number, json::cpu(t, "cpu"), Context::User, d)?;
    }
    draft.cut_values(unit_ns);
    options.apply(&mut draft);
    missed::skipped_uncounted(&mut draft, Context::User);
    Ok(draft)
}
