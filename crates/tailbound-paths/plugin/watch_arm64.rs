// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is particular to watching a 64-bit ARM guest.
//!
//! Context: HOT.
//! A move to `daif` has its value in a register, which is not in memory within a block. QEMU ends the block there, so
//! the next one finds `daif` itself; or an interrupt that was waiting is taken at once, and its vector says that the
//! move enabled interrupts. Where QEMU keeps `daif` and the saved state that eret returns to is found by what they hold: at each
//! vector all four bits, and the mode that the exception came from.

use core::ptr::null;

use crate::arm64::{self, Does};
use crate::record::{kind, state, status};
use crate::watch::{Place, Watch};

/// Words behind the registers among which both are.
const WORDS: usize = 128;
/// Threads whose places are remembered.
const THREADS: usize = 64;

/// A word of the virtual CPU that is looked for by what it holds on two occasions.
struct Search {
    /// Words that it can be, as bits; and which occasion was seen.
    words: u128,
    seen: (bool, bool),
    /// Where it is, once there is only one.
    found: Option<usize>,
}

impl Search {
    const fn new() -> Self {
        Self { words: u128::MAX, seen: (false, false), found: None }
    }
}

/// What is known of a 64-bit ARM guest.
pub struct Arm64 {
    flags: Search,
    saved: Search,
    /// A move to `daif` that has just been executed: when it was over, and where.
    moved: Option<(u64, u64)>,
    /// Where daifclr has just been executed.
    enabled: u64,
    /// From a thread to its count, once it is known.
    count_at: u64,
    /// By the thread's address: where it is in our memory.
    threads: [(u64, *const u8); THREADS],
    thread: *const u8,
    /// Nothing more is looked for.
    whole: bool,
}

impl Arm64 {
    pub const fn new() -> Self {
        Self {
            flags: Search::new(),
            saved: Search::new(),
            moved: None,
            enabled: 0,
            count_at: 0,
            threads: [(0, null()); THREADS],
            thread: null(),
            whole: false,
        }
    }

    /// Preemption count, and the need to reschedule (0: needed) above it.
    #[inline]
    pub fn count(&self) -> u64 {
        if self.thread.is_null() || self.count_at == 0 {
            return 1 << 32;
        }
        // SAFETY: the guest's memory, mapped as long as it lives; a thread begins at a multiple of 64 bytes.
        unsafe { self.thread.add(self.count_at as usize).cast::<u64>().read_volatile() }
    }
}

impl Watch {
    /// Is the current thread known?
    pub fn ready_arm64(&mut self) -> bool {
        self.has_cpu() && self.thread != 0
    }

    /// What is looked for is one of the words of which this is true.
    fn narrow(&mut self, which: fn(&mut Arm64) -> &mut Search, is: impl Fn(u64) -> bool) {
        let mut no = 0;
        for nth in 0..WORDS {
            if !is(self.register(arm64::BEHIND + nth * 8)) {
                no |= 1 << nth;
            }
        }
        let search = which(&mut self.arm64);
        search.words &= !no;
        match (search.words.count_ones(), search.seen) {
            (0, _) => self.status(status::UNKNOWN_CODE),
            (1, (true, true)) => {
                search.found = Some(arm64::BEHIND + search.words.trailing_zeros() as usize * 8);
                self.all_found();
            }
            _ => {}
        }
    }

    /// Nothing is said before all is known.
    fn all_found(&mut self) {
        let a = &self.arm64;
        if !a.whole && a.flags.found.is_some() && a.saved.found.is_some() && a.count_at != 0 {
            self.arm64.whole = true;
            self.found();
        }
    }

    /// Before an instruction that changes the interrupt flag.
    pub fn changes_arm64(&mut self, place: Place, does: Does) {
        if !self.ready_arm64() {
            return;
        }
        if self.state & state::USER != 0 {
            self.status(status::OTHER_ENTRY);
        }
        let after = self.time(place.left - 1);
        match does {
            Does::Disables => self.becomes(after, place.pc, true, false),
            Does::Enables => {
                self.arm64.enabled = place.pc;
                self.becomes(after, place.pc, false, false);
            }
            Does::Moves => self.arm64.moved = Some((after, place.pc)),
            Does::Returns => {
                let Some(at) = self.arm64.saved.found else { return };
                let saved = self.register(at);
                let off = saved & arm64::FLAG_INTERRUPTS != 0;
                self.leaves(after, place.pc, off, saved & arm64::LEVEL == 0);
                self.write(after, kind::LEAVE, place.pc);
            }
            Does::Halts => self.write(self.time(place.left), kind::HALT, place.pc),
            Does::OwnData | Does::Nothing => {}
        }
    }

