// SPDX-License-Identifier: MIT OR Apache-2.0
//! Programs in the kernel beside the events: stacks of those who kept a watched thread off its CPU,
//! taken over a threshold alone; owners of locks; and a histogram of each watched thread's wait for a CPU.
//!
//! Context: SETUP (`begin`, `watch`), COLD (`poll`, `end`). Units: ns.
//! The programs are put together here and now, with the places of the kernel's fields as its own type
//! description (BTF) tells them: no compiler, and nothing to ship. Everything hangs on descriptors of this
//! process, so that nothing stays when it ends, however. (The crate aya was considered: it loads objects
//! that a compiler for BPF made, which would be needed at build time or shipped as a binary; five
//! programs of a hundred instructions need neither.)
//! Not here: the bpf(2) calls (`tailbound_sys::bpf`), what a stack means (`tailbound_trace::blame::BlameNote`).

mod layout;
mod programs;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tailbound_core::Finding;
use tailbound_core::blame::BlameRecord;
use tailbound_core::finding::Impact;
use tailbound_core::units::{format_ns_i64, grouped};
use tailbound_host::Root;
use tailbound_sys::SysError;
use tailbound_sys::bpf::{Attached, Map, MapKind, Program, Ring};
use tailbound_trace::blame::{BlameNote, BlameNoteKind};
use tailbound_trace::bpf::assembler::JumpError;
use tailbound_trace::bpf::classes;
use tailbound_trace::btf::{Btf, BtfError};
use tailbound_trace::symbols::Symbols;

use crate::recording::WaitNotes;
use layout::{CLASSES, Kernel, filter, settings, told, watched};
use programs::{Maker, Maps};

/// Most threads that are watched.
const THREADS_MAX: u32 = 512;
/// Bytes of the ring: some six hundred records, between two looks.
const RING_BYTES: u32 = 256 << 10;
/// Largest description of a kernel's types.
const BTF_MAX: u64 = 64 << 20;
/// A stack is taken from a quarter of the limit on: a wake-up that is beyond it has a part that is at least
/// so long, of the two that programs see.
const SHARE: i64 = 4;
/// And never below this: taking one costs some microseconds.
const LEAST_NS: i64 = 10_000;
/// Most records kept until their wake-up is taken apart.
const KEPT_MAX: usize = 4096;
/// Longest waits for locks that are kept, and told.
const LOCKS_MAX: usize = 64;
const LOCKS_TOLD: usize = 5;
/// Records of this age belong to no wake-up that is still to come.
const KEPT_NS: i64 = 5_000_000_000;

