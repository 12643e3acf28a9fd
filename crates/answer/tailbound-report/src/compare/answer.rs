// SPDX-License-Identifier: MIT OR Apache-2.0
//! The answer of a comparison: one plain sentence, the table of figures with their intervals
//! and words, how it was made, and the exit status for scripts.
//!
//! Exit statuses: 0 no regression shown, 1 a regression, 5 no statement possible, or
//! undecided where equivalence is required.
//! Not here: the statistics (`tailbound_stats::compare`), pictures (`pictures::compared`).

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tailbound_core::paths::PathsRecord;
use tailbound_core::units::format_ns;
use tailbound_core::{Outcome, Run};
use tailbound_stats::compare::refusal::Refusal;
use tailbound_stats::compare::sentence::{RunTime, margin_words, notes, number, sentence};
use tailbound_stats::compare::{Difference, Settings, Systems, Word};

use super::differing::{Differences, differences};
use super::plain;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::{Page, outcome_ink};
use crate::{digest, label, paths};

/// Version of the JSON's shape.
pub const SCHEMA: &str = "tailbound-compare/1";

/// What must be shown of every system for exit status 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proof {
    /// That it is equivalent to the first, or better.
    Equivalence,
    /// Nothing.
    None,
}

impl Proof {
    /// As `--require-equivalent` says.
    #[must_use]
    pub fn equivalence_if(required: bool) -> Self {
        if required { Self::Equivalence } else { Self::None }
    }
}

/// A comparison with everything that is said of it.
#[derive(Clone, Debug)]
pub struct Answer {
    /// What was compared.
    pub systems: Systems,
    /// Every system but the first against the first, or why not.
    pub differences: Vec<Result<Difference, Refusal>>,
    /// What it depends on besides the data.
    pub settings: Settings,
    /// In what else the systems differ.
    pub differing: Differences,
}

impl Answer {
    /// Compares.
    #[must_use]
    pub fn of(systems: Systems, settings: Settings) -> Self {
        let headers: Vec<_> = systems.wholes.iter().map(|r| &r.header).collect();
        let differing = differences(&headers);
        let differences = systems.differences(&settings);
        Self { systems, differences, settings, differing }
    }

    /// The exit status for scripts: 5 where no statement about a system is possible, or `required` is not shown.
    #[must_use]
    pub fn exit_status(&self, required: Proof) -> u8 {
        let word = |word| self.differences.iter().flatten().any(|d| d.word == word);
        let silent = self.differences.iter().any(Result::is_err);
        if word(Word::Regression) {
            Outcome::NotMet.exit_status()
        } else if silent || required == Proof::Equivalence && word(Word::Inconclusive) {
            Outcome::Undecided.exit_status()
        } else {
            0
        }
    }

    /// Name of the reference, and of the `i`th system compared with it.
    fn pair(&self, i: usize) -> (&str, &str) {
        let name = |i: usize| self.systems.systems.get(i).map_or("", |s| s.name.as_str());
        (name(0), name(i + 1))
    }

    /// Whether every run is of the lab's virtual time, which has no drift.
    fn virtual_time(&self) -> bool {
        let tcg = |r: &Run| r.header.lab.as_ref().is_some_and(|l| l.accelerator == "tcg");
        self.systems.wholes.iter().all(tcg)
    }

    /// The plain sentence of each difference.
    #[must_use]
    pub fn sentences(&self) -> Vec<(Option<Word>, String)> {
        let one = |(i, d): (usize, &Result<Difference, Refusal>)| {
            let (a, b) = self.pair(i);
            match d {
                Ok(d) => (Some(d.word), sentence(d, a, b, &self.settings)),
                Err(why) => (None, self.refused(&[b], a, why)),
            }
        };
        self.differences.iter().enumerate().map(one).collect()
    }

    /// The same for people: systems that are refused for one reason have one sentence. With each the differences it is of.
    pub(crate) fn statements(&self) -> Vec<(Option<Word>, String, Vec<usize>)> {
        let mut refused: Vec<(&Refusal, Vec<usize>)> = Vec::new();
        let mut out = Vec::new();
        for ((i, d), (word, words)) in self.differences.iter().enumerate().zip(self.sentences()) {
            match d {
                Ok(_) => out.push((word, words, vec![i])),
                Err(why) => match refused.iter_mut().find(|(w, _)| *w == why) {
                    Some((_, of)) => of.push(i),
                    None => refused.push((why, vec![i])),
                },
            }
        }
        for (why, of) in refused {
            let systems: Vec<&str> = of.iter().map(|i| self.pair(*i).1).collect();
            out.push((None, self.refused(&systems, self.pair(0).0, why), of));
        }
        out
    }

