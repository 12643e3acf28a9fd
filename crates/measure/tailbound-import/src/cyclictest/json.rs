// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest `--json`, file_version 1.
//!
//! Layout: `thread.N.{histogram{bucket: count}, cycles, min, max, avg, cpu,
//! node}`; `resolution_in_ns` is a flag: 0 is µs, 1 is ns. What fell beyond the histogram is
//! `cycles` minus the sum of the counts and is said nowhere else; `min` is 1000000 without a
//! sample; `cpu` is −1 when not pinned; 2.4 writes an empty histogram when none was asked for.
//! Source: output of rt-tests 2.4 and 2.10.

use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::json::{self, Object};
use crate::read::Options;
use crate::{missed, rttests};
use tailbound_core::Context;

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let o = json::parse(bytes)?;
    let mut draft = Draft::new("cyclictest", "json v1");
    let line = rttests::header(&mut draft, &o)?;
    let words = crate::command::cyclictest(&mut draft, &line);
    rttests::elapsed(&mut draft, &o);
    options.apply(&mut draft);
    let unit_ns = match json::count(&o, "resolution_in_ns", "")? {
        Some(0) => 1000,
        Some(1) => 1,
        Some(n) => {
            return Err(Fault::path(
                "resolution_in_ns",
                format!("{n} is neither 0 (µs) nor 1 (ns)"),
            ));
        }
        None if words.has("N") => 1,
        None => 1000,
    };
    draft.cut_values(unit_ns);
    let range = words.number("h").or(words.number("H"));
    let threads = json::object(&o, "thread", "")?;
    for (number, t, path) in json::numbered(threads, "thread")? {
        thread(&mut draft, number, t, &path, unit_ns, range)?;
    }
    let said = json::count(&o, "num_threads", "")?;
    if said.is_some_and(|n| n != draft.threads.len() as u64) {
        draft.doubt(
            "source-inconsistent",
            format!(
                "`num_threads` is {} but {} threads are in the file.",
                said.unwrap_or(0),
                draft.threads.len()
            ),
            "Threads are missing from the file.",
            "Import the file as cyclictest wrote it.",
        );
    }
    missed::skipped_uncounted(&mut draft, Context::User);
    draft.lose("cyclictest reads its counters before the threads have ended: the counts may be off by a sample.");
    draft.lose("cyclictest discards no warm-up: the first wake-ups are among the figures.");
    Ok(draft)
}

fn thread(
    draft: &mut Draft,
    number: u32,
    t: &Object,
    path: &str,
    unit_ns: u64,
    range: Option<u64>,
) -> Result<(), Fault> {
    let mut d = coarse();
    let mut top = None;
    if t.contains_key("histogram") {
        let o = json::object(t, "histogram", path)?;
        top = json::histogram(&mut d, o, unit_ns, &json::join(path, "histogram"))?;
    }
    let unit = i64::try_from(unit_ns).unwrap_or(1);
    // The range is on the command line; without one, what found no bucket is above the last.
    let edge = range
        .and_then(|r| i64::try_from(r).ok()?.checked_mul(unit))
        .filter(|e| top.is_none_or(|t| t < *e))
        .or_else(|| top.map(|t| t.saturating_add(unit)));
    let cycles = json::count(t, "cycles", path)?
        .ok_or_else(|| Fault::path(json::join(path, "cycles"), "is missing"))?;
    let min_ns = extreme(draft, t, "min", unit_ns, path)?;
    let stated = Stated {
        n: Some(cycles),
        min_ns,
        max_ns: extreme(draft, t, "max", unit_ns, path)?,
        mean_ns: json::mean_ns(t, "avg", unit_ns),
        resolution_ns: unit_ns,
        beyond_ns: edge.or(min_ns),
    };
    let d = draft.settle(&format!("Thread {number}"), d, stated);
    draft.thread(number, json::cpu(t, "cpu"), Context::User, d)
}

/// A negative difference comes out of cyclictest as a number near 2^64.
fn extreme(
    draft: &mut Draft,
    t: &Object,
    key: &str,
    unit_ns: u64,
    path: &str,
) -> Result<Option<i64>, Fault> {
    let wrapped = t.get(key).and_then(serde_json::Value::as_u64).filter(|v| *v > i64::MAX as u64);
    if wrapped.is_none() {
        return json::ns(t, key, unit_ns, path);
    }
    draft.doubt(
        "source-inconsistent",
        format!("`{path}.{key}` is a negative time that cyclictest took for unsigned."),
        "A wake-up came before its due time; the true extreme is unknown.",
        "Check that the clock is not set while measuring, and measure again.",
    );
    Ok(None)
}
