// SPDX-License-Identifier: MIT OR Apache-2.0
//! jitterdebugger's results.json, version 3.
//!
//! Layout: `sysinfo.resolution_in_ns` is the length of the unit (1000 or 1);
//! `cpu.N.{histogram{bucket: count}, count, min, max, avg}`, where N is the thread's index and
//! not a CPU. The histogram ends at 1 ms: what is later is in `count`, `max` and `avg` only.
//! Source: output of jitterdebugger 0.3.1.

use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::json::{self, Object};
use crate::missed;
use crate::read::Options;
use tailbound_core::Context;

/// Where the histogram ends, whatever its unit.
const RANGE_NS: i64 = 1_000_000;

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let o = json::parse(bytes)?;
    let mut draft = Draft::new("jitterdebugger", "results.json version 3");
    match json::count(&o, "version", "")? {
        Some(3) => {}
        Some(v) => draft.variant = format!("results.json version {v}"),
        None => return Err(Fault::path("version", "is missing: this is no results.json")),
    }
    crate::rttests::sysinfo(&mut draft, &o);
    let sysinfo = json::object(&o, "sysinfo", "")?;
    let unit_ns = json::count(sysinfo, "resolution_in_ns", "sysinfo")?
        .filter(|u| (1..=1_000_000).contains(u))
        .ok_or_else(|| Fault::path("sysinfo.resolution_in_ns", "is not 1 to 1000000 ns"))?;
    super::always(&mut draft);
    draft.cut_values(unit_ns);
    let threads = json::object(&o, "cpu", "")?;
    for (number, t, path) in json::numbered(threads, "cpu")? {
        thread(&mut draft, number, t, &path, unit_ns)?;
    }
    options.apply(&mut draft);
    missed::caught_up(&mut draft);
    Ok(draft)
}

fn thread(
    draft: &mut Draft,
    number: u32,
    t: &Object,
    path: &str,
    unit_ns: u64,
) -> Result<(), Fault> {
    let mut d = coarse();
    let top = match t.contains_key("histogram") {
        true => {
            let o = json::object(t, "histogram", path)?;
            json::histogram(&mut d, o, unit_ns, &json::join(path, "histogram"))?
        }
        false => None,
    };
    let n = json::count(t, "count", path)?
        .ok_or_else(|| Fault::path(json::join(path, "count"), "is missing"))?;
    let stated = Stated {
        n: Some(n),
        // Without a sample `min` is 2^64 − 1.
        min_ns: if n == 0 { None } else { json::ns(t, "min", unit_ns, path)? },
        max_ns: json::ns(t, "max", unit_ns, path)?,
        mean_ns: json::mean_ns(t, "avg", unit_ns),
        resolution_ns: unit_ns,
        beyond_ns: Some(top.map_or(RANGE_NS, |t| RANGE_NS.max(t.saturating_add(1)))),
    };
    let d = draft.settle(&format!("Thread {number}"), d, stated);
    draft.thread(number, None, Context::User, d)
}
