// SPDX-License-Identifier: MIT OR Apache-2.0
//! What Prometheus reads, in the two formats that it may ask for.
//!
//! Units: seconds, as its conventions want. Classic buckets lie at powers of two of ns: each is the end of a class, so
//! that its count is exact. A native histogram goes with them where the format has one (`protobuf`).
//! Source: Prometheus, "Exposition formats".

mod protobuf;
mod text;

use std::collections::BTreeMap;

use crate::cost::Cost;
use crate::outbox::OutboxState;
use crate::window::{Gaps, Policy, Series};

/// Buckets from 2^10 ns (1 µs) to 2^30 ns (1 s).
const BUCKET_BITS: std::ops::RangeInclusive<u32> = 10..=30;

/// Name and policy of the threads of one series.
pub(crate) type Whose = (String, Policy);

/// All that is told.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) series: BTreeMap<Whose, Series>,
    pub(crate) windows: u64,
    pub(crate) not_written: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) suspended_ns: i64,
    /// Now; `None` where the kernel does not say.
    pub(crate) cpus_online: Option<usize>,
    pub(crate) starving: Option<StarvingCounts>,
    pub(crate) recorder_gaps: Option<Gaps>,
    pub(crate) upload: Option<OutboxState>,
    pub(crate) own: Cost,
}

/// Threads that starve, as of the last window's end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct StarvingCounts {
    pub(crate) now: usize,
    /// How often one began to.
    pub(crate) all: u64,
    /// How often one was lent CPU time.
    pub(crate) boosts: u64,
}

/// In which format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// Text format 0.0.4.
    Text,
    /// Each family as a message behind its length.
    Protobuf,
}

const PROTOBUF: &str = "application/vnd.google.protobuf";

impl Format {
    /// What the client wants: the header `Accept` of its request.
    pub(crate) fn accepted(accept: &str) -> Self {
        let is_ours = |wanted: &str| {
            let mut words = wanted.split(';').map(str::trim);
            words.next() == Some(PROTOBUF)
                && words.clone().any(|w| w == "proto=io.prometheus.client.MetricFamily")
                && words.any(|w| w == "encoding=delimited")
        };
        // Whoever can read both names it first: text alone has no native histogram.
        if accept.split(',').any(is_ours) { Self::Protobuf } else { Self::Text }
    }

    /// `Content-Type` of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Text => "text/plain; version=0.0.4; charset=utf-8",
            Self::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Counter,
    Gauge,
    Histogram,
}

enum Value<'a> {
    Number(f64),
    Histogram(&'a Series),
}

struct Metric<'a> {
    whose: Option<&'a Whose>,
    value: Value<'a>,
}

struct Family<'a> {
    name: &'static str,
    help: &'static str,
    kind: Kind,
    metrics: Vec<Metric<'a>>,
}

fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Upper end, and how many waits are not above it.
fn buckets(series: &Series) -> impl Iterator<Item = (f64, u64)> {
    let mut sum = 0u64;
    let mut classes = series.classes.iter().peekable();
    BUCKET_BITS.map(move |bits| {
        let end = 1u64 << bits;
        while let Some((_, n)) = classes.next_if(|(upper, _)| **upper < end) {
            sum = sum.saturating_add(*n);
        }
        (seconds(end), sum)
    })
}

/// When the flight recorder saw nothing: as [`of_upload`].
fn of_recorder(gaps: &Gaps) -> Vec<(&'static str, Kind, &'static str, f64)> {
    vec![
        (
            "tailbound_monitor_recorder_off_seconds_total",
            Kind::Counter,
            "How long the flight recorder was off, in all windows that ended.",
            gaps.off_ns as f64 / 1e9,
        ),
        (
            "tailbound_monitor_recorder_off_late_wakeups_total",
            Kind::Counter,
            "Late wake-ups while the flight recorder was off, in all windows that ended.",
            gaps.late as f64,
        ),
    ]
}

/// Threads that starve: as [`of_upload`].
fn of_starving(counts: &StarvingCounts) -> Vec<(&'static str, Kind, &'static str, f64)> {
    vec![
        (
            "tailbound_monitor_starving_threads",
            Kind::Gauge,
            "Threads that could run and did not for long, at the end of the last window.",
            counts.now as f64,
        ),
        (
            "tailbound_monitor_starving_threads_total",
            Kind::Counter,
            "How often a thread began to starve, in all windows that ended.",
            counts.all as f64,
        ),
        (
            "tailbound_monitor_boosts_total",
            Kind::Counter,
            "How often a starving thread was lent CPU time, in all windows that ended.",
            counts.boosts as f64,
        ),
    ]
}

