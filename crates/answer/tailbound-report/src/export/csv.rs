// SPDX-License-Identifier: MIT OR Apache-2.0
//! Comma-separated values.
//!
//! Units: ns. An unknown value is an empty cell. Source: RFC 4180, with line feeds.

use tailbound_core::csv::field as cell;
use tailbound_core::{Distribution, Run};

use super::Rows;
use crate::label;

/// `run` as rows of one kind, below a row of names.
pub(super) fn text(run: &Run, rows: Rows) -> String {
    match rows {
        Rows::Histogram => histogram(run),
        Rows::Seconds => table(
            "thread,second,n,missed,min_ns,max_ns,sum_ns,argmax",
            run.seconds.iter().map(|s| {
                format!(
                    "{},{},{},{},{},{},{},{}",
                    s.thread, s.second, s.n, s.missed, s.min_ns, s.max_ns, s.sum_ns, s.argmax
                )
            }),
        ),
        Rows::Exceedances => table(
            "thread,activation,error_ns,t_ns,missed",
            run.exceedances.iter().map(|e| {
                format!("{},{},{},{},{}", e.thread, e.activation, e.error_ns, e.t_ns, e.missed)
            }),
        ),
        Rows::Loads => table(
            "load,name,t_ns,span_ns,count,unit",
            run.loads.iter().map(|l| {
                let (name, unit) = (cell(&l.name), cell(&l.unit));
                format!("{},{name},{},{},{},{unit}", l.load, l.t_ns, l.span_ns, l.count)
            }),
        ),
        Rows::Threads => threads(run),
    }
}

fn table(head: &str, rows: impl Iterator<Item = String>) -> String {
    let mut out = format!("{head}\n");
    for row in rows {
        out.push_str(&row);
        out.push('\n');
    }
    out
}

/// In each row a bucket of one thread: latencies from `low_ns` to below `high_ns`.
fn histogram(run: &Run) -> String {
    let rows = run.threads.iter().flat_map(|t| {
        let cpu = t.cpu.map_or_else(String::new, |c| c.to_string());
        let of = |d: &Distribution, kind: &'static str| {
            let early = d.early.buckets().rev().map(|b| {
                (
                    -i128::from(b.low_ns) - i128::from(b.width_ns) + 1,
                    1 - i128::from(b.low_ns),
                    b.count,
                )
            });
            let late = d.late.buckets().map(|b| {
                (i128::from(b.low_ns), i128::from(b.low_ns) + i128::from(b.width_ns), b.count)
            });
            let line = |(low, high, count): (i128, i128, u64)| {
                format!("{},{cpu},{},{kind},{low},{high},{count}", t.thread, t.context)
            };
            early.chain(late).map(line).collect::<Vec<String>>()
        };
        let mut all = of(&t.wakeup, "wake-up");
        all.extend(of(&t.missed, "missed"));
        all
    });
    table("thread,cpu,context,kind,low_ns,high_ns,count", rows)
}

fn threads(run: &Run) -> String {
    let whole = |v: Option<i64>| v.map_or_else(String::new, |v| v.to_string());
    let rows = run.threads.iter().map(|t| {
        let due = t.due();
        format!(
            "{},{},{},{},{},{},{},{},{},{},{}",
            t.thread,
            cell(&label::thread(run, t)),
            t.cpu.map_or_else(String::new, |c| c.to_string()),
            t.context,
            t.wakeup.n,
            t.missed.n,
            whole(t.wakeup.min_ns),
            t.wakeup.mean().map_or_else(String::new, |m| format!("{m:.1}")),
            whole(t.wakeup.max_ns),
            due.mean().map_or_else(String::new, |m| format!("{m:.1}")),
            t.ended,
        )
    });
    table("thread,name,cpu,context,n,missed,min_ns,mean_ns,max_ns,due_mean_ns,ended", rows)
}
