// SPDX-License-Identifier: MIT OR Apache-2.0
//! Why a sample was late, for people and scripts: from when on it was inevitable, and what happened there.
//!
//! Units: ns.
//! JSON, schema `tailbound-why/1` (members are added, never renamed or removed): `schema`, `kernel`, `sentence`, and the members
//! of [`WhyRecord`].

mod page;

use serde_json::{Value, json};
use tailbound_core::number::Real as _;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_core::why::{Changes, DecisiveInstant, TriedInstant, WhyRecord};

use crate::paths::tree_table;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

pub use self::page::html;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-why/1";
/// What happened is told in so many lines.
const EVENTS: usize = 24;

/// `153.204103 ms`: instants are told apart by ns.
fn instant(ns: i64) -> String {
    format!("{:.6} ms", ns.real() / 1e6)
}

fn of<'a>(name: Option<&'a String>, other: &'a str) -> &'a str {
    name.map_or(other, String::as_str)
}

/// `hackbench entered munmap`
fn happened(d: &DecisiveInstant) -> String {
    let thread = of(d.thread.as_ref(), "the thread on the CPU");
    let name = of(d.name.as_ref(), "a function without a name");
    let call = d.call.as_ref().map_or_else(String::new, |call| format!(", in {call},"));
    match d.what.as_str() {
        "switch" => format!("the scheduler went over to {name}"),
        "interrupt" => format!("the interrupt {name} came while {thread}{call} had the CPU"),
        "call" => match &d.name {
            Some(name) => format!("{thread} entered {name}"),
            None => format!("{thread} entered the kernel"),
        },
        "section" => {
            format!("{thread}{call} went into a section that is not preemptible, in {name}")
        }
        "idle" => "the CPU was idle".to_owned(),
        "" => "it was not looked what happened".to_owned(),
        _ => format!("{thread}{call} was in {name}"),
    }
}

fn tried_at(why: &WhyRecord, at_ns: i64) -> Option<&TriedInstant> {
    why.tried.iter().find(|t| t.at_ns == at_ns)
}

/// What a reader wants to know first.
#[must_use]
pub fn sentence(why: &WhyRecord) -> String {
    let (nth, latency) = (grouped(why.activation), format_ns_i64(why.latency_ns));
    let sample = format!("Activation {nth} ({latency})");
    let so_far = if why.is_whole { "" } else { " as far as was searched" };
    let Some(d) = &why.inevitable else {
        if let (0, Some(tried)) = (why.variations, why.tried.first()) {
            return format!("{sample}: {}.", with_other_numbers(tried, why.latency_ns));
        }
        return match why.tried.iter().max_by_key(|t| t.at_ns) {
            Some(last) => format!(
                "{sample} could still be in time{so_far}: changed {} before its timer was due, at least one replay was.",
                format_ns_i64(last.before_due_ns)
            ),
            None => format!("{sample}: no instant was tried."),
        };
    };
    let before = match d.open_before_ns {
        None => "No earlier instant was tried, or none was different;".to_owned(),
        Some(ns) => {
            let open = tried_at(why, d.at_ns - ns);
            let early = open.map_or(0, |t| t.tried - t.late);
            let of = open.map_or(0, |t| t.tried);
            let which = open.map_or_else(String::new, made_early);
            let ns = format_ns_i64(ns);
            format!("Changed {ns} earlier, {early} of {of} replays were in time{which};")
        }
    };
    let at = tried_at(why, d.at_ns);
    let all = at.map_or(why.variations, |t| t.tried);
    let of_numbers = match at.map_or(0, |t| t.of(Changes::RandomNumbers).0) {
        0 => String::new(),
        n => format!(" ({n} of them with other random numbers)"),
    };
    format!(
        "{} before its timer was due, at {}, activation {nth} ({latency}) could no longer be in time{so_far}: {}. {before} from then on, none of {all}{of_numbers}.",
        format_ns_i64(d.before_due_ns),
        instant(d.at_ns),
        happened(d)
    )
}

