// SPDX-License-Identifier: MIT OR Apache-2.0
//! What must be known of a run of outside pulses: what the source cannot tell, what was lost, how it ended.

use tailbound_box::stimulus::{SourceLimit, StimulusEnd, StimulusRecord};
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_core::{Finding, Impact};

use super::time_ns;
use crate::draft::Draft;
use crate::error::excerpt;

/// How a measurement ended, as a clause.
pub(super) fn end(end: &StimulusEnd) -> String {
    match end {
        StimulusEnd::Whole => "complete".to_owned(),
        StimulusEnd::Stopped => "stopped".to_owned(),
        StimulusEnd::Lost(why) => format!("the connection was lost: {}", excerpt(why)),
        StimulusEnd::Silent => "the source did not answer any more".to_owned(),
        StimulusEnd::Restarted => "the source began anew on the way".to_owned(),
        StimulusEnd::Slipped => "the source could not keep its schedule".to_owned(),
        StimulusEnd::Refused(why) => excerpt(why),
        StimulusEnd::Unfinished => "the program that measured was ended".to_owned(),
    }
}

/// How much more than measured a latency may be, by what the source says of itself.
pub(super) fn own_error_ns(record: &StimulusRecord) -> u64 {
    let more = record.limits.iter().map(|limit| match limit {
        SourceLimit::OwnError { more_ns, .. } => more_ns.saturating_add(1),
        _ => 0,
    });
    more.max().unwrap_or(0)
}

/// Everything that a reader must know, in sentences and findings.
pub(super) fn say(record: &StimulusRecord, draft: &mut Draft) {
    draft.lose(format!(
        "Measured by {} at {}: what ran on the machine, its policy and its CPU are not known to it.",
        excerpt(&record.origin.what),
        excerpt(&record.origin.place)
    ));
    limits(record, draft);
    counts(record, draft);
    lost(record, draft);
    if matches!(record.end, StimulusEnd::Whole | StimulusEnd::Stopped) {
        return;
    }
    let (meaning, remedy) = match record.end {
        StimulusEnd::Lost(_) | StimulusEnd::Silent => (
            "The figures are those of what had been read by then; nothing is known of what came after.",
            "Look at the cable and the supply of the source, and measure again.",
        ),
        StimulusEnd::Unfinished => (
            "The figures are those of the last copy of this run; nothing is known of what came after.",
            "Measure again, or use the run as a shorter one.",
        ),
        StimulusEnd::Restarted => (
            "The figures are those of before; nothing is known of what came after.",
            "Look at the supply of the source, and measure again.",
        ),
        _ => (
            "The figures are those of the pulses that were sent.",
            "Choose a longer period or fewer channels, and measure again.",
        ),
    };
    let after = format_span(time_ns(record.tick, record.schedule.elapsed_ticks));
    draft.doubt("source-ended", format!("After {after}: {}.", end(&record.end)), meaning, remedy);
}

fn limits(record: &StimulusRecord, draft: &mut Draft) {
    for limit in &record.limits {
        match limit {
            SourceLimit::GivesUp { after_ticks } => draft.doubt(
                "source-gives-up",
                format!(
                    "The source gives a pulse up after {}.",
                    format_ns_i64(time_ns(record.tick, *after_ticks))
                ),
                "A longer answer is not seen: the tail is cut there.",
                "Use a source without this limit, such as the box.",
            ),
            SourceLimit::WaitsForAnswer => draft.doubt(
                "source-waits",
                "The source sends the next pulse only after the answer to the last one.".to_owned(),
                "A late answer delays all pulses that follow, and none of these counts: every quantile is too good.",
                "Use a source with an absolute schedule, such as the box.",
            ),
            SourceLimit::OwnError { less_ns, more_ns, basis } => draft.lose(format!(
                "A latency may be up to {less_ns} ns less and {more_ns} ns more than measured: {}.",
                excerpt_long(basis)
            )),
            SourceLimit::Stated(sentence) => draft.lose(excerpt_long(sentence)),
        }
    }
}

