// SPDX-License-Identifier: MIT OR Apache-2.0
//! Late wake-ups that were taken apart, for people and scripts: who made them late, what to do
//! about it, and each of the worst of them moment by moment.
//!
//! Units: ns; times within a sample count from its due time.
//! Names of threads, interrupts and functions come from files: they are escaped where they are written.
//! Not here: how a sample is taken apart (`tailbound-trace`), who the culprit is (`tailbound_core::blame`).

pub(crate) mod advice;
mod answer;
mod html;
mod interruptions;
mod json;
mod lanes;
mod look;
mod marks;
mod nest;
mod rows;
mod svg;
mod text;
mod threads;

use tailbound_core::blame::BlameRecord;
use tailbound_core::order;
use tailbound_core::units::format_ns_i64;

pub use answer::{BlameAnswer, FollowedThreads, findings_of, none_taken_apart};
pub use html::html;
pub(crate) use html::section;
pub use interruptions::{interruptions, interruptions_json};
pub use json::{SCHEMA, json, ranking};
pub(crate) use look::named;
pub(crate) use marks::phases;
pub(crate) use nest::nested;
pub(crate) use rows::{hanging, parts, percent, what};
pub use svg::picture;
pub(crate) use svg::picture_as;
pub use text::text;
pub(crate) use text::{first_up, sample};
pub(crate) use text::{heading, short};
pub use threads::{ThreadPriority, ThreadRow, threads, threads_json};

/// Most samples of which a page has a picture.
pub const PICTURES_MAX: usize = 12;

/// The `most` latest samples, the latest first.
pub(crate) fn latest(records: &[BlameRecord], most: usize) -> Vec<&BlameRecord> {
    let mut all: Vec<&BlameRecord> = records.iter().collect();
    order::by_key(&mut all, |r| (std::cmp::Reverse(r.latency_ns), r.t_ns, r.thread));
    all.truncate(most);
    all
}

/// A sample in words: `2.31 ms late at 12.345 s on CPU 1 (thread 0)`.
pub(crate) fn title(record: &BlameRecord) -> String {
    let cpu = record.cpu.map_or_else(String::new, |cpu| format!(" on CPU {cpu}"));
    let who = match record.name.as_str() {
        "" => format!("thread {}", record.thread),
        name => name.to_owned(),
    };
    let (late, at) = (format_ns_i64(record.latency_ns), crate::worst::seconds(record.t_ns, 3));
    // A trace that counts from the begin of the sample has no time of it.
    let when = if record.t_ns == 0 { String::new() } else { format!(" at {at} s") };
    if record.is_section() {
        return format!("a section of {late}{when}{cpu} ({who})");
    }
    if marks::is_cycle(record) {
        return format!("a cycle of {late}, released at {at} s{cpu} ({who})");
    }
    let near = if record.near { ", a near miss" } else { "" };
    format!("{late} late{when}{cpu} ({who}){near}")
}

/// What a reader must know about the certainty of a sample.
pub(crate) fn notes(record: &BlameRecord) -> Vec<String> {
    let mut out = Vec::new();
    if record.tracing_ns > 0 {
        let ns = format_ns_i64(record.tracing_ns);
        let within = match marks::is_cycle(record) {
            true => "within the parts",
            false => "told as parts of their own",
        };
        out.push(format!("About {ns} of it are our own tracing, {within}."));
    }
    if record.lost {
        out.push(
            "Events of this time were lost: a part may have another cause than it says.".to_owned(),
        );
    }
    out
}