/// What became of it with other random numbers all the time, where nothing else was tried.
fn with_other_numbers(tried: &TriedInstant, latency_ns: i64) -> String {
    let missed = match tried.missed {
        0 => String::new(),
        n => format!(", missed in {n}"),
    };
    let (times, since) = (tried.tried, "from the run's beginning on");
    match (tried.least_ns, tried.most_ns) {
        (Some(least), Some(most)) if (least, most, tried.missed) == (latency_ns, latency_ns, 0) => {
            format!("other random numbers {since} left it as it was in {times} of {times} tries")
        }
        (Some(least), Some(most)) => {
            let to =
                if most > least { format!(" to {}", format_ns_i64(most)) } else { String::new() };
            let least = format_ns_i64(least);
            format!(
                "random numbers decide about it; with others {since} it was {least}{to} in {times} tries{missed}"
            )
        }
        _ => format!(
            "random numbers decide about it; with others {since} it was missed in {times} of {times} tries"
        ),
    }
}

/// By what an instant's sample was made early, where both kinds were tried.
fn made_early(tried: &TriedInstant) -> String {
    let early = |of| {
        let (tried, late) = tried.of(of);
        (tried, tried - late)
    };
    match (early(Changes::Phase), early(Changes::RandomNumbers)) {
        (_, (0, _)) | ((_, 0), (_, 0)) => String::new(),
        (_, (_, 0)) => ", by a standstill".to_owned(),
        ((_, 0), _) => ", by other random numbers".to_owned(),
        ((_, phase), (_, numbers)) => {
            format!(", {phase} by a standstill and {numbers} by other random numbers")
        }
    }
}

fn tried(why: &WhyRecord) -> Table {
    let numbers = why.tried.iter().any(|t| t.of(Changes::RandomNumbers).0 > 0);
    let mut head = vec!["instant", "before due", "late", "least", "most", "in"];
    if numbers {
        head.splice(2..3, ["late: standstill", "late: numbers"]);
    }
    let mut table = Table::new(&head).with_words(&[head.len() - 1]);
    for t in &why.tried {
        let latency = |ns: Option<i64>| ns.map_or_else(|| "missed".to_owned(), format_ns_i64);
        // Instants lie close together: a rounded time would not tell them apart.
        let sign = if t.before_due_ns < 0 { "-" } else { "" };
        let of = |changes| match t.of(changes) {
            (0, _) => "-".to_owned(),
            (tried, late) => format!("{late} of {tried}"),
        };
        let mut row =
            vec![instant(t.at_ns), format!("{sign}{} ns", grouped(t.before_due_ns.unsigned_abs()))];
        match numbers {
            true => row.extend([Changes::Phase, Changes::RandomNumbers].map(of)),
            false => row.push(format!("{} of {}", t.late, t.tried)),
        }
        row.extend([latency(t.least_ns), latency(t.most_ns), t.function.clone()]);
        table.row(row);
    }
    table
}

fn events(why: &WhyRecord) -> Table {
    let mut table = Table::new(&["since due", "what happened"]).with_words(&[1]);
    // The first ones lead into it, the last ones out of it.
    let left_out = why.events.len().saturating_sub(EVENTS);
    for (nth, event) in why.events.iter().enumerate() {
        match (nth < EVENTS / 2, nth >= EVENTS / 2 + left_out, nth == EVENTS / 2) {
            (false, false, true) => {
                table.row(vec!["…".to_owned(), format!("({left_out} more)")]);
            }
            (false, false, false) => {}
            _ => table.row(vec![format_ns_i64(event.since_due_ns), event.what.clone()]),
        }
    }
    table
}

