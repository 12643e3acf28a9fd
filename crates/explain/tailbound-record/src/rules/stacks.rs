// SPDX-License-Identifier: MIT OR Apache-2.0
//! The user stacks of watched threads: taken at system calls and page faults, unwound when a
//! violation asks for one.
//!
//! Context: SETUP (`watch`), COLD. Units: ns of CLOCK_MONOTONIC. A second tier: without performance
//! events there are no stacks, and each says why.
//! Not here: copying registers and stack (`tailbound-sys`), unwinding (`tailbound-trace`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use tailbound_core::rules::Stack;
use tailbound_host::{Missing, Root, Tracefs};
use tailbound_sys::given;
use tailbound_sys::perf_stacks::{
    PROGRAM_COUNTER, Room, STACK_BYTES, STACK_POINTER, StackSample, StackSamples, Trigger,
};
use tailbound_trace::stack::{Machine, Maps, Module, Snapshot, Unwinder};

/// Bytes of a thread's samples that are looked at together: no fewer than its ring has room for.
const KEPT_BYTES: usize = 4 << 20;
/// Samples that stay for violations that are told later: when a cycle or a lock has ended.
const STAY_MAX: usize = 256;
/// Places where copies of a thread's stack ended that are remembered: the stacks' ends, so one or two.
const ENDS_MAX: usize = 64;
/// Threads whose stacks are taken: each has a ring of its own.
const THREADS_MAX: usize = 32;
/// The first of them have much room.
const LARGE_MAX: usize = 8;
/// A sample and the event of the trace are made one after the other; an interrupt may come between.
const APART_NS: u64 = 50_000;
/// Bytes that the kernel copies in one go.
const COPY_STEP: u64 = 64;
/// No program or library is larger.
const FILE_MAX: u64 = 1 << 30;

/// Whether the watched threads are made to copy their stacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UserStacks {
    /// At each violation.
    Taken,
    /// Never.
    LeftOut,
}

/// Why there is no stack of a moment.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum NoSample {
    /// None can be taken of system calls, or of this thread.
    #[error("{0}")]
    Refused(String),
    #[error("the tracepoint of system calls has no number")]
    NoTracepoint,
    #[error("{0} samples of stacks found no room")]
    Lost(u64),
    #[error("no sample was taken at that time")]
    NotThen,
}

/// What made the kernel take a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SampleCause {
    SystemCall,
    PageFault,
}

struct Thread {
    samples: Result<StackSamples, NoSample>,
    kept: VecDeque<StackSample>,
    /// Bytes of stack in `kept`.
    kept_bytes: usize,
    /// Addresses at which copies ended before they were whole.
    ends: BTreeSet<u64>,
    maps: Maps,
}

impl Thread {
    fn poll(&mut self) {
        // What the last look needed it has had.
        let beyond = self.kept.len().saturating_sub(STAY_MAX);
        let gone: usize = self.kept.drain(..beyond).map(|s| s.stack.len()).sum();
        self.kept_bytes = self.kept_bytes.saturating_sub(gone);
        let (kept, bytes, ends) = (&mut self.kept, &mut self.kept_bytes, &mut self.ends);
        let Ok(samples) = &mut self.samples else { return };
        samples.read(&mut |sample| {
            if let Some(end) = end_of_copy(&sample)
                && ends.len() < ENDS_MAX
            {
                ends.insert(end);
            }
            *bytes += sample.stack.len();
            kept.push_back(sample);
            while *bytes > KEPT_BYTES {
                let Some(oldest) = kept.pop_front() else { break };
                *bytes = bytes.saturating_sub(oldest.stack.len());
            }
        });
    }

    fn nearest(&self, t_ns: u64, cause: SampleCause) -> Result<&StackSample, NoSample> {
        let samples = self.samples.as_ref().map_err(Clone::clone)?;
        let fault = cause == SampleCause::PageFault;
        let of_kind = self.kept.iter().filter(|s| s.fault == fault);
        let found = of_kind.min_by_key(|s| s.t_ns.abs_diff(t_ns));
        match found.filter(|s| s.t_ns.abs_diff(t_ns) <= APART_NS) {
            Some(sample) => Ok(sample),
            None if samples.lost() > 0 => Err(NoSample::Lost(samples.lost())),
            None => Err(NoSample::NotThen),
        }
    }
}

/// See the module.
pub(super) struct Stacks {
    root: Root,
    /// Stacks are not wanted.
    off: bool,
    /// The number of the tracepoint of system calls.
    calls: Result<u64, NoSample>,
    threads: BTreeMap<i32, Thread>,
    modules: BTreeMap<String, Option<Module>>,
}

impl Stacks {
    pub(super) fn new(root: &Root, wanted: UserStacks) -> Self {
        let id = || {
            let refused = |why: String| NoSample::Refused(why);
            let tracefs = Tracefs::find(root).map_err(|e| refused(e.to_string()))?;
            let text = tracefs.read("events/raw_syscalls/sys_enter/id");
            let text = text.map_err(|e: Missing| refused(e.reason().to_owned()))?;
            text.trim().parse().map_err(|_| NoSample::NoTracepoint)
        };
        Self {
            root: root.clone(),
            off: wanted == UserStacks::LeftOut,
            calls: id(),
            threads: BTreeMap::new(),
            modules: BTreeMap::new(),
        }
    }

