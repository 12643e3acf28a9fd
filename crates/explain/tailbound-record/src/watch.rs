// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of somebody else's program: found in /proc, followed by the kernel's events, never
//! stopped or changed.
//!
//! Context: SETUP (`begin`), COLD. Units: ns. What the events are made into is a [`Sink`].
//! Not here: what is said about them (`tailbound-report`), when it is looked, and the program's start ([`crate::watch_session`]).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use tailbound_core::Policy;
use tailbound_host::{Root, threads};
use tailbound_sys::process;
use tailbound_trace::blame::Follow;
use tailbound_trace::cycle::Cycles;
use tailbound_trace::event::Entry;

use crate::error::ObserveError;
use crate::recording::{Recorded, Recording, RecordingItem, SystemCalls, WaitNotes};
use crate::rules::WithRules;
use crate::sink::Sink;

/// Most threads that are followed.
const THREADS_MAX: usize = 1024;

/// Whose threads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The process; `None` until it has been started.
    pub pid: Option<u32>,
    /// And those it starts.
    pub descendants: bool,
    /// Threads of these names alone, or all.
    pub comm: Vec<String>,
    /// Those with a real-time policy alone. System calls are recorded of the others too: they wake these.
    pub realtime: bool,
}

/// A thread that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadListing {
    /// Its process.
    pub pid: u32,
    /// Its name when it was last looked at.
    pub name: String,
    /// Its policy then.
    pub policy: Policy,
    /// It is followed.
    pub followed: bool,
}

/// See the module.
pub struct Watching<S> {
    root: Root,
    recording: Recording,
    sink: S,
    target: Target,
    known: BTreeMap<i32, ThreadListing>,
    left_out: bool,
}

/// What watching came to.
#[derive(Debug)]
pub struct WatchEnd<S> {
    /// What the events were made into.
    pub sink: S,
    /// The threads.
    pub known: BTreeMap<i32, ThreadListing>,
    /// The recording.
    pub recorded: Recorded,
}

impl<S: Sink> Watching<S> {
    /// Begins with the threads that are there; `make` is asked for the sink once the recording runs.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub fn begin(
        root: Root,
        exe: &Path,
        target: Target,
        syscalls: SystemCalls,
        make: impl FnOnce(&Recording) -> S,
    ) -> Result<Self, ObserveError> {
        let recording = Recording::begin(&root, exe, syscalls)?;
        let sink = make(&recording);
        let mut watching =
            Self { root, recording, sink, target, known: BTreeMap::new(), left_out: false };
        watching.look();
        Ok(watching)
    }

    /// This thread will start the process: from its first instruction on nothing is missed then.
    pub fn starts_in(&mut self, tid: i32) {
        self.recording.syscalls_of(&BTreeSet::from([tid]));
    }

    /// The process is there now.
    pub fn started(&mut self, pid: u32) {
        self.target.pid = Some(pid);
        self.look();
    }

    /// Threads that are there now; `false` once the process is gone.
    pub fn look(&mut self) -> bool {
        let Some(first) = self.target.pid else { return true };
        let mut pids = vec![first];
        if self.target.descendants {
            let root = process::Pid(i32::try_from(first).unwrap_or(0));
            let more = process::descendants(root);
            pids.extend(more.into_iter().filter_map(|p| u32::try_from(p.0).ok()));
        }
        let mut alive = BTreeSet::new();
        for pid in pids {
            let Ok(entries) = self.root.list(&format!("/proc/{pid}/task")) else { continue };
            for tid in entries.iter().filter_map(|t| t.parse::<u32>().ok()) {
                if self.one(pid, tid) {
                    alive.extend(i32::try_from(tid));
                }
            }
        }
        let is_alive = !alive.is_empty();
        self.recording.syscalls_of(&alive);
        is_alive
    }

    fn one(&mut self, pid: u32, tid: u32) -> bool {
        let Ok(key) = i32::try_from(tid) else { return false };
        let Ok(thread) = threads::thread(&self.root, tid) else { return false };
        if self.known.len() >= THREADS_MAX && !self.known.contains_key(&key) {
            self.left_out = true;
            return true;
        }
        let wanted = (self.target.comm.is_empty() || self.target.comm.contains(&thread.name))
            && (!self.target.realtime || thread.policy.is_realtime());
        let followed = wanted || self.known.get(&key).is_some_and(|k| k.followed);
        if followed {
            self.sink.watch(key);
            self.recording.stacks_of(key);
        }
        self.sink.name_thread(key, &thread.name);
        self.known
            .insert(key, ThreadListing { pid, name: thread.name, policy: thread.policy, followed });
        true
    }

    /// Takes what happened since the last call; `also` sees every event too. To be called ten times a second.
    pub fn poll(&mut self, also: &mut dyn FnMut(&Entry)) {
        let until = self.recording.take_in();
        self.find_begun();
        let sink = &mut self.sink;
        sink.polls();
        self.recording.hand_over(until, &mut |seen| take(sink, seen, also));
        self.sink.polled();
    }

    /// Threads that the program began are found before anything that they did is handed over.
    fn find_begun(&mut self) {
        let begun = self.recording.take_begun();
        if begun.is_empty() || self.target.pid.is_none() {
            return;
        }
        self.look();
        for (tid, comm) in begun {
            // One that was gone before it could be looked up has the name of whoever began it.
            if !self.known.contains_key(&tid) {
                self.sink.name_thread(tid, comm.as_str());
            }
        }
    }

    /// The same, to take something out.
    pub fn so_far_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// What is known so far.
    #[must_use]
    pub fn so_far(&self) -> &S {
        &self.sink
    }

    /// The threads that are or were there.
    #[must_use]
    pub fn known(&self) -> &BTreeMap<i32, ThreadListing> {
        &self.known
    }

    /// What recording one event costs, where it could be measured.
    #[must_use]
    pub fn event_ns(&self) -> Option<i64> {
        self.recording.event_ns()
    }

    /// Ends it.
    pub fn end(mut self, also: &mut dyn FnMut(&Entry)) -> WatchEnd<S> {
        self.recording.stop();
        self.recording.take_in();
        self.find_begun();
        let mut sink = self.sink;
        sink.polls();
        let mut recorded = self.recording.end(&mut |seen| take(&mut sink, seen, also));
        sink.polled();
        if self.left_out {
            recorded
                .notes
                .push(format!("more than {THREADS_MAX} threads: the others are not followed"));
        }
        WatchEnd { sink, known: self.known, recorded }
    }
}