    fn refused(&self, systems: &[&str], reference: &str, why: &Refusal) -> String {
        let drift = if self.systems.design.is_paired() || self.virtual_time() {
            ""
        } else {
            ", and drift of the machine between the runs is part of every ratio"
        };
        let systems = match systems {
            [before @ .., last] if !before.is_empty() => {
                format!("each of {} and {last}", before.join(", "))
            }
            other => other.join(", "),
        };
        format!(
            "No statement about the difference of {systems} from {reference} is possible: {why}. The figures below have no \
             intervals{drift}."
        )
    }

    /// The figures of difference `i` with interval and word.
    #[must_use]
    pub fn table(&self, i: usize) -> Option<Table> {
        let d = self.differences.get(i)?.as_ref().ok()?;
        let (a, b) = self.pair(i);
        let confidence = format!(
            "{} % interval",
            number(self.settings.confidence * 100.0).trim_end_matches(".0")
        );
        let mut table =
            Table::new(&["", a, b, "ratio", &confidence, "difference", "verdict"]).with_words(&[6]);
        for f in &d.features {
            let (ratio, interval) = f.ratio.map_or_else(
                || ("not applicable".to_owned(), "not applicable".to_owned()),
                |r| {
                    let [low, high] = r.simultaneous;
                    (number(r.estimate), format!("{} to {}", number(low), number(high)))
                },
            );
            table.row(vec![
                f.name.clone(),
                format_ns(f.a_ns),
                format_ns(f.b_ns),
                ratio,
                interval,
                signed(f.difference_ns.estimate),
                f.word.word().to_owned(),
            ]);
        }
        Some(table)
    }

    /// How difference `i` was made and what belongs to it, a sentence each.
    #[must_use]
    pub fn notes(&self, i: usize) -> Vec<String> {
        let Some(Ok(d)) = self.differences.get(i) else { return Vec::new() };
        let mut out = notes(d, if self.virtual_time() { RunTime::Virtual } else { RunTime::Real });
        out.push(format!(
            "All intervals of the table are simultaneous, at {} %. A difference is relevant beyond {}; seed {}, {} resamples, {}.",
            number(self.settings.confidence * 100.0).trim_end_matches(".0"),
            margin_words(&self.settings.margin),
            self.settings.seed,
            self.settings.replicates,
            self.settings.method,
        ));
        out
    }

    /// What concerns all systems, a sentence each.
    #[must_use]
    pub fn common_notes(&self) -> Vec<String> {
        let mut out = self.systems.notes.clone();
        if !self.single_runs() {
            let times: BTreeSet<String> =
                self.systems.wholes.iter().filter_map(digest::virtual_time).collect();
            out.extend(times);
        }
        out.extend(plain::comparison(&self.systems.wholes, &self.systems.names()).notes);
        out
    }

    /// Is every system a single run, which has a verdict of its own?
    #[must_use]
    pub fn single_runs(&self) -> bool {
        self.systems.systems.iter().all(|s| s.runs == 1)
    }

    /// Systems of one run each whose kernels were watched, each beside the first: its name, and both records.
    pub(crate) fn paths(&self) -> Vec<(&str, &PathsRecord, &PathsRecord)> {
        let mut all = self.systems.wholes.iter().zip(&self.systems.systems);
        let single = self.single_runs();
        let Some(first) = all.next().and_then(|(run, _)| run.paths.as_deref()).filter(|_| single)
        else {
            return Vec::new();
        };
        all.filter_map(|(run, s)| Some((s.name.as_str(), first, run.paths.as_deref()?))).collect()
    }

