// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a source does with periods that fell due while a wake-up was late, and what follows.
//!
//! Context: COLD. Units: ns.
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
    let mut worst: Option<(u64, u64)> = None;
    let (mut safe, mut all) = (true, false);
    let mut latest = None;
    for (i, t) in draft.threads.iter().filter(|t| t.context == context).enumerate() {
        all = true;
        let steps = i64::try_from(i).unwrap_or(i64::MAX);
        let interval =
            draft.interval_ns.map(|ns| ns.saturating_add(draft.distance_ns.saturating_mul(steps)));
        let max = t.wakeup.max_ns;
        latest = latest.max(max);
        safe &= matches!((interval, max), (Some(i), Some(m)) if m < i);
        if let (Some(i), Some(d)) = (interval.filter(|i| *i > 0), draft.duration_ns) {
            let expected = u64::try_from(d / i).unwrap_or(0);
            if worst.is_none_or(|(n, e)| expected.saturating_sub(t.wakeup.n) > e.saturating_sub(n))
            {
                worst = Some((t.wakeup.n, expected));
            }
        }
    }
    if !all {
        return;
    }
    let seen = worst.filter(|(n, e)| e > n).map_or_else(String::new, |(n, e)| {
        format!(
            " One thread has {} of about {} due wake-ups: about {} are not in the file.",
            grouped(n),
            grouped(e),
            grouped(e - n)
        )
    });
    if safe {
        draft.lose(format!(
            "{tool} does not count missed periods; none can have been missed here, for no wake-up was later than the interval.{}",
            if seen.is_empty() { "" } else { " Threads that started late have fewer wake-ups than the schedule." }
        ));
        return;
    }
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
