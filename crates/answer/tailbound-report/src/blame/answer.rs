// SPDX-License-Identifier: MIT OR Apache-2.0
//! All that is said of late wake-ups: the records, the threads that were followed, and what a reader must know.

use serde_json::{Value, json};
use tailbound_core::blame::{BlameRecord, KernelKind};
use tailbound_core::units::{format_ns_i64, format_span, grouped};
use tailbound_core::{Context, Finding, Run};

use super::{ThreadRow, threads, threads_json};
use crate::text::Style;

/// Most threads of the table.
const THREADS_MAX: usize = 12;

/// Threads that were followed.
#[derive(Clone, Debug, Default)]
pub struct FollowedThreads<'a> {
    /// Each of them.
    pub rows: Vec<ThreadRow<'a>>,
    /// How many events.
    pub events: u64,
    /// Wake-ups above the limit, taken apart or not.
    pub late: u64,
    /// From the first event to the last.
    pub span_ns: i64,
    /// Wake-ups of ordinary threads, where only real-time ones count.
    pub ordinary: u64,
}

/// What is known of late wake-ups, wherever it came from.
#[derive(Clone, Debug, Default)]
pub struct BlameAnswer<'a> {
    /// Those that were taken apart.
    pub records: &'a [BlameRecord],
    /// The kernel they were made on.
    pub kernel: KernelKind,
    /// The threads; none for a run file, which has its own figures.
    pub followed: Option<FollowedThreads<'a>>,
    /// The file of another tool that it is from, in words.
    pub origin: Option<&'a str>,
    /// The same for scripts.
    pub trace: Option<&'a Value>,
    /// What a reader must know.
    pub notes: &'a [String],
}

impl BlameAnswer<'_> {
    /// For people, with the `worst` latest.
    #[must_use]
    pub fn text(&self, worst: usize, style: Style) -> String {
        let mut text = super::text(self.records, self.kernel, worst, style);
        if let Some(found) = &self.followed {
            text.push_str(&threads(&found.rows, THREADS_MAX, style));
            text.push_str(&format!("\n{}\n", found.extent()));
        }
        if let Some(origin) = self.origin {
            let gap = if self.followed.is_none() { "\n" } else { "" };
            text.push_str(&format!("{gap}{origin}\n"));
        }
        if let Some(found) = self.followed.as_ref().filter(|found| found.rows.is_empty()) {
            text.push_str(&found.nobody());
        }
        for note in self.notes {
            text.push_str(&format!("Note: {note}.\n", note = note.trim_end_matches('.')));
        }
        text
    }

    /// For scripts.
    #[must_use]
    pub fn json(&self) -> Value {
        let mut value = super::json(self.records, self.kernel);
        if let Some(members) = value.as_object_mut() {
            members.insert("notes".to_owned(), json!(self.notes));
            if let Some(trace) = self.trace {
                members.insert("trace".to_owned(), trace.clone());
            }
            if let Some(found) = &self.followed {
                members.insert("threads".to_owned(), threads_json(&found.rows));
                members.insert("events".to_owned(), json!(found.events));
                members.insert("late".to_owned(), json!(found.late));
            }
        }
        value
    }
}

impl FollowedThreads<'_> {
    fn extent(&self) -> String {
        let span = format_span(self.span_ns);
        let apart = if self.late > 0 {
            let late = grouped(self.late);
            format!("; {late} wake-ups were late enough; the latest of them were analysed")
        } else {
            String::new()
        };
        format!("{} events in {span}{apart}.", grouped(self.events))
    }

    fn nobody(&self) -> String {
        match self.ordinary {
            0 => "No thread that was asked for woke in this time.\n".to_owned(),
            n => format!(
                "No real-time thread woke in this time; ordinary threads did, {} times. Ask for them with --all or --comm NAME.\n",
                grouped(n)
            ),
        }
    }
}

/// Why there is no record in a run that was to have those above `above_ns`.
#[must_use]
pub fn none_taken_apart(run: &Run, above_ns: Option<i64>) -> String {
    let user = run.threads.iter().filter(|t| t.context == Context::User);
    let latest = user.filter_map(|t| t.wakeup.max_ns).max();
    match (latest, above_ns) {
        (Some(latest), Some(above)) if latest > above => format!(
            "the latest wake-up of this run came {} late, but none was analysed: for that `tailbound` itself needs a CPU several times a second, and it had none at that time",
            format_ns_i64(latest)
        ),
        _ => "no wake-up of this run was late enough to be analysed".to_owned(),
    }
}

/// What the findings of a run say of its late wake-ups, and the periods in which they come.
#[must_use]
pub fn findings_of(run: &Run) -> Vec<String> {
    let about = |f: &&Finding| {
        ["blamed", "not-blamed", "no-stacks", "not-all-blamed", "trace-lost", "trace-unreadable"]
            .contains(&f.id.as_str())
    };
    let periods = crate::reasons::periods(run, &tailbound_stats::period::of_run::of_run(run));
    run.findings.iter().filter(about).map(|f| f.title.clone()).chain(periods).collect()
}
