// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest `-h` and `-H` as text.
//!
//! Context: COLD. Layout: a row `bucket count<TAB>count…` a bucket, one column per thread; `-H`
//! adds a column with the sum (2.4 only with more than one thread). 2.4 writes every bucket
//! and a `# Total:` line; 2.10 omits rows of zeros and has no such line. After the rows come
//! `# Min/Avg/Max Latencies:` (max with one overall value more under `-H`) and
//! `# Histogram Overflows:`, the values that found no bucket.
//! Limits: columns as threads; every row as many columns as the first.
//! Source: output of rt-tests 2.4 and 2.10.

use crate::cyclictest::{break_line, unit};
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::read::Options;
use crate::text::{self, Lines, THREADS_MAX};
use tailbound_core::Context;
use tailbound_core::number::Real as _;

#[derive(Default)]
struct Table {
    /// Buckets with a count in any column.
    rows: Vec<(u64, Vec<u64>)>,
    columns: usize,
    last_bucket: Option<u64>,
    total: Option<Vec<u64>>,
    min: Option<Vec<u64>>,
    avg: Option<Vec<u64>>,
    max: Option<Vec<u64>>,
    overflows: Option<Vec<u64>>,
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclictest", "histogram text");
    let table = read(&mut draft, bytes)?;
    let threads = table.threads();
    let smallest = table
        .min
        .iter()
        .flatten()
        .copied()
        // What `min` starts from: that thread has no sample.
        .filter(|m| *m != 1_000_000)
        .chain(table.rows.first().map(|r| r.0))
        .min()
        .map(|m| i64::try_from(m).unwrap_or(i64::MAX));
    let unit_ns = unit(smallest, options, &mut draft)?;
    if table.columns > threads {
        draft.variant.push_str(" with a sum column");
    }
    for i in 0..threads {
        let d = thread(&mut draft, &table, i, unit_ns)?;
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        draft.thread(number, None, Context::User, d)?;
    }
    draft.cut_off = table.max.is_none();
    options.apply(&mut draft);
    missed::skipped_uncounted(&mut draft, Context::User);
    draft.lose("cyclictest writes averages cut to whole units in this format.");
    Ok(draft)
}

fn read(draft: &mut Draft, bytes: &[u8]) -> Result<Table, Fault> {
    let mut table = Table::default();
    let (mut inside, mut value) = (false, None);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let list = |prefix: &str| line.strip_prefix(prefix).map(|rest| numbers(rest, n));
        if line.starts_with("# Histogram") && !line.starts_with("# Histogram O") {
            if inside && (table.max.is_some() || !table.rows.is_empty()) {
                draft.second_histogram(n);
                break;
            }
            inside = true;
        } else if let Some(v) = list("# Total:") {
            table.total = Some(v?);
        } else if let Some(v) = list("# Min Latencies:") {
            table.min = Some(v?);
        } else if let Some(v) = list("# Avg Latencies:") {
            table.avg = Some(v?);
        } else if let Some(v) = list("# Max Latencies:") {
            table.max = Some(v?);
        } else if let Some(v) = list("# Histogram Overflows:") {
            table.overflows = Some(v?);
        } else if line.starts_with("# /dev/cpu_dma_latency set to 0us") {
            crate::command::dma_latency(draft, 0);
        } else if line.starts_with('#') {
            break_line(draft, line, &mut value);
        } else if inside && line.starts_with(|c: char| c.is_ascii_digit()) {
            // A last line without its newline may have lost digits.
            table.row(line, n)?;
        }
    }
    if !inside {
        return Err(Fault::file("there is no `# Histogram` line"));
    }
    Ok(table)
}

fn numbers(rest: &str, line: u64) -> Result<Vec<u64>, Fault> {
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() > THREADS_MAX + 1 {
        return Err(Fault::line(
            line,
            format!("{} columns; at most {THREADS_MAX} threads are read", fields.len()),
        ));
    }
    fields.into_iter().map(|f| text::count(f, line, "the value")).collect()
}

impl Table {
    fn row(&mut self, line: &str, n: u64) -> Result<(), Fault> {
        let (bucket, rest) =
            line.split_once(|c: char| c.is_ascii_whitespace()).ok_or_else(|| {
                Fault::line(n, format!("a bucket without a count: `{}`", excerpt(line)))
            })?;
        let bucket = text::count(bucket, n, "the bucket")?;
        let counts = numbers(rest, n)?;
        if self.columns == 0 {
            self.columns = counts.len();
        }
        if counts.len() != self.columns || counts.is_empty() {
            return Err(Fault::line(
                n,
                format!("{} counts where the rows above have {}", counts.len(), self.columns),
            ));
        }
        if self.last_bucket.is_some_and(|last| bucket <= last) {
            return Err(Fault::line(n, format!("bucket {bucket} does not follow the one above")));
        }
        self.last_bucket = Some(bucket);
        if counts.iter().any(|c| *c > 0) {
            self.rows.push((bucket, counts));
        }
        Ok(())
    }

    /// Threads, without the column of sums.
    fn threads(&self) -> usize {
        if let Some(min) = &self.min {
            return min.len().min(THREADS_MAX);
        }
        let is_sum = |r: &Vec<u64>| {
            r.split_last().is_some_and(|(last, rest)| {
                rest.iter().fold(0u64, |a, b| a.saturating_add(*b)) == *last
            })
        };
        if self.columns > 1 && !self.rows.is_empty() && self.rows.iter().all(|(_, r)| is_sum(r)) {
            self.columns - 1
        } else {
            self.columns
        }
    }
}

fn thread(
    draft: &mut Draft,
    table: &Table,
    i: usize,
    unit_ns: u64,
) -> Result<tailbound_core::Distribution, Fault> {
    let unit = i64::try_from(unit_ns).unwrap_or(1);
    let value = |v: &Option<Vec<u64>>| v.as_ref().and_then(|v| v.get(i)).copied();
    let ns = |v: u64| {
        i64::try_from(v).ok().and_then(|v| v.checked_mul(unit)).ok_or_else(|| {
            Fault::file(format!("a latency of {v} of thread {i} is not a time within 292 years"))
        })
    };
    let mut d = coarse();
    for (bucket, counts) in &table.rows {
        d.add_many(ns(*bucket)?, counts.get(i).copied().unwrap_or(0));
    }
    let binned = d.n;
    if let Some(total) = value(&table.total).filter(|t| *t != binned) {
        draft.doubt(
            "source-inconsistent",
            format!("Thread {i}: the rows hold {binned} values, the `# Total:` line says {total}."),
            "Rows are missing or were changed.",
            "Import the text as cyclictest wrote it.",
        );
    }
    let stated = Stated {
        n: value(&table.overflows).map(|o| binned.saturating_add(o)),
        min_ns: value(&table.min).map(ns).transpose()?,
        max_ns: value(&table.max).map(ns).transpose()?,
        mean_ns: value(&table.avg).map(|v| v.real() * unit.real()),
        resolution_ns: unit_ns,
        beyond_ns: table.last_bucket.map(|b| ns(b.saturating_add(1))).transpose()?,
    };
    if table.overflows.is_none() && table.max.is_some() {
        draft.doubt(
            "source-cut-off",
            "The line `# Histogram Overflows:` is missing.".to_owned(),
            "How many values were beyond the histogram is unknown.",
            "Import the whole output.",
        );
    }
    Ok(draft.settle(&format!("Thread {i}"), d, stated))
}