    /// A block begins behind an instruction that changed `daif`.
    pub fn changed_arm64(&mut self, place: Place, does: Does) {
        if !self.ready_arm64() {
            return;
        }
        self.arm64.moved = None;
        let enabled = core::mem::take(&mut self.arm64.enabled);
        match (does, self.arm64.flags.found) {
            (Does::Moves, Some(at)) => {
                let off = self.register(at) & arm64::FLAG_INTERRUPTS != 0;
                self.becomes(self.time(place.left), place.pc - 4, off, false);
            }
            // Others may come there by a jump.
            (Does::Enables, None) if enabled == place.pc - 4 => {
                self.arm64.flags.seen.1 = true;
                self.narrow(
                    |a| &mut a.flags,
                    |word| word & !arm64::FLAGS == 0 && word & arm64::FLAG_INTERRUPTS == 0,
                );
            }
            _ => {}
        }
    }

    /// A block begins within the range of vectors.
    pub fn vector_arm64(&mut self, place: Place) {
        if !arm64::is_vector(place.pc) {
            return;
        }
        self.arm64.enabled = 0;
        if !self.arm64.whole {
            self.look_around(place.pc);
        }
        if let Some((t, pc)) = self.arm64.moved.take()
            && self.state & state::INTERRUPTS_OFF != 0
        {
            self.becomes(t, pc, false, false);
        }
        let t = self.time(place.left);
        self.write(t, kind::ENTER, place.pc);
        self.becomes(t, place.pc, true, false);
    }

    fn look_around(&mut self, vector: u64) {
        if self.arm64.flags.found.is_none() {
            self.arm64.flags.seen.0 = true;
            self.narrow(|a| &mut a.flags, |word| word == arm64::FLAGS);
        }
        if self.arm64.saved.found.is_none() {
            let user = arm64::of_user(vector);
            let (seen, level) = match &mut self.arm64.saved.seen {
                (_, seen) if user => (seen, 0),
                (seen, _) => (seen, arm64::LEVEL_KERNEL),
            };
            *seen = true;
            let is = |word: u64| word >> 32 == 0 && word & arm64::LEVEL == level;
            self.narrow(|a| &mut a.saved, is);
        }
    }

    /// The processor goes over to this thread.
    pub fn switches_arm64(&mut self, place: Place) {
        if !self.has_cpu() {
            return;
        }
        let thread = self.register(arm64::X1);
        let known = self.arm64.threads.iter().find(|(of, _)| *of == thread);
        let here = match known {
            Some((_, here)) => *here,
            None => {
                let Some(here) = self.host(thread) else { return };
                let at = (thread >> 6) as usize % THREADS;
                if let Some(place) = self.arm64.threads.get_mut(at) {
                    *place = (thread, here);
                }
                here
            }
        };
        (self.thread, self.arm64.thread) = (thread, here);
        let t = self.time(place.left);
        self.write(t, kind::SWITCH, thread);
        let off = self.state & state::INTERRUPTS_OFF != 0;
        self.becomes(t, place.pc, off, false);
    }

    /// Behind a store that may be into the thread's structure.
    pub fn stored_arm64(&mut self, place: Place, address: u64) {
        let into = address.wrapping_sub(self.thread);
        if self.thread == 0 || into > 64 {
            return;
        }
        if self.arm64.count_at == 0 {
            // Only the need to reschedule is stored so: behind the count.
            let count = arm64::COUNTS.into_iter().find(|at| at + arm64::NEED == into);
            let Some(count) = count else { return };
            self.arm64.count_at = count;
            self.all_found();
        }
        let at = self.arm64.count_at;
        if into == at || into == at + arm64::NEED {
            let off = self.state & state::INTERRUPTS_OFF != 0;
            let user = self.state & state::USER != 0;
            self.becomes(self.time(place.left - 1), place.pc, off, user);
        }
    }
}
