// SPDX-License-Identifier: MIT OR Apache-2.0
//! How far a measurement is, in a line: redrawn on a terminal, now and then elsewhere.
//!
//! Units: ns.

use tailbound_box::stimulus::StimulusProgress;
use tailbound_core::progress_writer::ProgressWriter;
use tailbound_core::units::{format_ns_i64, format_span, grouped};

/// From one line to the next where lines stay.
const LINE_NS: i64 = 60_000_000_000;

/// The line of one measurement.
pub(crate) struct ProgressLine {
    writer: Option<ProgressWriter>,
    planned_ns: i64,
    next_ns: i64,
}

impl ProgressLine {
    /// Of a measurement of this length; no writer: nothing is shown.
    #[must_use]
    pub(crate) const fn new(writer: Option<ProgressWriter>, planned_ns: i64) -> Self {
        Self { writer, planned_ns, next_ns: LINE_NS }
    }

    /// Shows it.
    pub(crate) fn show(&mut self, now: &StimulusProgress) {
        let Some(writer) = self.writer else { return };
        match writer.redraw {
            Some(redraw) => redraw(&text(now, self.planned_ns)),
            None if now.elapsed_ns >= self.next_ns => {
                self.next_ns = now.elapsed_ns.saturating_add(LINE_NS);
                (writer.note)(&text(now, self.planned_ns));
            }
            None => {}
        }
    }

    /// Takes it away.
    pub(crate) fn clear(&self) {
        if let Some(redraw) = self.writer.and_then(|writer| writer.redraw) {
            redraw("");
        }
    }
}

fn text(now: &StimulusProgress, planned_ns: i64) -> String {
    let counters = &now.counters;
    let left = format_span(planned_ns.saturating_sub(now.elapsed_ns).max(0));
    let elapsed = format_span(now.elapsed_ns);
    let mut text = format!("{elapsed} elapsed, {left} left; {} pulses", grouped(counters.sent));
    if let Some(worst_ns) = now.worst_ns {
        text.push_str(&format!(", longest {}", format_ns_i64(worst_ns)));
    }
    for (n, what) in [
        (counters.unanswered, "unanswered"),
        (counters.late.unwrap_or(0), "late"),
        (counters.unknown, "unknown"),
        (counters.spurious.unwrap_or(0), "spurious"),
        (counters.dropped.unwrap_or(0), "samples dropped"),
    ] {
        if n > 0 {
            text.push_str(&format!(", {} {what}", grouped(n)));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use tailbound_box::stimulus::StimulusCounters;

    use super::*;

    #[test]
    fn what_is_not_well_is_in_the_line() {
        let counters = StimulusCounters { sent: 12_000, unanswered: 3, ..Default::default() };
        let now = StimulusProgress { elapsed_ns: 5_000_000_000, counters, worst_ns: Some(81_000) };
        let line = text(&now, 60_000_000_000);
        assert_eq!(line, "5 s elapsed, 55 s left; 12,000 pulses, longest 81.0 µs, 3 unanswered");
    }
}
