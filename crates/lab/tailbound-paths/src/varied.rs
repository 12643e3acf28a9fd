// SPDX-License-Identifier: MIT OR Apache-2.0
//! A run that is varied from one instant on: what the plugin is told, and what became of the sample.
//!
//! Units: ns of the guest's virtual time, by QEMU's clock; due times by the guest's.
//! One kind of variation is that the processor stands still for a while. Nothing else is touched: all timers fall due when they would
//! have, and the program has come that much less far by then. So it asks how late the sample had been, had its timer
//! (and all others) fallen due earlier in the program's own course. The other kind is that the kernel's next random numbers
//! are others: all timers fall due at the same instant of the program's course, which is another where it goes by them.

use std::io::{Read, Seek, SeekFrom};

use tailbound_trace::symbols::Symbols;

use crate::inevitable::Outcome;
use crate::log::{Log, LogError, Record};
use crate::names::named;
use crate::random_numbers::RandomNumbers;
use crate::record::{kind, state};
use crate::variation::{self, NEVER, WORDS};
use crate::wake_and_wait::WakeAndWait;
use crate::wakeups::{Marks, WakeUp, WakeUps};

/// The sample that is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// The measured thread.
    pub thread: u64,
    /// For when its timer is set, by the guest's clock.
    pub set_ns: u64,
    /// When that is.
    pub due_ns: u64,
    /// When the thread was in user mode.
    pub user_ns: u64,
    /// As the run has it.
    pub latency_ns: i64,
}

impl Sample {
    /// From a wake-up that was watched, and the log that it is from.
    ///
    /// # Errors
    /// [`LogError`]; `None`: it is not in the log.
    pub fn of(
        log: &mut (impl Read + Seek),
        marks: Marks,
        wait: WakeAndWait,
    ) -> Result<Option<Self>, LogError> {
        let is_it = |w: &WakeUp| w.thread == wait.thread && w.user_ns == wait.user_ns;
        let found = wakeups(log, marks)?.into_iter().find(is_it);
        Ok(found.map(|w| Self {
            thread: wait.thread,
            set_ns: w.due_ns,
            due_ns: wait.due_ns,
            user_ns: wait.user_ns,
            latency_ns: wait.latency_ns,
        }))
    }

    /// When it is given up: twice as late as it was.
    fn end_ns(&self) -> u64 {
        self.due_ns + 2 * self.user_ns.saturating_sub(self.due_ns) + 1000
    }

    /// What became of it, from the log of a varied run.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn outcome(&self, log: &mut (impl Read + Seek), marks: Marks) -> Result<Outcome, LogError> {
        let is_it = |w: &&WakeUp| w.thread == self.thread && w.due_ns == self.set_ns;
        let found = wakeups(log, marks)?;
        // What lies between user mode and the reading of the clock is as it was.
        let moved = |w: &WakeUp| w.user_ns.cast_signed() - self.user_ns.cast_signed();
        let found = found.iter().find(is_it);
        Ok(found.map_or(Outcome::Missed, |w| Outcome::Latency(self.latency_ns + moved(w))))
    }
}

fn wakeups(log: &mut (impl Read + Seek), marks: Marks) -> Result<Vec<WakeUp>, LogError> {
    log.seek(SeekFrom::Start(0))?;
    let mut all = WakeUps::new(marks);
    Log::open(log)?.each(|r| all.add(&r))?;
    Ok(all.all)
}

/// When the CPU halted, if it still did at this time: no instruction executed between the two.
///
/// # Errors
/// [`LogError`]
pub fn halted_before(log: &mut (impl Read + Seek), due_ns: u64) -> Result<Option<u64>, LogError> {
    log.seek(SeekFrom::Start(0))?;
    let mut halted_ns = None;
    Log::open(log)?.each(|r| {
        if r.t_ns <= due_ns {
            halted_ns = (r.kind == kind::HALT).then_some(r.t_ns);
        }
    })?;
    Ok(halted_ns)
}

