// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of `rtla timerlat top`: extremes and average of each CPU, in the interrupt, the thread and user space.
//!
//! Units: µs, or ns with `-n`, as the heading says. Layout: `0 00:00:05 | IRQ Timer Latency (us) | Thread Timer Latency (us)`, of
//! later versions also `| Ret user Timer Latency (us)`; `CPU COUNT | cur min avg max | …`; a row `0 #244 | 10965 88 10330 115094 | …` for each
//! CPU, with `-` where there is no sample, and from 6.9 on one of `ALL`. A live screen is repeated: the last row of a CPU counts.
//! An analysis may follow (`rtla_analysis`). Source: rtla-timerlat-top(1); output of rtla 6.1.

use std::collections::BTreeMap;

use tailbound_core::number::Real as _;
use tailbound_core::plan::Clock;
use tailbound_core::utc::hms;
use tailbound_core::{Context, Policy};

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::read::Options;
use crate::text::{self, Lines, THREADS_MAX};
use crate::{missed, rtla_analysis, screens};

const CONTEXTS: [Context; 3] = [Context::Irq, Context::Thread, Context::User];

/// Count, and least, average and greatest of each context.
#[derive(Default)]
struct Row {
    count: u64,
    figures: Vec<Option<[i64; 3]>>,
}

/// Is it the heading of such a screen?
pub(crate) fn begins(line: &str) -> bool {
    let unit = line.contains("IRQ Timer Latency (us)") || line.contains("IRQ Timer Latency (ns)");
    // A stamp may stand before it.
    unit && elapsed(line).is_some()
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("rtla timerlat", "top screen");
    let mut unit_ns = None;
    let mut rows: BTreeMap<u32, Row> = BTreeMap::new();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if begins(line) {
            unit_ns = Some(if line.contains("(ns)") { 1 } else { 1000 });
            draft.duration_ns = elapsed(line).or(draft.duration_ns);
        } else if let Some(unit) = unit_ns
            && let Some((cpu, row)) = row(line, unit, n)?
        {
            if rows.len() >= THREADS_MAX && !rows.contains_key(&cpu) {
                return Err(Fault::line(n, format!("more than {THREADS_MAX} CPUs")));
            }
            rows.insert(cpu, row);
        }
    }
    let unit = unit_ns.ok_or_else(|| Fault::file("there is no heading `IRQ Timer Latency`"))?;
    for (cpu, row) in rows {
        for (context, figures) in CONTEXTS.into_iter().zip(row.figures) {
            let Some([least, average, greatest]) = figures else { continue };
            let stated = Stated {
                n: Some(row.count.max(1)),
                min_ns: Some(least),
                max_ns: Some(greatest),
                mean_ns: Some(average.real()),
                resolution_ns: unit,
                beyond_ns: Some(least),
            };
            let d = draft.settle(&format!("CPU {cpu} ({context})"), coarse(), stated);
            draft.thread(cpu, Some(cpu), context, d)?;
        }
    }
    draft.cut_values(unit);
    draft.lose("rtla writes averages cut to whole units.");
    draft.clock = Some(Clock::Monotonic);
    draft.policy = Some(Policy::Fifo(95));
    draft.lose("The priority is not in the file; timerlat's threads take fifo:95 unless configured otherwise.");
    options.apply(&mut draft);
    missed::skipped_uncounted(&mut draft, Context::Thread);
    rtla_analysis::beside(&mut draft, bytes)?;
    Ok(draft)
}

/// `0 00:00:05`, days and time, in the heading's first cell.
pub(crate) fn elapsed(line: &str) -> Option<i64> {
    let mut words = line.split('|').next()?.split_whitespace();
    let days: i64 = words.next()?.parse().ok().filter(|d| (0..100_000).contains(d))?;
    let time = hms(words.next()?)?;
    // A day and a time of more words are of a stamp.
    words.next().is_none().then_some(())?;
    days.checked_mul(86_400)?.checked_add(time)?.checked_mul(1_000_000_000)
}

/// Does a shell show the command line of rtla's timerlat in `line`?
pub(crate) fn is_typed(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let tool = |w: &&str| matches!(w.rsplit('/').next(), Some("rtla" | "timerlat"));
    let Some(at) = words.iter().position(tool) else { return false };
    let prompt = at.checked_sub(1).and_then(|i| words.get(i));
    let typed = prompt.is_none_or(|w| w.ends_with(['$', '#', '%', '>', '+']) || *w == "sudo");
    let rest = words.get(at + 1..).unwrap_or_default();
    typed
        && rest
            .iter()
            .find(|w| **w != "timerlat")
            .is_none_or(|w| w.starts_with('-') || matches!(*w, "top" | "hist"))
}

/// A CPU's row, as far as it tells runs apart.
pub(crate) fn seen(line: &str) -> Option<screens::ScreenRow> {
    let (cpu, row) = row(line, 1, 0).ok()??;
    let [least, _, greatest] = row.figures.into_iter().flatten().next()?;
    Some(screens::ScreenRow {
        key: screens::Key::Thread(cpu),
        id: None,
        count: Some(row.count),
        least: Some(least),
        greatest: Some(greatest),
    })
}

/// `0 #244 | cur min avg max | …`; `None` for what is no row of a CPU.
fn row(line: &str, unit_ns: u64, n: u64) -> Result<Option<(u32, Row)>, Fault> {
    let mut cells = line.split('|').map(str::trim);
    let mut head = cells.next().unwrap_or("").split_whitespace();
    let (Some(cpu), Some(count)) = (head.next(), head.next().and_then(|c| c.strip_prefix('#')))
    else {
        return Ok(None);
    };
    let Some(cpu) = cpu.parse().ok().filter(|c| *c <= tailbound_core::cpus::MAX_CPU) else {
        return Ok(None);
    };
    let mut row = Row { count: text::count(count, n, "the count")?, figures: Vec::new() };
    for cell in cells.take(CONTEXTS.len()) {
        let words: Vec<&str> = cell.split_whitespace().collect();
        let [_, least, average, greatest] = words.as_slice() else {
            return Err(Fault::line(n, format!("`{}` is not four figures", excerpt(cell))));
        };
        let time = |word: &&str, what: &str| text::ns(word, unit_ns, n, what);
        row.figures.push(if *greatest == "-" {
            None
        } else {
            Some([time(least, "min")?, time(average, "avg")?, time(greatest, "max")?])
        });
    }
    Ok(Some((cpu, row)))
}
