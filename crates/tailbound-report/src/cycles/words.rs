// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentences about a thread's cycles.
//!
//! Context: COLD. Units: ns.

use tailbound_core::blame::Sureness;
use tailbound_core::cycle::{CycleRecord, Pace, PaceKind};
use tailbound_core::units::{format_ns_i64, grouped, spaced};

/// `controller 1234 (fifo:80, CPU 1)`.
pub(super) fn title(c: &CycleRecord) -> String {
    let cpu = match c.cpu {
        Some(cpu) => format!("CPU {cpu}"),
        None if c.cycles > 0 => "several CPUs".to_owned(),
        None => "CPU unknown".to_owned(),
    };
    format!("{} {} ({}, {cpu})", c.name, c.tid, c.policy)
}

fn hedge(sureness: Sureness) -> String {
    match sureness {
        Sureness::Sure => String::new(),
        other => format!(" ({other})"),
    }
}

/// What paces it: `Waits for its next cycle in clock_nanosleep to an absolute time.`
pub(super) fn activation(c: &CycleRecord) -> String {
    match &c.activation {
        Some(a) if a.given => format!("Waits for its next cycle in {}, as told.", a.wait),
        Some(a) => {
            let others = match a.others {
                0 => "it waits nowhere else".to_owned(),
                n => format!("{} waits elsewhere lie within cycles", grouped(n)),
            };
            format!(
                "Waits for its next cycle in {}{}; {others}.",
                a.wait,
                hedge(a.sureness)
            )
        }
        None => "No wait of it came often enough to be the one for its next cycle.".to_owned(),
    }
}

/// The rhythm: `Period 10 ms ±12 µs, found (498 of 499 intervals fit)`.
pub(super) fn pace(p: &Pace) -> String {
    let period = p.period_ns.map_or_else(|| "unknown".to_owned(), period_words);
    let jitter = p.jitter_ns.map_or_else(String::new, |j| format!(" ±{}", format_ns_i64(j)));
    let fits = format!("{} of {} intervals fit", grouped(p.fitting), grouped(p.intervals));
    match p.kind {
        _ if p.given => format!("Period {period}, given{jitter}; {fits}."),
        PaceKind::Periodic => {
            format!("Period {period}{jitter}, found{}; {fits}.", hedge(p.sureness))
        }
        PaceKind::Regular => format!(
            "Every {period}{jitter} on the mean, but on no grid{}: each cycle begins some time after the one before.",
            hedge(p.sureness)
        ),
        PaceKind::Sporadic => {
            let least = p.least_ns.map_or_else(|| "unknown".to_owned(), format_ns_i64);
            format!("Sporadic{}: the shortest interval was {least}.", hedge(p.sureness))
        }
        PaceKind::NotKnown | PaceKind::Unknown(_) => {
            "Period unknown: too few cycles were seen.".to_owned()
        }
    }
}

/// A period as people write it where it is round to a ten-thousandth.
fn period_words(ns: i64) -> String {
    let step = match ns {
        10_000_000.. => 1_000_000,
        1_000_000.. => 100_000,
        100_000.. => 10_000,
        _ => 1_000,
    };
    let round = (ns + step / 2) / step * step;
    if (round - ns).abs() <= ns / 10_000 { spaced(round) } else { format_ns_i64(ns) }
}

/// How the deadline was kept; nothing where there is none.
pub(super) fn deadline(c: &CycleRecord) -> Option<String> {
    let deadline = c.deadline_ns?;
    let whose = if Some(deadline) == c.pace.period_ns { " (the period)" } else { "" };
    Some(format!(
        "Deadline {}{whose}: {} of {} cycles took longer.",
        period_words(deadline),
        grouped(c.misses),
        grouped(c.cycles)
    ))
}

/// What a reader must know about the figures.
pub(super) fn notes(c: &CycleRecord) -> Vec<String> {
    let mut out = Vec::new();
    if c.overruns > 0 {
        out.push(format!(
            "{} cycles were released while the one before still ran: its rest is in their wake-up latency.",
            grouped(c.overruns)
        ));
    }
    if c.broken > 0 {
        out.push(format!(
            "{} cycles are in no figure: events were lost at their begin or end.",
            grouped(c.broken)
        ));
    }
    if c.lossy > 0 {
        out.push(format!(
            "Of {} cycles some events were lost: they have a part that is unexplained.",
            grouped(c.lossy)
        ));
    }
    if c.page_faults > 0 {
        out.push(format!("{} page faults within cycles.", grouped(c.page_faults)));
    }
    out
}
