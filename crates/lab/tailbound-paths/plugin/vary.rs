// SPDX-License-Identifier: MIT OR Apache-2.0
//! From one instant on a run is not as it was: the processor stands still for a while, as if an interrupt of the firmware
//! had it, or the kernel's next random numbers are others, or the guest is stopped there.
//!
//! Context: HOT. Units: ns of the guest's virtual time.
//! To stand still is what QEMU does with an idle guest: its time goes on, and no instruction executes. The slice of
//! instructions ends there, so that timers that fell due meanwhile are served at once.
//! A guest is stopped by QEMU's main loop while this block waits for it. Were the CPU stopped first, it would be taken for an idle
//! one, and virtual time would move on to the next timer.
//! Source: QEMU softmmu/icount.c (`icount_start_warp_timer`), softmmu/cpus.c (`vm_stop`, `pause_all_vcpus`), hw/core/cpu-common.c
//! (`cpu_exit`).

use core::ffi::c_int;

use crate::files;
use crate::qemu;
use crate::record;
use crate::variation as plan;
use crate::watch::{InstructionSite, Watch};

/// `RUN_STATE_PAUSED`
const PAUSED: c_int = 4;
/// A thread's own data is no longer than this.
const THREAD_BYTES: u64 = 16 << 10;

/// See the module.
#[derive(Clone, Copy)]
pub struct Vary {
    words: &'static [u64],
    exit: unsafe extern "C" fn(*mut u8),
    prepare: unsafe extern "C" fn(),
    stop: unsafe extern "C" fn(c_int),
    /// The main loop was asked to stop the guest.
    stopping: bool,
    /// The instant is still to come.
    pub ahead: bool,
    /// The block that ends at the instant executes, and the guest's memory is exchanged behind it.
    pub exchanges: bool,
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
        let exit = qemu::named(c"cpu_exit").ok_or(())?;
        let prepare = qemu::named(c"qemu_system_vmstop_request_prepare").ok_or(())?;
        let stop = qemu::named(c"qemu_system_vmstop_request").ok_or(())?;
        // SAFETY: these functions have had these arguments since QEMU 5.0.
        let (exit, prepare, stop) = unsafe {
            (
                core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn(*mut u8)>(exit),
                core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn()>(prepare),
                core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn(c_int)>(stop),
            )
        };
        Ok(Some(Self {
            words,
            exit,
            prepare,
            stop,
            stopping: false,
            ahead: true,
            exchanges: false,
            woken: false,
            name_at: None,
            looked: false,
        }))
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
        self.exchanges |= reached && self.word(plan::PLACES) != 0;
        reached
    }

    /// Writes the places anew; `own` is where the CPU's own data begins, `change` exchanges bits of a word of the guest's memory, and
    /// says how many of its bytes are others then. Their sum.
    pub fn exchange(&self, own: u64, change: impl Fn(u64, u64) -> u64) -> u64 {
        let seed = self.word(plan::SEED);
        let mut changed = 0;
        for nth in 0..self.word(plan::PLACES).min(plan::RANGES as u64) {
            let place = plan::PLACE + 2 * nth as usize;
            let (at, range) = (self.word(place), self.word(place + 1));
            let at = at.wrapping_add(if range & plan::OF_CPU != 0 { own } else { 0 });
            for word in 0..(range & (plan::OF_CPU - 1)) / 8 {
                changed += change(at + word * 8, plan::mask(seed, nth, word));
            }
        }
        changed
    }

    /// How long the processor stands still from `t` on; stops the guest where that is asked for.
    pub fn stands_still(&mut self, cpu: *mut u8, t: u64) -> u64 {
        if self.word(plan::STOP) != 0 {
            // SAFETY: QEMU's functions: what `vm_stop` calls in the thread of a virtual CPU, without stopping that here.
            unsafe {
                (self.prepare)();
                (self.stop)(PAUSED);
            }
            self.stopping = true;
            return 0;
        }
        // SAFETY: QEMU's function: the CPU goes back to its loop behind this block.
        unsafe { (self.exit)(cpu) };
        match self.word(plan::UNTIL) {
            plan::NEVER => 0,
            until => until.saturating_sub(t),
        }
    }

    /// Waits for the main loop where it was asked to stop the guest. `asked`: something wants the CPU back behind this block, that or
    /// another thing; then the next block waits again.
    pub fn awaits_stop(&self, asked: impl Fn() -> bool) {
        while self.stopping && !asked() {
            qemu::lets_others_go();
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

impl Watch {
    /// A block begins, in a run that is varied.
    pub fn vary(&mut self, place: InstructionSite) {
        if !self.has_cpu() {
            return;
        }
        // Between this block and the next: where the CPU looks for interrupts.
        let t = self.time(0);
        if self.vary.is_some_and(|vary| vary.exchanges) {
            self.exchanges(place);
        }
        let (cpu, bias) = (self.cpu, self.inside.bias as *mut i64);
        let Some(vary) = self.vary.as_mut() else { return };
        if !vary.reached(t) {
            return self.awaits_stop();
        }
        let still = vary.stands_still(cpu, t);
        // SAFETY: as in `end_ns`; QEMU's own code moves an idle guest's time on here, by the same word.
        unsafe { bias.write_volatile(bias.read_volatile() + still.cast_signed()) };
        if self.ready() {
            self.log.write(record::head(t, self.state | self.mark, plan::kind::VARIED), place.pc);
            self.name(t, self.current());
        }
        self.awaits_stop();
    }

    fn awaits_stop(&self) {
        if let Some(vary) = &self.vary {
            vary.awaits_stop(|| self.is_wanted_back());
        }
    }

    /// Before the first block behind the instant: the guest's memory is another from here on.
    #[cold]
    fn exchanges(&mut self, place: InstructionSite) {
        let Some(mut vary) = self.vary else { return };
        vary.exchanges = false;
        self.vary = Some(vary);
        let at = self.plan().word(record::plan::OFFSET_AT);
        let own = if at == 0 { Some(0) } else { self.read::<u64>(at + self.number as u64 * 8) };
        let Some(own) = own else { return };
        let changed = vary.exchange(own, |at, mask| {
            let Some(before) = self.read::<u64>(at) else { return 0 };
            self.store(at, before ^ mask);
            let differs = self.read::<u64>(at).unwrap_or(before) ^ before;
            differs.to_le_bytes().iter().filter(|byte| **byte != 0).count() as u64
        });
        let t = self.time(place.left);
        self.log.write(record::head(t, self.state | self.mark, plan::kind::EXCHANGED), changed);
    }

    /// Writes a word of the guest's memory.
    fn store(&self, address: u64, mut word: u64) {
        // SAFETY: QEMU's function, which reads that many bytes of ours; it drops what it had translated of that memory.
        unsafe { (self.functions.memory)(self.cpu, address, (&raw mut word).cast(), 8, true) };
    }

    /// The name of a thread, where it is known how to find it.
    pub fn name(&mut self, t: u64, thread: u64) {
        let Some(mut vary) = self.vary else { return };
        vary.find_name(|at| self.read::<u64>(at));
        self.vary = Some(vary);
        let Some(at) = vary.name_at else { return };
        for half in [0, 8] {
            let word = self.read::<u64>(thread.wrapping_add(at + half)).unwrap_or(0);
            self.write(t, plan::kind::NAME, word);
        }
    }
}

/// QEMU ends: what follows is not wanted, and the log is in its file.
fn end() -> ! {
    // SAFETY: ends the process.
    unsafe { qemu::_exit(0) }
}
