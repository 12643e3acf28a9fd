// SPDX-License-Identifier: MIT OR Apache-2.0
//! The phrases that verdicts are made of.
//!
//! Units: ns in, words out. A limit is printed exactly, a measured value to
//! three digits, unless rounding would make it look equal to the limit.
//! Not here: when which sentence is said ([`crate::verdict`]).

use tailbound_core::context::Context;
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_core::{EndReason, Requirement};

use crate::tally::{Extreme, Tally};

/// `100 µs`, `1.5 ms`, `105.25 µs`: no digit is lost.
pub(crate) fn exactly(ns: i64) -> String {
    let magnitude = ns.unsigned_abs();
    let (unit, factor) = [("s", 1_000_000_000u64), ("ms", 1_000_000), ("µs", 1000)]
        .into_iter()
        .find(|(_, f)| magnitude >= *f)
        .unwrap_or(("ns", 1));
    let sign = if ns < 0 { "-" } else { "" };
    let digits = factor.ilog10() as usize;
    let rest = if digits == 0 { String::new() } else { format!("{:0digits$}", magnitude % factor) };
    let rest = rest.trim_end_matches('0');
    let point = if rest.is_empty() { "" } else { "." };
    format!("{sign}{}{point}{rest} {unit}", magnitude / factor)
}

