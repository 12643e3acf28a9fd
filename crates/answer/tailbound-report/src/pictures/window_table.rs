// SPDX-License-Identifier: MIT OR Apache-2.0
//! The table of the moving windows: last and worst values of each thread and length.
//!
//! Units: ns; seconds of the schedule. The figures of a window are of all its due
//! activations. A window that missed some has no `max` in the run file: the records of a second
//! hold the extremes of wake-ups alone. What its other figures prove stands in for it, and where
//! that may be too little the table says so. No quantile is shown above a maximum.
//! Not here: the picture (`timeline`), making windows (`tailbound-stats`).

use std::collections::BTreeMap;

use tailbound_core::Run;
use tailbound_core::number::Real as _;
use tailbound_core::record::WindowRecord;
use tailbound_core::units::{format_ns, grouped};

use crate::label;
use crate::table::Table;

/// Columns beside the maximum, each with its last and its worst value.
const SHOWN: [&str; 4] = ["p99", "p99.9", "p50", "mean"];

/// The greatest latency of one window, or of several.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Greatest {
    /// It is this.
    Exactly(f64),
    /// This or more.
    AtLeast(f64),
    /// No record tells.
    Unknown,
}

impl Greatest {
    fn of(window: &WindowRecord, of: &Thread) -> Self {
        if let Some(max) = window.values.get("max") {
            return Self::Exactly(*max);
        }
        let first = (window.second + 1).saturating_sub(u64::from(window.window_s));
        let woken = of.seconds.range(first..=window.second).map(|(_, max)| *max);
        let proved = SHOWN.iter().filter_map(|s| of.value(window, s));
        woken.chain(proved).reduce(f64::max).map_or(Self::Unknown, |v| of.at_least(v))
    }

    /// The worst of both; what is unknown makes the other a lower limit.
    fn worst(self, other: Self, of: &Thread) -> Self {
        match (self, other) {
            (Self::Exactly(a), Self::Exactly(b)) => Self::Exactly(a.max(b)),
            (Self::Exactly(a) | Self::AtLeast(a), Self::Exactly(b) | Self::AtLeast(b)) => {
                of.at_least(a.max(b))
            }
            (Self::Unknown, Self::Exactly(v) | Self::AtLeast(v))
            | (Self::Exactly(v) | Self::AtLeast(v), Self::Unknown) => of.at_least(v),
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }

    fn ns(self) -> Option<f64> {
        match self {
            Self::Exactly(v) | Self::AtLeast(v) => Some(v),
            Self::Unknown => None,
        }
    }

    fn words(self) -> String {
        match self {
            Self::Exactly(v) => format_ns(v),
            Self::AtLeast(v) => format!("{} or more", format_ns(v)),
            Self::Unknown => "unknown".to_owned(),
        }
    }
}

/// What the run knows of one thread beside its windows.
struct Thread {
    /// Latest wake-up of each second.
    seconds: BTreeMap<u64, f64>,
    /// The greatest latency of the whole run.
    max_ns: Option<f64>,
}

impl Thread {
    fn of(run: &Run, thread: u32) -> Self {
        let seconds = run.seconds.iter().filter(|s| s.thread == thread && s.n > 0);
        let mut latest: BTreeMap<u64, f64> = BTreeMap::new();
        for s in seconds {
            let place = latest.entry(s.second).or_insert(f64::MIN);
            *place = place.max(s.max_ns.real());
        }
        let records = run.threads.iter().filter(|t| t.thread == thread);
        let max_ns = records.filter_map(|t| t.wakeup.max_ns.max(t.missed.max_ns)).max();
        Self { seconds: latest, max_ns: max_ns.map(|v| v.real()) }
    }

    /// A value of a window: a bucket's width may carry a quantile beyond what there was.
    fn value(&self, window: &WindowRecord, name: &str) -> Option<f64> {
        let most = window.values.get("max").copied().or(self.max_ns).unwrap_or(f64::INFINITY);
        window.values.get(name).map(|v| v.min(most))
    }

