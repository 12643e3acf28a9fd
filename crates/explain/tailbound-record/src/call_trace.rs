// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of chosen threads and of all threads that these begin, from the first call of each on.
//!
//! Context: SETUP (`make`), COLD. Units: ns of CLOCK_MONOTONIC. In a trace instance of its own, because the kernel's list of
//! threads (`set_event_pid`) holds for all events of an instance, and the others are wanted of every thread. The kernel
//! adds to that list itself what its threads begin (option `event-fork`), so that nobody has to be found in time; and
//! it looks a thread up in a table, so that their number costs nothing. To add a thread by hand has the kernel copy the
//! table and take the copy: a thread that is begun between the two is lost. So only threads that nobody listed has
//! begun are added by hand, and those that were begun meanwhile are added again.
//! Not here: who is of the program (`watch`), what calls mean (`tailbound-trace`).
//! Source: Documentation/trace/events.rst; kernel/trace/trace_events.c, ftrace_event_set_pid.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tailbound_core::Finding;
use tailbound_core::plan::Clock;
use tailbound_core::words::Word;
use tailbound_host::{Root, Tracefs, TracefsError};
use tailbound_trace::event::{Entry, Event};
use tailbound_trace::{EventDecoder, EventFormat};

use crate::blame::setup;
use crate::error::ObserveError;
use crate::own_trace::OwnTrace;

/// System and name of the events; the first two are needed.
const EVENTS: [(&str, &str); 3] =
    [("raw_syscalls", "sys_enter"), ("raw_syscalls", "sys_exit"), ("sched", "sched_process_fork")];

/// Looks after which a thread that they did not find has ended: it may have been begun after the look.
const LOOKS_MAX: u32 = 3;

/// See the module.
pub(crate) struct CallTrace {
    trace: OwnTrace,
    decoder: EventDecoder,
    /// Threads that are in the kernel's list, and for how many looks they were not found.
    listed: BTreeMap<i32, u32>,
    /// Threads that the last look found and that are not in the list: their beginning may not have been read yet.
    strange: BTreeSet<i32>,
    begun: Vec<(i32, Word)>,
    /// Threads that were added after the recording had begun.
    added_late: usize,
    /// The kernel adds what they begin.
    follows: bool,
    on: bool,
}

impl CallTrace {
    /// Of nobody yet; `None` where this kernel does not tell system calls, with a note.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub(crate) fn make(
        root: &Root,
        exe: &Path,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, ObserveError> {
        let tracefs = Tracefs::find(root)?;
        let mut formats = Vec::new();
        for (system, name) in EVENTS {
            if let Ok(text) = tracefs.event_format(system, name) {
                formats.push(EventFormat::parse(&text)?);
            }
        }
        let has = |name: &str| formats.iter().any(|f| f.name == name);
        if !has("sys_enter") || !has("sys_exit") {
            notes.push(
                "this kernel has no events of system calls (CONFIG_FTRACE_SYSCALLS): what a thread waits in is not known".to_owned(),
            );
            return Ok(None);
        }
        let decoder = EventDecoder::new(&formats);
        notes.extend(decoder.lacking().iter().map(|l| format!("{l}: the event is not used")));
        let mut trace = OwnTrace::beside(root, exe, "calls")?;
        for cpu in setup::instance(root, &mut trace, Clock::Monotonic)? {
            trace.readers.open(&trace.instance, cpu)?;
        }
        let follows = has("sched_process_fork")
            && match trace.instance.set("options/event-fork", "1") {
                Ok(()) => true,
                Err(e) => {
                    notes.push(format!(
                        "{e}: system calls of a new thread are recorded from when it is found on"
                    ));
                    false
                }
            };
        Ok(Some(Self {
            trace,
            decoder,
            listed: BTreeMap::new(),
            strange: BTreeSet::new(),
            begun: Vec::new(),
            added_late: 0,
            follows,
            on: false,
        }))
    }

    /// Of these threads, all that there are now, and of those that they begin from now on. What has ended the kernel
    /// takes from its list. What was begun up to now is read first, to `pending` and `holes` as [`Self::read`] does.
    ///
    /// # Errors
    /// [`TracefsError`], with what was written.
    pub(crate) fn of(
        &mut self,
        tids: &BTreeSet<i32>,
        pending: &mut Vec<Entry>,
        holes: &mut Vec<u64>,
    ) -> Result<(), TracefsError> {
        if self.on && self.follows {
            self.read(pending, holes);
        }
        self.listed.retain(|tid, missed| {
            *missed = if tids.contains(tid) { 0 } else { *missed + 1 };
            *missed < LOOKS_MAX
        });
        let unlisted = tids.iter().filter(|tid| !self.listed.contains_key(tid)).copied();
        let unlisted: BTreeSet<i32> = unlisted.collect();
        let before = std::mem::replace(&mut self.strange, unlisted);
        let wanted = |tid: &i32| !self.on || !self.follows || before.contains(tid);
        let fresh: Vec<i32> = self.strange.iter().copied().filter(wanted).collect();
        if fresh.is_empty() {
            return Ok(());
        }
        self.strange.clear();
        self.added_late += if self.on { fresh.len() } else { 0 };
        let words: Vec<String> = fresh.iter().map(ToString::to_string).collect();
        let instance = &self.trace.instance;
        let from = pending.len();
        // The list before the events: an empty one means everybody.
        instance.add("set_event_pid", &words.join(" "))?;
        self.listed.extend(fresh.into_iter().map(|tid| (tid, 0)));
        if self.on {
            // What was begun while the kernel copied may be in no list now.
            self.read(pending, holes);
            for entry in pending.iter().skip(from) {
                if let Event::Fork { child, .. } = entry.event {
                    self.listed.remove(&child);
                    self.strange.insert(child);
                }
            }
            return Ok(());
        }
        let wanted = EVENTS.iter().filter(|(_, name)| self.follows || name.starts_with("sys_"));
        for (system, name) in wanted {
            instance.set(&format!("events/{system}/{name}/enable"), "1")?;
        }
        instance.set("tracing_on", "1")?;
        self.on = true;
        Ok(())
    }

    /// Reads what there is; see [`OwnTrace::read`].
    pub(crate) fn read(&mut self, pending: &mut Vec<Entry>, holes: &mut Vec<u64>) {
        let before = pending.len();
        self.trace.read(&self.decoder, pending, holes);
        for entry in pending.iter().skip(before) {
            if let Event::Fork { child, comm } = entry.event {
                self.listed.insert(child, 0);
                self.begun.push((child, comm));
            }
        }
    }

    /// Threads that were begun by listed ones, as far as was read since the last call.
    pub(crate) fn take_begun(&mut self) -> Vec<(i32, Word)> {
        std::mem::take(&mut self.begun)
    }

    /// Nothing is recorded any more.
    pub(crate) fn stop(&mut self) {
        drop(self.trace.instance.set("tracing_on", "0"));
    }

    /// What the reader must know of threads that were found after the recording had begun.
    pub(crate) fn last_words(&self) -> Option<String> {
        (self.added_late > 0).then(|| {
            format!(
                "the system calls of {} threads are known only from when they were found on",
                self.added_late
            )
        })
    }

    /// Events that were overwritten before they were read.
    pub(crate) fn lost(&self, cpus: &[u32]) -> u64 {
        self.trace.lost(cpus)
    }

    /// Removes it; what must be told.
    pub(crate) fn end(self) -> Vec<Finding> {
        self.trace.end()
    }
}
