// SPDX-License-Identifier: MIT OR Apache-2.0
//! hwlatdetect of rt-tests: time taken by the hardware, above a threshold.
//!
//! Units: µs. Layout: `hwlatdetect:  test duration N seconds` (`smidetect:` before 2009), parameters a line each, then
//! `Max Latency: 48us` (`Below threshold` or 0 where nothing was found), `Samples recorded: N`, and a line for each sample:
//! `ts: SECONDS, inner:5, outer:9` with more `name:value` in later versions, or in old ones the time and the two values alone.
//! A sample is one look at the clock or the gap before it, whichever is longer.
//! It looks for `Sample width` out of each `Sample window` only.
//! Source: hwlatdetect(8); output of rt-tests 0.x, 1.x and 2.x.

use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::{Context, Finding, Impact};

use crate::draft::{Draft, Stated, coarse};
use crate::error::Fault;
use crate::fields;
use crate::samples::Samples;
use crate::text::{self, Lines};

#[derive(Default)]
struct Found {
    /// The line of the report's beginning.
    begun: Option<u64>,
    finished: bool,
    interrupted: bool,
    threshold_ns: Option<i64>,
    window_ns: Option<i64>,
    width_ns: Option<i64>,
    max_ns: Option<i64>,
    recorded: Option<u64>,
    smis: Option<u64>,
    listed: Vec<i64>,
}

/// Does a report of it begin with `line`?
pub(crate) fn begins(line: &str) -> bool {
    (line.starts_with("hwlatdetect:") || line.starts_with("smidetect:"))
        && line.contains("test duration")
}

pub(crate) fn parse(bytes: &[u8]) -> Result<Draft, Fault> {
    let mut draft = Draft::new("hwlatdetect", "text");
    draft.command = fields::command(bytes, &["hwlatdetect"]);
    let mut found = Found::default();
    for entry in Lines::new(bytes) {
        let (n, line) = entry?;
        let line = line.trim();
        if begins(line) {
            if found.has_result() {
                fields::run_without_figures(&mut draft, n);
                break;
            }
            if let Some(before) = found.begun {
                fields::run_without_figures(&mut draft, before);
            }
            found = Found { begun: Some(n), ..Found::default() };
            let seconds = fields::after(line, "test duration").unwrap_or("");
            draft.duration_ns = Some(text::ns(seconds, 1_000_000_000, n, "the duration")?);
        } else if found.begun.is_some() {
            found.line(line, n)?;
        }
    }
    if found.begun.is_none() {
        return Err(Fault::file("there is no line `hwlatdetect:  test duration … seconds`"));
    }
    finish(&mut draft, found)?;
    Ok(draft)
}

impl Found {
    fn has_result(&self) -> bool {
        self.max_ns.is_some() || self.recorded.is_some() || !self.listed.is_empty()
    }

    fn line(&mut self, line: &str, n: u64) -> Result<(), Fault> {
        let (key, value) = line.split_once(':').map_or((line, ""), |(k, v)| (k, v.trim()));
        let us = |what: &str| {
            text::ns(value.strip_suffix("us").unwrap_or(value), 1000, n, what).map(Some)
        };
        match key {
            "Latency threshold" => self.threshold_ns = us(key)?,
            "Sample window" => self.window_ns = us(key)?,
            "Sample width" => self.width_ns = us(key)?,
            "test finished" => self.finished = true,
            "interrupted" => self.interrupted = true,
            "Max Latency" if value.starts_with("Below") => self.max_ns = Some(0),
            "Max Latency" => self.max_ns = us(key)?,
            "Samples recorded" => self.recorded = Some(text::count(value, n, key)?),
            "SMIs during run" => self.smis = Some(text::count(value, n, key)?),
            _ => self.listed.extend(sample(line)),
        }
        Ok(())
    }
}

/// The longer of the two values of a sample's line, in ns.
fn sample(line: &str) -> Option<i64> {
    let us = |word: &str| text::scaled(word, 1000).filter(|ns| *ns >= 0);
    if line.starts_with("ts:") {
        let value = |name: &str| us(line.split(name).nth(1)?.split([',', ' ']).next()?);
        return Some(value("inner:")?.max(value("outer:")?));
    }
    let mut words = line.split_whitespace();
    let time = words.next()?;
    let (seconds, rest) = time.split_once('.')?;
    let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
    let (inner, outer) = (us(words.next()?)?, us(words.next()?)?);
    (digits(seconds) && digits(rest) && words.next().is_none()).then_some(inner.max(outer))
}

