// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that is said of a program that was watched.

use serde_json::{Value, json};
use tailbound_core::Run;
use tailbound_core::blame::KernelKind;
use tailbound_core::units::{format_ns_i64, format_span, grouped};

use super::{headline, json as cycles_json, text as cycles_text};
use crate::rules;
use crate::tasks::{self, LatencyBound, with_latency};
use crate::text::Style;

/// Most places where rules were broken that are told with their stacks.
const PLACES_MAX: usize = 12;

/// How a program ended that was started to be watched.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its exit status, where it ended by itself.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// In words.
    pub text: String,
}

/// What was asked for.
#[derive(Clone, Debug, Default)]
pub struct WatchQuestions {
    /// What was watched, for people.
    pub name: String,
    /// What response times are held against.
    pub deadline_ns: Option<i64>,
    /// Were rules looked after?
    pub rules: bool,
    /// How late each wake-up can be, for the tasks.
    pub latency: Option<LatencyBound>,
}

/// A program that was watched.
#[derive(Debug)]
pub struct WatchAnswer<'a> {
    /// What was asked for.
    pub asked: WatchQuestions,
    /// What was seen.
    pub run: &'a Run,
    /// What a reader must know.
    pub notes: &'a [String],
    /// How many events.
    pub events: u64,
    /// What one costs, where that could be measured.
    pub event_ns: Option<i64>,
    /// How it ended, where it was started here.
    pub command: Option<CommandEnd>,
}

impl WatchAnswer<'_> {
    /// For people, with the `worst` longest cycles.
    #[must_use]
    pub fn text(&self, worst: usize, style: Style) -> String {
        let run = self.run;
        let mut text = String::new();
        if let Some(verdict) = run.verdict.as_ref().filter(|_| self.asked.deadline_ns.is_some()) {
            text.push_str(&format!("{}\n", verdict.sentence));
        }
        text.push_str(&headline(&run.cycles, KernelKind::of_facts(&run.header.machine), style));
        text.push('\n');
        if self.asked.rules {
            text.push_str(&rules::text(&run.violations, PLACES_MAX, style));
            text.push('\n');
        }
        text.push_str(&cycles_text(&run.cycles, worst, style));
        if let Some(tasks) = self.tasks(|told| tasks::text(told, style)) {
            text.push_str(&format!("\n{tasks}"));
        }
        let span = format_span(run.measured_ns());
        let cost = self.event_ns.map_or_else(
            || "what one costs could not be measured".to_owned(),
            |ns| format!("each costs about {}", format_ns_i64(ns)),
        );
        text.push_str(&format!("\n{} events in {span}; {cost}.\n", grouped(self.events)));
        let findings = run.findings.iter().filter(|f| f.id != "watched").map(|f| &f.title);
        for note in self.notes.iter().chain(findings) {
            text.push_str(&format!("Note: {}.\n", note.trim_end_matches('.')));
        }
        text
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let run = self.run;
        let mut value = cycles_json(&run.cycles);
        if let Some(members) = value.as_object_mut() {
            members.insert("rules".to_owned(), rules::json(&run.violations));
            let end = |c: &CommandEnd| json!({"code": c.code, "signal": c.signal, "text": c.text});
            members.insert("command".to_owned(), json!(self.command.as_ref().map(end)));
            members.insert("measured_ns".to_owned(), json!(run.measured_ns()));
            members.insert("events".to_owned(), json!(self.events));
            members.insert("event_ns".to_owned(), json!(self.event_ns));
            members.insert("verdict".to_owned(), json!(run.verdict));
            members.insert("findings".to_owned(), json!(run.findings));
            members.insert("notes".to_owned(), json!(self.notes));
        }
        if let Some(tasks) = self.tasks(tasks::json) {
            value["tasks"] = tasks;
        }
        value
    }

    fn tasks<T>(&self, say: impl FnOnce(&tasks::TaskReport<'_>) -> T) -> Option<T> {
        let asked = &self.asked;
        let latency = asked.latency.as_ref()?;
        Some(with_latency(&asked.name, &self.run.tasks, asked.deadline_ns, latency, say))
    }
}
