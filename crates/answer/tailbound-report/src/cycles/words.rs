// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sentences about a thread's cycles.
//!
//! Units: ns.

use tailbound_core::blame::{KernelKind, Remedy, Sureness};
use tailbound_core::cycle::{CycleRecord, LateReason, Pace, PaceKind};
use tailbound_core::order;
use tailbound_core::units::{format_ns_i64, grouped, spaced};

use crate::blame::what;

/// Most late threads of the headline.
const TOLD_MAX: usize = 3;

/// One sentence of the headline: does it tell of late cycles?
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Headline {
    pub(super) text: String,
    pub(super) late: bool,
}

/// The answer in a few sentences: deadline, how many cycles were late, and why.
pub(super) fn headlines(all: &[CycleRecord], kernel: KernelKind) -> Vec<Headline> {
    let good = |text: String| Headline { text, late: false };
    let seen: Vec<&CycleRecord> = all.iter().filter(|c| c.cycles > 0).collect();
    if seen.is_empty() {
        return vec![good("No whole cycle of a watched thread was seen.".to_owned())];
    }
    let mut late: Vec<&CycleRecord> = seen.iter().copied().filter(|c| c.misses > 0).collect();
    order::by_key(&mut late, |c| (std::cmp::Reverse(c.misses), c.tid));
    let mut out: Vec<Headline> = (late.iter().take(TOLD_MAX))
        .map(|c| Headline { text: late_words(c, kernel), late: true })
        .collect();
    let more = late.len().saturating_sub(TOLD_MAX);
    if more > 0 {
        let text = format!("{} had late cycles too.", counted(more as u64, "more thread"));
        out.push(Headline { text, late: true });
    }
    let kept: Vec<&CycleRecord> =
        seen.iter().copied().filter(|c| c.misses == 0 && c.deadline_ns.is_some()).collect();
    out.extend(match kept.as_slice() {
        [] => None,
        [one] => Some(good(in_time(one))),
        some if out.is_empty() => {
            Some(good(format!("No cycle of {} threads took longer than its deadline.", some.len())))
        }
        some => Some(good(format!("{} other threads were always in time.", some.len()))),
    });
    let without = seen.iter().filter(|c| c.deadline_ns.is_none()).count();
    if without > 0 {
        let who = counted(without as u64, "thread");
        let (have, they) = if without == 1 { ("has", "it is") } else { ("have", "they are") };
        out.push(good(format!(
            "{who} {have} no period that was found, so whether {they} late is not known: give --deadline or --period."
        )));
    }
    out
}

/// `control 17 took longer than its deadline of 5 ms (the period) in 8 of 16 cycles. Why: …`
fn late_words(c: &CycleRecord, kernel: KernelKind) -> String {
    let deadline = c.deadline_ns.map_or_else(String::new, |ns| {
        let whose = if Some(ns) == c.pace.period_ns { " (the period)" } else { "" };
        format!(" of {}{whose}", period_words(ns))
    });
    format!(
        "{} {} took longer than its deadline{deadline} in {} of {}. {}",
        c.name,
        c.tid,
        grouped(c.misses),
        counted(c.cycles, "cycle"),
        c.late_reasons
            .first()
            .map_or_else(|| "Why is not known.".to_owned(), |r| reason_words(c, r, kernel))
    )
}

fn reason_words(c: &CycleRecord, r: &LateReason, kernel: KernelKind) -> String {
    let of = match (r.cycles, c.misses) {
        (1, 1) => String::new(),
        (n, all) if n == all => format!(" in all {}", grouped(n)),
        (n, all) => format!(" in {} of the {}", grouped(n), grouped(all)),
    };
    let most = if r.worst_ns > 0 {
        format!(", up to {} in one", format_ns_i64(r.worst_ns))
    } else {
        String::new()
    };
    let behind = match r.backlog {
        0 => String::new(),
        1 => "; 1 of these began late behind an earlier one".to_owned(),
        n => format!("; {} of these began late behind an earlier one", grouped(n)),
    };
    let advice = Remedy::of(r.cause, &r.who, kernel);
    let advice = advice.map_or_else(String::new, |a| format!(" Do: {}.", a.text));
    format!("Why: {}{of}{most}{behind}.{advice}", what(&r.cause.sentence(&r.who), r.sureness))
}

