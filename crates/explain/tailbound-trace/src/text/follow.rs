// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of events as text, followed as its records would be.
//!
//! Units: ns on the trace's clock.
//! Not here: the layouts of lines (`record`), the fields of events (`fields`), the rules (`crate::blame`).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::babeltrace::{self, BabeltraceLine};
use super::fields::{self, FunctionNames};
use super::record::{self, TextRecord};
use super::state::Columns;
use super::{TextError, TextRequest, stack};
use crate::blame::{BlameSummary, DueTimes, Follow, InterruptEnds};
use crate::event::{Entry, Event};
use crate::symbols::Symbols;

/// Most CPUs whose interrupts are counted.
const CPUS_MAX: usize = 4096;
/// A time that is earlier by more than this is of the next day.
const HALF_DAY_NS: u64 = 12 * 3_600 * 1_000_000_000;
/// Longest record that is put together from several lines.
const BEGUN_MAX: usize = 512;
/// Names of events that are kept.
const EVENTS_MAX: usize = 256;

/// A trace of events.
#[derive(Debug)]
pub(super) struct EventText {
    follow: Follow,
    columns: Columns,
    names: FunctionNames,
    interrupts: InterruptEnds,
    /// Of a text that does not name the thread of a record: who has each CPU, records before that was known, and the days
    /// that have passed.
    running: BTreeMap<u32, i32>,
    before_switches: u64,
    midnights_ns: u64,
    seen: BTreeSet<String>,
    last_ns: u64,
    pub(super) records: u64,
    /// Lines that go back in time.
    back: u64,
    /// Events whose fields could not be read, and the line of the first.
    unread: Option<(u64, u64)>,
    passed_over: u64,
    /// A line that may go on in the next one, and its number.
    begun: Option<(String, u64)>,
    stateless: bool,
    latency_layout: bool,
    wakeups_alone: bool,
    lost: u64,
}

impl EventText {
    pub(super) fn new(request: TextRequest) -> Self {
        let symbols = Arc::new(Symbols::default());
        let TextRequest { watched, wanted, ground } = request;
        let mut follow = Follow::new(watched, symbols, ground, wanted);
        follow.due_times(DueTimes::CarriedOver);
        Self {
            follow,
            columns: Columns::default(),
            names: FunctionNames::default(),
            interrupts: InterruptEnds::default(),
            running: BTreeMap::new(),
            before_switches: 0,
            midnights_ns: 0,
            seen: BTreeSet::new(),
            last_ns: 0,
            records: 0,
            back: 0,
            unread: None,
            passed_over: 0,
            begun: None,
            stateless: false,
            latency_layout: false,
            wakeups_alone: false,
            lost: 0,
        }
    }

    /// Takes a line, the `number`th of its text. Who sent a mail may have cut a record into several.
    pub(super) fn line(&mut self, line: &str, number: u64) {
        let (mut text, mut first) = (Cow::Borrowed(line), number);
        if let Some((begun, at)) = self.begun.take() {
            if self.goes_on(line) {
                text = Cow::Owned(format!("{} {}", begun.trim_end(), line.trim()));
                first = at;
            } else {
                self.whole_line(&begun, at);
            }
        }
        if text.len() <= BEGUN_MAX && self.is_cut(&text) {
            self.begun = Some((text.into_owned(), first));
        } else {
            self.whole_line(&text, first);
        }
    }

    /// Does a record lack what may stand on the next line?
    fn is_cut(&self, line: &str) -> bool {
        let Some(r) = self.parsed(line) else { return record::is_cut_before_time(line) };
        let lacks = |(name, text): (&str, &str)| {
            fields_matter(name)
                && fields::event(name, text, &mut FunctionNames::default()).is_none()
        };
        r.text.is_empty() || r.event().is_some_and(lacks)
    }

    /// May `line` be the rest of the one before?
    fn goes_on(&self, line: &str) -> bool {
        let bare = line.trim();
        let alone = bare.is_empty() || bare.starts_with('#') || stack::frame(line).is_some();
        let next = self.parsed(line).is_some() || babeltrace::parsed(line).is_some();
        !alone && !next && !record::is_cut_before_time(line)
    }

