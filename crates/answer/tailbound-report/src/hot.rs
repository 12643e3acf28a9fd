// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CPUs are busy with, for people and scripts.
//!
//! Shares have intervals: what lies within them is not told apart by so many samples.
//! JSON, schema `tailbound-hot/1` (members are added, never renamed or removed): `schema`, `source`, `frequency_hz`,
//! `seconds`, `samples`, `busy`, `lost`, `pid` (`null` for all), `threads` (names; none for all), `cpus` (`cpu`, counts), `functions` (`function`, `object`, `kind`,
//! `comm`, `n`, `share`, `low`, `high`), `processes` (`pid`, `comm`, and the same), `notes`.

use serde_json::{Value, json};
use tailbound_core::units::grouped;
use tailbound_stats::hot::{CpuCount, SampleSite, Share, Tally};

use crate::html::page::Page as HtmlPage;
use crate::table::Table;
use crate::text::Style;
use crate::text::ink::Ink;
use crate::text::page::Page;

/// Version of the JSON answer.
pub const SCHEMA: &str = "tailbound-hot/1";
/// Most rows of a page, and of JSON.
const PAGE_MAX: usize = 100;
const JSON_MAX: usize = 10_000;

/// A tally with how it was made.
#[derive(Clone, Debug)]
pub struct Hot<'a> {
    /// The counts.
    pub tally: &'a Tally,
    /// `cycles` or `cpu-clock`.
    pub source: &'static str,
    /// Samples a second of a CPU that were asked for.
    pub frequency_hz: u64,
    /// How long.
    pub seconds: f64,
    /// Samples that found no room.
    pub lost: u64,
    /// One process alone.
    pub pid: Option<u32>,
    /// Threads of these names alone.
    pub comm: &'a [String],
    /// What a reader must know.
    pub notes: &'a [String],
}

fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `12.3 %  11.0 to 13.7 %`
fn cells(share: &Share) -> [String; 2] {
    let interval = format!("{:.1} to {:.1} %", share.low * 100.0, share.high * 100.0);
    [percent(share.share), interval]
}

fn words(place: &SampleSite) -> String {
    let function = match place.function.as_str() {
        "" => "(no name)",
        name => name,
    };
    match place.object.as_str() {
        "" => format!("{function} (file unknown)"),
        object => format!("{function} ({object})"),
    }
}

