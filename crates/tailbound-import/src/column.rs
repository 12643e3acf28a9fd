// SPDX-License-Identifier: MIT OR Apache-2.0
//! Plain numbers, one a line: what a script or an oscilloscope leaves.
//!
//! Context: COLD. Layout: header lines before the first number (`# latency_us`), then a number
//! a line; blank lines and later `#` lines are passed over. The unit stands in the header (ns,
//! us, µs, usec, ms, as a word of its own or after `_`, in brackets or not) or is an option;
//! without it the file is refused, for of all mistakes a lost factor of 1000 is the commonest.

use crate::draft::Draft;
use crate::error::{Fault, excerpt};
use crate::jitterdebugger::samples::Samples;
use crate::read::Options;
use crate::text::{Lines, scaled};

/// The only word of a line, if it is a number.
pub(crate) fn value(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let word = words.next().filter(|_| words.next().is_none())?;
    let digits = word.bytes().any(|b| b.is_ascii_digit());
    (digits && word.parse::<f64>().is_ok_and(f64::is_finite)).then_some(word)
}

/// The unit a header line names.
fn unit_of(header: &str) -> Option<u64> {
    header.split(|c: char| !c.is_alphanumeric()).rev().find_map(|word| {
        match word.to_lowercase().as_str() {
            "ns" | "nsec" | "nsecs" | "nanoseconds" => Some(1),
            "us" | "µs" | "μs" | "usec" | "usecs" | "microseconds" => Some(1000),
            "ms" | "msec" | "msecs" | "milliseconds" => Some(1_000_000),
            _ => None,
        }
    })
}

pub(crate) fn parse(bytes: &[u8], options: &Options) -> Result<Draft, Fault> {
    let mut draft = Draft::new("unknown", "column of numbers");
    let mut unit_ns = options.unit_ns.filter(|u| *u > 0);
    let mut decimals = 0;
    let mut samples = Samples::new(0);
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let Some(word) = value(line) else {
            if samples.n() > 0 && !line.starts_with('#') {
                return Err(Fault::line(n, format!("`{}` is not one number", excerpt(line))));
            }
            unit_ns = unit_ns.or_else(|| unit_of(line));
            continue;
        };
        let unit = unit_ns.ok_or_else(|| {
            Fault::line(
                n,
                "a number, but no unit: write it into a header line (`# latency_us`) or give it as an option",
            )
        })?;
        let ns = scaled(word, unit).ok_or_else(|| {
            Fault::line(n, format!("`{}` is not a time within 292 years", excerpt(word)))
        })?;
        let fraction = word.split_once('.').map_or(0, |(_, f)| f.len());
        decimals = decimals.max(if word.contains(['e', 'E']) { 9 } else { fraction });
        samples.add(ns);
    }
    let unit = unit_ns.unwrap_or(1);
    let step = u32::try_from(decimals).ok().and_then(|d| 10u64.checked_pow(d)).unwrap_or(u64::MAX);
    samples.distribution.resolution_ns = (unit / step).max(1);
    if samples.n() == 0 {
        return Err(Fault::file("there is no number in the file"));
    }
    let (d, raw) = samples.finish();
    draft.raw = raw;
    draft.thread(0, None, "user", d)?;
    draft.lose("The tool that measured is not in the file.");
    draft.doubt(
        "source-no-missed",
        "Whether periods were missed is not in the file.".to_owned(),
        "If the loop passed over late periods, every quantile is too good.",
        "Say what measured and how, or measure with tailbound, which accounts for every due activation.",
    );
    options.apply(&mut draft);
    Ok(draft)
}
