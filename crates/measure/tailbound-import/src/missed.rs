// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source does with periods that fell due while a wake-up was late, and what follows.
//!
//! Units: ns.
//! Argument: a loop that skips (`while now > next: next += interval`) skips only when a
//! wake-up comes later than one interval. If the latest wake-up is earlier than the
//! interval, nothing was skipped. Otherwise the number of due periods is estimated from
//! interval and duration; how late the skipped ones would have been stays unknown.

use tailbound_core::Context;
use tailbound_core::plan::Means;
use tailbound_core::units::{format_ns_i64, grouped};

use crate::draft::Draft;

/// A tool that passes over missed periods without counting them.
pub(crate) fn skipped_uncounted(draft: &mut Draft, context: Context) {
    if matches!(draft.means, Some(Means::NanosleepRelative | Means::NanosleepPlain)) {
        return relative(draft);
    }
    let tool = draft.tool.clone();
    let threads: Vec<Schedule> = schedules(draft, context);
    if threads.is_empty() {
        return;
    }
    let latest = threads.iter().map(|t| t.max).max().flatten();
    let late = threads.iter().filter(|t| !t.safe);
    if late.clone().next().is_none() {
        let started = threads.iter().any(|t| t.expected.is_some_and(|e| e > t.n));
        draft.lose(format!(
            "{tool} does not count missed periods; none can have been missed here, for no wake-up was later than the interval.{}",
            if started { " Threads that started late have fewer wake-ups than the schedule." } else { "" }
        ));
        return;
    }
    let seen = told(late, &threads);
    let why = match (latest, draft.interval_ns) {
        (Some(m), Some(i)) if m >= i => format!(
            " The latest wake-up, {}, is later than the interval of {}: periods were skipped.",
            format_ns_i64(m),
            format_ns_i64(i)
        ),
        (_, None) => " The interval is not in the file, so how many is unknown.".to_owned(),
        _ => String::new(),
    };
    draft.doubt(
        "source-no-missed",
        format!("{tool} skips missed periods and does not count them.{why}{seen}"),
        "The skipped periods would have been late, and are missing from the histogram: every quantile is too good.",
        "Give interval and duration if you know them; measure with tailbound, which accounts for every due activation.",
    );
}

/// A thread and what its schedule says.
struct Schedule {
    thread: u32,
    n: u64,
    max: Option<i64>,
    /// Wake-ups that were due, as far as is known.
    expected: Option<u64>,
    /// No wake-up was later than the interval.
    safe: bool,
    /// Periods within its late wake-ups, where each of these is known.
    within: Option<u64>,
}

fn schedules(draft: &Draft, context: Context) -> Vec<Schedule> {
    let of_context = draft.threads.iter().filter(|t| t.context == context);
    let schedule = |(i, t): (usize, &tailbound_core::record::ThreadRecord)| {
        let steps = i64::try_from(i).unwrap_or(i64::MAX);
        let longer = draft.distance_ns.saturating_mul(steps);
        let interval = draft.interval_ns.map(|ns| ns.saturating_add(longer)).filter(|i| *i > 0);
        let max = t.wakeup.max_ns;
        let within = interval.filter(|_| t.wakeup.unbinned == 0).map(|i| {
            let periods = |low: u64, n: u64| (low / i.unsigned_abs()).saturating_mul(n);
            t.wakeup
                .late
                .buckets()
                .fold(0u64, |all, b| all.saturating_add(periods(b.low_ns, b.count)))
        });
        Schedule {
            thread: t.thread,
            n: t.wakeup.n,
            max,
            expected: interval
                .zip(draft.duration_ns)
                .map(|(i, d)| u64::try_from(d / i).unwrap_or(0)),
            safe: matches!((interval, max), (Some(i), Some(m)) if m < i),
            within,
        }
    };
    of_context.enumerate().map(schedule).collect()
}

/// How many periods were skipped, as far as the file tells; of threads whose wake-ups were never so late it says why they have fewer.
fn told<'a>(late: impl Iterator<Item = &'a Schedule>, all: &[Schedule]) -> String {
    let short = |t: &Schedule| t.expected.filter(|e| *e > t.n).map(|e| (t.n, e));
    let late: Vec<&Schedule> = late.collect();
    let worst = late.iter().filter_map(|t| short(t).map(|s| (*t, s)));
    let worst = worst.max_by_key(|(_, (n, e))| e - n);
    let mut text = String::new();
    if late.len() < all.len() {
        let names: Vec<String> = late.iter().take(8).map(|t| t.thread.to_string()).collect();
        let more = if late.len() > names.len() { " and others" } else { "" };
        let s = if late.len() == 1 { "" } else { "s" };
        text.push_str(&format!(" Only thread{s} {}{more} can have skipped any.", names.join(", ")));
    }
    if let Some((t, (n, e))) = worst {
        let missing = e - n;
        text.push_str(&format!(
            " {} has {} of about {} due wake-ups: ",
            if late.len() < all.len() {
                format!("Thread {}", t.thread)
            } else {
                "One thread".to_owned()
            },
            grouped(n),
            grouped(e),
        ));
        match t.within.filter(|w| *w < missing) {
            Some(within) => text.push_str(&format!(
                "{} fit into its late wake-ups, the rest of the {} is its start and its end.",
                grouped(within),
                grouped(missing)
            )),
            None => text.push_str(&format!("about {} are not in the file.", grouped(missing))),
        }
    }
    let started = all.iter().filter(|t| t.safe).filter_map(short).map(|(n, e)| e - n).max();
    if let Some(fewer) = started {
        text.push_str(&format!(
            " The other threads have up to {} fewer than the schedule because they started later: none of their wake-ups was later than the interval.",
            grouped(fewer)
        ));
    }
    text
}

/// A tool that sleeps relative to its last wake-up: there is no schedule to miss.
pub(crate) fn relative(draft: &mut Draft) {
    let tool = draft.tool.clone();
    draft.doubt(
        "source-no-missed",
        format!("{tool} sleeps relative to its last wake-up: a late one delays all that follow, and none counts as missed."),
        "Compared with a fixed schedule, every quantile is too good.",
        "Measure with a tool that keeps an absolute schedule.",
    );
}

/// A tool that keeps the schedule and catches up: what was missed stands among the samples.
pub(crate) fn caught_up(draft: &mut Draft) {
    let tool = draft.tool.clone();
    draft.lose(format!(
        "{tool} catches up after a late wake-up: missed periods are among the samples, with the latency they had, and cannot be distinguished."
    ));
}

/// A tool that counts missed periods without their latency.
pub(crate) fn counted(draft: &mut Draft, overruns: u64) {
    if overruns == 0 {
        return;
    }
    let tool = draft.tool.clone();
    draft.doubt(
        "source-no-missed",
        format!(
            "{tool} counted {} missed periods but did not enter them into the histogram.",
            grouped(overruns)
        ),
        "They would have been late by an unknown amount: every quantile is too good.",
        "Measure with tailbound, which gives each missed period the latency it would have had.",
    );
}