/// What is claimed, and what is not.
fn claim(why: &WhyRecord) -> String {
    let numbers = match (why.seeds, &why.no_seeds) {
        (_, Some(reason)) => format!(" Other random numbers were not tried: {reason}."),
        (0, None) => String::new(),
        _ => " Other random numbers: the keys of the kernel's generators, and what was drawn from them and not yet used, are others from the instant on.".to_owned(),
    };
    let standstill = match why.variations {
        0 => String::new(),
        _ => format!(
            " Standstill: the processor then does nothing for a part of the time to the due time, {} at most.",
            format_ns_i64(why.longest_ns)
        ),
    };
    let between = match why.variations {
        0 => "See docs/why.md.",
        _ => "What lies between two instants that were tried was not (docs/why.md).",
    };
    format!(
        "A variation lets the same run go on to the instant.{standstill}{numbers} Late means {} or more. {} {between}",
        format_ns_i64(why.late_ns),
        match (why.control_ns, why.control_numbers_ns) {
            (Some(ns), Some(again)) if ns == why.latency_ns && again == ns =>
                "Stopped and let go without a change, and with its random numbers written as they were, the sample was the same to the nanosecond.",
            (Some(ns), None) if ns == why.latency_ns =>
                "Stopped and let go without a change, the sample was the same to the nanosecond.",
            _ => "Whether the run is the same when it is stopped was not tried.",
        }
    )
}

/// For a terminal; ends in a newline.
#[must_use]
pub fn text(why: &WhyRecord, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&sentence(why), "  ", Ink::Bold);
    page.heading("Instants that were tried");
    let lines = crate::blame::hanging(&tried(why), page.width());
    page.raw(lines, Ink::Plain);
    if let Some(d) = why.inevitable.as_ref().filter(|d| !d.under_way.is_empty()) {
        page.heading("Under way at that instant");
        page.text(&d.under_way.join(" → "), "  ", Ink::Plain);
    }
    if !why.events.is_empty() {
        page.heading("From there to the sample");
        let lines = crate::blame::hanging(&events(why), page.width());
        page.raw(lines, Ink::Plain);
    }
    if !why.tree.is_empty() {
        page.heading("What was executed meanwhile");
        let lines = crate::blame::hanging(&tree_table(&why.tree), page.width());
        page.raw(lines, Ink::Plain);
    }
    page.gap();
    page.text(&claim(why), "  ", Ink::Dim);
    page.finish()
}

