// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the counts of an answering thread mean, whatever its line is.

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::number::Real as _;
use tailbound_core::units::grouped;
use tailbound_rt::answer::PulseTally;

use crate::figures::figure;
use crate::thread_group::ProbeOutput;

/// So many of something, in the singular or the plural.
pub(super) fn counted(n: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(n), if n == 1 { one } else { many })
}

fn pulses(n: u64) -> String {
    counted(n, "pulse", "pulses")
}

/// Figures of every line, and what a reader must know of them.
pub(super) fn output(tally: &PulseTally) -> ProbeOutput {
    let mut output = ProbeOutput::default();
    let counts: [(&str, u64, &str); 7] = [
        ("answered", tally.answered, "pulses that were answered in time for the run"),
        ("refused", tally.refused, "pulses whose answer a system call refused"),
        ("dropped", tally.dropped, "arrivals that this machine dropped: the queue was full"),
        ("lost", tally.lost(), "numbers of the sequence that never came"),
        ("reordered", tally.reordered, "pulses that came after a later one"),
        ("twice", tally.twice, "pulses that came twice; each was answered"),
        ("foreign", tally.foreign, "arrivals that were no pulses: no answer"),
    ];
    output.figures =
        counts.into_iter().map(|(name, n, note)| figure(name, n.real(), "1", note)).collect();
    let found = [broken(tally), doubtful(tally), odd(tally)];
    output.findings = found.into_iter().flatten().collect();
    output
}

/// Pulses that came and got no answer.
fn broken(tally: &PulseTally) -> Vec<Finding> {
    let mut out = Vec::new();
    if tally.dropped > 0 {
        out.push(Finding::listed(
            "pulses-dropped",
            Impact::Violation,
            format!(
                "{} and got no answer: the queue of this machine was full",
                counted(tally.dropped, "pulse came", "pulses came")
            ),
        ));
    }
    if tally.refused > 0 {
        let why = std::io::Error::from_raw_os_error(tally.errno);
        out.push(Finding::listed(
            "pulses-refused",
            Impact::Violation,
            format!(
                "{}: the last system call said: {why}",
                match tally.refused {
                    1 => "1 answer was refused".to_owned(),
                    n => format!("{} answers were refused", grouped(n)),
                }
            ),
        ));
    }
    out
}

/// Pulses of which something is not known.
fn doubtful(tally: &PulseTally) -> Vec<Finding> {
    let mut out = Vec::new();
    if tally.answered == 0 {
        out.push(Finding::listed("no-pulse", Impact::Doubt, "no pulse came"));
    }
    let lost = tally.lost();
    if lost > 0 {
        out.push(Finding::listed(
            "pulses-lost",
            Impact::Doubt,
            format!("{} never came to the thread", pulses(lost)),
        ));
    }
    if tally.unfollowed > 0 {
        out.push(Finding::new(
            "pulses-unfollowed",
            Impact::Doubt,
            format!(
                "{} came from a fifth sender or a later one: what it lost is not known",
                pulses(tally.unfollowed)
            ),
        ));
    }
    if tally.clock_set > 0 {
        out.push(Finding::listed(
            "clock-set",
            Impact::Doubt,
            format!(
                "{} arrived while CLOCK_REALTIME was set: their time begins when the thread ran",
                pulses(tally.clock_set)
            ),
        ));
    }
    out
}

/// What is worth knowing of the sender.
fn odd(tally: &PulseTally) -> Vec<Finding> {
    let odd = [
        ("pulses-twice", tally.twice, "came twice; each was answered"),
        ("pulses-reordered", tally.reordered, "came after a later one"),
        ("pulses-stale", tally.stale, "had a number too old to say whether it came before"),
    ];
    let mut out: Vec<Finding> = odd
        .into_iter()
        .filter(|(_, n, _)| *n > 0)
        .map(|(id, n, what)| Finding::new(id, Impact::Notice, format!("{} {what}", pulses(n))))
        .collect();
    if tally.foreign > 0 {
        let arrivals = counted(tally.foreign, "arrival was no pulse", "arrivals were no pulses");
        out.push(Finding::new(
            "arrivals-foreign",
            Impact::Notice,
            format!("{arrivals}: no answer"),
        ));
    }
    out
}