    /// Nothing is later than the latest of the run.
    fn at_least(&self, ns: f64) -> Greatest {
        match self.max_ns {
            Some(max) if ns >= max => Greatest::Exactly(max),
            _ => Greatest::AtLeast(ns),
        }
    }
}

/// Windows without a recorded maximum.
#[must_use]
pub fn maxima_unknown(run: &Run) -> usize {
    run.windows.iter().filter(|w| w.n > 0 && !w.values.contains_key("max")).count()
}

/// Last and worst values of every window length and thread.
#[must_use]
pub fn window_table(run: &Run) -> Table {
    let mut head = vec!["thread".to_owned(), "window".to_owned(), "n, last".to_owned()];
    for s in std::iter::once("max").chain(SHOWN) {
        head.push(format!("{s}, last"));
        head.push(format!("{s}, worst"));
    }
    head.push("worst max at".to_owned());
    let mut table = Table { head, ..Table::default() }.with_words(&[1]);
    let mut groups: BTreeMap<u32, BTreeMap<u32, Vec<&WindowRecord>>> = BTreeMap::new();
    for w in &run.windows {
        groups.entry(w.thread).or_default().entry(w.window_s).or_default().push(w);
    }
    for (thread, lengths) in groups {
        let of = Thread::of(run, thread);
        for (window_s, windows) in lengths {
            let Some(last) = windows.iter().max_by_key(|w| w.second) else { continue };
            let mut row =
                vec![label::thread_id(run, thread), format!("{window_s} s"), grouped(last.n)];
            row.extend(figures(&of, last, &windows));
            table.row(row);
        }
    }
    table
}

/// The figures of a row: of the last window, and the worst of all.
fn figures(of: &Thread, last: &WindowRecord, windows: &[&WindowRecord]) -> Vec<String> {
    let maxima = || windows.iter().filter(|w| w.n > 0).map(|w| (w.second, Greatest::of(w, of)));
    let worst = maxima().map(|m| m.1).reduce(|a, b| a.worst(b, of)).unwrap_or(Greatest::Unknown);
    let mut row = vec![Greatest::of(last, of).words(), worst.words()];
    let write = |v: Option<f64>| v.map_or_else(|| "too few".to_owned(), format_ns);
    for s in SHOWN {
        row.push(write(of.value(last, s)));
        row.push(write(windows.iter().filter_map(|w| of.value(w, s)).reduce(f64::max)));
    }
    let at = maxima()
        .filter_map(|(second, max)| Some((second, max.ns()?)))
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    row.push(at.map_or_else(
        || "unknown: no window has it".to_owned(),
        |(second, _)| format!("{} s", second.saturating_add(1)),
    ));
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(second: u64, values: &[(&str, f64)]) -> WindowRecord {
        let values = values.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        WindowRecord { thread: 0, window_s: 1, second, n: 1000, values }
    }

    fn of(max_ns: Option<f64>, seconds: &[(u64, f64)]) -> Thread {
        Thread { seconds: seconds.iter().copied().collect(), max_ns }
    }

    /// A run without missed activations but in its last second: 438 µs and 14.3 ms.
    #[test]
    fn no_quantile_is_above_a_maximum() {
        let calm = window(0, &[("max", 438e3), ("p99", 300e3), ("mean", 9e3)]);
        let stalled = window(1, &[("p99", 14.35e6), ("mean", 200e3)]);
        let both = [&calm, &stalled];
        // The run knows its latest: a bucket's width is not added to it.
        let row = figures(&of(Some(14.3e6), &[(0, 438e3), (1, 14.3e6)]), &stalled, &both);
        assert_eq!(
            row.get(..4),
            Some(&["14.3 ms".to_owned(), "14.3 ms".into(), "14.3 ms".into(), "14.3 ms".into()][..]),
            "{row:?}"
        );
        assert_eq!(row.last().map(String::as_str), Some("2 s"));
        // The latest of the run was elsewhere: what the window held may be more than is known.
        let row = figures(&of(Some(90e6), &[(1, 14.4e6)]), &stalled, &both);
        assert_eq!(
            row.get(..2),
            Some(&["14.4 ms or more".to_owned(), "14.4 ms or more".into()][..])
        );
        let row = figures(&of(None, &[]), &stalled, &both);
        assert!(
            row.get(1).is_some_and(|m| m == "14.4 ms or more" || m == "14.3 ms or more"),
            "{row:?}"
        );
    }
}
