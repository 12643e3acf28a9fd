// SPDX-License-Identifier: MIT OR Apache-2.0
//! The polling loop's view of the machine: the counter, who had the CPU, work, and rest.
//!
//! Context: HOT in the loop ([`Counter`], [`Rest`]), SETUP (the rest). Units: ticks, ns, bytes.
//! Who had the CPU: whether the kernel was entered the CPU tells itself, in a register; whether
//! another task ran meanwhile tell the thread's own switches (one system call after a gap). Where the
//! register tells nothing and the probe needs to know, `/proc/interrupts` is read after each gap.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};

use tailbound_rt::cyclic::{Port, Wake};
use tailbound_rt::poll::Rest;
use tailbound_rt::ticks::{Counter, Taker};
use tailbound_sys::clock::Nanosleep;
use tailbound_sys::{counter, limits};

use crate::noise::gauge::KernelEntries;
use crate::noise::interrupts::Column;

/// Most work that a turn may have: 64 MiB moved.
pub(super) const WORK_MAX: u64 = 64 << 20;
/// Calibration ends after this many turns, or after [`CALIBRATION_TICKS_MAX`] once it has [`TURNS_MIN`].
const TURNS: usize = 512;
const TURNS_MIN: usize = 16;
const CALIBRATION_TICKS_MAX: u64 = 400_000;

/// A planted fault of the drain: stands still now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    pub(super) every_ticks: u64,
    pub(super) ticks: u64,
}

/// One thread's view.
#[derive(Debug)]
pub(super) struct Poller {
    entries: KernelEntries,
    switches: u64,
    column: Option<Column>,
    interrupts: u64,
    from: Vec<u8>,
    to: Vec<u8>,
    stall: Option<(Stall, u64)>,
}

impl Poller {
    /// `bytes` are moved in every turn of the loop.
    pub(super) fn new(entries: KernelEntries, column: Option<Column>, bytes: usize) -> Self {
        Self {
            entries,
            switches: switches(),
            column,
            interrupts: 0,
            // Written, so that the pages are there.
            from: vec![1; bytes],
            to: vec![2; bytes],
            stall: None,
        }
    }

    pub(super) fn stalls(&mut self, stall: Option<Stall>) {
        self.stall = stall.map(|s| (s, counter::ticks()));
    }

    /// What an undisturbed turn takes: the median of some hundred.
    pub(super) fn turn_ticks(&mut self) -> u64 {
        let mut turns = [0u64; TURNS];
        let mut n = 0;
        let begin = self.ticks();
        let mut last = begin;
        for slot in &mut turns {
            self.work();
            let now = self.ticks();
            *slot = now.wrapping_sub(last);
            last = now;
            n += 1;
            if n >= TURNS_MIN && now.wrapping_sub(begin) > CALIBRATION_TICKS_MAX {
                break;
            }
        }
        let (done, _) = turns.split_at_mut(n);
        done.sort_unstable();
        done.get(n / 2).copied().unwrap_or(0).max(1)
    }
}

fn switches() -> u64 {
    let used = limits::thread_usage();
    used.voluntary_switches.saturating_add(used.involuntary_switches)
}

impl Counter for Poller {
    #[inline(always)]
    fn ticks(&mut self) -> u64 {
        counter::ticks()
    }

    fn taker(&mut self) -> Taker {
        if self.entries == KernelEntries::Reported && counter::armed() {
            return Taker::Outside;
        }
        let switches = switches();
        let switched = switches != self.switches;
        self.switches = switches;
        if switched {
            return Taker::Task;
        }
        if self.entries == KernelEntries::Reported {
            return Taker::Interrupt;
        }
        match self.column.as_mut().and_then(Column::sum) {
            None => Taker::Unknown,
            Some(sum) if sum == self.interrupts => Taker::Outside,
            Some(sum) => {
                self.interrupts = sum;
                Taker::Interrupt
            }
        }
    }

    fn arm(&mut self) {
        if self.entries == KernelEntries::Reported {
            counter::arm();
        }
    }

    #[inline]
    fn work(&mut self) {
        if !self.from.is_empty() {
            self.to.copy_from_slice(black_box(&self.from));
            black_box(&self.to);
        }
        if let Some((stall, since)) = &mut self.stall {
            let now = counter::ticks();
            if now.wrapping_sub(*since) >= stall.every_ticks {
                *since = now;
                while counter::ticks().wrapping_sub(now) < stall.ticks {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// Rests once a window until its end.
#[derive(Debug)]
pub(super) struct Nap {
    pub(super) sleep: Nanosleep,
    pub(super) first_ns: i64,
    pub(super) polled_ns: Option<i64>,
    pub(super) stop: &'static AtomicBool,
}

impl Rest for Nap {
    #[inline]
    fn polled_ns(&self) -> Option<i64> {
        self.polled_ns
    }
    fn until(&mut self, ns: i64) {
        let due = self.first_ns.saturating_add(ns);
        while self.sleep.sleep_until(due) == Wake::Interrupted && !self.stop.load(Ordering::Relaxed)
        {
        }
    }
}
