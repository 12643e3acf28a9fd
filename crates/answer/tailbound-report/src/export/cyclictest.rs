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
/// Places within a bucket.
const HEIGHTS: u64 = 1024;

/// `run` as that histogram, a column per thread of the judged context.
pub(super) fn text(run: &Run) -> String {
    let threads: Vec<&ThreadRecord> =
        run.threads.iter().filter(|t| Some(t.context) == run.judged_context()).collect();
    let latest = threads.iter().map(|t| latest_ns(&t.wakeup)).max().unwrap_or(0);
    let rows = (latest / 1000).saturating_add(1).min(ROWS_MAX);
    let columns: Vec<Column> = threads.iter().map(|t| Column::of(&t.wakeup, rows)).collect();
    let mut out = String::from("# Histogram\n");
    for us in 0..rows {
        let counts = columns.iter().map(|c| c.at(us));
        let _ = writeln!(out, "{us:06} {}", row(counts, "\t"));
    }
    // 0 only of a thread that never woke.
    let figure = |name: &str, of: fn(&Column) -> Option<u64>| {
        let us = |(t, c): (&&ThreadRecord, &Column)| of(c).or((t.wakeup.n == 0).then_some(0));
        match threads.iter().zip(&columns).map(us).collect::<Option<Vec<u64>>>() {
            Some(all) => format!("# {name} Latencies: {}\n", shorter(&row(all.into_iter(), " "))),
            None => format!("# unknown, because the source does not say: {name} Latencies\n"),
        }
    };
    let _ = writeln!(out, "# Total: {}", row(columns.iter().map(|c| c.inside), " "));
    out.push_str(&figure("Min", |c| c.least_us));
    out.push_str(&figure("Avg", |c| c.average_us));
    out.push_str(&figure("Max", |c| c.greatest_us));
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
    /// Whole µs; `None`: the source does not say.
    least_us: Option<u64>,
    /// Of whole µs, as that tool computes it: that of the rows, where they hold all values.
    average_us: Option<u64>,
    greatest_us: Option<u64>,
}

impl Column {
    /// A bucket is wider than a row: where in its buckets the values lie, their mean tells. At their lower ends
    /// latencies of some ms would be tens of µs too small, and a reader that compares the rows
    /// with the average would find rows missing.
    fn of(wakeup: &Distribution, rows: u64) -> Self {
        // Cut to whole µs, values are less by half of what is cut off.
        let cut_us = 1000u64.saturating_sub(wakeup.resolution_ns.max(1)).real() / 2000.0;
        let wanted_us = wakeup.mean().map(|ns| ns / 1000.0 - cut_us);
        let (mut low, mut high) = (0, HEIGHTS);
        while low < high {
            let height = u64::midpoint(low, high);
            let column = Self::at_height(wakeup, height, rows);
            let Some((of_rows, wanted)) = column.mean_of_all().zip(wanted_us) else {
                low = HEIGHTS / 2;
                break;
            };
            if of_rows < wanted {
                low = height + 1;
            } else {
                high = height;
            }
        }
        let mut column = Self::at_height(wakeup, low.min(HEIGHTS), rows);
        let mean_us = wakeup.mean().map(|ns| column.mean_of_all().unwrap_or(ns / 1000.0));
        column.average_us = mean_us.map(|us| us.whole_u64());
        column
    }

    /// The values of each bucket `height` of `HEIGHTS` above its lower end; the extremes, which are exactly known, in rows of their own.
    fn at_height(wakeup: &Distribution, height: u64, rows: u64) -> Self {
        let mut column = Self {
            counts: vec![0; usize::try_from(rows).unwrap_or(0)],
            inside: 0,
            over: wakeup.unbinned,
            least_us: wakeup.min_ns.map(|ns| u64::try_from(ns / 1000).unwrap_or(0)),
            average_us: None,
            greatest_us: wakeup.max_ns.map(|ns| u64::try_from(ns / 1000).unwrap_or(0)),
        };
        column.add(0, wakeup.early.total());
        let extreme = |ns: Option<i64>| ns.and_then(|ns| u64::try_from(ns).ok());
        let (least, greatest) = (extreme(wakeup.min_ns), extreme(wakeup.max_ns));
        for bucket in wakeup.late.buckets() {
            let last = bucket.width_ns.saturating_sub(1);
            let end = bucket.low_ns.saturating_add(last);
            let mut left = bucket.count;
            for ns in [greatest, least].into_iter().flatten() {
                if left > 0 && (bucket.low_ns..=end).contains(&ns) {
                    column.add(ns, 1);
                    left -= 1;
                }
            }
            let at = bucket
                .low_ns
                .saturating_add(last / HEIGHTS * height + last % HEIGHTS * height / HEIGHTS);
            column.add(at.max(least.unwrap_or(0)).min(greatest.unwrap_or(at)), left);
        }
        column
    }

    fn add(&mut self, ns: u64, count: u64) {
        match usize::try_from(ns / 1000).ok().and_then(|us| self.counts.get_mut(us)) {
            Some(at) => {
                *at = at.saturating_add(count);
                self.inside = self.inside.saturating_add(count);
            }
            None => self.over = self.over.saturating_add(count),
        }
    }

    /// Mean of the rows, µs, where they hold all values.
    fn mean_of_all(&self) -> Option<f64> {
        let sum = || (0u64..).zip(&self.counts).map(|(us, n)| us.real() * n.real()).sum::<f64>();
        (self.inside > 0 && self.over == 0).then(|| sum() / self.inside.real())
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
        let mut wakeup = Distribution::default();
        for ns in [4_000, 5_000, 2_345_678] {
            wakeup.add(ns);
        }
        let column = Column::of(&wakeup, 2346);
        assert_eq!((column.at(4), column.at(2345), column.inside, column.over), (1, 1, 3, 0));
    }

    #[test]
    fn the_average_of_wide_buckets_is_that_of_the_values() {
        let mut wakeup = Distribution::default();
        for i in 0..1000 {
            wakeup.add(2_000_000 + i * 31);
        }
        let column = Column::of(&wakeup, 2031);
        assert!(column.average_us.unwrap().abs_diff(2015) <= 1, "{:?}", column.average_us);
        assert_eq!((column.inside, column.over), (1000, 0));
    }
}
