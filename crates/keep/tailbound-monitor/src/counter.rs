// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs in the kernel, while they count; and what they counted.
//!
//! Context: SETUP ([`Counter::begin`]), COLD. Everything hangs on descriptors of this process: nothing stays in the kernel
//! when it ends, however. What is read is memory: no other CPU is asked or woken for it. Letting the
//! programs run, and taking them away, changes the kernel's code, which interrupts every CPU once.
//! Not here: what they do (`programs`).

use tailbound_core::order;
use tailbound_host::Root;
use tailbound_sys::SysError;
use tailbound_sys::bpf::{Attached, Map, MapKind, Program, Ring, RingWaiter};
use tailbound_sys::clock;
use tailbound_trace::bpf::assembler::JumpError;

use crate::description::{self, TypesError};
use crate::layout::{entry, key, lost, settings};
use crate::programs::{self, Maps, Tells};
use crate::window::{self, Late, ThreadWindow, double, word};

/// Threads of two windows: while one is read the next is filled.
pub(crate) const THREADS_MAX: u32 = 1024;
/// Threads that wait for a CPU at the same time.
const READY_MAX: u32 = 1024;
/// Some seven hundred late wake-ups between two looks.
const RING_BYTES: u32 = 64 << 10;
/// A program that began with the old settings has ended by then: programs take microseconds.
const SETTLED_NS: i64 = 10_000_000;
/// A thread that waits this long for a CPU is one that is real-time no longer.
const ABANDONED_NS: u64 = 3_600_000_000_000;

/// Why nothing can be counted here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CounterError {
    /// The kernel does not describe its types, or has others.
    #[error(transparent)]
    Types(#[from] TypesError),
    /// It does not take the programs.
    #[error("{0}")]
    System(#[from] SysError),
    /// Ours to mend.
    #[error("{0}")]
    Jump(#[from] JumpError),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Counter {
    maps: Maps,
    ring: Ring,
    _attached: Vec<Attached>,
    half: u32,
    threshold_ns: u64,
}

/// As [`settings`] lays them out: a word, nothing, a number.
fn told_to_programs(half: u32, threshold_ns: u64) -> Vec<u8> {
    let half = half.to_ne_bytes();
    [half.as_slice(), &[0; 4], &threshold_ns.to_ne_bytes()].concat()
}

const FIRST: [u8; 4] = [0; 4];

impl Counter {
    /// Loads the programs and lets them count.
    ///
    /// # Errors
    /// [`CounterError`].
    pub(crate) fn begin(
        root: &Root,
        threshold_ns: Option<u64>,
        tells: Tells,
    ) -> Result<Self, CounterError> {
        let kernel = description::read(root)?;
        let maps = Maps {
            ready: Map::make(MapKind::Hash, 4, 8, READY_MAX, "tb_ready")?,
            threads: Map::make(MapKind::Hash, key::BYTES, entry::BYTES, THREADS_MAX, "tb_threads")?,
            empty: Map::make(MapKind::Array, 4, entry::BYTES, 1, "tb_empty")?,
            settings: Map::make(MapKind::Array, 4, settings::BYTES, 1, "tb_settings")?,
            lost: Map::make(MapKind::Array, 4, lost::BYTES, 1, "tb_lost")?,
            ring: Map::make(MapKind::Ring, 0, 0, RING_BYTES, "tb_late")?,
        };
        let ring = Ring::open(&maps.ring, RING_BYTES as usize)?;
        let threshold_ns = threshold_ns.unwrap_or(u64::MAX);
        maps.settings.set(&FIRST, &told_to_programs(0, threshold_ns))?;
        let waking = programs::waking(kernel, &maps)?;
        let switch = programs::switch(kernel, &maps, tells)?;
        // The one that empties is there before the one that fills.
        let attached = vec![
            Program::load(&switch, kernel.switch, "tb_switch")?.attach("sched_switch")?,
            Program::load(&waking, kernel.waking, "tb_waking")?.attach("sched_waking")?,
        ];
        Ok(Self { maps, ring, _attached: attached, half: 0, threshold_ns })
    }

    /// What waits for a late wake-up.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn waiter(&self) -> Result<RingWaiter, SysError> {
        RingWaiter::of(&self.maps.ring)
    }

    fn keys(&self, half: u32) -> impl Iterator<Item = Vec<u8>> {
        let keys = self.maps.threads.keys(THREADS_MAX as usize);
        keys.into_iter().filter(move |k| word(k, key::HALF) == Some(half))
    }

    /// What the window under way has so far.
    pub(crate) fn so_far(&self) -> Vec<ThreadWindow> {
        let one = |k: Vec<u8>| window::thread(&k, &self.maps.threads.get(&k)?);
        self.keys(self.half).filter_map(one).collect()
    }

    /// Ends the window: what it had.
    ///
    /// # Errors
    /// What the kernel refuses: then the window goes on.
    pub(crate) fn turn(&mut self) -> Result<Vec<ThreadWindow>, SysError> {
        let (old, new) = (self.half, 1 - self.half.min(1));
        self.maps.settings.set(&FIRST, &told_to_programs(new, self.threshold_ns))?;
        self.half = new;
        let now = clock::now_ns(clock::CLOCK_MONOTONIC);
        clock::sleep_until(clock::CLOCK_MONOTONIC, now.saturating_add(SETTLED_NS));
        let mut threads = Vec::new();
        for k in self.keys(old) {
            let value = self.maps.threads.get(&k);
            self.maps.threads.remove(&k);
            threads.extend(value.and_then(|v| window::thread(&k, &v)));
        }
        self.forget_abandoned(now.max(0).cast_unsigned());
        threads.retain(|t| t.n > 0);
        order::by(&mut threads, |a, b| {
            b.worst.wait_ns.cmp(&a.worst.wait_ns).then(a.tid.cmp(&b.tid))
        });
        Ok(threads)
    }

    fn forget_abandoned(&self, now_ns: u64) {
        for k in self.maps.ready.keys(READY_MAX as usize) {
            let since = self.maps.ready.get(&k).and_then(|v| double(&v, 0));
            if since.is_some_and(|t| now_ns.saturating_sub(t) > ABANDONED_NS) {
                self.maps.ready.remove(&k);
            }
        }
    }

    /// The late wake-ups since the last look.
    pub(crate) fn late(&mut self, each: &mut dyn FnMut(Late)) {
        self.ring.read(&mut |bytes| {
            if let Some(late) = window::told(bytes) {
                each(late);
            }
        });
    }

    /// Since the begin: wake-ups that found no room, and late ones that were counted alone.
    pub(crate) fn lost(&self) -> (u64, u64) {
        let value = self.maps.lost.get(&FIRST).unwrap_or_default();
        let at = |place| double(&value, place).unwrap_or(0);
        (at(lost::WAKEUPS), at(lost::LATE))
    }
}