/// From a quarter of this on a wait of a watched thread's cycle gets the stack, or the owner of its lock.
const CYCLE_STACKS_NS: i64 = 200_000;

impl Watching<WithRules<Cycles>> {
    /// Kernel stacks of those who keep the threads off their CPU, and who had the locks they waited for, where this kernel
    /// and user allow it. To be called once, before the first poll.
    pub fn with_stacks(&mut self) {
        self.recording.with_stacks(&self.root, WaitNotes::LeftOut);
        self.stacks_of_followed();
        self.recording.late_above(CYCLE_STACKS_NS);
    }

    /// Lays stacks and owners onto the longest cycles and latest wake-ups so far.
    pub fn take_stacks(&mut self) {
        self.recording.stacks_onto_cycles(self.sink.inner.records_mut());
    }
}

impl<S> Watching<S> {
    fn stacks_of_followed(&mut self) {
        let followed = self.known.iter().filter(|(_, k)| k.followed).map(|(tid, _)| *tid);
        followed.for_each(|tid| self.recording.stacks_of(tid));
    }
}

impl Watching<Follow> {
    /// Kernel stacks of those who keep the threads off their CPU, where this kernel and user allow it. To be
    /// called once, before the first poll.
    pub fn with_stacks(&mut self) {
        self.recording.with_stacks(&self.root, WaitNotes::Told);
        self.stacks_of_followed();
        self.recording.late_above(self.sink.kept_above_ns());
    }

    /// Lays stacks onto the wake-ups taken apart; of those that are to come only what would be kept counts.
    pub fn take_stacks(&mut self) {
        let known = &self.known;
        let is = |name: &str, tid: i32| known.get(&tid).is_some_and(|k| k.name == name);
        self.recording.stacks_onto(self.sink.records_mut(), &is);
        self.recording.late_above(self.sink.kept_above_ns());
    }
}

fn take(sink: &mut impl Sink, seen: RecordingItem<'_>, also: &mut dyn FnMut(&Entry)) {
    match seen {
        RecordingItem::Entry(e) => {
            sink.entry(e);
            also(e);
        }
        RecordingItem::Lost(t_ns) => sink.lost(t_ns),
    }
}
