// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest `-v`: every sample as `thread:cycle:value`.
//!
//! Layout: `%8d:%8lu:%8ld`, after a preamble such as `Thread 0 Interval: 1000`;
//! with `--smi` a second number follows; with `-o R` one line for R cycles. Samples stand in
//! groups of a thread, not in the order of time, and have no time stamps. A cycle number that
//! is passed over was overwritten in the tool's ring before it was printed, or reduced by `-o`.
//! Source: output of rt-tests 2.4.

use std::collections::BTreeMap;

use tailbound_core::Context;
use tailbound_core::plan::Clock;
use tailbound_core::units::grouped;

use crate::cyclictest::told::Told;
use crate::cyclictest::unit::Clues;
use crate::draft::Draft;
use crate::error::Fault;
use crate::missed;
use crate::read::Options;
use crate::samples::Samples;
use crate::text::{Lines, THREADS_MAX};

/// So many lines before the samples tell what was run.
const PREAMBLE_LINES: usize = 10_000;

/// Thread, cycle, value and whether more follows.
pub(crate) fn sample(line: &str) -> Option<(u32, u64, i64, bool)> {
    let mut parts = line.splitn(3, ':');
    let thread = parts.next()?.trim().parse().ok()?;
    let cycle = parts.next()?.trim().parse().ok()?;
    let mut values = parts.next()?.split_whitespace();
    let value = values.next()?.parse().ok()?;
    // A second number may follow, and no words: a line of a log may begin with the time of day.
    let more = match values.next() {
        None => false,
        Some(smi) if smi.parse::<u64>().is_ok() && values.next().is_none() => true,
        Some(_) => return None,
    };
    Some((thread, cycle, value, more))
}

#[derive(Default)]
struct Gaps {
    next: u64,
    passed: u64,
    back: u64,
}

#[derive(Default)]
struct Preamble {
    cpus: BTreeMap<u32, u32>,
    intervals_us: BTreeMap<u32, u64>,
    smi: bool,
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclictest", "verbose samples");
    let smallest = Lines::new(bytes)
        .filter_map(|l| sample(l.ok()?.1.trim()))
        .map(|s| s.2)
        .min()
        .ok_or_else(|| Fault::file("there is no line `thread:cycle:value`"))?;
    let mut told = Told::default();
    let lines = Lines::new(bytes).filter_map(Result::ok);
    for (_, line) in lines.filter(|(_, l)| !l.trim().is_empty()).take(PREAMBLE_LINES) {
        told.line(line.trim());
    }
    let words = told.settle(&mut draft);
    let clues = Clues { smallest: Some(smallest), ..told.clues(&words) };
    let unit_ns = clues.unit(options, &mut draft)?;
    let factor = i64::try_from(unit_ns).unwrap_or(1);
    let mut threads: BTreeMap<u32, (Samples, Gaps)> = BTreeMap::new();
    let mut preamble = Preamble::default();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let Some((thread, cycle, value, more)) = sample(line) else {
            other(&mut draft, &mut preamble, line, n)?;
            continue;
        };
        preamble.smi |= more;
        if threads.len() >= THREADS_MAX && !threads.contains_key(&thread) {
            return Err(Fault::line(n, format!("more than {THREADS_MAX} threads")));
        }
        let value_ns = value.checked_mul(factor).ok_or_else(|| {
            Fault::line(n, format!("the value {value} is not a time within 292 years"))
        })?;
        let (samples, gaps) =
            threads.entry(thread).or_insert_with(|| (Samples::new(thread), Gaps::default()));
        if cycle < gaps.next {
            gaps.back += 1;
        }
        gaps.passed = gaps.passed.saturating_add(cycle.saturating_sub(gaps.next));
        gaps.next = cycle.saturating_add(1);
        samples.add(value_ns);
    }
    finish(&mut draft, threads, &preamble, unit_ns)?;
    options.apply(&mut draft);
    missed::skipped_uncounted(&mut draft, Context::User);
    Ok(draft)
}

fn other(draft: &mut Draft, preamble: &mut Preamble, line: &str, n: u64) -> Result<(), Fault> {
    if let Some(rest) = line.strip_prefix("Thread ") {
        let mut words = rest.split_whitespace();
        let number = words.next().and_then(|w| w.parse::<u32>().ok());
        let value = rest.rsplit(' ').next().map(|w| w.trim_end_matches('.'));
        if let (Some(number), Some(value)) = (number, value) {
            if preamble.cpus.len() > THREADS_MAX || preamble.intervals_us.len() > THREADS_MAX {
                return Err(Fault::line(n, format!("more than {THREADS_MAX} threads")));
            }
            if rest.contains("using cpu") {
                let cpu = value.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU);
                preamble.cpus.extend(cpu.map(|c| (number, c)));
            } else if rest.contains("Interval:") {
                preamble.intervals_us.extend(value.parse().ok().map(|i| (number, i)));
            }
        }
    } else if line.matches(':').count() == 2 && line.starts_with(|c: char| c.is_ascii_digit()) {
        draft.lose(format!("Line {n} is no whole sample and was passed over."));
        draft.cut_off = true;
    }
    Ok(())
}

fn finish(
    draft: &mut Draft,
    threads: BTreeMap<u32, (Samples, Gaps)>,
    preamble: &Preamble,
    unit_ns: u64,
) -> Result<(), Fault> {
    let us = |n: &u64| i64::try_from(*n).ok().and_then(|n| n.checked_mul(1000));
    let mut intervals = preamble.intervals_us.values().filter_map(us);
    if let Some(a) = intervals.next().filter(|i| *i > 0) {
        draft.interval_ns = Some(a);
        draft.distance_ns = intervals.next().map_or(0, |b| b.saturating_sub(a).max(0));
    }
    if draft.clock.is_none() {
        draft.clock = Some(Clock::Monotonic);
        draft.lose(
            "The clock is not in the file; cyclictest takes monotonic unless configured otherwise.",
        );
    }
    let (mut passed, mut back) = (0u64, 0u64);
    for (number, (samples, gaps)) in threads {
        passed = passed.saturating_add(gaps.passed);
        back += gaps.back;
        draft.recorded(number, preamble.cpus.get(&number).copied(), samples.finish(unit_ns)?)?;
    }
    if passed > 0 || back > 0 {
        draft.doubt(
            "source-samples-lost",
            format!(
                "{} cycle numbers are passed over and {} go back: samples were overwritten before they were printed, or reduced (-o).",
                grouped(passed),
                grouped(back)
            ),
            "The missing samples may be the latest ones.",
            "Measure with a histogram, or with tailbound --raw.",
        );
    }
    if preamble.smi {
        draft.lose("A second number follows each sample (SMI count); it is not imported.");
    }
    draft.lose("Samples have no time stamps; those of different threads cannot be put in order.");
    Ok(())
}
