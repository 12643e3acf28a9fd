// SPDX-License-Identifier: MIT OR Apache-2.0
//! The system calls of chosen threads and of all threads that these begin, from the first call of each on.
//!
//! Context: SETUP (`make`), COLD. Units: ns of CLOCK_MONOTONIC. In a trace instance of its own, because the kernel's list of
//! threads (`set_event_pid`) holds for all events of an instance, and the others are wanted of every thread. The kernel
//! adds to that list itself what its threads begin (option `event-fork`), so that nobody has to be found in time; and
//! it looks a thread up in a table, so that their number costs nothing.
//! Not here: who is of the program (`watch`), what calls mean (`tailbound-trace`).
//! Source: Documentation/trace/events.rst; kernel/trace/trace_events.c, ftrace_event_set_pid.

use std::collections::BTreeSet;
use std::path::Path;

use tailbound_core::Finding;
use tailbound_core::plan::Clock;
use tailbound_core::words::Word;
use tailbound_host::{Root, Tracefs, TracefsError};
use tailbound_trace::event::{Entry, Event};
use tailbound_trace::{EventDecoder, EventFormat};

use crate::blame::setup;
use crate::observe::ObserveError;
use crate::own_trace::OwnTrace;

/// System and name of the events; the first two are needed.
const EVENTS: [(&str, &str); 3] =
    [("raw_syscalls", "sys_enter"), ("raw_syscalls", "sys_exit"), ("sched", "sched_process_fork")];

/// See the module.
pub(crate) struct CallTrace {
    trace: OwnTrace,
    decoder: EventDecoder,
    /// Threads that are in the kernel's list.
    listed: BTreeSet<i32>,
    begun: Vec<(i32, Word)>,
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
            listed: BTreeSet::new(),
            begun: Vec::new(),
            follows,
            on: false,
        }))
    }

    /// Of these threads, all that there are now, and of those that they begin from now on. What has ended the kernel
    /// takes from its list.
    ///
    /// # Errors
    /// [`TracefsError`], with what was written.
    pub(crate) fn of(&mut self, tids: BTreeSet<i32>) -> Result<(), TracefsError> {
        let fresh: Vec<i32> = tids.difference(&self.listed).copied().collect();
        if fresh.is_empty() {
            self.listed = tids;
            return Ok(());
        }
        let words: Vec<String> = fresh.iter().map(ToString::to_string).collect();
        let instance = &self.trace.instance;
        // The list before the events: an empty one means everybody.
        instance.add("set_event_pid", &words.join(" "))?;
        if !self.on {
            let wanted = EVENTS.iter().filter(|(_, name)| self.follows || name.starts_with("sys_"));
            for (system, name) in wanted {
                instance.set(&format!("events/{system}/{name}/enable"), "1")?;
            }
            instance.set("tracing_on", "1")?;
            self.on = true;
        }
        self.listed = tids;
        Ok(())
    }

    /// Reads what there is; see [`OwnTrace::read`].
    pub(crate) fn read(&mut self, pending: &mut Vec<Entry>, holes: &mut Vec<u64>) {
        let before = pending.len();
        self.trace.read(&self.decoder, pending, holes);
        for entry in pending.iter().skip(before) {
            if let Event::Fork { child, comm } = entry.event {
                self.listed.insert(child);
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

    /// Events that were overwritten before they were read.
    pub(crate) fn lost(&self, cpus: &[u32]) -> u64 {
        self.trace.lost(cpus)
    }

    /// Removes it; what must be told.
    pub(crate) fn end(self) -> Vec<Finding> {
        self.trace.end()
    }
}