    /// From here on stacks of this thread are taken.
    pub(super) fn watch(&mut self, tid: i32) {
        if self.off || self.threads.contains_key(&tid) {
            return;
        }
        if self.threads.len() >= THREADS_MAX {
            let root = &self.root;
            self.threads.retain(|tid, _| root.exists(&format!("/proc/{tid}")));
        }
        if self.threads.len() >= THREADS_MAX {
            return;
        }
        let calls = self.calls.iter().map(|id| Trigger::Tracepoint(*id));
        let triggers: Vec<Trigger> = calls.chain([Trigger::PageFault]).collect();
        let room = if self.threads.len() < LARGE_MAX { Room::Large } else { Room::Small };
        let samples =
            StackSamples::open(tid, &triggers, room).map_err(|e| NoSample::Refused(e.to_string()));
        let maps = maps(&self.root, tid);
        let (kept, ends) = (VecDeque::new(), BTreeSet::new());
        self.threads.insert(tid, Thread { samples, kept, kept_bytes: 0, ends, maps });
    }

    /// Takes what the kernel copied since the last call.
    pub(super) fn poll(&mut self) {
        for (tid, thread) in &mut self.threads {
            thread.poll();
            // A library was loaded, or another program: where the latest sample is must be known.
            let latest = thread.kept.back();
            let known = |s: &StackSample| pc(s).is_none_or(|pc| thread.maps.find(pc).is_some());
            if !latest.is_none_or(known) {
                let fresh = maps(&self.root, *tid);
                if fresh != Maps::default() {
                    thread.maps = fresh;
                }
            }
        }
    }

    /// Was it we who touched this address: did a copy of this thread's stack ever end there?
    ///
    /// The time is not asked for. Nothing of the program lies behind the end of a stack, and a virtual machine may stand
    /// still between a copy and the kernel's word of it.
    pub(super) fn touched(&self, tid: i32, address: u64) -> bool {
        let Some(thread) = self.threads.get(&tid) else { return false };
        let near = address.saturating_sub(COPY_STEP)..=address.saturating_add(COPY_STEP);
        thread.ends.range(near).next().is_some()
    }

    /// As if a copy of this thread's stack had ended there.
    #[cfg(test)]
    pub(super) fn copied_up_to(&mut self, tid: i32, address: u64) {
        let samples = Err(NoSample::Refused("not taken".to_owned()));
        let (kept, ends) = (VecDeque::new(), BTreeSet::from([address]));
        let thread = Thread { samples, kept, kept_bytes: 0, ends, maps: Maps::default() };
        self.threads.insert(tid, thread);
    }

    /// The stack of a thread at a time, and the program's function in it.
    pub(super) fn at(
        &mut self,
        tid: i32,
        t_ns: u64,
        cause: SampleCause,
    ) -> (Stack, Option<String>) {
        if self.off {
            return (Stack::absent("stacks were not asked for (--no-stacks)"), None);
        }
        let Some(machine) = machine() else {
            return (Stack::absent("stacks are not read on this architecture"), None);
        };
        let Some(thread) = self.threads.get(&tid) else {
            let why = format!("stacks are taken of real-time threads, of {THREADS_MAX} at most");
            return (Stack::absent(why), None);
        };
        let sample = match (&self.calls, thread.nearest(t_ns, cause)) {
            (Err(why), _) if cause == SampleCause::SystemCall => Err(why.clone()),
            (_, found) => found,
        };
        let sample = match sample {
            Ok(sample) => sample,
            Err(why) => return (Stack::absent(why.to_string()), None),
        };
        load(&self.root, tid, thread, sample, &mut self.modules);
        let unwinder = Unwinder { machine, maps: &thread.maps, modules: &self.modules };
        unwinder.unwind(&Snapshot { registers: &sample.registers, stack: &sample.stack })
    }
}

fn machine() -> Option<Machine> {
    match std::env::consts::ARCH {
        "x86_64" => Some(Machine::X86_64),
        "aarch64" => Some(Machine::Arm64),
        "riscv64" => Some(Machine::Riscv64),
        _ => None,
    }
}

/// Where the copy of a stack ended that is shorter than what was asked for.
fn end_of_copy(sample: &StackSample) -> Option<u64> {
    if sample.stack.len() >= STACK_BYTES as usize {
        return None;
    }
    let sp = sample.registers.iter().find(|(number, _)| *number == STACK_POINTER)?.1;
    Some(sp.wrapping_add(sample.stack.len() as u64))
}

fn pc(sample: &StackSample) -> Option<u64> {
    sample.registers.iter().find(|(n, _)| *n == PROGRAM_COUNTER).map(|(_, value)| *value)
}

fn maps(root: &Root, tid: i32) -> Maps {
    root.text(&format!("/proc/{tid}/maps")).map(|text| Maps::parse(&text)).unwrap_or_default()
}

/// Reads the files that words of the stack point into: those that its frames can be in.
fn load(
    root: &Root,
    tid: i32,
    thread: &Thread,
    sample: &StackSample,
    modules: &mut BTreeMap<String, Option<Module>>,
) {
    let words = sample.stack.chunks_exact(8).filter_map(|c| c.first_chunk::<8>());
    let words = words.map(|b| u64::from_le_bytes(*b)).chain(pc(sample));
    let words = words.chain(sample.registers.iter().map(|(_, value)| *value));
    for map in words.filter_map(|w| thread.maps.find(w)) {
        if modules.contains_key(&map.path) {
            continue;
        }
        let path = map.path.as_str();
        let read = |path: String| given::read(Path::new(&root.path(&path)), FILE_MAX).ok();
        let bytes = path.starts_with('/').then(|| {
            // As the program sees it, which may be in a container; where it has ended, as we do.
            read(format!("/proc/{tid}/root{path}")).or_else(|| read(path.to_owned()))
        });
        let module = bytes.flatten().and_then(|bytes| Module::parse(&bytes).ok());
        modules.insert(path.to_owned(), module);
    }
}
