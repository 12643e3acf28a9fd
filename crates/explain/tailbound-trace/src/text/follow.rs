// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of events as text, followed as its records would be.
//!
//! Units: ns on the trace's clock.
//! Not here: the layouts of lines (`record`), the fields of events (`fields`), the rules (`crate::blame`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fields::{self, FunctionNames};
use super::record::{self, TextRecord};
use super::state::Columns;
use super::{TextError, TextRequest, stack};
use crate::blame::{BlameSummary, DueTimes, Follow};
use crate::event::{Entry, Event, Flags};
use crate::symbols::Symbols;

/// Most CPUs whose interrupts are counted.
const CPUS_MAX: usize = 4096;
/// Names of events that are kept.
const EVENTS_MAX: usize = 256;

/// A trace of events.
#[derive(Debug)]
pub(super) struct EventText {
    follow: Follow,
    columns: Columns,
    names: FunctionNames,
    /// Interrupts and soft interrupts that are under way on each CPU, where lines do not tell its state.
    under_way: BTreeMap<u32, (u32, u32)>,
    seen: BTreeSet<String>,
    last_ns: u64,
    pub(super) records: u64,
    pub(super) understood: u64,
    /// Lines that go back in time.
    back: u64,
    /// Events whose fields could not be read, and the line of the first.
    unread: Option<(u64, u64)>,
    passed_over: u64,
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
            under_way: BTreeMap::new(),
            seen: BTreeSet::new(),
            last_ns: 0,
            records: 0,
            understood: 0,
            back: 0,
            unread: None,
            passed_over: 0,
            stateless: false,
            latency_layout: false,
            wakeups_alone: false,
            lost: 0,
        }
    }

    /// Takes a line, the `number`th of its text.
    pub(super) fn line(&mut self, line: &str, number: u64) {
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
        } else if let Some(r) = record::latency(line, &self.columns) {
            self.latency_layout = true;
            self.record(&r, number);
        } else {
            self.passed_over = self.passed_over.saturating_add(1);
        }
    }

    fn record(&mut self, r: &TextRecord<'_>, number: u64) {
        self.records = self.records.saturating_add(1);
        let Some((name, text)) = r.event() else { return };
        if self.seen.len() < EVENTS_MAX && !self.seen.contains(name) {
            self.seen.insert(name.to_owned());
        }
        let Some(event) = self.event(name, text) else {
            if fields_matter(name) {
                let (n, line) = self.unread.unwrap_or((0, number));
                self.unread = Some((n.saturating_add(1), line));
            }
            return;
        };
        if r.t_ns < self.last_ns {
            self.back = self.back.saturating_add(1);
            return;
        }
        self.last_ns = r.t_ns;
        self.understood = self.understood.saturating_add(1);
        self.stateless |= r.state.is_none();
        let flags = match r.state {
            Some(state) => state.flags(),
            None => self.flags(r.cpu, event),
        };
        if let Some(symbols) = self.names.grown() {
            self.follow.symbols(Arc::new(symbols));
        }
        self.follow.entry(&Entry { t_ns: r.t_ns, cpu: r.cpu, pid: r.pid, flags, event });
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

    /// The state of a CPU that its lines do not tell, by the interrupts that began there.
    fn flags(&mut self, cpu: u32, event: Event) -> Flags {
        if self.under_way.len() >= CPUS_MAX && !self.under_way.contains_key(&cpu) {
            return Flags::default();
        }
        let (hard, soft) = self.under_way.entry(cpu).or_default();
        let before = (*hard, *soft);
        match event {
            Event::IrqEntry { .. } | Event::VectorEntry(_) => *hard = hard.saturating_add(1),
            Event::IrqExit { .. } | Event::VectorExit(_) => *hard = hard.saturating_sub(1),
            Event::SoftirqEntry { .. } => *soft = 1,
            Event::SoftirqExit { .. } => *soft = 0,
            // Nothing switches within an interrupt: an end was lost.
            Event::Switch { .. } => (*hard, *soft) = (0, 0),
            _ => {}
        }
        let timer = matches!(event, Event::TimerExpire { .. } | Event::TimerExit { .. });
        let interrupt = timer || before.0.max(*hard) > 0;
        let softirq = !interrupt && before.1.max(*soft) > 0;
        Flags(u8::from(interrupt) << 3 | u8::from(softirq) << 4 | u8::from(interrupt))
    }

    /// What was found, and what a reader must know of it.
    ///
    /// # Errors
    /// [`TextError::Lacking`], [`TextError::Empty`].
    pub(super) fn finish(self, lines: u64) -> Result<(BlameSummary, Vec<String>), TextError> {
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
        Ok((self.follow.finish(), notes))
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
    matches!(name, "sched_switch" | "sched_waking" | "sched_wakeup" | "hrtimer_expire_entry")
}