    /// For scripts: `schema`, `settings`, `design`, `systems`, `differences` (of
    /// [`Difference`], with `system`, `reference` and `sentence`, or the `reason` why there is
    /// none), `differing`, `paths` (what changed in the longest sections and the latest wake-up, by system); and `runs`, `rows`, `notes` of the plain table.
    #[must_use]
    pub fn json(&self) -> Value {
        let plain = plain::comparison(&self.systems.wholes, &self.systems.names());
        let sentences = self.sentences();
        let one = |((i, d), (_, words)): ((usize, &Result<Difference, Refusal>), &(_, String))| {
            let (a, b) = self.pair(i);
            let mut v = match d {
                Ok(d) => json!(d),
                Err(why) => json!({ "reason": why.to_string() }),
            };
            v["reference"] = a.into();
            v["system"] = b.into();
            v["sentence"] = words.as_str().into();
            v
        };
        let differences: Vec<Value> =
            self.differences.iter().enumerate().zip(&sentences).map(one).collect();
        let systems: Vec<Value> = self
            .systems
            .systems
            .iter()
            .map(|s| {
                let units = s.units.as_ref().map_or(0, Vec::len);
                let unknown = s.units.as_ref().err().map(ToString::to_string);
                json!({"name": s.name, "runs": s.runs, "units": units, "unknown": unknown})
            })
            .collect();
        let verdict = |r: &Run| {
            let outcome = label::outcome(r);
            json!({"outcome": outcome, "exit_status": outcome.exit_status(), "sentence": label::sentence(r)})
        };
        let single = self.single_runs();
        json!({
            "schema": SCHEMA,
            "exit_status": self.exit_status(Proof::None),
            "settings": self.settings,
            "design": self.systems.design,
            "context": self.systems.context,
            "deadline_ns": self.systems.deadline_ns,
            "systems": systems,
            "differences": differences,
            "differing": self.differing,
            "runs": plain.runs,
            "rows": plain.rows,
            "notes": self.common_notes(),
            "paths": self.paths().into_iter().map(|(name, before, now)| json!({
                "system": name,
                "changed": paths::grown(before, now),
            })).collect::<Vec<_>>(),
            "verdicts": single.then(|| self.systems.wholes.iter().map(verdict).collect::<Vec<_>>()),
        })
    }

    /// For terminals, ending in a newline.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let mut page = Page::new(style);
        for (word, words, of) in self.statements() {
            page.gap();
            page.text(&words, "  ", word_ink(word));
            for i in of {
                if let Some(table) = self.table(i) {
                    page.gap();
                    page.raw(table.text(page.width()), Ink::Plain);
                    page.gap();
                }
                self.notes(i).iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
            }
        }
        self.common_notes().iter().for_each(|n| page.text(&format!("- {n}"), "  ", Ink::Plain));
        if self.single_runs() {
            page.heading("Each run");
            for (run, system) in self.systems.wholes.iter().zip(&self.systems.systems) {
                page.text(&system.name, "  ", Ink::Bold);
                let ink = outcome_ink(label::outcome(run));
                page.text(&format!("  {}", digest::headline(run)), "  ", ink);
                if let Some(words) = digest::virtual_time(run) {
                    page.text(&format!("  {words}"), "  ", Ink::Plain);
                }
            }
        }
        page.heading("All figures");
        let plain = plain::comparison(&self.systems.wholes, &self.systems.names());
        let lines = plain::table(&plain).text(page.width());
        page.raw(lines, Ink::Plain);
        for (name, before, now) in self.paths() {
            paths::grown_text(&mut page, name, before, now);
        }
        page.gap();
        self.differing_text(&mut page);
        page.finish()
    }

    fn differing_text(&self, page: &mut Page) {
        if self.differing.differing.is_empty() {
            page.text("Plan and machine differ in nothing that was recorded.", "  ", Ink::Plain);
        } else {
            page.heading("Other differences");
            for d in &self.differing.differing {
                page.text(&d.what, "  ", Ink::Plain);
                for (value, system) in d.values.iter().zip(&self.systems.systems) {
                    page.text(&format!("  {}: {value}", system.name), "    ", Ink::Plain);
                }
            }
        }
        if let Some(words) = self.differing.left_out_words() {
            page.text(&words, "  ", Ink::Dim);
        }
    }
}

fn signed(ns: f64) -> String {
    let sign = if ns > 0.0 { "+" } else { "" };
    format!("{sign}{}", format_ns(ns))
}

/// Ink of a word.
fn word_ink(word: Option<Word>) -> Ink {
    match word {
        Some(Word::Regression) => Ink::Bad,
        Some(Word::Improvement | Word::Equivalent) => Ink::Good,
        Some(Word::Inconclusive) | None => Ink::Warn,
    }
}
