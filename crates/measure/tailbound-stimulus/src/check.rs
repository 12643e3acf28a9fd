// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check of the box found, for people and for programs.

use serde_json::{Value, json};
use tailbound_box::pico::BoxCheckReport;
use tailbound_core::units::{format_span, grouped};
use tailbound_sys::signal::Signals;

use crate::error::StimulusError;
use crate::pico;
use crate::via::Via;

/// Clocks are compared for so long.
const COMPARED_NS: i64 = 10_000_000_000;

/// Checks the source against itself, until an ending signal comes.
///
/// # Errors
/// It is no box, none that can be used, or the check came to no end.
pub fn check(via: &Via, channels: u8) -> Result<BoxCheckReport, StimulusError> {
    let Via::Pico(port) = via else {
        return Err(StimulusError::Impossible(
            "--via: only the box is checked, pico:PORT".to_owned(),
        ));
    };
    let _signals = Signals::block_and_open()?;
    pico::check(port, channels, COMPARED_NS)
}

/// For people.
#[must_use]
pub fn check_text(report: &BoxCheckReport) -> String {
    let [major, minor, patch] = report.firmware;
    let tick_ns = 1e9 / f64::from(report.tick_hz);
    let mut text = format!(
        "Box       {}, firmware {major}.{minor}.{patch}, one tick is {tick_ns:.1} ns\n",
        report.what
    );
    for wire in &report.wires {
        let (read, [out, back]) = (&wire.read, wire.pins);
        let ticks = if read.answered == 0 {
            "nothing came back".to_owned()
        } else {
            format!(
                "{} of {} pulses, {} to {} ticks, {} expected",
                read.answered, read.sent, read.least_ticks, read.most_ticks, wire.expected_ticks
            )
        };
        text.push_str(&format!("Wire {}    GPIO {out} to GPIO {back}: {ticks}\n", read.channel));
    }
    text.push_str(&match report.drift {
        Some(drift) => format!(
            "Crystal   {} ppm against the clock of this host, ±{} ppm, over {}\n",
            ppm(drift.middle_ppb()),
            ppm(drift.half_width_ppb()),
            format_span(report.drift_ns)
        ),
        None => "Crystal   not compared\n".to_owned(),
    });
    let link = &report.link;
    text.push_str(&format!(
        "Frames    {} missing, {} damaged\n",
        grouped(link.missing),
        grouped(link.damaged)
    ));
    let refusals = report.refusals();
    if refusals.is_empty() {
        text.push_str("\nThe box can be used.\n");
    }
    for refusal in refusals {
        text.push_str(&format!("\nNot as it must be: {refusal}.\n"));
    }
    text
}

/// For programs.
#[must_use]
pub fn check_json(report: &BoxCheckReport) -> Value {
    let [major, minor, patch] = report.firmware;
    let wires: Vec<Value> = report
        .wires
        .iter()
        .map(|wire| {
            let none = wire.read.answered == 0;
            json!({
                "channel": wire.read.channel,
                "pins": wire.pins,
                "sent": wire.read.sent,
                "answered": wire.read.answered,
                "least_ticks": (!none).then_some(wire.read.least_ticks),
                "most_ticks": (!none).then_some(wire.read.most_ticks),
                "expected_ticks": wire.expected_ticks,
            })
        })
        .collect();
    json!({
        "box": report.what,
        "firmware": format!("{major}.{minor}.{patch}"),
        "tick_hz": report.tick_hz,
        "wires": wires,
        "drift_ppb": report.drift.map(|drift| json!({
            "least": drift.least_ppb,
            "most": drift.most_ppb,
            "span_ns": report.drift_ns,
        })),
        "frames": { "missing": report.link.missing, "damaged": report.link.damaged },
        "refusals": report.refusals(),
    })
}

/// Parts in 10^9 as parts in 10^6 with one decimal.
fn ppm(ppb: i64) -> String {
    let tenths = (ppb.abs() + 50) / 100;
    let sign = if ppb < 0 && tenths > 0 { "-" } else { "" };
    format!("{sign}{}.{}", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_per_million_have_one_decimal() {
        assert_eq!([0, 49, 50, -1_230, 12_345].map(ppm), ["0.0", "0.0", "0.1", "-1.2", "12.3"]);
    }
}
