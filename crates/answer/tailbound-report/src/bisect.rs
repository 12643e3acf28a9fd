// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made it later: the answer of a search, for people and scripts.
//!
//! Units: ns.
//! JSON, schema `tailbound-bisect/1` (members are added, never renamed or removed): `schema` and the members of
//! [`Bisected`].

use serde::Serialize;
use serde_json::{Value, json};
use tailbound_core::units::format_ns_i64;

use crate::paths::Grown;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-bisect/1";
/// Sections that are listed.
const ROWS: usize = 8;

/// One end of the search, or what was measured on the way.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Measurement {
    /// Which variant.
    pub title: String,
    /// Its figure; none where it was not built, did not boot or did not measure.
    pub value_ns: Option<i64>,
    /// `good`, `bad` or `skip`.
    pub answer: &'static str,
    /// Is it so near to the limit that the noise floor could move it over?
    pub is_near: bool,
    /// Why there is no figure; what is worth knowing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Its run file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// What makes it late.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CulpritFound {
    /// Changes that do it together; versions of which one does it, where `is_exact` is false.
    pub members: Vec<String>,
    /// Nothing of it can be left out; or the one version is known.
    pub is_exact: bool,
    /// Without it.
    pub before: Measurement,
    /// With it.
    pub after: Measurement,
}

/// The answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Bisected {
    /// `append`, `kernels`, `commits`, `config`.
    pub kind: &'static str,
    /// What is searched in: `16 options`.
    pub among: String,
    /// What was measured: `latest`, `p99`, …
    pub measure: String,
    /// Seeds of each variant; the greatest figure counts.
    pub seeds: u32,
    /// The good end.
    pub good: Measurement,
    /// The bad end.
    pub bad: Measurement,
    /// Both with a change that means nothing.
    pub controls: Vec<Measurement>,
    /// Later than this is bad.
    pub limit_ns: i64,
    /// Did somebody give it? It lies in the middle between the ends otherwise.
    pub limit_is_given: bool,
    /// The noise floor: what the controls changed; none without controls.
    pub floor_ns: Option<i64>,
    /// Every variant that was asked about besides ends and controls.
    pub steps: Vec<Measurement>,
    /// How many of all were in the journal already.
    pub recalled: usize,
    /// What was found.
    pub culprits: Vec<CulpritFound>,
    /// Is the rest good without them? `true`, or none: not known, or no question of this kind.
    pub rest_is_good: Option<bool>,
    /// Where it was interrupted: what is left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub left: Option<String>,
    /// What is worth knowing.
    pub notes: Vec<String>,
    /// Sections that are longer with the first culprit.
    pub grown: Vec<Grown>,
    /// Why nothing is known of sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sections_unknown: Option<String>,
    /// Commands that show it again.
    pub again: Vec<String>,
}

fn figure(m: &Measurement) -> String {
    m.value_ns.map_or_else(|| "no figure".to_owned(), format_ns_i64)
}

/// What a reader wants to know first.
#[must_use]
pub fn sentence(b: &Bisected) -> String {
    if let Some(left) = &b.left {
        return format!("Interrupted: {left}");
    }
    let Some(first) = b.culprits.first() else {
        return "No culprit was found.".to_owned();
    };
    let from_to =
        format!("{} is {} instead of {}", b.measure, figure(&first.after), figure(&first.before));
    let what = match (first.members.as_slice(), first.is_exact) {
        ([one], _) => match one.strip_prefix("without ") {
            Some(left_out) => format!("Leaving out {left_out} makes it later"),
            None => format!("{one} makes it later"),
        },
        (many, true) => format!("{} make it later, together", many.join(" and ")),
        (many, false) => format!("One or more of these make it later: {}", many.join(", ")),
    };
    let others = match b.culprits.len() {
        1 => String::new(),
        2 => " One more is enough by itself.".to_owned(),
        n => format!(" {} more are each enough by themselves.", n - 1),
    };
    format!("{what}: {from_to}.{others}")
}

fn steps(b: &Bisected) -> Table {
    let mut table = Table::new(&["", &b.measure, "", "variant"]).with_words(&[2, 3]);
    let ends = [("good end", &b.good), ("bad end", &b.bad)];
    let controls = b.controls.iter().map(|m| ("control", m));
    let mut row = |name: String, m: &Measurement| {
        let near = if m.is_near { ", near the limit" } else { "" };
        table.row(vec![name, figure(m), format!("{}{near}", m.answer), m.title.clone()]);
    };
    ends.into_iter().chain(controls).for_each(|(name, m)| row(name.to_owned(), m));
    b.steps.iter().enumerate().for_each(|(i, m)| row(format!("step {}", i + 1), m));
    table
}

fn grown(b: &Bisected) -> Table {
    let mut table = Table::new(&["now", "before", "section"]).with_words(&[2]);
    for g in b.grown.iter().take(ROWS) {
        table.row(vec![
            g.now_ns.map_or_else(|| "not listed".to_owned(), format_ns_i64),
            g.before_ns.map_or_else(|| "not listed".to_owned(), format_ns_i64),
            g.what.clone(),
        ]);
    }
    table
}

