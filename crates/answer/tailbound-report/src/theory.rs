// SPDX-License-Identifier: MIT OR Apache-2.0
//! The theoretical bound on the scheduling latency, for people and scripts.
//!
//! Units: ns in, text out.
//! JSON: `record` (what it is computed from, [`TheoryRecord`]) and `answer` ([`TheoreticalBound`]). The record alone is what
//! `lab paths --theory --json` has as its member `theory`, and what `bound --theory` reads.
//! Not here: the bound (`tailbound_stats::theory`).

use serde_json::{Value, json};
use tailbound_core::theory::{Holds, TheoryRecord, Variable};
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_stats::theory::{Model, TheoreticalBound, remedies};

use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// What a reader wants to know first.
#[must_use]
pub fn sentence(record: &TheoryRecord, answer: &TheoreticalBound) -> String {
    if !answer.refused.is_empty() {
        return format!("No theoretical bound: {}.", answer.refused.join("; "));
    }
    let Some(window) = answer.of(Model::Window) else { return "No theoretical bound.".to_owned() };
    let (Some(latency), Some(sample)) = (window.latency_ns, window.sample_ns) else {
        let why = window.refused.as_deref().unwrap_or("it was not computed");
        return format!("No theoretical bound with interrupts as seen: {why}.");
    };
    let most = answer.terms.first().map_or_else(String::new, |t| {
        let without = t.without_ns.map_or_else(String::new, |ns| {
            format!(", and without it the bound would be {}", format_ns_i64(ns))
        });
        format!(" Most of it is {}: {}{without}.", t.name, format_ns_i64(t.ns))
    });
    if !as_measured(record) {
        let seen = match record.observed.n {
            0 => "no thread of a fixed priority was woken meanwhile".to_owned(),
            n => format!(
                "the latest of {} took {} from its wake-up",
                grouped(n),
                format_ns_i64(record.observed.scheduling_ns)
            ),
        };
        return format!(
            "Bound: {} until the scheduler returns, on the paths that were recorded; {seen}.{most}",
            format_ns_i64(latency)
        );
    }
    format!(
        "Bound: {} as a thread measures it ({} until the scheduler returns), on the paths that this load took; the latest of {} took {} ({}).{most}",
        format_ns_i64(sample),
        format_ns_i64(latency),
        grouped(record.observed.n),
        format_ns_i64(record.observed.sample_ns),
        format_ns_i64(record.observed.scheduling_ns),
    )
}

/// Was it seen what a measuring thread has beyond the scheduler's return?
fn as_measured(record: &TheoryRecord) -> bool {
    record.variables.iter().any(|v| v.variable == Variable::Return)
}

fn variables(record: &TheoryRecord) -> Table {
    let recorded = record.variables.iter().any(|v| v.tracing_ns.is_some());
    let mut table = if recorded {
        let head = ["longest", "of that recording", "observed", "variable", "from", "to"];
        Table::new(&head).with_words(&[3, 4, 5])
    } else {
        Table::new(&["longest", "observed", "variable", "from", "to"]).with_words(&[2, 3, 4])
    };
    for v in &record.variables {
        let name = json!(v.variable).as_str().unwrap_or_default().to_owned();
        let mut cells = vec![format_ns_i64(v.ns)];
        if recorded {
            let most = |ns| format!("up to {}", format_ns_i64(ns));
            cells.push(v.tracing_ns.map_or_else(|| "-".to_owned(), most));
        }
        cells.extend([grouped(v.n), name, v.from.clone(), v.to.clone()]);
        table.row(cells);
    }
    table
}

fn interrupts(record: &TheoryRecord) -> Table {
    let mut table = Table::new(&["longest", "count", "nearest", "interrupt"]).with_words(&[3]);
    for i in &record.interrupts {
        table.row(vec![
            format_ns_i64(i.longest_ns),
            grouped(i.n),
            i.apart_ns.map_or_else(|| "once".to_owned(), format_ns_i64),
            i.vector.clone(),
        ]);
    }
    table
}

/// How many times the observed one.
fn times(bound: i64, observed: i64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    let ratio = bound as f64 / observed.max(1) as f64;
    format!("{ratio:.2}")
}

