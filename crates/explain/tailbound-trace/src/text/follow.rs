// SPDX-License-Identifier: MIT OR Apache-2.0
//! A trace of events as text, followed as its records would be.
//!
//! Units: ns on the trace's clock.
//! Not here: the layouts of lines (`record`), the fields of events (`fields`), the rules (`crate::blame`).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tailbound_core::blame::{Cause, Sureness};

use super::babeltrace::{self, BabeltraceLine};
use super::fields::{self, FunctionNames};
use super::record::{self, TextRecord};
use super::state::Columns;
use super::{TextError, TextRequest, stack};
use crate::blame::{BlameSummary, DueTimes, Follow};
use crate::event::{Entry, Event, Flags};
use crate::symbols::Symbols;

/// Most CPUs whose interrupts are counted.
const CPUS_MAX: usize = 4096;
/// A time that is earlier by more than this is of the next day.
const HALF_DAY_NS: u64 = 12 * 3_600 * 1_000_000_000;
/// Names of events that are kept.
const EVENTS_MAX: usize = 256;

/// The bit of a record's state that says that the scheduler was asked for another thread.
const NEED_RESCHED: u8 = 0x04;
/// Those that say that it was made in an interrupt, with interrupts disabled, and in a soft interrupt.
const IN_INTERRUPT: u8 = 0x08 | 0x01;
const IN_SOFTIRQ: u8 = 0x10;

/// Does a trace have the begins and ends of interrupts?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InterruptEvents {
    Absent,
    Present,
}

/// What is known of a CPU by its last record.
#[derive(Clone, Copy, Debug, Default)]
struct CpuContext {
    /// Interrupts, functions of timers and soft interrupts that have begun by events of their own and not ended.
    interrupts: u32,
    timers: u32,
    softirqs: u32,
    /// The last record was made in an interrupt.
    interrupted: bool,
    flags: Flags,
    t_ns: u64,
    pid: i32,
}

impl CpuContext {
    /// Counts begins and ends; `true` for one.
    fn count(&mut self, event: Event) -> bool {
        match event {
            Event::IrqEntry { .. } | Event::VectorEntry(_) => {
                self.interrupts = self.interrupts.saturating_add(1);
            }
            Event::IrqExit { .. } | Event::VectorExit(_) => {
                self.interrupts = self.interrupts.saturating_sub(1);
            }
            Event::TimerExpire { .. } => self.timers = 1,
            Event::TimerExit { .. } => self.timers = 0,
            Event::SoftirqEntry { .. } => self.softirqs = 1,
            Event::SoftirqExit { .. } => self.softirqs = 0,
            // Nothing switches within an interrupt: an end was lost.
            Event::Switch { .. } => {
                (self.interrupts, self.timers, self.softirqs) = (0, 0, 0);
                return false;
            }
            _ => return false,
        }
        true
    }

    /// Is it in an interrupt whose end will be recorded?
    fn is_within(&self) -> bool {
        self.interrupts > 0
    }

    /// The state at a record that does not tell it.
    fn flags(&self, event: Event, interrupts: InterruptEvents) -> Flags {
        let begins = matches!(event, Event::IrqEntry { .. } | Event::VectorEntry(_));
        let timer = matches!(event, Event::TimerExpire { .. });
        // Without any event of interrupts it is not known whether a thread or an interrupt woke it.
        let either = matches!(event, Event::Waking { .. }) && interrupts == InterruptEvents::Absent;
        if begins || timer || either || self.interrupts > 0 || self.timers > 0 {
            return match event {
                Event::Switch { .. } => Flags::default(),
                _ => Flags(IN_INTERRUPT),
            };
        }
        let softirq = self.softirqs > 0 || matches!(event, Event::SoftirqEntry { .. });
        match event {
            Event::Switch { .. } => Flags::default(),
            _ if softirq => Flags(IN_SOFTIRQ),
            _ => Flags::default(),
        }
    }
}

/// A trace of events.
#[derive(Debug)]
pub(super) struct EventText {
    follow: Follow,
    columns: Columns,
    names: FunctionNames,
    cpus: BTreeMap<u32, CpuContext>,
    /// Of a text that does not name the thread of a record: who has each CPU, records before that was known, and the days
    /// that have passed.
    running: BTreeMap<u32, i32>,
    before_switches: u64,
    midnights_ns: u64,
    /// Events of interrupts were seen.
    interrupts: InterruptEvents,
    /// An interrupt's end is in no record.
    unended: bool,
    seen: BTreeSet<String>,
    last_ns: u64,
    pub(super) records: u64,
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
            cpus: BTreeMap::new(),
            running: BTreeMap::new(),
            before_switches: 0,
            midnights_ns: 0,
            interrupts: InterruptEvents::Absent,
            unended: false,
            seen: BTreeSet::new(),
            last_ns: 0,
            records: 0,
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
        let known = self.cpus.len() < CPUS_MAX || self.cpus.contains_key(&r.cpu);
        if !known {
            return;
        }
        let interrupts = self.interrupts;
        let cpu = self.cpus.entry(r.cpu).or_default();
        let flags = match r.state {
            Some(state) => state.flags(),
            None => cpu.flags(event, interrupts),
        };
        // The end of an interrupt without events of its own is in no record: it counts up to its last one.
        if cpu.interrupted && !cpu.is_within() && !flags.hardirq() {
            self.unended = true;
            let state = Flags(cpu.flags.0 & NEED_RESCHED);
            let (t_ns, pid) = (cpu.t_ns, cpu.pid);
            let end = Entry { t_ns, cpu: r.cpu, pid, flags: state, event: Event::Other };
            self.follow.entry(&end);
        }
        if cpu.count(event) {
            self.interrupts = InterruptEvents::Present;
        }
        (cpu.interrupted, cpu.flags) = (flags.hardirq(), flags);
        (cpu.t_ns, cpu.pid) = (r.t_ns, r.pid);
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
        let mut found = self.follow.finish();
        found.events = self.records;
        if self.unended {
            let parts = found.records.iter_mut().flat_map(|r| &mut r.parts);
            let foreign = parts.filter(|p| p.cause.is_foreign() && p.sureness == Sureness::Sure);
            foreign.filter(|p| p.cause != Cause::Unexplained).for_each(|p| {
                p.sureness = Sureness::Likely;
            });
        }
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
        say(
            self.unended,
            "ends of interrupts are not in the trace: such an interrupt counts up to its last record, and the time behind it as that \
             of the thread; nothing of it is sure"
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
    matches!(name, "sched_switch" | "sched_waking" | "sched_wakeup" | "hrtimer_expire_entry")
}