fn limit(b: &Bisected) -> String {
    let how = if b.limit_is_given { "as given" } else { "the middle between the ends" };
    let floor = b.floor_ns.map_or_else(
        || "The noise floor is unknown: there were no controls.".to_owned(),
        |floor| {
            let what = if b.kind == "commits" || b.kind == "config" {
                "a change that means nothing"
            } else {
                "an option that means nothing"
            };
            format!("Noise floor, which is what {what} changes: {}.", format_ns_i64(floor))
        },
    );
    format!("Bad is later than {} ({how}). {floor}", format_ns_i64(b.limit_ns))
}

/// For a terminal; ends in a newline.
#[must_use]
pub fn text(b: &Bisected, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&sentence(b), "  ", Ink::Bold);
    for more in b.culprits.iter().skip(1) {
        let line = format!(
            "Also {}: {} with it, {} without.",
            more.members.join(" and "),
            figure(&more.after),
            figure(&more.before)
        );
        page.text(&line, "  ", Ink::Plain);
    }
    match b.rest_is_good {
        Some(true) if !b.culprits.is_empty() => {
            page.text("All the rest without it is good.", "  ", Ink::Plain);
        }
        Some(false) if !b.culprits.is_empty() => {
            page.text("Whether the rest without it is good is unknown.", "  ", Ink::Plain);
        }
        _ => {}
    }
    let questions = if b.steps.len() == 1 { "question" } else { "questions" };
    page.heading(&format!("{} {questions} about {}", b.steps.len(), b.among));
    let lines = crate::blame::hanging(&steps(b), page.width());
    page.raw(lines, Ink::Plain);
    page.text(&limit(b), "  ", Ink::Plain);
    b.notes.iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
    for m in b.steps.iter().filter(|m| m.note.is_some()) {
        let note = m.note.as_deref().unwrap_or_default();
        page.text(&format!("- {}: {note}", m.title), "  ", Ink::Dim);
    }
    if !b.grown.is_empty() {
        page.heading("Sections of the kernel that are longer with it");
        let lines = crate::blame::hanging(&grown(b), page.width());
        page.raw(lines, Ink::Plain);
    } else if let Some(why) = &b.sections_unknown {
        page.text(&format!("Sections that grew: unknown: {why}"), "  ", Ink::Dim);
    }
    if !b.again.is_empty() {
        page.heading("To see it again");
        let lines = b.again.iter().map(|line| format!("  {line}")).collect();
        page.raw(lines, Ink::Plain);
    }
    page.finish()
}

/// For scripts.
#[must_use]
pub fn json(b: &Bisected) -> Value {
    let mut value = json!(b);
    if let Some(members) = value.as_object_mut() {
        members.insert("schema".to_owned(), json!(SCHEMA));
        members.insert("sentence".to_owned(), json!(sentence(b)));
    }
    value
}

#[cfg(test)]
mod tests {

    use super::*;

    fn measured(title: &str, ns: i64, answer: &'static str) -> Measurement {
        Measurement {
            title: title.to_owned(),
            value_ns: Some(ns),
            answer,
            ..Measurement::default()
        }
    }

    fn found() -> Bisected {
        Bisected {
            kind: "append",
            among: "16 options".to_owned(),
            measure: "p50".to_owned(),
            seeds: 1,
            good: measured("none", 5_000, "good"),
            bad: measured("all\u{1b}[31m", 9_000, "bad"),
            limit_ns: 7_000,
            floor_ns: Some(5),
            steps: vec![measured("a, b", 9_000, "bad")],
            culprits: vec![CulpritFound {
                members: vec!["slub_debug=FZPU".to_owned()],
                is_exact: true,
                before: measured("none", 5_000, "good"),
                after: measured("slub_debug=FZPU", 9_000, "bad"),
            }],
            rest_is_good: Some(true),
            grown: vec![Grown {
                what: "a to b (interrupts disabled)".to_owned(),
                before_ns: None,
                now_ns: Some(4_000),
            }],
            again: vec!["tailbound lab repeat x".to_owned()],
            ..Bisected::default()
        }
    }

    #[test]
    fn the_sentence_names_the_culprit_and_both_figures() {
        assert_eq!(
            sentence(&found()),
            "slub_debug=FZPU makes it later: p50 is 9.00 µs instead of 5.00 µs."
        );
        let mut left_out = found();
        left_out.culprits[0].members = vec!["without preempt=full".to_owned()];
        let said = "Leaving out preempt=full makes it later: p50 is 9.00 µs instead of 5.00 µs.";
        assert_eq!(sentence(&left_out), said);
        let mut two = found();
        two.culprits[0].members.push("audit=1".to_owned());
        assert!(sentence(&two).starts_with("slub_debug=FZPU and audit=1 make it later, together"));
        two.culprits[0].is_exact = false;
        assert!(sentence(&two).starts_with("One or more of these make it later: slub"));
        two.left = Some("one of 4 options".to_owned());
        assert_eq!(sentence(&two), "Interrupted: one of 4 options");
    }

    #[test]
    fn a_page_has_ends_steps_floor_sections_and_the_command_and_no_colour_of_a_name() {
        let text = text(&found(), Style::default());
        for part in ["good end", "step 1", "Noise floor", "5 ns", "not listed", "lab repeat x"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
        let json = json(&found());
        assert_eq!(json["schema"].as_str(), Some(SCHEMA));
        assert_eq!(json["culprits"][0]["members"][0].as_str(), Some("slub_debug=FZPU"));
    }
}