impl Hot<'_> {
    fn sentence(&self) -> String {
        let places = self.tally.places();
        let of = match self.pid {
            Some(pid) if !self.comm.is_empty() => {
                format!("the threads {} of process {pid}", self.comm.join(", "))
            }
            Some(pid) => format!("process {pid}"),
            None => "the busy time".to_owned(),
        };
        let Some(first) = places.first() else {
            return format!("No sample of {of}: nothing is known of it.");
        };
        format!(
            "{} of {of} went to {} of {}.",
            percent(first.share.share),
            words(&first.what),
            first.what.comm
        )
    }

    fn extent(&self) -> String {
        let sampled = match self.source {
            "cycles" => {
                "at an overflow of the cycle counter, also where interrupts are disabled; idle CPUs make no samples"
            }
            _ => {
                "by a clock of the kernel: code with interrupts disabled is seen where they are enabled again, so that interrupt handlers are seen too little"
            }
        };
        let lost = match self.lost {
            0 => "none lost".to_owned(),
            n => format!("{} lost", grouped(n)),
        };
        format!(
            "{} samples ({} busy, {lost}) in {:.1} s, {} a second and CPU, {sampled}. Shares with 95 % intervals.",
            grouped(self.tally.all()),
            grouped(self.tally.busy()),
            self.seconds,
            self.frequency_hz
        )
    }

    fn cpus(&self) -> Table {
        let mut table =
            Table::new(&["CPU", "samples", "idle", "user", "kernel", "softirq", "interrupt"]);
        for (cpu, c) in &self.tally.cpus {
            let share = |n: u64| percent(Share::of(n, c.all()).share);
            let all = [c.idle, c.user, c.kernel, c.softirq, c.interrupt].map(share);
            let mut row = vec![cpu.to_string(), grouped(c.all())];
            // Of cycles an idle CPU makes no samples: its share is not known from them.
            row.extend(all);
            if self.source == "cycles" {
                *row.get_mut(2).unwrap_or(&mut String::new()) = "unknown".to_owned();
            }
            table.row(row);
        }
        table
    }

    fn functions(&self, most: usize) -> Table {
        let head = ["share", "95 % interval", "kind", "process", "function"];
        let mut table = Table::new(&head).with_words(&[2, 3, 4]);
        for row in self.tally.places().iter().take(most) {
            let [share, interval] = cells(&row.share);
            let (kind, comm) = (row.what.kind.word().to_owned(), row.what.comm.clone());
            table.row(vec![share, interval, kind, comm, words(&row.what)]);
        }
        table
    }

    fn processes(&self, most: usize) -> Table {
        let mut table = Table::new(&["share", "95 % interval", "pid", "process"]).with_words(&[3]);
        for row in self.tally.processes().iter().take(most) {
            let [share, interval] = cells(&row.share);
            table.row(vec![share, interval, row.what.pid.to_string(), row.what.comm.clone()]);
        }
        table
    }

    /// For a terminal, `most` rows of each table; ends in a newline.
    #[must_use]
    pub fn text(&self, most: usize, style: Style) -> String {
        let mut page = Page::new(style);
        page.text(&self.sentence(), "  ", Ink::Bold);
        page.text(&self.extent(), "  ", Ink::Dim);
        let tables = [
            ("Functions", self.functions(most), self.tally.places().len()),
            ("Processes", self.processes(most), self.tally.processes().len()),
            ("CPUs", self.cpus(), 0),
        ];
        for (heading, table, all) in tables {
            page.heading(heading);
            let lines = crate::blame::hanging(&table, page.width());
            page.raw(lines, Ink::Plain);
            let more = all.saturating_sub(most);
            if more > 0 {
                page.text(
                    &format!("and {} more, see --json", grouped(more as u64)),
                    "  ",
                    Ink::Dim,
                );
            }
        }
        self.notes.iter().for_each(|n| page.text(&format!("Note: {n}."), "  ", Ink::Dim));
        page.finish()
    }

    /// A page of its own.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = HtmlPage::default();
        page.push("<h1>Tailbound hot</h1>");
        page.text("", &self.sentence());
        page.text("soft", &self.extent());
        for (heading, table) in [
            ("Functions", self.functions(PAGE_MAX)),
            ("Processes", self.processes(PAGE_MAX)),
            ("CPUs", self.cpus()),
        ] {
            page.heading(heading);
            let table = table.html();
            page.push(&table);
        }
        self.notes.iter().for_each(|n| page.text("note", n));
        page.finish("hot spots", &[self.json()])
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let cpu = |(cpu, count): (&u32, &CpuCount)| {
            let mut value = json!(count);
            if let Some(members) = value.as_object_mut() {
                members.insert("cpu".to_owned(), json!(cpu));
            }
            value
        };
        let (mut functions, mut processes) = (self.tally.places(), self.tally.processes());
        functions.truncate(JSON_MAX);
        processes.truncate(JSON_MAX);
        json!({
            "schema": SCHEMA,
            "source": self.source,
            "frequency_hz": self.frequency_hz,
            "seconds": self.seconds,
            "samples": self.tally.all(),
            "busy": self.tally.busy(),
            "lost": self.lost,
            "pid": self.pid, "threads": self.comm,
            "cpus": self.tally.cpus.iter().map(cpu).collect::<Vec<_>>(),
            "functions": functions,
            "processes": processes,
            "notes": self.notes,
        })
    }
}

#[cfg(test)]
mod tests {
    use tailbound_core::sampled::{SampleOwner, Spent};
    use tailbound_stats::hot::SampledProcess;

    use super::*;

    fn tally() -> Tally {
        let mut tally = Tally::default();
        let place = |function: &str, kind| SampleSite {
            function: function.to_owned(),
            object: "<b>".to_owned(),
            kind,
            comm: "loop\u{1b}[31m".to_owned(),
        };
        let asked = |cpu, pid| SampledProcess { cpu, pid, whose: SampleOwner::Asked };
        tally.add(asked(0, 7), place("spin", Spent::User), 90);
        tally.add(asked(0, 7), place("", Spent::Kernel), 10);
        tally.add(asked(1, 0), place("halt", Spent::Idle), 100);
        tally
    }

    fn hot<'a>(tally: &'a Tally, notes: &'a [String]) -> Hot<'a> {
        Hot {
            tally,
            source: "cpu-clock",
            frequency_hz: 997,
            seconds: 2.0,
            lost: 3,
            pid: None,
            comm: &[],
            notes,
        }
    }

    #[test]
    fn the_hottest_is_the_first_sentence_and_losses_are_told() {
        let (tally, notes) = (tally(), vec!["a note".to_owned()]);
        let text = hot(&tally, &notes).text(10, Style::default());
        assert!(text.starts_with("90.0 % of the busy time went to spin (<b>) of loop"), "{text}");
        assert!(text.contains("3 lost") && text.contains("82.6 to 94.5 %"), "{text}");
        assert!(text.contains("100.0 %") && text.contains("a note"), "{text}");
        assert!(!text.contains('\u{1b}'), "a name changes no terminal: {text}");
    }

    #[test]
    fn pages_are_escaped_and_json_has_all() {
        let tally = tally();
        let page = hot(&tally, &[]).html();
        assert!(page.contains("spin (&lt;b&gt;)") && !page.contains("(<b>)"));
        let value = hot(&tally, &[]).json();
        assert_eq!(value.pointer("/functions/0/n"), Some(&json!(90)));
        assert_eq!(value.pointer("/cpus/1/idle"), Some(&json!(100)));
        assert_eq!(value.pointer("/processes/0/pid"), Some(&json!(7)));
    }
}