/// What happens at the instant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies<'a> {
    /// Nothing: the run goes on as it was.
    Not,
    /// The processor stands still until this time.
    Until(u64),
    /// The kernel's random numbers are others from there on, each time by this seed; 0: they are written, and are the same.
    Numbers(&'a RandomNumbers, u32),
    /// The guest is stopped.
    Stop,
}

/// What the plugin is told beside its plan.
#[derive(Clone, Copy, Debug)]
pub struct Variation<'a> {
    /// From here on.
    pub at_ns: u64,
    /// What happens there.
    pub varies: Varies<'a>,
    /// The sample that is waited for; QEMU ends then.
    pub sample: Sample,
    /// What was before is not recorded.
    pub log_from_ns: u64,
    /// Address of the kernel's first thread; 0: threads' names are not told.
    pub first_thread: u64,
}

impl Variation<'_> {
    /// As the plugin reads it.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let (until, stop, end) = match self.varies {
            Varies::Not | Varies::Numbers(..) => (NEVER, 0, self.sample.end_ns()),
            Varies::Until(ns) => (ns, 0, self.sample.end_ns()),
            // Somebody looks at it for as long as they like.
            Varies::Stop => (NEVER, 1, NEVER),
        };
        let mut words = [0; WORDS];
        for (at, value) in [
            (0, variation::MAGIC),
            (variation::AT, self.at_ns),
            (variation::UNTIL, until),
            (variation::STOP, stop),
            (variation::THREAD, if stop == 0 { self.sample.thread } else { 0 }),
            (variation::DUE, self.sample.set_ns),
            (variation::END, end),
            (variation::LOG_FROM, self.log_from_ns),
            (variation::FIRST_THREAD, self.first_thread),
        ] {
            words.iter_mut().skip(at).take(1).for_each(|w| *w = value);
        }
        if let Varies::Numbers(numbers, seed) = self.varies {
            let places = numbers.words();
            words[variation::PLACES] = places.len() as u64;
            words[variation::SEED] = seed.into();
            let told = places.iter().flat_map(|(at, range)| [*at, *range]);
            words.iter_mut().skip(variation::PLACE).zip(told).for_each(|(w, told)| *w = told);
        }
        let mut bytes: Vec<u8> = words.iter().flat_map(|w| w.to_ne_bytes()).collect();
        bytes.resize(bytes.len().next_multiple_of(4096), 0);
        bytes
    }
}

/// An instant that was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reached {
    /// When.
    pub at_ns: u64,
    /// Address of the block of instructions that ends there.
    pub address: u64,
    /// Bytes of random numbers that are others from there on, where they were written.
    pub exchanged: Option<u64>,
}

/// The instant, as it was reached.
///
/// # Errors
/// [`LogError`]; `None`: it was not.
pub fn reached(log: &mut (impl Read + Seek)) -> Result<Option<Reached>, LogError> {
    log.seek(SeekFrom::Start(0))?;
    let mut found: Option<Reached> = None;
    Log::open(log)?.each(|r| match r.kind {
        variation::kind::VARIED => {
            found = Some(Reached { at_ns: r.t_ns, address: r.value, exchanged: None });
        }
        variation::kind::EXCHANGED => {
            if let Some(found) = &mut found {
                found.exchanged = Some(r.value);
            }
        }
        _ => {}
    })?;
    Ok(found)
}

/// Something that happened, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A system call's entry; the address.
    Call(u64),
    /// An interrupt's or exception's entry; the address.
    Interrupt(u64),
    /// Back in user mode.
    User,
    /// Another thread has the CPU: its name, where it is known.
    Switch(u64, String),
    /// A timer woke the thread.
    Woken(u64),
    /// The thread on the CPU is to be rescheduled.
    Resched,
    /// Interrupts or preemption were disabled, by the instruction at the address.
    Section(u64),
    /// The CPU halted.
    Halt,
}

/// What happened, in the order of time, and which thread had the CPU at the varied instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// When and what.
    pub all: Vec<(u64, Event)>,
    /// Name of the thread on the CPU at the instant.
    pub thread: Option<String>,
}

