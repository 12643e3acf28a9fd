// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest `-h` and `-H` as text.
//!
//! Layout: a row `bucket count<TAB>count…` a bucket, one column per thread; `-H`
//! adds a column with the sum (2.4 only with more than one thread). 2.4 writes every bucket
//! and a `# Total:` line; 2.10 omits rows of zeros and has no such line. After the rows come
//! `# Min/Avg/Max Latencies:` (max with one overall value more under `-H`) and
//! `# Histogram Overflows:`, the values that found no bucket; 0.28 to 0.7x write `# Max Latency: N / range` instead.
//! Status lines in the same run name intervals, priorities and counts, and are checked against the rows.
//! What an author left out is noticed (`abridged`): such rows give no quantile.
//! Limits: columns as threads; every row as many columns as the first.
//! Source: output of rt-tests 0.30 to 2.10.

use crate::cyclictest::abridged::{self, Column};
use crate::cyclictest::status::StatusRows;
use crate::cyclictest::told::Told;
use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::read::Options;
use crate::text::{self, Lines, THREADS_MAX};
use tailbound_core::Context;
use tailbound_core::number::Real as _;

/// What `min` starts from: that thread has no sample.
const NO_MIN: u64 = 1_000_000;

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
    /// The foot of old versions: the greatest latency of all, and the range.
    old_foot: Option<(u64, u64)>,
    /// The first line between the rows that is none.
    foreign: Option<(u64, String)>,
}

/// A row of counts?
pub(crate) fn is_row(line: &str) -> bool {
    line.starts_with(|c: char| c.is_ascii_digit())
        && line.bytes().all(|b| b.is_ascii_digit() || b.is_ascii_whitespace())
        && line.bytes().any(|b| b.is_ascii_whitespace())
}

/// A line under the rows?
pub(crate) fn is_foot(line: &str) -> bool {
    const FEET: [&str; 7] = [
        "# Total:",
        "# Min Latencies:",
        "# Avg Latencies:",
        "# Max Latenc",
        "# Histogram Overflow",
        "# Thread ",
        "# SMIs:",
    ];
    FEET.iter().any(|f| line.starts_with(f))
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("cyclictest", "histogram text");
    let (mut told, mut seen) = (Told::default(), StatusRows::default());
    let table = read(bytes, &mut told, &mut seen)?;
    let words = told.settle(&mut draft);
    seen.settings(&mut draft, told.policy.as_deref());
    let threads = table.threads();
    let mut clues = told.clues(&words);
    let smallest = table.min.iter().flatten().copied().filter(|m| *m != NO_MIN);
    let smallest = smallest.chain(table.rows.first().map(|r| r.0)).min();
    clues.smallest = smallest.map(|m| i64::try_from(m).unwrap_or(i64::MAX));
    seen.clues(&mut clues);
    // A thread without a sample is none the worse for its unit.
    if clues.smallest.is_none() {
        clues.smallest = Some(0);
    }
    let unit_ns = clues.unit(options, &mut draft)?;
    if table.columns > threads {
        draft.variant.push_str(" with a sum column");
    }
    options.apply(&mut draft);
    for i in 0..threads {
        let d = thread(&mut draft, &table, &seen, i, unit_ns)?;
        let number = u32::try_from(i).unwrap_or(u32::MAX);
        draft.thread(number, None, Context::User, d)?;
    }
    table.check_status(&mut draft, &seen, threads);
    if let Some((max, _)) = table.old_foot.filter(|_| threads > 1 && seen.threads.is_empty()) {
        draft.lose(format!("The greatest latency of all threads is {max} in the file; of which thread it is, its last lines do not say."));
    }
    draft.cut_off = table.max.is_none() && table.old_foot.is_none();
    missed::skipped_uncounted(&mut draft, Context::User);
    draft.lose("cyclictest writes averages cut to whole units in this format.");
    Ok(draft)
}

fn read(bytes: &[u8], told: &mut Told, seen: &mut StatusRows) -> Result<Table, Fault> {
    let mut table = Table::default();
    let (mut inside, mut feet) = (false, false);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let list = |prefix: &str| line.strip_prefix(prefix).map(|rest| numbers(rest, n));
        if line.starts_with("# Histogram") && !line.starts_with("# Histogram O") {
            inside = true;
            told.figures();
            continue;
        }
        feet |= is_foot(line);
        if table.has_foot(line) {
            return Err(Fault::line(
                n,
                format!(
                    "a second line `{}`: lines of several runs stand together, and whose is which is not known; import each run's output by itself",
                    line.split(':').next().unwrap_or(line)
                ),
            ));
        }
        if let Some(v) = list("# Total:") {
            table.total = Some(v?);
        } else if let Some(v) = list("# Min Latencies:") {
            table.min = Some(v?);
        } else if let Some(v) = list("# Avg Latencies:") {
            table.avg = Some(v?);
        } else if let Some(v) = list("# Max Latencies:") {
            table.max = Some(v?);
        } else if let Some(v) = list("# Histogram Overflows:") {
            table.overflows = Some(v?);
        } else if let Some((max, range)) =
            line.strip_prefix("# Max Latency:").and_then(|r| r.split_once('/'))
        {
            table.old_foot = max.trim().parse().ok().zip(range.trim().parse().ok());
        } else if seen.line(line, n)? {
            told.figures();
        } else if inside && !feet && line.starts_with(|c: char| c.is_ascii_digit()) {
            table.row(line, n)?;
        } else {
            told.line(line);
            if inside && !feet && !line.is_empty() && table.foreign.is_none() {
                table.foreign = Some((n, excerpt(line)));
            }
        }
    }
    if !inside && table.max.is_none() {
        return Err(Fault::file("there is no `# Histogram` line"));
    }
    if !feet {
        // Whatever follows the rows of a file without its foot is not between them.
        table.foreign = None;
    }
    Ok(table)
}

