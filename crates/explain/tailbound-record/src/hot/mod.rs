// SPDX-License-Identifier: MIT OR Apache-2.0
//! What CPUs are busy with, by samples: each a moment, with the process and the function that ran.
//!
//! Context: SETUP (`begin`), COLD. Units: ns, samples. Names are looked up while the processes are there: a
//! process that ends between two looks is known by the files that it mapped.
//! Not here: the tally (`tailbound-stats`), the events themselves (`tailbound_sys::perf_cpu`).

mod asked;
mod places;
mod session;

pub use session::{SamplingEnd, SamplingRequest, SamplingStage, sample};

use std::collections::HashMap;

use tailbound_core::sampled::{SampleOwner, Spent};
use tailbound_host::Root;
use tailbound_sys::SysError;
use tailbound_sys::perf::Source;
use tailbound_sys::perf_cpu::CpuSamples;
use tailbound_trace::samples::{FIELDS, Mode, PerfRecord, Sample, record, spent, time_ns};
use tailbound_trace::symbols::Symbols;

use crate::blame::setup::kallsyms;
use crate::error::ObserveError;
use crate::own_trace::first_pid_namespace;
use asked::AskedThreads;
use places::Places;

/// Most names of processes that are kept.
const NAMES_MAX: usize = 1 << 16;
/// Most places of programs that wait for their names.
const PENDING_MAX: usize = 1 << 17;

/// Samples of one place, with names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment<'a> {
    /// The CPU.
    pub cpu: u32,
    /// The process; 0 is the kernel's idle thread.
    pub pid: i32,
    /// Its name, or nothing.
    pub comm: &'a str,
    /// What the time went to.
    pub spent: Spent,
    /// The function, or nothing where it has no name.
    pub function: &'a str,
    /// The program, library, or `kernel`.
    pub object: &'a str,
    /// SampleOwner.
    pub whose: SampleOwner,
    /// So many samples of the same.
    pub n: u64,
}

/// See the module.
pub struct Sampler {
    root: Root,
    rings: Vec<CpuSamples>,
    source: Source,
    symbols: Symbols,
    places: Places,
    names: HashMap<i32, String>,
    asked: Option<AskedThreads>,
    /// Samples of programs whose files were not read yet: CPU, process, whose, file, place in the file.
    pending: HashMap<(u32, i32, SampleOwner, u32, u64), u64>,
    taken: u64,
    lost: u64,
    notes: Vec<String>,
}

/// Samples name processes by their numbers in the opener's PID namespace: those of the machine outside of it have none.
///
/// # Errors
/// [`ObserveError::Namespace`].
pub fn sees_every_process(root: &Root) -> Result<(), ObserveError> {
    first_pid_namespace(root)
}

impl Sampler {
    /// Opens the events of `cpus`, which do not run yet: cycles where this machine counts them, else a clock.
    ///
    /// # Errors
    /// Not allowed, or the kernel has no such events.
    pub fn begin(root: Root, request: &SamplingRequest<'_>) -> Result<Self, SysError> {
        let (cpus, frequency) = (request.cpus, request.frequency_hz);
        let open = |source| -> Result<Vec<CpuSamples>, SysError> {
            cpus.iter().map(|cpu| CpuSamples::open(*cpu, source, frequency, FIELDS)).collect()
        };
        let mut notes = Vec::new();
        let (source, rings) = match open(Source::Cycles) {
            Ok(rings) => (Source::Cycles, rings),
            Err(e) if e.is_permission() => return Err(e),
            Err(_) => (Source::Clock, open(Source::Clock)?),
        };
        let symbols = Symbols::parse(&kallsyms(&root));
        if symbols.is_empty() {
            notes.push("/proc/kallsyms does not tell the kernel's functions (kernel.kptr_restrict): they have no names, and interrupts are not told from the kernel's other work".to_owned());
        }
        Ok(Self {
            root,
            rings,
            source,
            symbols,
            places: Places::default(),
            names: HashMap::new(),
            asked: request.pid.map(|pid| AskedThreads::new(pid, request.comm)),
            pending: HashMap::new(),
            taken: 0,
            lost: 0,
            notes,
        })
    }

