// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run in the formats of other tools.
//!
//! Each format has a file of its own; what a format cannot hold is said in it where it
//! has comments, and in `docs/export.md`.
//! Not here: where the text goes; the other direction (`tailbound-import`).

mod cases;
mod csv;
mod cyclictest;
mod hdr;
mod junit;
mod openmetrics;
mod perfetto;
mod perfetto_trace;

use std::fmt;
use std::str::FromStr;

use tailbound_core::blame::BlameRecord;
use tailbound_core::words::UnknownWord;
use tailbound_stats::Analysis;

/// A format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Comma-separated values of one of the [`Rows`].
    Csv(Rows),
    /// The histogram that `cyclictest -h` prints.
    Cyclictest,
    /// An HdrHistogram log (`.hlog`).
    HdrHistogram,
    /// OpenMetrics text, as Prometheus and its node exporter read it.
    OpenMetrics,
    /// JUnit XML, for CI servers.
    Junit,
    /// KTAP, for the kernel's test frameworks.
    Ktap,
    /// Counter tracks as JSON trace events, for the Perfetto UI.
    PerfettoCounters,
    /// Late wake-ups taken apart, with the counters, as a protobuf trace of Perfetto.
    Perfetto,
}

/// A run in a format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exported {
    /// Lines of text.
    Text(String),
    /// A format that is no text.
    Bytes(Vec<u8>),
}

/// What a CSV file holds one of in each row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// Buckets of the threads' histograms.
    Histogram,
    /// Seconds of the threads.
    Seconds,
    /// Exceedances.
    Exceedances,
    /// Records of the loads.
    Loads,
    /// Threads.
    Threads,
}

/// The names of the formats, and what each is.
pub const FORMATS: [(&str, &str, Format); 12] = [
    ("csv", "buckets of the histograms, comma-separated", Format::Csv(Rows::Histogram)),
    ("csv-seconds", "one row per thread and second", Format::Csv(Rows::Seconds)),
    ("csv-exceedances", "one row per exceedance", Format::Csv(Rows::Exceedances)),
    ("csv-loads", "one row per record of a load", Format::Csv(Rows::Loads)),
    ("csv-threads", "one row per thread", Format::Csv(Rows::Threads)),
    ("cyclictest", "the histogram of cyclictest -h, whole µs", Format::Cyclictest),
    ("hdrhistogram", "HdrHistogram log (.hlog)", Format::HdrHistogram),
    ("openmetrics", "OpenMetrics text, for Prometheus", Format::OpenMetrics),
    ("junit", "JUnit XML, for CI servers", Format::Junit),
    ("ktap", "KTAP, for the kernel's test frameworks", Format::Ktap),
    ("perfetto-counters", "JSON trace of counters, for ui.perfetto.dev", Format::PerfettoCounters),
    ("perfetto", "trace of late wake-ups and counters, for ui.perfetto.dev", Format::Perfetto),
];

impl FromStr for Format {
    type Err = UnknownWord;
    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let unknown = || UnknownWord {
            typed: text.to_owned(),
            known: FORMATS.map(|(name, ..)| name).to_vec(),
        };
        FORMATS
            .into_iter()
            .find(|(name, ..)| *name == text)
            .map(|(.., format)| format)
            .ok_or_else(unknown)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = FORMATS.iter().find(|(.., format)| format == self).map(|(name, ..)| *name);
        f.write_str(name.unwrap_or_default())
    }
}

/// A run in `format`.
#[must_use]
pub fn export(analysis: &Analysis<'_>, format: Format) -> Exported {
    let run = analysis.run();
    Exported::Text(match format {
        Format::Csv(rows) => csv::text(run, rows),
        Format::Cyclictest => cyclictest::text(run),
        Format::HdrHistogram => hdr::text(run),
        Format::OpenMetrics => openmetrics::text(analysis),
        Format::Junit => junit::text(analysis),
        Format::Ktap => crate::cases::ktap(&cases::of(analysis)),
        Format::PerfettoCounters => perfetto::text(run),
        Format::Perfetto => return Exported::Bytes(perfetto_trace::bytes(run)),
    })
}

/// Late wake-ups of another tool's trace for ui.perfetto.dev: for each name of a thread its latencies with
/// their phases and causes, and what each CPU did meanwhile.
#[must_use]
pub fn late_wakeups(records: &[BlameRecord], name: &str) -> Vec<u8> {
    perfetto_trace::of_records(records, name)
}

/// ns as a decimal number of seconds, exactly.
fn seconds(ns: i128) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let (s, rest) = (ns.unsigned_abs() / 1_000_000_000, ns.unsigned_abs() % 1_000_000_000);
    format!("{sign}{s}.{rest:09}")
}
