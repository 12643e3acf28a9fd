// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is particular to watching an ARM guest, of 64 or 32 bits.
//!
//! Context: HOT.
//! A move to `daif` or `cpsr` has its value in a register, which is not in memory within a block. QEMU ends the block there, so
//! the next one finds the flags themselves; or an interrupt that was waiting is taken at once, and its vector says that the
//! move enabled interrupts. Where QEMU keeps the flags and the saved state that an exception returns to is found by what
//! they hold: at vectors and where interrupts are enabled, and the mode that exceptions come from.

use core::ptr::null;

use crate::arm::{self, Does};
use crate::modes::{Interrupts, ReturnTo};
use crate::record::{kind, state, status};
use crate::watch::{Guest, InstructionSite, Watch};
use crate::{arm32, arm64};

/// Words of 32 bits behind the registers among which both are.
const WORDS: usize = 256;
/// Threads whose places are remembered.
const THREADS: usize = 64;
/// A thread's own structure is not read further than this.
const OWN_BYTES: u64 = 64;
/// Nothing is looked for in a count: no need to reschedule.
const NONE: u32 = crate::x86::COUNT_NOT_RESCHED;

/// A word of the virtual CPU that is looked for by what it holds on two occasions.
struct Search {
    /// Words that it cannot be, as bits.
    no: [u64; WORDS / 64],
    seen: [bool; 2],
    /// Where it is, once there is only one.
    found: Option<usize>,
}

impl Search {
    const fn new() -> Self {
        Self { no: [0; WORDS / 64], seen: [false; 2], found: None }
    }

    fn left(&self) -> u32 {
        self.no.iter().map(|part| part.count_zeros()).sum()
    }

    fn only(&self) -> usize {
        let parts = self.no.iter().enumerate();
        let found = parts.filter(|(_, part)| part.count_zeros() > 0).next();
        found.map_or(0, |(nth, part)| nth * 64 + part.trailing_ones() as usize)
    }
}

/// What is known of an ARM guest.
pub struct Arm {
    flags: Search,
    saved: Search,
    /// Where interrupts have just been enabled.
    enabled: u64,
    /// When a wfi that has just been executed was over, if it did not halt.
    waited: Option<u64>,
    /// From a thread's own structure to its count, once it is known.
    count_at: u64,
    /// From there to the thread; 0: the structure is the thread's beginning.
    thread_at: u64,
    /// That structure of the thread on the CPU.
    structure: u64,
    /// By the thread's address: where it is in our memory.
    threads: [(u64, *const u8); THREADS],
    thread: *const u8,
    /// Nothing more is looked for.
    whole: bool,
    is_32: bool,
}

impl Arm {
    /// `count_at` is of 32 bits alone, and so is `thread_at`.
    pub const fn new(is_32: bool, count_at: u64, thread_at: u64) -> Self {
        Self {
            flags: Search::new(),
            saved: Search::new(),
            enabled: 0,
            waited: None,
            count_at,
            thread_at,
            structure: 0,
            threads: [(0, null()); THREADS],
            thread: null(),
            whole: false,
            is_32,
        }
    }

    /// A store whose address is in a register and this many bytes may be into the count of a 32-bit thread.
    pub const fn count_at(&self) -> u64 {
        self.count_at
    }

    /// A word of 32 bits of the thread's own structure.
    #[inline]
    fn own(&self, at: u64) -> u32 {
        // SAFETY: the guest's memory, mapped as long as it lives; the structure begins at a multiple of 64 bytes.
        unsafe { self.thread.add(at as usize).cast::<u32>().read_volatile() }
    }

    /// Preemption count, with the bit of x86-64 where there is no need to reschedule.
    #[inline]
    pub fn count(&self) -> u32 {
        if self.thread.is_null() || self.count_at == 0 {
            return NONE;
        }
        let count = self.own(self.count_at) & !NONE;
        let needed = if self.is_32 {
            self.own(0) & arm32::NEED != 0
        } else {
            self.own(self.count_at + arm64::NEED) == 0
        };
        if needed { count } else { count | NONE }
    }
}

impl Watch {
    /// Is the current thread known?
    pub fn ready_arm(&mut self) -> bool {
        self.has_cpu() && self.thread != 0
    }