fn models(record: &TheoryRecord, answer: &TheoreticalBound) -> Table {
    let head = ["interrupts", "latency", "× observed", "sample", "× latest sample"];
    let columns = if as_measured(record) { head.len() } else { 3 };
    let mut table = Table::new(head.get(..columns).unwrap_or(&head)).with_words(&[0]);
    for m in &answer.models {
        let mark = if m.model.holds_for_run() { "" } else { " *" };
        let cell = |ns: Option<i64>| ns.map_or_else(|| "-".to_owned(), format_ns_i64);
        let ratio = |ns: Option<i64>, seen| {
            ns.filter(|_| seen > 0).map_or_else(|| "-".to_owned(), |ns| times(ns, seen))
        };
        let mut cells = vec![
            format!("{}{mark}", m.model.name()),
            cell(m.latency_ns),
            ratio(m.latency_ns, record.observed.scheduling_ns),
            cell(m.sample_ns),
            ratio(m.sample_ns, record.observed.sample_ns),
        ];
        cells.truncate(columns);
        table.row(cells);
    }
    table
}

fn terms(answer: &TheoreticalBound) -> Table {
    let mut table = Table::new(&["takes", "bound without it", "term"]).with_words(&[2]);
    for t in &answer.terms {
        let without = t.without_ns.map_or_else(|| "-".to_owned(), format_ns_i64);
        table.row(vec![format_ns_i64(t.ns), without, t.name.clone()]);
    }
    table
}

/// The bound's part of a page.
pub(crate) fn section(page: &mut Page, record: &TheoryRecord, answer: &TheoreticalBound) {
    let put = |page: &mut Page, table: &Table| {
        let lines = crate::blame::hanging(table, page.width());
        page.raw(lines, Ink::Plain);
    };
    page.heading("Theoretical bound");
    let ink = if answer.refused.is_empty() { Ink::Bold } else { Ink::Warn };
    page.text(&sentence(record, answer), "  ", ink);
    if !answer.models.is_empty() {
        put(page, &models(record, answer));
        for m in &answer.models {
            if let Some(why) = &m.refused {
                page.text(&format!("- {}: no bound: {why}.", m.model.name()), "  ", Ink::Plain);
            }
        }
        let note = "Latency: until the scheduler returns. Sample: as a thread measures it. * supposes fewer interrupts than the run may have, and is no bound; it shows how much of the bound they are.";
        page.text(note, "  ", Ink::Dim);
    }
    if !answer.terms.is_empty() {
        page.heading("What it is made of");
        put(page, &terms(answer));
    }
    page.heading("Variables, interrupts taken out");
    put(page, &variables(record));
    page.heading("Interrupts");
    put(page, &interrupts(record));
    page.heading("What must hold");
    for p in &record.preconditions {
        let (word, ink) = match p.holds {
            Holds::Yes => ("holds", Ink::Plain),
            Holds::No => ("does not hold", Ink::Warn),
            Holds::Unknown => ("unknown", Ink::Warn),
        };
        page.text(&format!("- {}: {word}: {}", p.name, p.why), "  ", ink);
    }
    answer.assumptions.iter().for_each(|a| page.text(&format!("- {a}"), "  ", Ink::Dim));
    let lower = remedies(answer, record);
    if !lower.is_empty() {
        page.heading("What would lower it");
        lower.iter().for_each(|r| page.text(&format!("- {r}"), "  ", Ink::Plain));
    }
}

/// On its own, for a terminal; `name` is the file's.
#[must_use]
pub fn text(record: &TheoryRecord, answer: &TheoreticalBound, name: &str, style: Style) -> String {
    let mut page = Page::new(style);
    page.text(&format!("{name}:"), "  ", Ink::Bold);
    section(&mut page, record, answer);
    page.finish()
}

/// One CPU's.
#[derive(Clone, Copy, Debug)]
pub struct OfCpu<'a> {
    /// Which.
    pub cpu: u32,
    /// What its bound is computed from.
    pub record: &'a TheoryRecord,
    /// It.
    pub answer: &'a TheoreticalBound,
}