fn finish(draft: &mut Draft, found: Found) -> Result<(), Fault> {
    draft.no_schedule = true;
    draft.event = Some("interruption");
    draft.cut_off = !found.finished || found.recorded.is_none();
    if found.interrupted {
        draft.duration_ns = None;
        draft.lose("The run was interrupted before the time that was asked for.");
    }
    let listed = found.listed.len() as u64;
    let recorded = found.recorded.unwrap_or(listed);
    if recorded == 0 && draft.cut_off {
        return Err(Fault::file("the report ends before its result: nothing is known of the run"));
    }
    let threshold = found.threshold_ns.map_or_else(|| "the threshold".to_owned(), format_ns_i64);
    if recorded == 0 {
        draft.nothing_found(
            Context::Hwlat,
            format!("hwlatdetect found no interruption above {threshold}"),
        )?;
    } else {
        samples(draft, &found, recorded)?;
        draft.lose(format!("Interruptions of {threshold} and less are not recorded."));
    }
    blind_time(draft, &found);
    if let Some(smis) = found.smis.filter(|n| *n > 0) {
        draft.note(Finding::listed(
            "source-smi",
            Impact::Notice,
            format!("the processor counted {} system management interrupts", grouped(smis)),
        ));
    }
    draft.cut_values(1000);
    draft.lose(
        "On which CPU each interruption was is not in the file: the detector goes from CPU to CPU.",
    );
    draft.note(
        Finding::new(
            "source-other-quantity",
            Impact::Notice,
            "hwlatdetect measures time that the hardware takes, not wake-up latencies",
        )
        .meaning("There is no schedule, so there are no due or missed activations; quantiles are of what was above the threshold.")
        .remedy("Compare with runs of hwlatdetect, or with `tailbound measure hwlat`."),
    );
    Ok(())
}

fn samples(draft: &mut Draft, found: &Found, recorded: u64) -> Result<(), Fault> {
    let listed = found.listed.len() as u64;
    let greatest = found.listed.iter().copied().max();
    let agrees = found.max_ns.is_none_or(|said| Some(said) == greatest);
    if listed == recorded && agrees {
        let mut all = Samples::new(0);
        found.listed.iter().for_each(|ns| all.add(*ns));
        draft.recorded(0, None, all.finish(1000)?)?;
        if let Some(t) = draft.threads.last_mut() {
            t.context = Context::Hwlat;
        }
        return Ok(());
    }
    if listed > 0 && listed != recorded {
        draft.doubt(
            "source-samples-lost",
            format!("{} of {} samples are listed.", grouped(listed), grouped(recorded)),
            "The list was shortened: only the number and the greatest are of all samples.",
            "Import the output as hwlatdetect wrote it.",
        );
    } else if let (Some(said), Some(greatest)) = (found.max_ns, greatest) {
        draft.doubt(
            "source-inconsistent",
            format!(
                "The greatest sample listed is {}, `Max Latency` says {}.",
                format_ns_i64(greatest),
                format_ns_i64(said)
            ),
            "Lines are missing or were changed.",
            "Import the output as hwlatdetect wrote it.",
        );
    }
    let stated = Stated {
        n: Some(recorded.max(listed)),
        max_ns: found.max_ns.max(greatest),
        resolution_ns: 1000,
        beyond_ns: found.threshold_ns,
        ..Stated::default()
    };
    let d = draft.settle("The detector", coarse(), stated);
    draft.thread(0, None, Context::Hwlat, d)
}

/// What came while the detector did not look is in no figure.
fn blind_time(draft: &mut Draft, found: &Found) {
    let (Some(window), Some(width)) = (found.window_ns, found.width_ns) else {
        draft.lose("How much of the time the detector looked is not in the file.");
        return;
    };
    if width < window {
        draft.doubt(
            "source-blind-time",
            format!(
                "hwlatdetect looked for {} out of each {} only.",
                format_ns_i64(width),
                format_ns_i64(window)
            ),
            "A longer interruption may have come in between, unseen.",
            "Measure longer, or with a width as long as the window.",
        );
    }
}