/// How run files stand: name, kind, what it is, value.
fn of_upload(upload: &OutboxState) -> Vec<(&'static str, Kind, &'static str, f64)> {
    vec![
        (
            "tailbound_monitor_run_files_waiting",
            Kind::Gauge,
            "Run files that wait for the server.",
            upload.waiting as f64,
        ),
        (
            "tailbound_monitor_run_files_sent_total",
            Kind::Counter,
            "Run files that the server has.",
            upload.sent as f64,
        ),
        (
            "tailbound_monitor_run_files_dropped_total",
            Kind::Counter,
            "Run files that had to go unsent, because too many waited.",
            upload.dropped as f64,
        ),
    ]
}

fn families(told: &Metrics) -> Vec<Family<'_>> {
    let of_each = |value: fn(&Series) -> Value<'_>| {
        told.series.iter().map(|(w, s)| Metric { whose: Some(w), value: value(s) }).collect()
    };
    let mut all = vec![
        Family {
            name: "tailbound_wakeup_wait_seconds",
            help: "From the wake-up of a real-time thread until it has a CPU.",
            kind: Kind::Histogram,
            metrics: of_each(|s| Value::Histogram(s)),
        },
        Family {
            name: "tailbound_wakeup_wait_max_seconds",
            help: "The longest wait of the last whole window.",
            kind: Kind::Gauge,
            metrics: of_each(|s| Value::Number(seconds(s.max_ns))),
        },
    ];
    let mut own = |name, kind, help, value| {
        let metrics = vec![Metric { whose: None, value: Value::Number(value) }];
        all.push(Family { name, help, kind, metrics });
    };
    own(
        "tailbound_monitor_lost_wakeups_total",
        Kind::Counter,
        "Wake-ups that are not counted: the kernel's tables were full.",
        told.lost as f64,
    );
    own(
        "tailbound_monitor_late_wakeups_total",
        Kind::Counter,
        "Wake-ups over the threshold.",
        told.late as f64,
    );
    own(
        "tailbound_monitor_windows_total",
        Kind::Counter,
        "Windows that ended.",
        told.windows as f64,
    );
    own(
        "tailbound_monitor_windows_not_written_total",
        Kind::Counter,
        "Windows that could not be written.",
        told.not_written as f64,
    );
    own(
        "tailbound_monitor_suspended_seconds_total",
        Kind::Counter,
        "What the machine slept.",
        told.suspended_ns as f64 / 1e9,
    );
    own(
        "tailbound_monitor_cpus_online",
        Kind::Gauge,
        "CPUs that are online now.",
        told.cpus_online.map_or(f64::NAN, |n| n as f64),
    );
    for (name, kind, help, value) in told
        .recorder_gaps
        .iter()
        .flat_map(of_recorder)
        .chain(told.starving.iter().flat_map(of_starving))
        .chain(told.upload.iter().flat_map(of_upload))
    {
        own(name, kind, help, value);
    }
    own(
        "tailbound_monitor_cpu_seconds_total",
        Kind::Counter,
        "CPU time of the monitor itself.",
        seconds(told.own.cpu_ns),
    );
    own(
        "tailbound_monitor_peak_resident_bytes",
        Kind::Gauge,
        "The most memory the monitor had resident.",
        told.own.peak_bytes.map_or(f64::NAN, |b| b as f64),
    );
    all
}

/// The page.
pub(crate) fn page(told: &Metrics, format: Format) -> Vec<u8> {
    match format {
        Format::Text => text::page(&families(told)).into_bytes(),
        Format::Protobuf => protobuf::page(&families(told)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_kinds_of_metrics_stay() {
        let told = Metrics {
            starving: Some(StarvingCounts::default()),
            recorder_gaps: Some(Gaps::default()),
            upload: Some(OutboxState::default()),
            ..Metrics::default()
        };
        let now = families(&told).iter().map(|f| format!("{} {:?}", f.name, f.kind)).collect();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        tailbound_testing::promised(&folder.join("src/exposition/promised.txt"), &now);
    }

    #[test]
    fn a_client_gets_what_it_can_read() {
        // As Prometheus 2.42 asks with native histograms, and without.
        let native = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        assert_eq!(Format::accepted(native), Format::Protobuf);
        for other in ["application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "", "*/*"] {
            assert_eq!(Format::accepted(other), Format::Text, "{other}");
        }
        let of_text = native.replace("delimited", "text");
        assert_eq!(Format::accepted(&of_text), Format::Text);
    }
}
