// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's events of the whole machine, as they happen, in the order of time: for threads
//! that this program does not start itself.
//!
//! Context: SETUP (`begin`), COLD. Units: ns of CLOCK_MONOTONIC, which is the trace's clock.
//! The caller polls, ten times a second: a reader that waits would interrupt the watched CPUs.
//! Not here: what the events mean (`tailbound_trace`), the wake-ups of a run's own threads (`blame`).

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use tailbound_core::Finding;
use tailbound_core::blame::BlameRecord;
use tailbound_core::plan::Clock;
use tailbound_core::words::Word;
use tailbound_host::Root;
use tailbound_sys::clock;
use tailbound_trace::EventDecoder;
use tailbound_trace::blame::BlameNote;
use tailbound_trace::event::Entry;
use tailbound_trace::symbols::Symbols;

use crate::blame::setup::{self, Ready};
use crate::bpf::{self, Tier};
use crate::call_trace::CallTrace;
use crate::error::ObserveError;
use crate::own_trace::OwnTrace;

/// What a poll hands over.
#[derive(Clone, Copy, Debug)]
pub enum RecordingItem<'a> {
    /// An event.
    Entry(&'a Entry),
    /// Events of some CPU were lost just before this time.
    Lost(u64),
}

/// Whether the notes tell how long each thread waited for a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitNotes {
    /// They do.
    Told,
    /// They do not.
    LeftOut,
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
    /// System calls, where they are asked for and can be recorded.
    calls: Option<CallTrace>,
    /// Programs in the kernel, where they were asked for and are allowed.
    stacks: Option<Tier>,
    waits: WaitNotes,
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
    pub locks: Vec<BlameNote>,
}

/// Whether system calls are recorded too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemCalls {
    /// In an instance of their own.
    Recorded,
    /// Not at all: each costs time.
    LeftOut,
}

impl Recording {
    /// Makes the trace and lets it run. `exe trace-guard` removes it if this process is killed.
    ///
    /// # Errors
    /// [`ObserveError`]: no tracefs, not root, a namespace, events that are needed and not there.
    /// Nothing is left behind then.
    pub fn begin(root: &Root, exe: &Path, syscalls: SystemCalls) -> Result<Self, ObserveError> {
        let Ready { mut trace, decoder, symbols, cpus, event_ns } =
            setup::ready(root, exe, Clock::Monotonic)?;
        let calls = match syscalls {
            SystemCalls::Recorded => CallTrace::make(root, exe, &mut trace.notes)?,
            SystemCalls::LeftOut => None,
        };
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
            calls,
            stacks: None,
            waits: WaitNotes::LeftOut,
        })
    }

    /// Kernel stacks of those who keep watched threads off their CPU, and owners of locks, from here on; where there can
    /// be none, a finding says why.
    pub fn with_stacks(&mut self, root: &Root, waits: WaitNotes) {
        self.waits = waits;
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
        let Some((stacks, oldest)) = self.told() else { return };
        for record in records.iter_mut().filter(|r| reaches(r, oldest)) {
            let (due_ns, name) = (record.t_ns, record.name.clone());
            stacks.onto(record, due_ns, |tid| is(&name, tid));
        }
    }

    /// The same for cycles of threads that are known by number.
    pub fn stacks_onto_cycles<'a>(
        &mut self,
        records: impl Iterator<Item = (i32, &'a mut BlameRecord)>,
    ) {
        let Some((stacks, oldest)) = self.told() else { return };
        records.filter(|(_, r)| reaches(r, oldest)).for_each(|(tid, r)| stacks.onto_cycle(r, tid));
    }

    /// What programs told up to now, and when the oldest of it was.
    fn told(&mut self) -> Option<(&mut Tier, i64)> {
        let stacks = self.stacks.as_mut()?;
        // The trace's clock is the programs'.
        stacks.poll(0);
        let oldest = stacks.oldest_ns()?;
        Some((stacks, oldest))
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

    /// From here on the system calls of these threads, and of those that they begin, are recorded.
    pub fn syscalls_of(&mut self, tids: &BTreeSet<i32>) {
        if let Some(calls) = &mut self.calls
            && let Err(e) = calls.of(tids, &mut self.pending, &mut self.holes)
        {
            self.trace.notes.push(format!("{e}: system calls are not recorded"));
            self.calls = None;
        }
    }

    /// Hands over what happened up to now, in the order of time.
    pub fn poll(&mut self, each: &mut dyn FnMut(RecordingItem<'_>)) {
        let until = self.take_in();
        self.hand_over(until, each);
    }

    /// Reads what there is; up to the time that this returns nothing is missing.
    pub(crate) fn take_in(&mut self) -> u64 {
        let now = clock::now_ns(clock::CLOCK_MONOTONIC).max(0).cast_unsigned();
        self.read();
        now
    }

    /// The threads that those whose system calls are recorded have begun, with their names then, since this was last
    /// asked: before anything of them is handed over.
    pub(crate) fn take_begun(&mut self) -> Vec<(i32, Word)> {
        self.calls.as_mut().map_or_else(Vec::new, CallTrace::take_begun)
    }

    fn read(&mut self) {
        let (pending, holes) = (&mut self.pending, &mut self.holes);
        self.trace.read(&self.decoder, pending, holes);
        if let Some(calls) = &mut self.calls {
            calls.read(pending, holes);
        }
    }

    pub(crate) fn hand_over(&mut self, until: u64, each: &mut dyn FnMut(RecordingItem<'_>)) {
        self.holes.drain(..).for_each(|t| each(RecordingItem::Lost(t)));
        self.pending.sort_by_key(|e| e.t_ns);
        let whole = self.pending.partition_point(|e| e.t_ns <= until);
        self.pending.drain(..whole).for_each(|e| each(RecordingItem::Entry(&e)));
    }

    /// Ends the trace, hands over the rest, and removes it.
    pub fn end(mut self, each: &mut dyn FnMut(RecordingItem<'_>)) -> Recorded {
        self.stop();
        self.read();
        self.hand_over(u64::MAX, each);
        let mut lost = self.trace.lost(&self.cpus);
        let mut notes = std::mem::take(&mut self.trace.notes);
        notes.extend(self.stacks.iter().flat_map(|s| s.last_words(self.waits)));
        let locks = self.stacks.as_ref().map_or_else(Vec::new, |s| s.locks().to_vec());
        let mut findings = self.trace.end();
        if let Some(calls) = self.calls {
            notes.extend(calls.last_words());
            lost = lost.saturating_add(calls.lost(&self.cpus));
            findings.append(&mut calls.end());
        }
        Recorded { findings, notes, lost, locks }
    }

    /// Nothing is recorded any more; what was can still be read.
    pub(crate) fn stop(&mut self) {
        drop(self.trace.instance.set("tracing_on", "0"));
        if let Some(calls) = &mut self.calls {
            calls.stop();
        }
    }
}

/// Does it reach beyond this time?
fn reaches(record: &BlameRecord, t_ns: i64) -> bool {
    record.t_ns.saturating_add(record.latency_ns) >= t_ns
}
