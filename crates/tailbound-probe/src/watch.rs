// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads of somebody else's program: found in /proc, followed by the kernel's events, never
//! stopped or changed.
//!
//! Context: SETUP (`begin`), COLD. Units: ns.
//! Not here: what is said about them (`tailbound-report`), the program's start (the command line).

use std::collections::BTreeMap;
use std::path::Path;

use tailbound_host::{Root, threads};
use tailbound_sys::process;
use tailbound_trace::blame::{Follow, Found, Ground, Wanted, Watched};
use tailbound_trace::event::Entry;

use crate::observe::ObserveError;
use crate::recording::{Recorded, Recording, Seen};

/// Most threads that are followed.
const THREADS_MAX: usize = 1024;

/// Whose threads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The process.
    pub pid: u32,
    /// And those it starts.
    pub descendants: bool,
    /// Threads of these names alone, or all.
    pub comm: Vec<String>,
}

/// A thread that is followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its process.
    pub pid: u32,
    /// Its name when it was last looked at.
    pub name: String,
    /// Its policy then.
    pub policy: tailbound_core::Policy,
}

/// See the module.
pub struct Watching {
    root: Root,
    recording: Recording,
    follow: Follow,
    target: Target,
    known: BTreeMap<i32, Known>,
    left_out: bool,
}

/// What watching came to.
#[derive(Debug)]
pub struct WatchEnd {
    /// The wake-ups.
    pub found: Found,
    /// The threads.
    pub known: BTreeMap<i32, Known>,
    /// The recording.
    pub recorded: Recorded,
}

impl Watching {
    /// Begins with the threads that are there.
    ///
    /// # Errors
    /// [`ObserveError`]; nothing is left behind then.
    pub fn begin(
        root: Root,
        exe: &Path,
        target: Target,
        wanted: Wanted,
        virtual_machine: Option<bool>,
        syscalls: bool,
    ) -> Result<Self, ObserveError> {
        let recording = Recording::begin(&root, exe, syscalls)?;
        let ground = Ground {
            virtual_machine,
            event_ns: recording.event_ns().unwrap_or(0),
            ..Ground::default()
        };
        let watched = Watched::Threads(std::collections::BTreeSet::new());
        let follow = Follow::new(watched, recording.symbols(), ground, wanted);
        let mut watching =
            Self { root, recording, follow, target, known: BTreeMap::new(), left_out: false };
        watching.look();
        Ok(watching)
    }

    /// Threads that are there now; `false` once the process is gone.
    pub fn look(&mut self) -> bool {
        let mut pids = vec![self.target.pid];
        if self.target.descendants {
            let root = process::Pid(i32::try_from(self.target.pid).unwrap_or(0));
            let more = process::descendants(root);
            pids.extend(more.into_iter().filter_map(|p| u32::try_from(p.0).ok()));
        }
        let mut there = false;
        for pid in pids {
            let Ok(entries) = self.root.list(&format!("/proc/{pid}/task")) else { continue };
            there = true;
            for tid in entries.iter().filter_map(|t| t.parse::<u32>().ok()) {
                self.one(pid, tid);
            }
        }
        let tids: Vec<i32> = self.known.keys().copied().collect();
        self.recording.syscalls_of(&tids);
        there
    }

    fn one(&mut self, pid: u32, tid: u32) {
        let Ok(key) = i32::try_from(tid) else { return };
        let Ok(thread) = threads::thread(&self.root, tid) else { return };
        if !self.target.comm.is_empty() && !self.target.comm.contains(&thread.name) {
            return;
        }
        if self.known.len() >= THREADS_MAX && !self.known.contains_key(&key) {
            self.left_out = true;
            return;
        }
        self.follow.watch(key);
        self.follow.name_thread(key, &thread.name);
        self.known.insert(key, Known { pid, name: thread.name, policy: thread.policy });
    }

    /// Takes what happened since the last call; `also` sees every event too. To be called ten times a second.
    pub fn poll(&mut self, also: &mut dyn FnMut(&Entry)) {
        let follow = &mut self.follow;
        self.recording.poll(&mut |seen| take(follow, seen, also));
    }

    /// What is known so far.
    #[must_use]
    pub fn so_far(&self) -> &Found {
        self.follow.so_far()
    }

    /// The followed threads.
    #[must_use]
    pub fn known(&self) -> &BTreeMap<i32, Known> {
        &self.known
    }

    /// What recording one event costs, where it could be measured.
    #[must_use]
    pub fn event_ns(&self) -> Option<i64> {
        self.recording.event_ns()
    }

    /// Ends it.
    pub fn end(self, also: &mut dyn FnMut(&Entry)) -> WatchEnd {
        let mut follow = self.follow;
        let mut recorded = self.recording.end(&mut |seen| take(&mut follow, seen, also));
        if self.left_out {
            recorded
                .notes
                .push(format!("more than {THREADS_MAX} threads: the others are not followed"));
        }
        WatchEnd { found: follow.finish(), known: self.known, recorded }
    }
}

fn take(follow: &mut Follow, seen: Seen<'_>, also: &mut dyn FnMut(&Entry)) {
    match seen {
        Seen::Entry(e) => {
            follow.entry(e);
            also(e);
        }
        Seen::Lost(t_ns) => follow.lost(t_ns),
    }
}