    /// What is looked for is one of the words of which this is true.
    fn narrow(&mut self, which: fn(&mut Arm) -> &mut Search, is: impl Fn(u64) -> bool) {
        for nth in 0..WORDS {
            if !is(u64::from(self.half_register(arm::BEHIND + nth * 4))) {
                let search = which(&mut self.arm);
                if let Some(part) = search.no.get_mut(nth / 64) {
                    *part |= 1 << (nth % 64);
                }
            }
        }
        let search = which(&mut self.arm);
        match search.left() {
            0 => self.status(status::UNKNOWN_CODE),
            1 if search.seen == [true; 2] => {
                search.found = Some(arm::BEHIND + search.only() * 4);
                self.all_found();
            }
            _ => {}
        }
    }

    /// Nothing is said before all is known.
    fn all_found(&mut self) {
        let a = &self.arm;
        if !a.whole && a.flags.found.is_some() && a.saved.found.is_some() && a.count_at != 0 {
            self.arm.whole = true;
            self.found();
        }
    }

    /// Before an instruction that changes the interrupt flag.
    pub fn changes_arm(&mut self, place: InstructionSite, does: Does) {
        if !self.ready_arm() {
            return;
        }
        if self.state & state::USER != 0 {
            self.status(status::OTHER_ENTRY);
        }
        let after = self.time(place.left - 1);
        match does {
            Does::Disables => self.becomes(after, place.pc, Interrupts::Off),
            Does::Enables => {
                self.arm.enabled = place.pc;
                self.becomes(after, place.pc, Interrupts::On);
            }
            Does::Moves => self.moved = Some((after, place.pc)),
            Does::Returns => self.returns_arm(after, place.pc),
            Does::Halts => self.arm.waited = Some(after),
            Does::OwnData | Does::Nothing => {}
        }
    }

    fn returns_arm(&mut self, after: u64, pc: u64) {
        let stub = self.arm.is_32 && arm32::stub(pc);
        if stub && self.arm.saved.found.is_none() {
            self.arm.saved.seen[1] = true;
            let kernel = arm32::KERNEL | arm::FLAG_INTERRUPTS;
            self.narrow(
                |a| &mut a.saved,
                |w| w & (arm32::MODE | arm::FLAG_INTERRUPTS) == kernel,
            );
        }
        let Some(at) = self.arm.saved.found.filter(|_| !stub) else { return };
        let saved = u64::from(self.half_register(at));
        let interrupts = Interrupts::off_if(saved & arm::FLAG_INTERRUPTS != 0);
        let to = ReturnTo::user_if(if self.arm.is_32 {
            saved & arm32::MODE == arm32::USER
        } else {
            saved & arm64::LEVEL == 0
        });
        self.leaves(after, pc, interrupts, to);
        self.write(after, kind::LEAVE, pc);
    }

    /// A block begins behind an instruction that changed the flags.
    pub fn changed_arm(&mut self, place: InstructionSite, does: Does) {
        if !self.ready_arm() {
            return;
        }
        self.wakes_arm(place);
        self.moved = None;
        let enabled = core::mem::take(&mut self.arm.enabled);
        match (does, self.arm.flags.found) {
            (Does::Moves, Some(at)) => {
                let off = u64::from(self.half_register(at)) & arm::FLAG_INTERRUPTS != 0;
                self.becomes(self.time(place.left), place.pc - 4, Interrupts::off_if(off));
            }
            // Others may come there by a jump.
            (Does::Enables, None) if enabled == place.pc - 4 => {
                self.arm.flags.seen[1] = true;
                self.narrow(
                    |a| &mut a.flags,
                    |w| w & !arm::FLAGS == 0 && w & arm::FLAG_INTERRUPTS == 0,
                );
            }
            _ => {}
        }
    }

    /// The first block behind a wfi begins. It halts only where no interrupt is waiting, though they are disabled; then
    /// time has gone on.
    fn wakes_arm(&mut self, place: InstructionSite) {
        let t = self.time(place.left);
        if self.arm.waited.take().is_some_and(|after| t > after) {
            self.write(t, kind::HALT, place.pc);
        }
    }

