// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's events of the whole machine, as they happen, in the order of time: for threads
//! that this program does not start itself.
//!
//! Context: SETUP (`begin`), COLD. Units: ns of CLOCK_MONOTONIC, which is the trace's clock.
//! The caller polls, ten times a second: a reader that waits would interrupt the watched CPUs.
//! Not here: what the events mean (`tailbound_trace`), the wake-ups of a run's own threads (`blame`).

use std::path::Path;
use std::sync::Arc;

use tailbound_core::Finding;
use tailbound_core::blame::BlameRecord;
use tailbound_core::plan::Clock;
use tailbound_host::{Root, Tracefs};
use tailbound_sys::clock;
use tailbound_trace::blame::Told;
use tailbound_trace::event::Entry;
use tailbound_trace::symbols::Symbols;
use tailbound_trace::{Counts, EventDecoder, EventFormat};

use crate::blame::{cost, setup};
use crate::bpf::{self, Tier};
use crate::observe::ObserveError;
use crate::own_trace::{OwnTrace, first_namespace};

/// System calls are recorded of so many threads at most: the kernel compares them one by one.
const FILTERED_MAX: usize = 64;
const SYSCALLS: [&str; 2] = ["sys_enter", "sys_exit"];

/// What a poll hands over.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// An event.
    Entry(&'a Entry),
    /// Events of some CPU were lost just before this time.
    Lost(u64),
}

/// See the module.
pub struct Recording {
    trace: OwnTrace,
    decoder: EventDecoder,
    symbols: Arc<Symbols>,
    cpus: Vec<u32>,
    /// Read, and perhaps not whole yet: another CPU's events of that time may still come.
    pending: Vec<Entry>,
    holes: Vec<u64>,
    event_ns: Option<i64>,
    /// System calls can be recorded.
    syscalls: bool,
    filtered: Vec<i32>,
    /// Programs in the kernel, where they were asked for and are allowed.
    stacks: Option<Tier>,
}

/// What a recording came to.
#[derive(Debug, Default)]
pub struct Recorded {
    /// What the reader must know.
    pub findings: Vec<Finding>,
    /// What was done on the way.
    pub notes: Vec<String>,
    /// Events that were overwritten before they were read.
    pub lost: u64,
    /// The longest waits for locks, with who had them, where programs in the kernel told.
    pub locks: Vec<Told>,
}

impl Recording {
    /// Makes the trace and lets it run. `exe trace-guard` removes it if this process is killed.
    ///
    /// # Errors
    /// [`ObserveError`]: no tracefs, not root, a namespace, events that are needed and not there.
    /// Nothing is left behind then.
    pub fn begin(root: &Root, exe: &Path, syscalls: bool) -> Result<Self, ObserveError> {
        first_namespace(root)?;
        let tracefs = Tracefs::find(root)?;
        let mut formats = setup::formats(&tracefs)?;
        let mut calls = Vec::new();
        for name in SYSCALLS.iter().filter(|_| syscalls) {
            if let Ok(text) = tracefs.event_format("raw_syscalls", name) {
                calls.push(EventFormat::parse(&text)?);
            }
        }
        let mut trace = OwnTrace::make(root, exe)?;
        let cpus = setup::instance(root, &mut trace, Clock::Monotonic)?;
        let event_ns = cost::event_ns(&trace);
        setup::events_on(&mut trace, &formats)?;
        let has_calls = calls.len() == SYSCALLS.len();
        if syscalls && !has_calls {
            trace.notes.push(
                "this kernel has no events of system calls (CONFIG_FTRACE_SYSCALLS): what a thread waits in is not known".to_owned(),
            );
        }
        formats.append(&mut calls);
        let decoder = EventDecoder::new(&formats);
        for lacking in decoder.lacking() {
            trace.notes.push(format!("{lacking}: the event is not used"));
        }
        let symbols = Arc::new(Symbols::parse(&setup::kallsyms(root)));
        if symbols.is_empty() {
            trace.notes.push(
                "/proc/kallsyms does not tell the kernel's functions: they have no names"
                    .to_owned(),
            );
        }
        for cpu in &cpus {
            trace.readers.open(&trace.instance, *cpu)?;
        }
        trace.instance.set("tracing_on", "1")?;
        Ok(Self {
            trace,
            decoder,
            symbols,
            cpus,
            pending: Vec::new(),
            holes: Vec::new(),
            event_ns,
            syscalls: has_calls,
            filtered: Vec::new(),
            stacks: None,
        })
    }

    /// Kernel stacks of those who keep watched threads off their CPU, from here on; where there can be none, a
    /// finding says why.
    pub fn with_stacks(&mut self, root: &Root) {
        match Tier::begin(root, self.symbols()) {
            Ok(mut stacks) => {
                self.trace.notes.append(&mut stacks.take_notes());
                self.stacks = Some(stacks);
            }
            Err(e) => self.trace.findings.push(bpf::lost_finding(&e)),
        }
    }

