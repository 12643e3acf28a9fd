// SPDX-License-Identifier: MIT OR Apache-2.0
//! The screen of RTAI's `latency` and `display`: extremes and averages of each second.
//!
//! Units: ns, unlike Xenomai's lines of the same names. Layout: `# period = N (ns)`,
//! `# average time = N (s)`, then `RTD|lat min|ovl min|lat avg|lat max|ovl max|overruns`, one
//! row an average time; `ovl` and overruns count since the tester began. There is no histogram.
//! A period that was overrun enters the row as a latency of 0 and is counted.
//! Source: RTAI 5.3.4, its `testsuite`, and output of it on Linux 5.4.

use tailbound_core::Context;
use tailbound_core::number::Real as _;
use tailbound_core::plan::{Clock, Means};

use crate::draft::{Draft, Stated, coarse};
use crate::error::{Fault, excerpt};
use crate::missed;
use crate::text::{self, Lines};

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("rtai latency", "text");
    let (mut row_s, mut rows, mut sum_ns) = (1i64, 0i64, 0i128);
    let (mut min_ns, mut max_ns) = (None::<i64>, None::<i64>);
    let mut overruns = 0u64;
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        let head = |name: &str| Some(line.strip_prefix(name)?.trim_start_matches([' ', '=']));
        if let Some(period) = head("# period") {
            let period = period.split_whitespace().next().unwrap_or("");
            draft.interval_ns = Some(text::ns(period, 1, n, "the period")?).filter(|i| *i > 0);
        } else if let Some(time) = head("# average time") {
            let time = time.split_whitespace().next().unwrap_or("");
            row_s = text::ns(time, 1, n, "the average time")?.max(1);
        } else if let Some(row) = line.strip_prefix("RTD|") {
            let columns: Vec<&str> = row.split('|').map(str::trim).collect();
            let [least, _, average, greatest, _, count] = columns.as_slice() else {
                return Err(Fault::line(n, format!("`{}` is not six columns", excerpt(row))));
            };
            let least = text::ns(least, 1, n, "the least")?;
            let greatest = text::ns(greatest, 1, n, "the greatest")?;
            sum_ns = sum_ns.saturating_add(text::ns(average, 1, n, "the average")?.into());
            min_ns = Some(min_ns.map_or(least, |m| m.min(least)));
            max_ns = Some(max_ns.map_or(greatest, |m| m.max(greatest)));
            overruns = text::count(count, n, "the overruns")?;
            rows = rows.saturating_add(1);
        }
    }
    let length_ns = rows.saturating_mul(row_s).saturating_mul(1_000_000_000);
    let interval = draft.interval_ns.ok_or_else(|| Fault::file("no line `# period = … (ns)`"))?;
    let n = length_ns.checked_div(interval).unwrap_or(0);
    let mean_ns = sum_ns.checked_div(rows.into()).map(|m| m.real());
    let stated = Stated {
        n: Some(n.unsigned_abs()),
        min_ns,
        max_ns,
        mean_ns,
        resolution_ns: 1,
        beyond_ns: None,
    };
    let d = draft.settle("The task", coarse(), stated);
    draft.thread(0, None, Context::User, d)?;
    draft.duration_ns = Some(length_ns);
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::Timerfd);
    draft.lose("RTAI's own periodic timer was slept on; its priority is not in the file.");
    missed::counted(&mut draft, overruns);
    Ok(draft)
}