    /// A block begins within the range of vectors.
    pub fn vector_arm(&mut self, place: InstructionSite) {
        if !self.arm.is_32 && !arm64::is_vector(place.pc) {
            return;
        }
        self.wakes_arm(place);
        self.arm.enabled = 0;
        if !self.arm.whole {
            self.look_around(place.pc);
        }
        self.taken();
        let t = self.time(place.left);
        self.write(t, kind::ENTER, place.pc);
        self.becomes(t, place.pc, Interrupts::Off);
    }

    fn look_around(&mut self, vector: u64) {
        if self.arm.is_32 && !arm32::of_interrupts(vector) {
            return;
        }
        if self.arm.flags.found.is_none() {
            self.arm.flags.seen[0] = true;
            if self.arm.is_32 {
                self.narrow(
                    |a| &mut a.flags,
                    |w| w & !arm::FLAGS & !0x100 == 0 && w & arm::FLAG_INTERRUPTS != 0,
                );
            } else {
                self.narrow(|a| &mut a.flags, |w| w == arm::FLAGS);
            }
        }
        if self.arm.saved.found.is_some() {
        } else if self.arm.is_32 {
            self.arm.saved.seen[0] = true;
            // An interrupt comes where interrupts are enabled.
            let modes = [arm32::USER, arm32::KERNEL];
            let is = |w: u64| modes.contains(&(w & (arm32::MODE | arm::FLAG_INTERRUPTS)));
            self.narrow(|a| &mut a.saved, is);
        } else if arm64::of_user(vector) {
            self.arm.saved.seen[0] = true;
            self.narrow(|a| &mut a.saved, |w| w & arm64::LEVEL == 0);
        } else {
            self.arm.saved.seen[1] = true;
            self.narrow(|a| &mut a.saved, |w| w & arm64::LEVEL == arm64::LEVEL_KERNEL);
        }
    }

    /// The processor goes over to a thread: `__switch_to` begins.
    pub fn switches_arm(&mut self, place: InstructionSite) {
        if !self.has_cpu() {
            return;
        }
        let structure = self.argument(if self.arm.is_32 { arm32::R2 } else { arm64::X1 });
        let thread = match self.arm.thread_at {
            0 => structure,
            at => self.pointer(structure.wrapping_add(at)).unwrap_or(0),
        };
        if self.arm.thread_at != 0 && !crate::x86::kernel(thread) {
            return self.status(status::UNKNOWN_CODE);
        }
        let known = self.arm.threads.iter().find(|(of, _)| *of == structure);
        let here = match known {
            Some((_, here)) => *here,
            None => {
                let Some(here) = self.host(structure) else { return };
                // Below a stack it begins at a multiple of 8192.
                let at = (structure >> 6 ^ structure >> 13) as usize % THREADS;
                if let Some(place) = self.arm.threads.get_mut(at) {
                    *place = (structure, here);
                }
                here
            }
        };
        (self.thread, self.arm.structure, self.arm.thread) = (thread, structure, here);
        self.switched_second(thread);
        let t = self.time(place.left);
        self.write(t, kind::SWITCH, thread);
        let off = self.state & state::INTERRUPTS_OFF != 0;
        self.becomes(t, place.pc, Interrupts::off_if(off));
    }

    /// Behind a store that may be into the thread's structure.
    pub fn stored_arm(&mut self, place: InstructionSite, address: u64) {
        let address = if self.guest == Guest::Arm32 { arm32::lifted(address) } else { address };
        let into = address.wrapping_sub(self.arm.structure);
        if self.thread == 0 || into > OWN_BYTES {
            return;
        }
        if self.arm.count_at == 0 {
            // Only the need to reschedule is stored so: behind the count.
            let count = arm64::COUNTS.into_iter().find(|at| at + arm64::NEED == into);
            let Some(count) = count else { return };
            self.arm.count_at = count;
            self.all_found();
        }
        let at = self.arm.count_at;
        let need = if self.arm.is_32 { 0 } else { at + arm64::NEED };
        if into == at || into == need {
            let off = self.state & state::INTERRUPTS_OFF != 0;
            self.becomes(self.time(place.left - 1), place.pc, Interrupts::off_if(off));
        }
    }
}