    fn parsed<'a>(&self, line: &'a str) -> Option<TextRecord<'a>> {
        let timed = record::timed(line, &self.columns);
        timed.or_else(|| record::latency(line, &self.columns))
    }

    fn whole_line(&mut self, line: &str, number: u64) {
        let bare = line.trim();
        if bare.is_empty() || stack::frame(line).is_some() {
            return;
        }
        if bare.starts_with('#') {
            self.columns.header(line);
            return;
        }
        if bare.contains("EVENTS DROPPED") || bare.contains("LOST") && bare.contains("EVENTS") {
            self.lost = self.lost.saturating_add(1);
            self.follow.lost(self.last_ns);
            return;
        }
        if let Some(r) = record::timed(line, &self.columns) {
            self.record(&r, number);
        } else if let Some(b) = babeltrace::parsed(line) {
            self.babeltrace(&b, number);
        } else if let Some(r) = record::latency(line, &self.columns) {
            self.latency_layout = true;
            self.record(&r, number);
        } else {
            self.passed_over = self.passed_over.saturating_add(1);
        }
    }

    /// A line of babeltrace tells no thread: it is the last one that its CPU was given to.
    fn babeltrace(&mut self, b: &BabeltraceLine, number: u64) {
        let text = format!("{}: {}", b.event, b.fields);
        let prev = || fields::event(&b.event, &b.fields, &mut FunctionNames::default());
        let pid = match (self.running.get(&b.cpu), b.event.as_str()) {
            (_, "sched_switch") => match prev() {
                Some(Event::Switch { prev, next, .. }) => {
                    if self.running.len() < CPUS_MAX || self.running.contains_key(&b.cpu) {
                        self.running.insert(b.cpu, next);
                    }
                    prev
                }
                _ => 0,
            },
            (Some(pid), _) => *pid,
            (None, _) => {
                self.before_switches = self.before_switches.saturating_add(1);
                return;
            }
        };
        // Times of a day begin again at midnight.
        let mut t_ns = b.t_ns.saturating_add(self.midnights_ns);
        if t_ns.saturating_add(HALF_DAY_NS) < self.last_ns {
            self.midnights_ns = self.midnights_ns.saturating_add(HALF_DAY_NS.saturating_mul(2));
            t_ns = t_ns.saturating_add(HALF_DAY_NS.saturating_mul(2));
        }
        let (comm, state, cpu) = ("", None, b.cpu);
        self.record(&TextRecord { comm, pid, cpu, state, t_ns, text: &text }, number);
    }

    fn record(&mut self, r: &TextRecord<'_>, number: u64) {
        self.records = self.records.saturating_add(1);
        if r.t_ns < self.last_ns {
            self.back = self.back.saturating_add(1);
            return;
        }
        self.last_ns = r.t_ns;
        self.stateless |= r.state.is_none();
        let event = r.event().and_then(|(name, text)| {
            if self.seen.len() < EVENTS_MAX && !self.seen.contains(name) {
                self.seen.insert(name.to_owned());
            }
            let event = self.event(name, text);
            if event.is_none() && fields_matter(name) {
                let (n, line) = self.unread.unwrap_or((0, number));
                self.unread = Some((n.saturating_add(1), line));
            }
            event
        });
        if let Some(symbols) = self.names.grown() {
            self.follow.symbols(Arc::new(symbols));
        }
        let event = event.unwrap_or(Event::Other);
        let flags = match r.state {
            Some(state) => state.flags(),
            None => self.interrupts.flags(r.cpu, event),
        };
        let entry = Entry { t_ns: r.t_ns, cpu: r.cpu, pid: r.pid, flags, event };
        self.interrupts.entry(&entry, &mut self.follow);
    }

    /// The event; a wake-up stands for the waking where the trace has none.
    fn event(&mut self, name: &str, text: &str) -> Option<Event> {
        let waking = self.seen.contains("sched_waking");
        if !waking && matches!(name, "sched_wakeup" | "sched_wakeup_new") {
            self.wakeups_alone = true;
            return fields::event("sched_waking", text, &mut self.names);
        }
        fields::event(name, text, &mut self.names)
    }

    /// What was found, and what a reader must know of it.
    ///
    /// # Errors
    /// [`TextError::Lacking`], [`TextError::Empty`].
    pub(super) fn finish(mut self, lines: u64) -> Result<(BlameSummary, Vec<String>), TextError> {
        if let Some((begun, at)) = self.begun.take() {
            self.whole_line(&begun, at);
        }
        if self.records == 0 {
            return Err(TextError::Empty { lines });
        }
        let missing: Vec<String> = [("sched_switch", false), ("sched_waking", self.wakeups_alone)]
            .into_iter()
            .filter(|(name, replaced)| !self.seen.contains(*name) && !replaced)
            .map(|(name, _)| format!("sched:{name}"))
            .collect();
        if !missing.is_empty() {
            return Err(TextError::Lacking { missing, records: self.records });
        }
        let notes = self.notes();
        let mut found = self.follow.finish();
        self.interrupts.soften(&mut found);
        found.events = self.records;
        Ok((found, notes))
    }

    fn notes(&self) -> Vec<String> {
        let mut out = Vec::new();
        let mut say = |is: bool, text: String| out.extend(is.then_some(text));
        say(
            self.wakeups_alone,
            "the trace has sched_wakeup and no sched_waking: what passed between the two on another CPU is not in it"
                .to_owned(),
        );
        say(
            self.stateless,
            "the lines do not tell the state of the CPU (d, N, h, s): interrupts are known by their own events alone, and where \
             preemption was disabled is not known"
                .to_owned(),
        );
        say(
            self.latency_layout,
            "the latency layout counts whole µs from the begin of the trace, and has eight letters of each name"
                .to_owned(),
        );
        self.interrupts.note().into_iter().for_each(|note| say(true, note.to_owned()));
        let timers =
            self.seen.contains("hrtimer_expire_entry") && self.seen.contains("hrtimer_start");
        say(
            !timers,
            "the trace has no timer:hrtimer_start and timer:hrtimer_expire_entry: lateness counts from the wake-up"
                .to_owned(),
        );
        say(
            !self.seen.contains("irq_handler_entry"),
            "the trace has no irq events: interrupts of devices are not told from what they interrupt"
                .to_owned(),
        );
        if let Some((n, line)) = self.unread {
            say(true, format!("{n} events could not be read, the first in line {line}"));
        }
        say(self.back > 0, format!("{} events go back in time and were left out", self.back));
        say(
            self.before_switches > 0,
            format!(
                "{} events lie before the first switch of their CPU and were left out",
                self.before_switches
            ),
        );
        say(self.lost > 0, format!("events were lost at {} places", self.lost));
        say(
            self.passed_over > 0,
            format!("{} lines are no records and were passed over", self.passed_over),
        );
        out
    }
}

/// Is it an event whose loss changes the answer?
fn fields_matter(name: &str) -> bool {
    matches!(
        name,
        "sched_switch" | "sched_waking" | "sched_wakeup" | "hrtimer_start" | "hrtimer_expire_entry"
    )
}
