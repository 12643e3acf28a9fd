// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one instant on a run is not as it was: the processor stands still for a while, as if an interrupt of the firmware
//! had it, or the guest is stopped there.
//!
//! Context: HOT. Units: ns of the guest's virtual time.
//! To stand still is what QEMU does with an idle guest: its time goes on, and no instruction executes. The slice of
//! instructions ends there, so that timers that fell due meanwhile are served at once.
//! Source: QEMU softmmu/icount.c (`icount_start_warp_timer`), softmmu/cpus.c (`vm_stop`), hw/core/cpu-common.c (`cpu_exit`).

use core::ffi::c_int;

use crate::files;
use crate::qemu;
use crate::variation as plan;

/// `RUN_STATE_PAUSED`
const PAUSED: c_int = 4;
/// A thread's own data is no longer than this.
const THREAD_BYTES: u64 = 16 << 10;

/// See the module.
#[derive(Clone, Copy)]
pub struct Vary {
    words: &'static [u64],
    exit: unsafe extern "C" fn(*mut u8),
    stop: unsafe extern "C" fn(c_int) -> c_int,
    /// The instant is still to come.
    pub ahead: bool,
    /// The measured thread was woken by the timer that is waited for.
    pub woken: bool,
    /// Bytes from a thread to its name.
    pub name_at: Option<u64>,
    looked: bool,
}

impl Vary {
    /// What the file asks for; an error: QEMU lacks what that takes.
    pub fn open() -> Result<Option<Self>, ()> {
        let Some(words) = files::words(c"paths.vary").filter(|w| w.first() == Some(&plan::MAGIC)) else {
            return Ok(None);
        };
        let (exit, stop) = (qemu::named(c"cpu_exit").ok_or(())?, qemu::named(c"vm_stop").ok_or(())?);
        // SAFETY: these functions have had these arguments since QEMU 5.0.
        let (exit, stop) = unsafe {
            (
                core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn(*mut u8)>(exit),
                core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn(c_int) -> c_int>(stop),
            )
        };
        Ok(Some(Self { words, exit, stop, ahead: true, woken: false, name_at: None, looked: false }))
    }

    #[inline]
    pub fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }

    /// It is `t` at the end of a block that is about to execute: is that the instant?
    #[inline]
    pub fn reached(&mut self, t: u64) -> bool {
        if t >= self.word(plan::END) {
            end();
        }
        let reached = self.ahead && t >= self.word(plan::AT);
        self.ahead &= !reached;
        reached
    }

    /// How long the processor stands still from `t` on; stops the guest where that is asked for.
    pub fn stands_still(&self, cpu: *mut u8, t: u64) -> u64 {
        if self.word(plan::STOP) != 0 {
            // SAFETY: QEMU's function, in the thread of the virtual CPU, which it is for.
            unsafe { (self.stop)(PAUSED) };
            return 0;
        }
        // SAFETY: QEMU's function: the CPU goes back to its loop behind this block.
        unsafe { (self.exit)(cpu) };
        match self.word(plan::UNTIL) {
            plan::NEVER => 0,
            until => until.saturating_sub(t),
        }
    }

    /// A timer wakes a thread.
    pub fn wakes(&mut self, thread: u64, due: u64) {
        self.woken |= thread == self.word(plan::THREAD) && due >= self.word(plan::DUE);
    }

    /// A thread that a timer woke is in user mode.
    pub fn returned(&self, thread: u64) {
        if self.woken && thread == self.word(plan::THREAD) {
            end();
        }
    }

    /// Looks for the place of a thread's name by that of the first one; `read` reads the guest's memory.
    pub fn find_name(&mut self, read: impl Fn(u64) -> Option<u64>) {
        let first = self.word(plan::FIRST_THREAD);
        if first == 0 || self.looked {
            return;
        }
        self.looked = true;
        const NAME: u64 = u64::from_le_bytes(*b"swapper\0");
        const BEGIN: u64 = NAME & (u64::MAX >> 8);
        self.name_at = (0..THREAD_BYTES).step_by(8).find(|at| {
            read(first + at).is_some_and(|word| word & (u64::MAX >> 8) == BEGIN)
        });
    }
}

/// QEMU ends: what follows is not wanted, and the log is in its file.
fn end() -> ! {
    // SAFETY: ends the process.
    unsafe { qemu::_exit(0) }
}