/// `2nd`, `3rd`, `11th`, `22nd`.
pub(crate) fn ordinal(n: usize) -> String {
    let ending = match (n % 10, n % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{n}{ending}")
}

/// A measured value beside a limit: rounded, unless that hides on which side it is.
pub(crate) fn beside(ns: i64, limit_ns: Option<i64>) -> String {
    let rounded = format_ns_i64(ns);
    if limit_ns.is_some_and(|limit| limit != ns && format_ns_i64(limit) == rounded) {
        exactly(ns)
    } else {
        rounded
    }
}

/// `later than 100 µs or more than 5 µs early`.
pub(crate) fn limit(requirement: &Requirement) -> String {
    let late = requirement.deadline_ns.map(|d| format!("later than {}", exactly(d)));
    let early = requirement.early_ns.map(|e| format!("more than {} early", exactly(e)));
    late.into_iter().chain(early).collect::<Vec<_>>().join(" or ")
}

/// `120,000 activations on 2 CPUs in 60 s`.
pub(crate) fn scope(tally: &Tally, measured_ns: i64) -> String {
    scope_of(tally.due.n, tally, measured_ns)
}

/// The same, of those that were not missed.
pub(crate) fn tried(tally: &Tally, measured_ns: i64) -> String {
    scope_of(tally.due.n.saturating_sub(tally.missed), tally, measured_ns)
}

fn scope_of(n: u64, tally: &Tally, measured_ns: i64) -> String {
    let what = if n == 1 { tally.event.clone() } else { format!("{}s", tally.event) };
    let place = match &tally.cpus {
        // Timed from outside, where no thread is seen.
        _ if tally.context == Context::External => String::new(),
        Some(cpus) if cpus.len() == 1 => {
            cpus.first().map_or_else(String::new, |c| format!(" on CPU {c}"))
        }
        Some(cpus) => format!(" on {} CPUs", cpus.len()),
        None if tally.threads == 1 => " of one thread".to_owned(),
        None => format!(" of {} threads", tally.threads),
    };
    let time =
        if measured_ns > 0 { format!(" in {}", format_span(measured_ns)) } else { String::new() };
    format!("{} {what}{place}{time}", grouped(n))
}

/// `0.014 %`, or `one in 12,000,000` where a percentage would be all zeros.
pub(crate) fn share(part: u64, all: u64) -> String {
    if all == 0 || part == 0 {
        return "0 %".to_owned();
    }
    let percent = part.real() / all.real() * 100.0;
    if percent < 0.0001 {
        return format!("one in {}", grouped(all / part));
    }
    // Two digits that count, and never a rounded-up 100.
    let digits = match percent {
        p if p >= 10.0 => 1usize,
        p if p >= 1.0 => 2,
        p if p >= 0.1 => 2,
        p if p >= 0.01 => 3,
        p if p >= 0.001 => 4,
        _ => 5,
    };
    let text = format!("{percent:.digits$}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "100" && part < all { "99.9 %".to_owned() } else { format!("{text} %") }
}

/// The event of probes that look for gaps in windows of time.
const WINDOW: &str = "window";

/// `the latest was 63.1 µs`; of a window, `the longest gap was 63.1 µs`.
pub(crate) fn latest(tally: &Tally, requirement: &Requirement) -> String {
    let what = if tally.event == WINDOW { "longest gap" } else { "latest" };
    tally.latest.map_or_else(
        || format!("the {what} is not known"),
        |e| format!("the {what} was {}", beside(e.error_ns, requirement.deadline_ns)),
    )
}

/// The latest of those that were not missed; its row of the table is named where there are several kinds:
/// ``the latest (`user`) was 63.1 µs``.
pub(crate) fn latest_tried(tally: &Tally) -> String {
    let row = if tally.contexts > 1 { format!(" (`{}`)", tally.context) } else { String::new() };
    tally.latest_tried_ns.map_or_else(
        || format!("the latest{row} is not known"),
        |ns| format!("the latest{row} was {}", format_ns_i64(ns)),
    )
}

/// `the worst was 4.31 ms, on CPU 1, 23.4 s into the run`, late or early.
pub(crate) fn worst(tally: &Tally, requirement: &Requirement) -> String {
    let place = |e: &Extreme| {
        let cpu = e.cpu.map_or_else(String::new, |c| format!(", on CPU {c}"));
        let time = e.t_s.map_or_else(String::new, |s| format!(", {s:.1} s into the run"));
        format!("{cpu}{time}")
    };
    if tally.found.late > 0
        && let Some(e) = &tally.latest
    {
        return format!(
            "the worst was {}{}",
            beside(e.error_ns, requirement.deadline_ns),
            place(e)
        );
    }
    if tally.found.early > 0
        && let Some(e) = &tally.earliest
    {
        let early = beside(e.error_ns.saturating_neg(), requirement.early_ns);
        return format!("the worst was {early} early{}", place(e));
    }
    latest(tally, requirement)
}

/// `; 93 activations were missed`, if any was; a missed window is one without data.
pub(crate) fn missed(tally: &Tally) -> String {
    match tally.missed {
        0 => String::new(),
        1 if tally.event == WINDOW => "; one window had no data".to_owned(),
        n if tally.event == WINDOW => format!("; {} windows had no data", grouped(n)),
        1 if tally.context == Context::External => {
            format!("; one {} was not answered", tally.event)
        }
        n if tally.context == Context::External => {
            format!("; {} {}s were not answered", grouped(n), tally.event)
        }
        1 => format!("; one {} was missed", tally.event),
        n => format!("; {} {}s were missed", grouped(n), tally.event),
    }
}

/// What a run that is not complete came to: `the run was interrupted after 12 s of 60 s`.
pub(crate) fn ended(reason: EndReason, measured_ns: i64, planned_ns: i64) -> String {
    let how = match reason {
        EndReason::Interrupted => "the run was interrupted".to_owned(),
        EndReason::Failed => "the run failed".to_owned(),
        EndReason::CutOff => "the run file was cut off".to_owned(),
        EndReason::Unknown(word) if word.as_str().is_empty() => {
            "the run ended without saying why".to_owned()
        }
        EndReason::Complete | EndReason::Rule | EndReason::Unknown(_) => {
            format!("the run ended early ({})", clause(reason.as_str()))
        }
    };
    // Of a file that tells no time, nothing is said about when.
    if measured_ns <= 0 && reason == EndReason::CutOff {
        return "the file was cut off".to_owned();
    }
    let of = if planned_ns > measured_ns && planned_ns < i64::MAX {
        format!(" of {}", format_span(planned_ns))
    } else {
        String::new()
    };
    format!("{how} after {}{of}", format_span(measured_ns.max(0)))
}

/// A title inside a sentence: without its full stop.
pub(crate) fn clause(title: &str) -> &str {
    title.trim().trim_end_matches('.')
}

/// With a capital and a full stop.
pub(crate) fn as_sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_uppercase().to_string()).unwrap_or_default();
    format!("{first}{}.", chars.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_keep_their_digits_and_values_their_side() {
        for (ns, text) in [
            (100_000, "100 µs"),
            (1_500_000, "1.5 ms"),
            (105_250, "105.25 µs"),
            (999, "999 ns"),
            (0, "0 ns"),
            (2_000_000_000, "2 s"),
            (-5_500, "-5.5 µs"),
        ] {
            assert_eq!(exactly(ns), text);
        }
        assert_eq!(beside(100_020, Some(100_000)), "100.02 µs");
        assert_eq!(beside(63_123, Some(100_000)), "63.1 µs");
    }

    #[test]
    fn shares_are_never_rounded_to_all_or_nothing() {
        for (part, all, text) in [
            (17, 120_000, "0.014 %"),
            (1, 120_000_000, "one in 120,000,000"),
            (999_999, 1_000_000, "99.9 %"),
            (5, 5, "100 %"),
            (9, 120, "7.5 %"),
        ] {
            assert_eq!(share(part, all), text);
        }
    }
}