/// CPUs side by side where there are several, and what is to be said of the recording.
#[must_use]
pub fn of_cpus(cpus: &[OfCpu<'_>], notes: &[String], style: Style) -> String {
    let mut page = Page::new(style);
    if cpus.len() > 1 {
        page.heading("Each CPU");
        let mut table = Table::new(&["CPU", "bound", "observed", "most of it"]).with_words(&[3]);
        for one in cpus {
            let bound = one.answer.of(Model::Window).and_then(|m| m.latency_ns);
            let most = match one.answer.terms.first() {
                Some(term) => format!("{} {}", format_ns_i64(term.ns), term.name),
                None => one.answer.refused.join("; "),
            };
            table.row(vec![
                one.cpu.to_string(),
                bound.map_or_else(|| "none".to_owned(), format_ns_i64),
                match one.record.observed.n {
                    0 => "-".to_owned(),
                    _ => format_ns_i64(one.record.observed.scheduling_ns),
                },
                most,
            ]);
        }
        let lines = crate::blame::hanging(&table, page.width());
        page.raw(lines, Ink::Plain);
    }
    page.heading("Recording");
    notes.iter().for_each(|n| page.text(&format!("- {n}."), "  ", Ink::Plain));
    page.finish()
}

/// Bounds of the CPUs of a machine that was recorded.
#[derive(Clone, Debug)]
pub struct RecordedBound {
    /// The CPU that has the greatest.
    pub cpu: u32,
    /// Every CPU.
    pub cpus: Vec<(u32, TheoryRecord, TheoreticalBound)>,
    /// How many events were recorded.
    pub events: u64,
    /// How many were lost before they were read.
    pub lost: u64,
    /// Over which time.
    pub span_ns: i64,
    /// What recording one costs, where that could be measured.
    pub event_ns: Option<i64>,
    /// What the reader must know.
    pub notes: Vec<String>,
}

impl RecordedBound {
    /// Whose bound it is.
    #[must_use]
    pub fn name(&self) -> String {
        let of = self.cpus.len();
        if of == 1 {
            return format!("CPU {}", self.cpu);
        }
        format!("CPU {}, which has the greatest bound of {of}", self.cpu)
    }

    /// CPUs side by side, and what recording them took.
    #[must_use]
    pub fn text(&self, style: Style) -> String {
        let cpus: Vec<OfCpu<'_>> = (self.cpus.iter())
            .map(|(cpu, record, answer)| OfCpu { cpu: *cpu, record, answer })
            .collect();
        let mut notes = vec![self.cost()];
        notes.extend(self.notes.iter().cloned());
        of_cpus(&cpus, &notes, style)
    }

    fn cost(&self) -> String {
        let per_cpu = self.events / (self.cpus.len() as u64).max(1);
        let share = self.event_ns.filter(|_| self.span_ns > 0).map(|ns| {
            let took = i128::from(ns) * i128::from(per_cpu) * 1000 / i128::from(self.span_ns);
            format!(", about {}.{} % of a CPU's time", took / 10, took % 10)
        });
        let lost = if self.lost > 0 {
            format!("; {} more were lost before they were read", grouped(self.lost))
        } else {
            "; none was lost".to_owned()
        };
        format!(
            "{} events in {}{}{lost}",
            grouped(self.events),
            format_ns_i64(self.span_ns),
            share.unwrap_or_default()
        )
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let cpus: Vec<Value> = (self.cpus.iter())
            .map(|(cpu, record, answer)| json!({ "cpu": cpu, "record": record, "answer": answer }))
            .collect();
        json!({
            "cpu": self.cpu,
            "cpus": cpus,
            "events": self.events,
            "lost": self.lost,
            "event_ns": self.event_ns,
            "span_ns": self.span_ns,
            "notes": self.notes,
        })
    }
}

/// For scripts.
#[must_use]
pub fn json(record: &TheoryRecord, answer: &TheoreticalBound) -> Value {
    json!({ "record": record, "answer": answer })
}

#[cfg(test)]
mod tests {
    use tailbound_core::theory::VariableRecord;
    use tailbound_stats::theory;

    use super::*;

    #[test]
    fn a_page_names_the_term_and_no_colour_of_a_name_gets_through() {
        let variable = |variable, ns| VariableRecord {
            variable,
            ns,
            n: 3,
            tracing_ns: None,
            at_ns: 0,
            from: "lock\u{1b}[31m".to_owned(),
            to: "unlock".to_owned(),
        };
        let record = TheoryRecord {
            variables: [(Variable::Poid, 5000), (Variable::Psd, 2000), (Variable::St, 1000)]
                .map(|(v, ns)| variable(v, ns))
                .to_vec(),
            span_ns: 1_000_000,
            curves_to_ns: 1_000_000,
            ..TheoryRecord::default()
        };
        let answer = theory::answer(&record);
        let text = text(&record, &answer, "a.json", Style::default());
        for part in ["7.00 µs", "Most of it is POID", "What would lower it", "lock"] {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert!(!text.contains('\u{1b}'), "{text}");
    }
}