/// For scripts.
#[must_use]
pub fn json(why: &WhyRecord, kernel: &str) -> Value {
    let mut value = json!(why);
    if let Some(members) = value.as_object_mut() {
        members.insert("schema".to_owned(), json!(SCHEMA));
        members.insert("kernel".to_owned(), json!(kernel));
        members.insert("sentence".to_owned(), json!(sentence(why)));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> WhyRecord {
        let tried = |at_ns, tried, late| TriedInstant {
            at_ns,
            before_due_ns: 1_000_000 - at_ns,
            function: "user mode".to_owned(),
            tried,
            late,
            least_ns: Some(5_000),
            most_ns: Some(680_000),
            ..TriedInstant::default()
        };
        WhyRecord {
            activation: 416,
            latency_ns: 685_000,
            due_ns: 1_000_000,
            late_ns: 616_500,
            variations: 8,
            longest_ns: 1_000_000,
            control_ns: Some(685_000),
            tried: vec![tried(987_600, 8, 1), tried(987_640, 8, 8)],
            inevitable: Some(DecisiveInstant {
                at_ns: 987_640,
                before_due_ns: 12_360,
                open_before_ns: Some(40),
                what: "call".to_owned(),
                name: Some("munmap".to_owned()),
                thread: Some("hack\u{1b}[31m".to_owned()),
                ..DecisiveInstant::default()
            }),
            is_whole: true,
            events: vec![WhyEvent { since_due_ns: -12_360, what: "enters".to_owned() }; 30],
            ..WhyRecord::default()
        }
    }

    use tailbound_core::why::{VariedSample, WhyEvent};

    /// Two standstills, of which one is late, and two other seeds, of which none is.
    fn of_both_kinds() -> WhyRecord {
        let sample = |changes, late| VariedSample { changes, late, ..VariedSample::default() };
        let mut why = WhyRecord { seeds: 2, control_numbers_ns: Some(685_000), ..record() };
        let (phase, numbers) = (Changes::Phase, Changes::RandomNumbers);
        let each = [[(phase, true), (phase, false), (numbers, false), (numbers, false)]; 2];
        for (tried, each) in why.tried.iter_mut().zip(each) {
            tried.variations = each.map(|(changes, late)| sample(changes, late)).to_vec();
            (tried.tried, tried.late) = (4, 1);
        }
        why
    }

    #[test]
    fn each_kind_of_variation_is_told_on_its_own() {
        let why = of_both_kinds();
        let said = sentence(&why);
        assert!(said.contains("none of 4 (2 of them with other random numbers)"), "{said}");
        let open = "3 of 4 replays were in time, 1 by a standstill and 2 by other random numbers";
        assert!(said.contains(open), "{said}");
        let text = text(&why, Style::default());
        for part in ["late: numbers", "0 of 2", "written as they were"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        let json = json(&why, "x");
        assert_eq!(json["tried"][0]["variations"][2]["changes"], "random-numbers");
        let none = WhyRecord { seeds: 0, no_seeds: Some("no names".to_owned()), ..record() };
        assert!(claim(&none).contains("were not tried: no names"));
    }

    #[test]
    fn random_numbers_alone_say_whether_they_decide() {
        let with = |least: i64, most: i64, missed: usize| {
            let tried = TriedInstant {
                tried: 2,
                missed,
                least_ns: (missed < 2).then_some(least),
                most_ns: (missed < 2).then_some(most),
                ..TriedInstant::default()
            };
            let why = WhyRecord {
                variations: 0,
                inevitable: None,
                tried: vec![tried],
                ..of_both_kinds()
            };
            assert!(!claim(&why).contains("Standstill"), "{}", claim(&why));
            sentence(&why)
        };
        let same = with(685_000, 685_000, 0);
        assert!(same.contains("numbers from the run's beginning on left it"), "{same}");
        assert!(same.ends_with("as it was in 2 of 2 tries."), "{same}");
        let others = with(5_000, 7_000, 0);
        assert!(others.ends_with("it was 5.00 µs to 7.00 µs in 2 tries."), "{others}");
        let other = with(5_000, 5_000, 1);
        assert!(other.ends_with("it was 5.00 µs in 2 tries, missed in 1."), "{other}");
        let missed = with(0, 0, 2);
        assert!(missed.ends_with("missed in 2 of 2 tries."), "{missed}");
    }

    #[test]
    fn the_sentence_says_when_what_and_how_it_was_before() {
        let said = sentence(&record());
        assert!(
            said.starts_with("12.4 µs before its timer was due, at 0.987640 ms, activation 416"),
            "{said}"
        );
        assert!(said.contains("could no longer be in time: hack"), "{said}");
        let earlier =
            "Changed 40 ns earlier, 7 of 8 replays were in time; from then on, none of 8.";
        assert!(said.ends_with(earlier), "{said}");
        let none = WhyRecord { inevitable: None, is_whole: false, ..record() };
        let open = "Activation 416 (685 µs) could still be in time as far as was searched";
        assert!(sentence(&none).starts_with(open), "{}", sentence(&none));
    }

    #[test]
    fn a_page_has_instants_and_events_and_no_colour_of_a_name() {
        let text = text(&record(), Style::default());
        for part in ["1 of 8", "(6 more)", "-12.4 µs", "616 µs or more"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        assert_eq!(json(&record(), "debian:6.12")["schema"], SCHEMA);
        let page = html(&record(), "debian:6.12");
        for part in
            ["entered munmap", "why-tried", "late above this line", "1 of 8", "616 µs or more"]
        {
            assert!(page.contains(part), "no {part} in the page");
        }
        assert!(!page.contains('\u{1b}'));
        // Without anything tried there is nothing to draw.
        assert!(!html(&WhyRecord::default(), "x").contains("<svg"));
    }
}
