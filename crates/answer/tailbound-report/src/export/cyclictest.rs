// SPDX-License-Identifier: MIT OR Apache-2.0
//! The histogram that `cyclictest -h` prints, for scripts that read it.
//!
//! Units: µs, whole ones, as that tool cuts them off.
//! Wake-ups only: that tool knows no missed activations. Source: cyclictest(8), option -h.

use std::fmt::Write as _;

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::record::ThreadRecord;
use tailbound_core::{Distribution, Run};

/// Rows at most: what is later is counted as overflow, as by `-h 10000`.
const ROWS_MAX: u64 = 10_000;

/// `run` as that histogram, a column per thread of the judged context.
pub(super) fn text(run: &Run) -> String {
    let threads: Vec<&ThreadRecord> =
        run.threads.iter().filter(|t| Some(t.context) == run.judged_context()).collect();
    let latest = threads.iter().map(|t| latest_ns(&t.wakeup)).max().unwrap_or(0);
    let rows = (latest / 1000).saturating_add(1).min(ROWS_MAX);
    let columns: Vec<Column> = threads.iter().map(|t| Column::of(t, rows)).collect();
    let mut out = String::from("# Histogram\n");
    for us in 0..rows {
        let counts = columns.iter().map(|c| c.at(us));
        let _ = writeln!(out, "{us:06} {}", row(counts, "\t"));
    }
    // 0 only of a thread that never woke.
    let figure = |name: &str, of: fn(&Distribution) -> Option<f64>| {
        let us = |t: &&ThreadRecord| match of(&t.wakeup) {
            Some(ns) => Some((ns / 1000.0).whole_u64()),
            None => (t.wakeup.n == 0).then_some(0),
        };
        match threads.iter().map(us).collect::<Option<Vec<u64>>>() {
            Some(all) => format!("# {name} Latencies: {}\n", shorter(&row(all.into_iter(), " "))),
            None => format!("# unknown, because the source does not say: {name} Latencies\n"),
        }
    };
    let _ = writeln!(out, "# Total: {}", row(columns.iter().map(|c| c.inside), " "));
    out.push_str(&figure("Min", |d| d.min_ns.map(|v| v.real())));
    out.push_str(&figure("Avg", Distribution::mean));
    out.push_str(&figure("Max", |d| d.max_ns.map(|v| v.real())));
    let over = row(columns.iter().map(|c| c.over), " ");
    let _ = writeln!(out, "# Histogram Overflows: {}", shorter(&over));
    let early = threads.iter().map(|t| t.wakeup.early.total()).fold(0, u64::saturating_add);
    if early > 0 {
        let _ = writeln!(out, "# {early} wake-ups before their due time are in row 000000");
    }
    out
}

/// The latest value, or the end of the last bucket where the source does not say which it is.
fn latest_ns(d: &Distribution) -> u64 {
    let occupied = d.late.buckets().filter(|b| b.count > 0);
    let end = occupied.map(|b| b.low_ns.saturating_add(b.width_ns - 1)).max();
    match d.max_ns {
        Some(max) => u64::try_from(max).unwrap_or(0),
        None => end.unwrap_or(0),
    }
}

/// Counts of one thread by µs.
struct Column {
    counts: Vec<u64>,
    inside: u64,
    over: u64,
}

impl Column {
    fn of(t: &ThreadRecord, rows: u64) -> Self {
        let mut counts = vec![0u64; usize::try_from(rows).unwrap_or(0)];
        let mut over = t.wakeup.unbinned;
        if let Some(first) = counts.first_mut() {
            *first = t.wakeup.early.total();
        }
        for b in t.wakeup.late.buckets() {
            let at = usize::try_from(b.low_ns / 1000).unwrap_or(usize::MAX);
            match counts.get_mut(at) {
                Some(count) => *count = count.saturating_add(b.count),
                None => over = over.saturating_add(b.count),
            }
        }
        // A bucket begins below what is in it: the extremes, which the foot has exactly, are rows of their own.
        let buckets = || t.wakeup.late.buckets().filter(|b| b.count > 0);
        for (exact, bucket) in
            [(t.wakeup.max_ns, buckets().next_back()), (t.wakeup.min_ns, buckets().next())]
        {
            let (Some(ns), Some(bucket)) = (exact.filter(|ns| *ns >= 0), bucket) else { continue };
            let row = |ns: u64| usize::try_from(ns / 1000).unwrap_or(usize::MAX);
            let (from, to) = (row(bucket.low_ns), row(ns.unsigned_abs()));
            if from != to && counts.get(from).is_some_and(|n| *n > 0) && to < counts.len() {
                if let Some(n) = counts.get_mut(from) {
                    *n -= 1;
                }
                if let Some(n) = counts.get_mut(to) {
                    *n = n.saturating_add(1);
                }
            }
        }
        Self { inside: counts.iter().fold(0, |a, b| a.saturating_add(*b)), counts, over }
    }

    fn at(&self, us: u64) -> u64 {
        usize::try_from(us).ok().and_then(|i| self.counts.get(i)).copied().unwrap_or(0)
    }
}

fn row(values: impl Iterator<Item = u64>, between: &str) -> String {
    values.map(|v| format!("{v:06}")).collect::<Vec<_>>().join(between)
}

/// That tool writes these rows with five digits.
fn shorter(row: &str) -> String {
    let five = |v: &str| v.parse::<u64>().map_or_else(|_| v.to_owned(), |v| format!("{v:05}"));
    row.split(' ').map(five).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_the_extremes_are_those_of_the_foot() {
        let mut t = ThreadRecord::default();
        for ns in [4_000, 5_000, 2_345_678] {
            t.wakeup.add(ns);
        }
        let column = Column::of(&t, 2346);
        assert_eq!((column.at(4), column.at(2345), column.inside, column.over), (1, 1, 3, 0));
    }
}