/// One pulse in so many may be left out without doubt; what was not sent is counted in the run either way.
const SKIPPED_OF: u64 = 100;

fn counts(record: &StimulusRecord, draft: &mut Draft) {
    let sum = |of: fn(&tailbound_box::stimulus::StimulusCounters) -> u64| -> u64 {
        record.channels.iter().map(|channel| of(&channel.counters)).sum()
    };
    let (sent, unanswered) = (sum(|c| c.sent), sum(|c| c.unanswered));
    if unanswered > 0 {
        draft.doubt(
            "source-unanswered",
            format!("{} of {} pulses were not answered.", grouped(unanswered), grouped(sent)),
            "Each counts as missed, and as late as had passed when it was given up: at least that.",
            "Look at the line of the answer and at what runs on the machine.",
        );
    }
    if sent == 0 {
        draft.doubt(
            "source-no-samples",
            "No pulse was sent.".to_owned(),
            "Nothing is known about this machine.",
            "Measure longer.",
        );
    }
    let spurious = sum(|c| c.spurious.unwrap_or(0));
    if spurious > 0 {
        draft.doubt(
            "source-spurious",
            format!("{} answers belong to no pulse.", grouped(spurious)),
            "The line also changes without a pulse: such an edge may have been read as an answer.",
            "Look for ringing, a missing ground wire, and another program that writes the pin.",
        );
    }
    let edges_lost = sum(|c| c.edges_lost.unwrap_or(0));
    if edges_lost > 0 {
        draft.doubt(
            "source-edges-lost",
            format!("{} times answers came faster than they were taken.", grouped(edges_lost)),
            "Pulses that were open then count as unknown.",
            "Look for ringing on the line of the answer.",
        );
    }
    let skipped = sum(|c| c.skipped.unwrap_or(0));
    if skipped > sent.saturating_add(skipped) / SKIPPED_OF {
        draft.doubt(
            "source-skipped",
            format!("{} pulses of the schedule were not sent.", grouped(skipped)),
            "The source was late or was refused. Nothing is known of these moments, which may be the machine's worst where both share CPUs.",
            "Give the source a machine or a CPU of its own and real-time priority.",
        );
    }
    let held = sum(|c| c.held.unwrap_or(0));
    if held > 0 {
        draft.lose(format!(
            "{} pulses of the schedule were left out after unanswered ones, to let answers come.",
            grouped(held)
        ));
    }
}

fn lost(record: &StimulusRecord, draft: &mut Draft) {
    let streams = record.channels.iter().any(|channel| channel.streamed.is_some());
    let cells =
        record.channels.iter().flat_map(|c| c.cells.answered.iter().chain(&c.cells.at_least));
    let in_cells: u64 = cells.map(|cell| cell.count).sum();
    let lost: u64 = record.channels.iter().map(|channel| channel.lost).sum();
    if lost > 0 {
        draft.doubt(
            "source-samples-lost",
            format!("Of {} pulses nothing is known.", grouped(lost)),
            "They were sent, and what would tell of their answers was lost.",
            "Look at the connection to the source, and measure again.",
        );
    }
    if in_cells == 0 {
        return;
    }
    let title = if streams {
        format!(
            "{} samples were lost on the way and are known to a cell of the source's histogram.",
            grouped(in_cells)
        )
    } else {
        "Single samples were not asked for: all but the longest are known to a cell of the source's histogram.".to_owned()
    };
    draft.lose(title.clone());
    draft.note(Finding::listed("source-in-cells", Impact::Notice, title).remedy(if streams {
        "Use another cable or port, or a host with less to do."
    } else {
        "Measure with samples where the connection carries them."
    }));
}

/// A sentence of a source, on one line.
fn excerpt_long(text: &str) -> String {
    tailbound_core::printable::line(text).chars().take(300).collect()
}
