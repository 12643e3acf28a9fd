// SPDX-License-Identifier: MIT OR Apache-2.0
//! Turns of several virtual CPUs: what is known of one is put away while another executes.
//!
//! Context: HOT. Units: ns of the guest's virtual time.
//! Source: QEMU accel/tcg/tcg-accel-ops-rr.c, accel/tcg/plugin-gen.c (`gen_cpu_index`).

use core::ffi::c_int;
use core::ptr::null_mut;

use crate::qemu;
use crate::record::{self, kind, status};
use crate::watch::{InstructionSite, Watch};

/// The guest's own data of the CPU.
pub struct Own {
    pub count_at: u64,
    pub count_bytes: u64,
    pub current_at: u64,
    pub count: *const u32,
    pub current: *const u64,
}

impl Own {
    /// The preemption count as 32 bits: the uppermost says that nothing is to be rescheduled, the others are 0 where the
    /// kernel can be preempted.
    #[inline]
    pub fn count(&self) -> u32 {
        // SAFETY: the guest's memory, mapped as long as it lives.
        let low = unsafe { self.count.read_volatile() };
        if self.count_bytes != 8 {
            return low;
        }
        // SAFETY: the same 8 bytes.
        let high = unsafe { self.count.add(1).read_volatile() };
        high | u32::from(low != 0)
    }

    #[inline]
    pub fn has_count(&self, address: u64) -> bool {
        address.wrapping_sub(self.count_at) < self.count_bytes
    }

    pub fn has(&self, address: u64) -> bool {
        self.has_count(address) || address == self.current_at
    }
}

/// What is known of a CPU while another executes.
pub struct Away {
    pub cpu: *mut u8,
    pub own: Option<Own>,
    pub state: u8,
    pub thread: u64,
    pub moved: Option<(u64, u64)>,
}

impl Away {
    pub const NOTHING: Self = Self { cpu: null_mut(), own: None, state: 0, thread: 0, moved: None };
}

impl Watch {
    /// Puts away what is known of the CPU of this number, or takes it out again.
    fn exchange(&mut self, number: usize) {
        use core::mem::swap;
        let Some(away) = self.away.get_mut(number) else { return };
        swap(&mut self.cpu, &mut away.cpu);
        swap(&mut self.own, &mut away.own);
        swap(&mut self.state, &mut away.state);
        swap(&mut self.thread, &mut away.thread);
        swap(&mut self.moved, &mut away.moved);
    }

    /// Where QEMU says which CPU executes, in the thread that this is called in, which is that of all virtual CPUs.
    pub fn find_executing(&mut self) {
        if self.executing.is_null() {
            match qemu::named(c"current_cpu") {
                Some(at) => self.executing = at.cast(),
                None => self.status(status::LACKING),
            }
        }
    }

    /// A block begins on one of several CPUs. Which one, callbacks are told wrongly: QEMU 10 puts the number of the CPU for
    /// which it translated a block into the block, and another one executes it, too.
    #[inline]
    pub fn turn(&mut self, place: InstructionSite) {
        if self.executing.is_null() {
            return;
        }
        // SAFETY: a pointer of QEMU's own, in this thread.
        let cpu = unsafe { self.executing.read_volatile() };
        if cpu != self.cpu || self.halted {
            self.goes_over(cpu, place);
        }
    }

    fn goes_over(&mut self, cpu: *mut u8, place: InstructionSite) {
        // SAFETY: QEMU's function; null where there is no such CPU.
        let is = |number: &usize| unsafe { (self.functions.cpu)(*number as c_int) == cpu };
        let Some(number) = (0..record::CPUS).find(is) else { return };
        self.exchange(self.number);
        self.exchange(number);
        (self.number, self.mark, self.halted) = (number, (number as u8) << 4, false);
        if self.has_cpu() && !self.full() {
            let (end, shift) = self.end_ns();
            let executed = ((end - i64::from(place.left)) << shift).cast_unsigned();
            self.write(self.time(place.left), kind::TURN, executed);
        }
    }

    /// Before an instruction in user mode that reads the processor's counter.
    pub fn reads(&mut self, place: InstructionSite) {
        if self.own.is_some() {
            self.write(self.time(place.left - 1), kind::READ, self.current());
        }
    }
}