/// Why there are no stacks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BpfError {
    #[error("{0}")]
    Types(String),
    #[error("{0}")]
    Btf(#[from] BtfError),
    #[error("{0}")]
    System(#[from] SysError),
    #[error("{0}")]
    Jump(String),
}

/// How long one thread waited for a CPU, in the kernel's own count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Waited {
    pub(crate) n: u64,
    pub(crate) mean_ns: i64,
    pub(crate) max_ns: i64,
    /// Classes of a quarter of a power of two: at most so much in 99.9 of 100.
    pub(crate) p999_ns: i64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tier {
    maps: Maps,
    ring: Ring,
    _attached: Vec<Attached>,
    symbols: Arc<Symbols>,
    watched: BTreeSet<i32>,
    kept: Vec<BlameNote>,
    /// The longest waits for locks, the longest first.
    locks: Vec<BlameNote>,
    notes: Vec<String>,
    threshold_ns: i64,
}

impl Tier {
    /// Loads the programs and lets them run; no thread is watched yet.
    ///
    /// # Errors
    /// [`BpfError`]: no BTF, not allowed, the kernel does not take one that is needed.
    pub(crate) fn begin(root: &Root, symbols: Arc<Symbols>) -> Result<Self, BpfError> {
        let bytes = root
            .bytes("/sys/kernel/btf/vmlinux", BTF_MAX)
            .map_err(|e| BpfError::Types(format!("/sys/kernel/btf/vmlinux: {}", e.reason())))?;
        let kernel = Kernel::of(&Btf::parse(&bytes)?, &symbols)?;
        let maps = Maps {
            watched: Map::make(MapKind::Hash, 4, watched::BYTES, THREADS_MAX, "tb_watched")?,
            filter: Map::make(MapKind::Array, 4, filter::BYTES, 1, "tb_filter")?,
            settings: Map::make(MapKind::Array, 4, settings::BYTES, 1, "tb_settings")?,
            ring: Map::make(MapKind::Ring, 0, 0, RING_BYTES, "tb_ring")?,
        };
        let ring = Ring::open(&maps.ring, RING_BYTES as usize)?;
        let mut notes = Vec::new();
        let attached = attach(&kernel, &maps, &mut notes)?;
        let mut tier = Self {
            maps,
            ring,
            _attached: attached,
            symbols,
            watched: BTreeSet::new(),
            kept: Vec::new(),
            locks: Vec::new(),
            notes,
            threshold_ns: i64::MAX,
        };
        // Nothing is told before a threshold is known.
        tier.set_threshold(i64::MAX)?;
        Ok(tier)
    }

    /// Late wake-ups are wanted above `limit_ns`.
    pub(crate) fn limit(&mut self, limit_ns: i64) {
        let threshold = (limit_ns / SHARE).max(LEAST_NS);
        if threshold != self.threshold_ns
            && let Err(e) = self.set_threshold(threshold)
        {
            self.notes.push(format!("{e}: the threshold of stacks stays"));
        }
    }

    fn set_threshold(&mut self, ns: i64) -> Result<(), SysError> {
        let mut value = [0; settings::BYTES];
        let lost = self.lost().to_ne_bytes();
        let words = [ns.max(0).cast_unsigned().to_ne_bytes(), lost];
        value.iter_mut().zip(words.as_flattened()).for_each(|(to, from)| *to = *from);
        self.maps.settings.set(&0u32.to_ne_bytes(), &value)?;
        self.threshold_ns = ns;
        Ok(())
    }

    /// From what wait on stacks are taken.
    pub(crate) fn threshold_ns(&self) -> i64 {
        self.threshold_ns
    }

    /// One thread more is watched.
    pub(crate) fn watch(&mut self, tid: i32) {
        if self.watched.contains(&tid) || self.watched.len() >= THREADS_MAX as usize {
            return;
        }
        let set = self.maps.watched.set(&tid.to_ne_bytes(), &[0; watched::BYTES]);
        let places = self.watched.iter().chain([&tid]);
        let mut bytes = vec![0; filter::BYTES];
        for tid in places {
            let place = usize::try_from(tid & filter::MASK).unwrap_or(0);
            bytes.iter_mut().skip(place).take(1).for_each(|b| *b = 1);
        }
        match set.and_then(|()| self.maps.filter.set(&0u32.to_ne_bytes(), &bytes)) {
            Ok(()) => {
                self.watched.insert(tid);
            }
            Err(e) => self.notes.push(format!("{e}: no stacks of thread {tid}")),
        }
    }

    /// Takes what was told since the last call; `apart_ns` is what the trace's clock is ahead of CLOCK_MONOTONIC.
    pub(crate) fn poll(&mut self, apart_ns: i64) {
        let (kept, symbols) = (&mut self.kept, &self.symbols);
        let locks = &mut self.locks;
        self.ring.read(&mut |bytes| {
            let Some(told) = record::read(bytes, symbols, apart_ns) else { return };
            if told.kind == BlameNoteKind::Lock {
                let place = locks.partition_point(|l| l.latency_ns >= told.latency_ns);
                if place < LOCKS_MAX {
                    locks.insert(place, told.clone());
                    locks.truncate(LOCKS_MAX);
                }
            }
            kept.push(told);
        });
        if let Some(newest) = self.kept.iter().map(|t| t.t_ns).max() {
            self.kept.retain(|t| t.t_ns >= newest.saturating_sub(KEPT_NS));
        }
        let beyond = self.kept.len().saturating_sub(KEPT_MAX);
        self.kept.drain(..beyond);
    }

    /// Lays what was told of a thread that `is` the one onto its late wake-up, due at `due_ns` of the trace's clock; `true` where
    /// something explained it.
    /// Each is laid onto one record alone.
    pub(crate) fn onto(
        &mut self,
        record: &mut BlameRecord,
        due_ns: i64,
        is: impl Fn(i32) -> bool,
    ) -> bool {
        let before = self.kept.len();
        self.kept.retain(|told| !(is(told.tid) && told.onto(record, due_ns)));
        self.kept.len() < before
    }

    /// The same for a cycle of thread `tid`.
    pub(crate) fn onto_cycle(&mut self, record: &mut BlameRecord, tid: i32) {
        self.kept.retain(|told| !(told.tid == tid && told.onto_cycle(record)));
    }

    /// The oldest that was laid onto nothing yet.
    pub(crate) fn oldest_ns(&self) -> Option<i64> {
        self.kept.iter().map(|t| t.t_ns).min()
    }

    /// The longest waits for locks, the longest first.
    pub(crate) fn locks(&self) -> &[BlameNote] {
        &self.locks
    }

    /// Records that found no room.
    pub(crate) fn lost(&self) -> u64 {
        let value = self.maps.settings.get(&0u32.to_ne_bytes()).unwrap_or_default();
        record::double(&value, settings::LOST).unwrap_or(0)
    }

    /// How long each watched thread waited for a CPU.
    pub(crate) fn waited(&self) -> BTreeMap<i32, Waited> {
        let one = |tid: &i32| {
            let value = self.maps.watched.get(&tid.to_ne_bytes())?;
            Some((*tid, waited(&value)?))
        };
        self.watched.iter().filter_map(one).collect()
    }

    /// What was done on the way.
    pub(crate) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// What a reader should know at the end.
    pub(crate) fn last_words(&self, waits: WaitNotes) -> Vec<String> {
        let mut out = Vec::new();
        let lost = self.lost();
        if lost > 0 {
            out.push(format!(
                "{} stacks found no room: not every late wake-up has one",
                grouped(lost)
            ));
        }
        for lock in self.locks.iter().filter(|l| !l.owners.is_empty()).take(LOCKS_TOLD) {
            out.push(format!("{}: {}", lock.other, lock.lock_sentence()));
        }
        for (tid, w) in
            self.waited().into_iter().filter(|(_, w)| waits == WaitNotes::Told && w.n > 0)
        {
            out.push(format!(
                "thread {tid}: {} waits for a CPU counted in the kernel: mean {}, 99.9 % at most {}, longest {}",
                grouped(w.n),
                format_ns_i64(w.mean_ns),
                format_ns_i64(w.p999_ns),
                format_ns_i64(w.max_ns)
            ));
        }
        out
    }
}

/// What is lost without programs.
pub(crate) fn lost_finding(why: &BpfError) -> Finding {
    Finding::listed(
        "no-stacks",
        Impact::Notice,
        format!("no kernel stacks of late wake-ups: {why}"),
    )
}

fn attach(
    kernel: &Kernel,
    maps: &Maps,
    notes: &mut Vec<String>,
) -> Result<Vec<Attached>, BpfError> {
    let bad = |e: JumpError| BpfError::Jump(e.to_string());
    let maker = Maker { kernel, maps, registers: true };
    let plain = Maker { registers: false, ..maker };
    let load = |code: &[u64], id: u32, name: &str| {
        Program::load(code, id, name).and_then(|p| p.attach(name))
    };
    // Kernels before 5.15 have no registers for programs.
    let with = maker.switch().map_err(bad)?;
    let without = plain.switch().map_err(bad)?;
    let switch = load(&with, kernel.switch, "sched_switch")
        .or_else(|_| load(&without, kernel.switch, "sched_switch"))?;
    let mut out = vec![switch, load(&maker.waking().map_err(bad)?, kernel.waking, "sched_waking")?];
    match &kernel.timers {
        Ok(timers) => {
            match load(&maker.timer(timers).map_err(bad)?, timers.event, "hrtimer_expire") {
                Ok(program) => out.push(program),
                Err(e) => notes.push(format!("no stacks of late timers: {e}")),
            }
        }
        Err(why) => notes.push(format!("no stacks of late timers: {why}")),
    }
    match &kernel.locks {
        Ok(locks) => {
            let begin = maker.contention_begin(locks).map_err(bad)?;
            let end = maker.contention_end().map_err(bad)?;
            let both = load(&begin, locks.begin, "contention_beg")
                .and_then(|b| Ok([b, load(&end, locks.end, "contention_end")?]));
            match both {
                Ok(both) => out.extend(both),
                Err(e) => notes.push(format!("no owners of the kernel's locks: {e}")),
            }
        }
        Err(why) => notes.push(format!("no owners of the kernel's locks: {why}")),
    }
    if let Err(why) = &kernel.chain {
        notes.push(format!("no owners of locks with priority inheritance: {why}"));
    }
    Ok(out)
}

/// The figures of one thread, from what is kept of it in the kernel.
fn waited(value: &[u8]) -> Option<Waited> {
    let n = record::double(value, watched::N)?;
    let sum = record::double(value, watched::SUM)?;
    let most = record::double(value, watched::MAX)?;
    let mean = sum.checked_div(n)?;
    let wanted = n - n / 1000;
    let mut seen = 0u64;
    let mut p999 = most;
    for class in 0..CLASSES {
        let at = watched::CLASS.checked_add(i16::try_from(class * 8).ok()?)?;
        seen = seen.saturating_add(record::double(value, at)?);
        if seen >= wanted {
            // The upper end of a class, of which the last value is the longest one.
            p999 = most.min(classes::upper(class));
            break;
        }
    }
    let signed = |t: u64| i64::try_from(t).unwrap_or(i64::MAX);
    Some(Waited { n, mean_ns: signed(mean), max_ns: signed(most), p999_ns: signed(p999) })
}

/// Bytes of memory in the kernel: the table, which is taken at once, and the ring.
pub(crate) fn kernel_bytes() -> u64 {
    // A hash table's element has 48 bytes of its own beside key and value.
    let element = watched::BYTES as u64 + 8 + 48;
    u64::from(THREADS_MAX) * element
        + filter::BYTES as u64
        + u64::from(RING_BYTES)
        + told::BYTES as u64
}

#[cfg(test)]
mod tests;