impl Events {
    /// From the log of a run whose instant was reached.
    ///
    /// # Errors
    /// [`LogError`]
    pub fn read(log: &mut (impl Read + Seek)) -> Result<Self, LogError> {
        log.seek(SeekFrom::Start(0))?;
        let mut reader = Reader::default();
        Log::open(log)?.each(|r| reader.add(&r))?;
        Ok(reader.events)
    }

    /// The last that fulfils `is_it` up to `to_ns`.
    pub fn last(&self, to_ns: u64, is_it: impl Fn(&Event) -> bool) -> Option<(u64, &Event)> {
        let before = self.all.iter().take_while(|(t, _)| *t <= to_ns);
        before.filter(|(_, e)| is_it(e)).last().map(|(t, e)| (*t, e))
    }
}

/// Whose name comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Named {
    #[default]
    Nobody,
    Instant,
    Switch,
}

#[derive(Default)]
struct Reader {
    events: Events,
    state: u8,
    name: Vec<u8>,
    named: Named,
    begun: bool,
}

impl Reader {
    fn add(&mut self, r: &Record) {
        let last = self.events.all.last();
        let interrupted =
            last.is_some_and(|(t, e)| *t == r.t_ns && matches!(e, Event::Interrupt(_)));
        let mut push = |event| self.events.all.push((r.t_ns, event));
        match r.kind {
            kind::ENTER => push(Event::Interrupt(r.value)),
            kind::HALT => push(Event::Halt),
            kind::WAKE => push(Event::Woken(r.value)),
            kind::SWITCH => {
                push(Event::Switch(r.value, String::new()));
                self.named = Named::Switch;
            }
            variation::kind::VARIED => self.named = Named::Instant,
            variation::kind::NAME => self.half(r.value),
            kind::STATE => {
                let (before, now) = (self.state, r.state);
                const OFF: u8 = state::INTERRUPTS_OFF | state::PREEMPTION_OFF;
                if self.begun && now & state::USER != 0 && before & state::USER == 0 {
                    push(Event::User);
                } else if self.begun && before & state::USER != 0 && now & state::USER == 0 {
                    // Interrupts recorded their entry, at the same time, before this.
                    if interrupted {
                        (self.state, self.begun) = (now, true);
                        return;
                    }
                    push(Event::Call(r.value));
                } else if before & OFF == 0 && now & OFF != 0 {
                    push(Event::Section(r.value));
                }
                if now & !before & state::RESCHED != 0 {
                    push(Event::Resched);
                }
                (self.state, self.begun) = (now, true);
            }
            _ => {}
        }
    }

    fn half(&mut self, word: u64) {
        self.name.extend(word.to_le_bytes());
        if self.name.len() < 16 {
            return;
        }
        let name = std::mem::take(&mut self.name);
        let name = name.split(|b| *b == 0).next().unwrap_or_default();
        let name = String::from_utf8_lossy(name).into_owned();
        match (self.named, self.events.all.last_mut()) {
            (Named::Instant, _) => self.events.thread = Some(name),
            (Named::Switch, Some((_, Event::Switch(_, of)))) => *of = name,
            _ => {}
        }
        self.named = Named::Nobody;
    }
}

impl Event {
    /// In words; `thread` is the measured one.
    #[must_use]
    pub fn words(&self, symbols: &Symbols, thread: u64) -> String {
        match self {
            Self::Call(at) => format!("enters the kernel ({})", named(symbols, *at)),
            Self::Interrupt(at) => format!("interrupt ({})", named(symbols, *at)),
            Self::User => "user mode".to_owned(),
            Self::Switch(_, name) if name.is_empty() => "another thread".to_owned(),
            Self::Switch(_, name) => format!("switch to {name}"),
            Self::Woken(woken) if *woken == thread => {
                "its timer wakes the measured thread".to_owned()
            }
            Self::Woken(_) => "a timer wakes another thread".to_owned(),
            Self::Resched => "the thread on the CPU is to be rescheduled".to_owned(),
            Self::Section(at) => format!("not preemptible from {} on", named(symbols, *at)),
            Self::Halt => "the CPU halts".to_owned(),
        }
    }
}