    /// What makes the samples.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Lets the events run.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn start(&self) -> Result<(), SysError> {
        self.rings.iter().try_for_each(|r| r.start())
    }

    /// Stops them.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn stop(&self) -> Result<(), SysError> {
        self.rings.iter().try_for_each(|r| r.stop())
    }

    /// Samples so far.
    #[must_use]
    pub fn taken(&self) -> u64 {
        self.taken
    }

    /// Samples that found no room.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// What was done on the way.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Takes the samples since the last call; hands over those whose functions are known already. To be called ten
    /// times a second.
    pub fn poll(&mut self, each: &mut dyn FnMut(&Moment<'_>)) {
        let mut all = Vec::new();
        for ring in &mut self.rings {
            ring.read(&mut |kind, misc, bytes| {
                all.extend(record(kind, misc, bytes).map(|r| (time_ns(kind, bytes), r)));
            });
        }
        // A process is begun on one CPU and goes on on another.
        all.sort_by_key(|(t, _)| *t);
        for (_, one) in all {
            match one {
                PerfRecord::Sample(sample) => self.tell(&sample, each),
                PerfRecord::Comm(pid, tid, name) if pid != tid => {
                    self.asked.iter_mut().for_each(|asked| asked.rename(pid, tid, &name));
                }
                PerfRecord::Comm(pid, tid, name) => {
                    self.asked.iter_mut().for_each(|asked| asked.rename(pid, tid, &name));
                    // It may have become another program.
                    self.places.forget(pid);
                    self.name(pid, name);
                }
                PerfRecord::Fork(pid, parent) => {
                    self.places.fork(pid, parent);
                    if let Some(name) = self.names.get(&parent).filter(|_| pid != parent) {
                        let name = name.clone();
                        self.names.entry(pid).or_insert(name);
                    }
                }
                PerfRecord::Map(pid, begin, length, offset, path) => {
                    self.places.map(pid, begin, length, offset, &path);
                }
                PerfRecord::Lost(n) => self.lost = self.lost.saturating_add(n),
            }
        }
        if self.pending.len() >= PENDING_MAX {
            self.finish(each);
        }
    }

    /// Hands over the rest: the files of programs are read for it, which may take a second.
    pub fn finish(&mut self, each: &mut dyn FnMut(&Moment<'_>)) {
        for ((cpu, pid, whose, file, offset), n) in std::mem::take(&mut self.pending) {
            let (function, object) = self.places.name(&self.root, pid, file, offset);
            let comm = self.names.get(&pid).map_or("", String::as_str);
            let function = &function;
            each(&Moment { cpu, pid, comm, spent: Spent::User, function, object, whose, n });
        }
    }

    fn name(&mut self, pid: i32, name: String) {
        if self.names.len() < NAMES_MAX || self.names.contains_key(&pid) {
            self.names.insert(pid, name);
        }
    }

    fn tell(&mut self, s: &Sample, each: &mut dyn FnMut(&Moment<'_>)) {
        self.taken = self.taken.saturating_add(1);
        if s.pid > 0 && !self.names.contains_key(&s.pid) {
            let comm = self.root.text(&format!("/proc/{}/comm", s.pid)).unwrap_or_default();
            self.name(s.pid, comm.trim_end().to_owned());
        }
        let whose = match &mut self.asked {
            Some(asked) => asked.whose(&self.root, s.pid, s.tid),
            None => SampleOwner::Asked,
        };
        if s.mode == Mode::User
            && let Some((file, offset)) = self.places.locate(&self.root, s.pid, s.address)
        {
            *self.pending.entry((s.cpu, s.pid, whose, file, offset)).or_default() += 1;
            return;
        }
        let comm = match s.pid {
            0 => "idle thread",
            pid => self.names.get(&pid).map_or("", String::as_str),
        };
        let chain = std::iter::once(&s.address).chain(&s.chain);
        let spent = spent(s.pid, s.mode, chain.filter_map(|a| self.symbols.name(*a)));
        let (function, object) = match s.mode {
            Mode::Kernel => (self.symbols.name(s.address).unwrap_or(""), "kernel"),
            _ => ("", ""),
        };
        each(&Moment { cpu: s.cpu, pid: s.pid, comm, spent, function, object, whose, n: 1 });
    }
}
