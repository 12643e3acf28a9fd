// SPDX-License-Identifier: MIT OR Apache-2.0
//! The histogram of `-h` and `-H`: a column for each thread, with `-H` one of all of them.

use std::fmt::Write as _;

use crate::tally::CyclicTally;

/// The columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HistogramColumns {
    Threads,
    ThreadsAndAll,
}

/// The text, with the empty line that ends it.
pub(crate) fn text(threads: &[&CyclicTally], columns: HistogramColumns) -> String {
    let all = columns == HistogramColumns::ThreadsAndAll && threads.len() > 1;
    let mut out = String::from("# Histogram\n");
    let rows = threads.iter().map(|t| t.rows.len()).max().unwrap_or(0);
    for row in 0..rows {
        let counts = threads.iter().map(|t| t.rows.get(row).copied().unwrap_or(0));
        let counts: Vec<u64> = with_sum_if(all, counts.collect());
        let cells: Vec<String> = counts.iter().map(|n| format!("{n:06}")).collect();
        let _ = writeln!(out, "{row:06} {}", cells.join("\t"));
    }
    let mut figures = |name: &str, values: Vec<i128>, width: usize| {
        let cells: String = values.iter().map(|v| format!(" {v:0width$}")).collect();
        let _ = writeln!(out, "# {name}:{cells}");
    };
    let of =
        |figure: fn(&CyclicTally) -> i128| threads.iter().map(|t| figure(t)).collect::<Vec<_>>();
    let total = |t: &CyclicTally| t.rows.iter().map(|n| i128::from(*n)).sum();
    figures("Total", with_sum_if(all, of(total)), 9);
    figures("Min Latencies", of(|t| t.least.into()), 5);
    figures("Avg Latencies", of(|t| t.average().into()), 5);
    let greatest = of(|t| t.greatest.into());
    let most = greatest.iter().max().copied().filter(|_| all);
    figures("Max Latencies", greatest.into_iter().chain(most).collect(), 5);
    figures("Histogram Overflows", with_sum_if(all, of(|t| t.overflows.into())), 5);
    out.push_str("# Histogram Overflow at cycle number:\n");
    for (number, tally) in threads.iter().enumerate() {
        let _ = write!(out, "# Thread {number}:");
        for cycle in &tally.outliers {
            let _ = write!(out, " {cycle:05}");
        }
        let others = tally.overflows.saturating_sub(tally.outliers.len() as u64);
        if others > 0 {
            let _ = write!(out, " # {others:05} others");
        }
        out.push('\n');
    }
    out.push('\n');
    out
}

/// The values with their sum, where there is a column for it.
fn with_sum_if<T: Copy + std::iter::Sum<T>>(has_column: bool, mut values: Vec<T>) -> Vec<T> {
    if has_column {
        values.push(values.iter().copied().sum());
    }
    values
}