    /// Stacks of this thread's waits are taken from here on.
    pub fn stacks_of(&mut self, tid: i32) {
        self.stacks.iter_mut().for_each(|s| s.watch(tid));
    }

    /// Only wake-ups later than this are of interest.
    pub fn late_above(&mut self, limit_ns: i64) {
        self.stacks.iter_mut().for_each(|s| s.limit(limit_ns));
    }

    /// Lays what programs told onto `records` of the last seconds; `is` says whether a thread has the
    /// record's name.
    pub fn stacks_onto(&mut self, records: &mut [BlameRecord], is: &dyn Fn(&str, i32) -> bool) {
        let Some(stacks) = &mut self.stacks else { return };
        // The trace's clock is the programs'.
        stacks.poll(0);
        let Some(oldest) = stacks.oldest_ns() else { return };
        for record in records.iter_mut().filter(|r| r.t_ns.saturating_add(r.latency_ns) >= oldest) {
            let (due_ns, name) = (record.t_ns, record.name.clone());
            stacks.onto(record, due_ns, |tid| is(&name, tid));
        }
    }

    /// The kernel's functions.
    #[must_use]
    pub fn symbols(&self) -> Arc<Symbols> {
        Arc::clone(&self.symbols)
    }

    /// What recording one event costs, where it could be measured.
    #[must_use]
    pub fn event_ns(&self) -> Option<i64> {
        self.event_ns
    }

    /// From here on the system calls of these threads are recorded, and no others.
    pub fn syscalls_of(&mut self, tids: &[i32]) {
        if !self.syscalls || tids.is_empty() || self.filtered == tids {
            return;
        }
        if tids.len() > FILTERED_MAX {
            if self.filtered.len() <= FILTERED_MAX {
                self.trace.notes.push(format!(
                    "more than {FILTERED_MAX} threads: the system calls of the first are recorded"
                ));
            }
            self.filtered = tids.to_vec();
            return;
        }
        let words: Vec<String> = tids.iter().map(|t| format!("common_pid == {t}")).collect();
        let filter = words.join(" || ");
        for name in SYSCALLS {
            let path = format!("events/raw_syscalls/{name}");
            let instance = &self.trace.instance;
            // The filter before the event: without one every system call of the machine is recorded.
            let set = instance
                .set(&format!("{path}/filter"), &filter)
                .and_then(|()| instance.set(&format!("{path}/enable"), "1"));
            if let Err(e) = set {
                self.trace.notes.push(format!("{e}: system calls are not recorded"));
                self.syscalls = false;
                return;
            }
        }
        self.filtered = tids.to_vec();
    }

    /// Hands over what happened up to now, in the order of time.
    pub fn poll(&mut self, each: &mut dyn FnMut(Seen<'_>)) {
        let now = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
        self.read();
        self.hand_over(now, each);
    }

    fn read(&mut self) {
        let (decoder, layout) = (&self.decoder, self.trace.layout);
        let (pending, holes) = (&mut self.pending, &mut self.holes);
        self.trace.readers.read(|cpu, page| {
            if let Some(head) = layout.head(page).filter(|h| h.lost) {
                holes.push(head.t_ns);
            }
            let each = |t_ns: u64, record: &[u8]| pending.extend(decoder.decode(t_ns, cpu, record));
            layout.records(page, each).map(drop).map_err(|e| e.to_string())
        });
    }

    fn hand_over(&mut self, until: u64, each: &mut dyn FnMut(Seen<'_>)) {
        self.holes.drain(..).for_each(|t| each(Seen::Lost(t)));
        self.pending.sort_by_key(|e| e.t_ns);
        let whole = self.pending.partition_point(|e| e.t_ns <= until);
        self.pending.drain(..whole).for_each(|e| each(Seen::Entry(&e)));
    }

    /// Ends the trace, hands over the rest, and removes it.
    pub fn end(mut self, each: &mut dyn FnMut(Seen<'_>)) -> Recorded {
        drop(self.trace.instance.set("tracing_on", "0"));
        self.read();
        self.hand_over(u64::MAX, each);
        let mut lost = 0u64;
        for cpu in &self.cpus {
            let counts = self.trace.instance.read(&format!("per_cpu/cpu{cpu}/stats"));
            lost = lost.saturating_add(counts.map_or(0, |text| Counts::parse(&text).lost()));
        }
        let mut notes = std::mem::take(&mut self.trace.notes);
        notes.extend(self.stacks.iter().flat_map(Tier::last_words));
        let locks = self.stacks.as_ref().map_or_else(Vec::new, |s| s.locks().to_vec());
        Recorded { findings: self.trace.end(), notes, lost, locks }
    }
}