/// Numbers up to a comment.
fn numbers(rest: &str, line: u64) -> Result<Vec<u64>, Fault> {
    let rest = rest.split('#').next().unwrap_or(rest);
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
    /// Is it a foot that was there already?
    fn has_foot(&self, line: &str) -> bool {
        let feet = [
            ("# Total:", &self.total),
            ("# Min Latencies:", &self.min),
            ("# Avg Latencies:", &self.avg),
            ("# Max Latencies:", &self.max),
            ("# Histogram Overflows:", &self.overflows),
        ];
        feet.iter().any(|(label, values)| line.starts_with(label) && values.is_some())
    }

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

    fn value(of: Option<&Vec<u64>>, i: usize) -> Option<u64> {
        of.and_then(|v| v.get(i)).copied()
    }

    /// The greatest latency of thread `i` where no foot has one for each: from its status line, or from the foot of old versions,
    /// which is of all threads and counts for the first where nothing says whose it is.
    fn beside(&self, seen: &StatusRows, i: usize) -> Option<u64> {
        let status = u32::try_from(i).ok().and_then(|i| seen.threads.get(&i));
        let status = status.filter(|s| s.cycles > 0).and_then(|s| u64::try_from(s.max).ok());
        let of_all =
            self.old_foot.map(|(max, _)| max).filter(|_| i == 0 && seen.threads.is_empty());
        let known = self.rows.last().map(|(bucket, _)| *bucket);
        status.or(of_all.filter(|max| self.columns == 1 || Some(*max) > known))
    }

    /// Status lines and rows are of one run: they must agree.
    fn check_status(&self, draft: &mut Draft, seen: &StatusRows, threads: usize) {
        if !seen.threads.is_empty() && seen.threads.len() != threads {
            draft.doubt(
                "source-inconsistent",
                format!(
                    "Status lines name {} threads, the histogram has {threads}.",
                    seen.threads.len()
                ),
                "They may be of different runs; the histogram was read.",
                "Import the output of one run.",
            );
        }
    }
}

fn thread(
    draft: &mut Draft,
    table: &Table,
    seen: &StatusRows,
    i: usize,
    unit_ns: u64,
) -> Result<tailbound_core::Distribution, Fault> {
    let unit = i64::try_from(unit_ns).unwrap_or(1);
    let ns = |v: u64| {
        i64::try_from(v).ok().and_then(|v| v.checked_mul(unit)).ok_or_else(|| {
            Fault::file(format!("a latency of {v} of thread {i} is not a time within 292 years"))
        })
    };
    let value = |v: &Option<Vec<u64>>| Table::value(v.as_ref(), i);
    let mut d = coarse();
    for (bucket, counts) in &table.rows {
        d.add_many(ns(*bucket)?, counts.get(i).copied().unwrap_or(0));
    }
    let column = Column {
        rows: table.rows.iter().map(|(b, c)| (*b, c.get(i).copied().unwrap_or(0))).collect(),
        total: value(&table.total),
        min: value(&table.min).filter(|m| *m != NO_MIN),
        avg: value(&table.avg),
        max: value(&table.max),
        overflows: value(&table.overflows),
        cycles: u32::try_from(i).ok().and_then(|i| seen.threads.get(&i)).map(|s| s.cycles),
        foreign: table.foreign.as_ref(),
        ends: table.max.is_some() || table.old_foot.is_some(),
    };
    let who = format!("Thread {i}");
    let gap = abridged::look(draft, &who, &column);
    let binned = d.n;
    let greatest = column.max.or(table.beside(seen, i));
    // One that no row holds is a value of its own.
    let beyond = column.max.is_none() && greatest > column.highest();
    let told = column.overflows.map(|o| binned.saturating_add(o));
    let stated = Stated {
        n: gap.map(|g| g.n).or(told).or(beyond.then(|| binned.saturating_add(1))),
        min_ns: value(&table.min).map(ns).transpose()?,
        max_ns: greatest.map(ns).transpose()?,
        mean_ns: value(&table.avg).map(|v| v.real() * unit.real()),
        resolution_ns: unit_ns,
        // Left out are rows of any height.
        beyond_ns: match gap {
            Some(_) => None,
            None => table.last_bucket.map(|b| ns(b.saturating_add(1))).transpose()?,
        },
    };
    if table.overflows.is_none() && (table.max.is_some() || table.old_foot.is_some()) {
        draft.doubt(
            "source-cut-off",
            "The line `# Histogram Overflows:` is missing.".to_owned(),
            "How many values were beyond the histogram is unknown.",
            "Import the whole output.",
        );
    }
    Ok(if gap.is_some() {
        draft.settle_abridged(&who, d, stated)
    } else {
        draft.settle(&who, d, stated)
    })
}