fn in_time(c: &CycleRecord) -> String {
    let deadline = c.deadline_ns.map_or_else(String::new, period_words);
    let whose = if c.deadline_ns == c.pace.period_ns { " (the period)" } else { "" };
    let longest = c.response.max_ns.map_or_else(String::new, format_ns_i64);
    format!(
        "{} {} was always in time: none of {} took longer than {deadline}{whose}; the longest took {longest}.",
        c.name,
        c.tid,
        counted(c.cycles, "cycle")
    )
}

/// `1 cycle`, `910 cycles`.
fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(n)) }
}

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
                0 => "It waited nowhere else.".to_owned(),
                1 => "It waited once inside a cycle.".to_owned(),
                n => format!("It waited {} times inside cycles.", grouped(n)),
            };
            format!("Waits for its next cycle in {}{}. {others}", a.wait, hedge(a.sureness))
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
            "{} began late because the previous one overran: that time counts to the wake-up latency, and to what the \
             previous cycle was made of.",
            counted(c.overruns, "cycle")
        ));
    }
    if c.broken > 0 {
        let (is, their) = if c.broken == 1 { ("is", "its") } else { ("are", "their") };
        out.push(format!(
            "{} {is} not counted: events were lost at {their} begin or end.",
            counted(c.broken, "cycle")
        ));
    }
    if c.lossy > 0 {
        out.push(format!(
            "Of {} some events were lost: a part of it is unexplained.",
            counted(c.lossy, "cycle")
        ));
    }
    if c.page_faults > 0 {
        out.push(format!("{} within cycles.", counted(c.page_faults, "page fault")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use tailbound_core::Distribution;
    use tailbound_core::blame::{Cause, Phase};

    fn record(tid: i32, misses: u64, reasons: Vec<LateReason>) -> CycleRecord {
        let none = serde_json::to_value(Distribution::default()).expect("a distribution");
        let record = serde_json::json!({
            "thread": 0, "name": "control", "tid": 0, "process": 1, "policy": "fifo:60",
            "pace": {"kind": "periodic", "period_ns": 5_000_000, "sureness": "sure", "intervals": 9, "fitting": 9},
            "deadline_ns": 5_000_000, "cycles": 10, "wakeup": none, "execution": none, "blocked": none,
            "response": none, "causes": [], "worst": [],
        });
        let mut c: CycleRecord = serde_json::from_value(record).expect("a record");
        (c.tid, c.misses, c.late_reasons) = (tid, misses, reasons);
        c.response = Distribution::default();
        c.response.add(4_000_000);
        c
    }

    #[test]
    fn the_first_sentence_says_deadline_how_many_and_why() {
        let reason = LateReason {
            phase: Phase::Blocked,
            cause: Cause::Blocked,
            who: "in write of descriptor 4, woken by reader".to_owned(),
            sureness: Sureness::Sure,
            cycles: 8,
            backlog: 7,
            total_ns: 2_640_000_000,
            worst_ns: 2_640_000_000,
        };
        let all = [record(6, 0, Vec::new()), record(7, 8, vec![reason])];
        let told = headlines(&all, KernelKind::Unknown);
        let told: Vec<&str> = told.iter().map(|h| h.text.as_str()).collect();
        assert_eq!(
            told,
            [
                "control 7 took longer than its deadline of 5 ms (the period) in 8 of 10 cycles. Why: asleep in write of \
                 descriptor 4, woken by reader in all 8, up to 2.64 s in one; 7 of these began late behind an earlier one.",
                "control 6 was always in time: none of 10 cycles took longer than 5 ms (the period); the longest took 4.00 ms.",
            ]
        );
    }
}
