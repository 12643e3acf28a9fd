// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs, as instructions: what happens in the kernel at each event.
//!
//! Context: SETUP (making them), HOT of the kernel (what they do). Units: ns of CLOCK_MONOTONIC.
//! A thread that is not watched costs one look into a hash table; stacks are taken over the threshold alone.
//!
//! ```text
//! sched_waking(p)                 watched? ready since = now
//! sched_switch(prev, next)        next watched, ready since: late = now - since, into its histogram
//!                                   late > threshold: tell, with the stack of prev (which is leaving)
//!                                 next watched, waited for a lock: long > threshold: tell, with the owners
//!                                 prev watched, blocked on a lock with inheritance: who has it, who has that one's, …
//! hrtimer_expire_entry(t, now)    a sleeper's, now - expires > threshold, thread watched: tell, with the
//!                                   stack that the interrupt came into
//! contention_begin(lock, flags)   this thread watched: who has the lock
//! contention_end(lock)            waited > threshold: tell, with the owner and the own stack
//! ```

use tailbound_sys::bpf::Map;
use tailbound_trace::bpf::assembler::{Assembler, Helper, If, JumpError, Label, Op, Reg, Width};
use tailbound_trace::bpf::classes;

use super::layout::{
    CLASSES, Chain, FRAMES, Kernel, Locks, OWNER_BYTES, OWNERS, Timers, filter, settings, told,
    watched,
};

/// What a record is about.
pub(super) const KIND_SWITCH: u32 = 1;
pub(super) const KIND_TIMER: u32 = 2;
pub(super) const KIND_LOCK: u32 = 3;

/// Places on the stack.
const KEY: i16 = -4;
const NOW: i16 = -16;
const LATE: i16 = -24;
const READ: i16 = -32;

/// Flags of contention_begin. Source: include/trace/events/lock.h.
const LCB_SPIN: i32 = 1;
const LCB_READ_WRITE: i32 = 2 | 4;
const LCB_RT: i32 = 8;
const LCB_PERCPU: i32 = 16;
const LCB_MUTEX: i32 = 32;
/// Bits of an owner's address that say something else. Source: kernel/locking/{mutex,rwsem,rtmutex_common}.h.
const OWNER_FLAGS: i32 = !7;
/// The owner of a semaphore is the last of several readers.
const RWSEM_READER: i32 = 1;
/// Nobody is woken by a record: it is read when its time comes. Source: BPF_RB_NO_WAKEUP.
const NO_WAKEUP: i32 = 1;

/// The maps of the programs.
#[derive(Debug)]
pub(super) struct Maps {
    /// Threads by number.
    pub(super) watched: Map,
    /// See [`filter`].
    pub(super) filter: Map,
    /// See [`settings`].
    pub(super) settings: Map,
    /// See [`told`].
    pub(super) ring: Map,
}

/// A program under way.
struct Program<'a> {
    a: Assembler,
    kernel: &'a Kernel,
    maps: &'a Maps,
    /// With the registers of a thread in the kernel, for its system call.
    registers: bool,
}

/// Makes programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Maker<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) maps: &'a Maps,
    /// See [`Program`]; kernels before 5.15 do not give them.
    pub(super) registers: bool,
}

impl Maker<'_> {
    fn program(&self) -> Program<'_> {
        let Self { kernel, maps, registers } = *self;
        Program { a: Assembler::default(), kernel, maps, registers }
    }

    /// sched_waking
    pub(super) fn waking(&self) -> Result<Vec<u64>, JumpError> {
        let mut p = self.program();
        let out = p.a.label();
        p.a.load(Width::Double, Reg::R6, Reg::R1, 0);
        p.a.load(Width::Word, Reg::R1, Reg::R6, self.kernel.pid);
        p.find_watched(Reg::R1, Reg::R7, out);
        // Ready already: the wait goes on.
        p.a.load(Width::Double, Reg::R1, Reg::R7, watched::WAKING);
        p.a.jump(If::NotEqual, Reg::R1, 0, out);
        p.a.call(Helper::KtimeNs);
        p.a.store(Width::Double, Reg::R7, watched::WAKING, Reg::R0);
        p.end(out)
    }

    /// sched_switch
    pub(super) fn switch(&self) -> Result<Vec<u64>, JumpError> {
        let mut p = self.program();
        let (leaving, lock, out) = (p.a.label(), p.a.label(), p.a.label());
        p.a.op_reg(Op::Mov, Reg::R6, Reg::R1);
        p.a.load(Width::Double, Reg::R7, Reg::R6, 8);
        p.a.load(Width::Double, Reg::R8, Reg::R6, 16);
        p.a.load(Width::Word, Reg::R1, Reg::R8, self.kernel.pid);
        p.find_watched(Reg::R1, Reg::R9, leaving);
        p.a.call(Helper::KtimeNs);
        p.a.store(Width::Double, Reg::Stack, NOW, Reg::R0);
        p.a.load(Width::Double, Reg::R1, Reg::R9, watched::WAKING);
        p.a.jump(If::Equal, Reg::R1, 0, lock);
        p.a.store_number(Width::Double, Reg::R9, watched::WAKING, 0);
        p.a.op_reg(Op::Sub, Reg::R0, Reg::R1);
        p.a.store(Width::Double, Reg::Stack, LATE, Reg::R0);
        p.count();
        p.over_threshold(lock);
        p.begin_record(KIND_SWITCH, Reg::R9, lock);
        p.a.load(Width::Word, Reg::R1, Reg::R7, self.kernel.pid);
        p.a.store(Width::Word, Reg::R8, told::OTHER, Reg::R1);
        p.system_call_of(Reg::R7);
        p.end_record();
        p.a.here(lock);
        p.held_until(2, leaving);
        p.begin_record(KIND_LOCK, Reg::R9, leaving);
        p.a.store_number(Width::Word, Reg::R8, told::OTHER, 0);
        p.a.store_number(Width::Double, Reg::R8, told::SYSCALL, -1);
        p.end_record();
        p.a.here(leaving);
        p.a.load(Width::Word, Reg::R1, Reg::R7, self.kernel.pid);
        p.find_watched(Reg::R1, Reg::R9, out);
        p.a.store_number(Width::Double, Reg::R9, watched::WAKING, 0);
        if let Ok(chain) = self.kernel.chain {
            p.follow_chain(&chain, out);
        }
        p.end(out)
    }

    /// hrtimer_expire_entry
    pub(super) fn timer(&self, timers: &Timers) -> Result<Vec<u64>, JumpError> {
        let mut p = self.program();
        let out = p.a.label();
        p.a.op_reg(Op::Mov, Reg::R6, Reg::R1);
        p.a.load(Width::Double, Reg::R7, Reg::R6, 0);
        p.a.load(Width::Double, Reg::R1, Reg::R7, timers.function);
        p.a.number(Reg::R2, timers.wakeup);
        p.a.jump_reg(If::NotEqual, Reg::R1, Reg::R2, out);
        p.a.load(Width::Double, Reg::R3, Reg::R6, 8);
        match timers.now_is_pointer {
            true => p.read(NOW, Reg::R3, 0, 8),
            false => p.a.store(Width::Double, Reg::Stack, NOW, Reg::R3),
        }
        p.a.load(Width::Double, Reg::R0, Reg::Stack, NOW);
        p.a.load(Width::Double, Reg::R1, Reg::R7, timers.expires);
        p.a.op_reg(Op::Sub, Reg::R0, Reg::R1);
        p.a.jump(If::SignedAtMost, Reg::R0, 0, out);
        p.a.store(Width::Double, Reg::Stack, LATE, Reg::R0);
        p.over_threshold(out);
        p.read(READ, Reg::R7, timers.task, 8);
        p.a.load(Width::Double, Reg::R3, Reg::Stack, READ);
        p.read(READ, Reg::R3, i32::from(self.kernel.pid), 4);
        p.a.load(Width::Word, Reg::R1, Reg::Stack, READ);
        p.find_watched(Reg::R1, Reg::R9, out);
        // The timer's clock may be another than that of the records.
        p.a.call(Helper::KtimeNs);
        p.a.store(Width::Double, Reg::Stack, NOW, Reg::R0);
        p.begin_record(KIND_TIMER, Reg::R9, out);
        p.a.call(Helper::PidTgid);
        p.a.store(Width::Word, Reg::R8, told::OTHER, Reg::R0);
        p.a.store_number(Width::Double, Reg::R8, told::SYSCALL, -1);
        p.end_record();
        p.end(out)
    }

    /// contention_begin
    pub(super) fn contention_begin(&self, locks: &Locks) -> Result<Vec<u64>, JumpError> {
        let mut p = self.program();
        let (out, mutex, rt, found) = (p.a.label(), p.a.label(), p.a.label(), p.a.label());
        let (semaphore, unknown) = (p.a.label(), p.a.label());
        p.a.load(Width::Double, Reg::R7, Reg::R1, 0);
        p.a.load(Width::Double, Reg::R6, Reg::R1, 8);
        p.a.call(Helper::PidTgid);
        p.find_watched(Reg::R0, Reg::R9, out);
        p.a.call(Helper::KtimeNs);
        p.forget_owners();
        p.a.store(Width::Double, Reg::R9, watched::HELD_SINCE, Reg::R0);
        p.a.store_number(Width::Double, Reg::R9, watched::HELD_UNTIL, 1);
        for (flag, to) in [(LCB_MUTEX, mutex), (LCB_RT, rt), (LCB_PERCPU | LCB_SPIN, unknown)] {
            p.a.op_reg(Op::Mov, Reg::R1, Reg::R6);
            p.a.op(Op::And, Reg::R1, flag);
            p.a.jump(If::NotEqual, Reg::R1, 0, to);
        }
        p.a.op(Op::And, Reg::R6, LCB_READ_WRITE);
        p.a.jump(If::NotEqual, Reg::R6, 0, semaphore);
        p.a.go(unknown);
        for (label, owner, reader) in [
            (semaphore, locks.rwsem_owner, RWSEM_READER),
            (mutex, locks.mutex_owner, 0),
            (rt, locks.rt_owner, 0),
        ] {
            p.a.here(label);
            let Some(owner) = owner else {
                p.a.go(unknown);
                continue;
            };
            p.read(READ, Reg::R7, owner, 8);
            if reader != 0 {
                p.a.load(Width::Double, Reg::R1, Reg::Stack, READ);
                p.a.op(Op::And, Reg::R1, reader);
                p.a.jump(If::NotEqual, Reg::R1, 0, unknown);
            }
            p.a.go(found);
        }
        p.a.here(found);
        p.owner(0, unknown);
        p.a.here(unknown);
        p.end(out)
    }

    /// contention_end
    pub(super) fn contention_end(&self) -> Result<Vec<u64>, JumpError> {
        let mut p = self.program();
        let out = p.a.label();
        p.a.op_reg(Op::Mov, Reg::R6, Reg::R1);
        p.a.call(Helper::PidTgid);
        p.find_watched(Reg::R0, Reg::R9, out);
        p.a.call(Helper::KtimeNs);
        p.a.store(Width::Double, Reg::Stack, NOW, Reg::R0);
        p.held_until(1, out);
        p.begin_record(KIND_LOCK, Reg::R9, out);
        p.a.store_number(Width::Word, Reg::R8, told::OTHER, 0);
        p.a.store_number(Width::Double, Reg::R8, told::SYSCALL, -1);
        p.end_record();
        p.end(out)
    }
}

impl Program<'_> {
    fn end(mut self, out: Label) -> Result<Vec<u64>, JumpError> {
        self.a.here(out);
        self.a.exit();
        self.a.finish()
    }

    /// `value` = what is kept of the thread whose number is in `number`; to `not` if it is not watched.
    fn find_watched(&mut self, number: Reg, value: Reg, not: Label) {
        self.a.store(Width::Word, Reg::Stack, KEY, number);
        self.a.load(Width::Word, Reg::R1, Reg::Stack, KEY);
        self.a.op(Op::And, Reg::R1, filter::MASK);
        self.a.map_value(Reg::R2, &self.maps.filter);
        self.a.op_reg(Op::Add, Reg::R2, Reg::R1);
        self.a.load(Width::Byte, Reg::R1, Reg::R2, 0);
        self.a.jump(If::Equal, Reg::R1, 0, not);
        self.a.map(Reg::R1, &self.maps.watched);
        self.a.on_stack(Reg::R2, i32::from(KEY));
        self.a.call(Helper::MapLookup);
        self.a.jump(If::Equal, Reg::R0, 0, not);
        self.a.op_reg(Op::Mov, value, Reg::R0);
    }

    /// `bytes` at `from + offset` in the kernel's memory, to the stack; zeros where it cannot be read.
    fn read(&mut self, to: i16, from: Reg, offset: i32, bytes: i32) {
        self.a.op_reg(Op::Mov, Reg::R3, from);
        self.a.op(Op::Add, Reg::R3, offset);
        self.a.store_number(Width::Double, Reg::Stack, to, 0);
        self.a.on_stack(Reg::R1, i32::from(to));
        self.a.op(Op::Mov, Reg::R2, bytes);
        self.a.call(Helper::ReadKernel);
    }

    /// Enters LATE into the histogram and sums of R9.
    fn count(&mut self) {
        let a = &mut self.a;
        for (at, number) in [(watched::N, Reg::R2), (watched::SUM, Reg::R0)] {
            a.op(Op::Mov, Reg::R2, 1);
            a.load(Width::Double, Reg::R3, Reg::R9, at);
            a.op_reg(Op::Add, Reg::R3, number);
            a.store(Width::Double, Reg::R9, at, Reg::R3);
        }
        let not_max = a.label();
        a.load(Width::Double, Reg::R3, Reg::R9, watched::MAX);
        a.jump_reg(If::AtMost, Reg::R0, Reg::R3, not_max);
        a.store(Width::Double, Reg::R9, watched::MAX, Reg::R0);
        a.here(not_max);
        classes::classify(a, CLASSES);
        a.op(Op::ShiftLeft, Reg::R2, 3);
        a.op_reg(Op::Mov, Reg::R3, Reg::R9);
        a.op_reg(Op::Add, Reg::R3, Reg::R2);
        a.load(Width::Double, Reg::R1, Reg::R3, watched::CLASS);
        a.op(Op::Add, Reg::R1, 1);
        a.store(Width::Double, Reg::R3, watched::CLASS, Reg::R1);
    }

    /// To `not` unless LATE is over the threshold.
    fn over_threshold(&mut self, not: Label) {
        self.a.map_value(Reg::R1, &self.maps.settings);
        self.a.load(Width::Double, Reg::R2, Reg::R1, settings::THRESHOLD);
        self.a.load(Width::Double, Reg::R1, Reg::Stack, LATE);
        self.a.jump_reg(If::AtMost, Reg::R1, Reg::R2, not);
    }

    /// The wait of R9's thread for a lock ends at NOW, if it is one that ends so; to `not` unless it was long.
    fn held_until(&mut self, which: i32, not: Label) {
        self.a.load(Width::Double, Reg::R1, Reg::R9, watched::HELD_UNTIL);
        self.a.jump(If::NotEqual, Reg::R1, which, not);
        self.a.store_number(Width::Double, Reg::R9, watched::HELD_UNTIL, 0);
        self.a.load(Width::Double, Reg::R1, Reg::R9, watched::HELD_SINCE);
        self.a.load(Width::Double, Reg::R0, Reg::Stack, NOW);
        self.a.op_reg(Op::Sub, Reg::R0, Reg::R1);
        self.a.store(Width::Double, Reg::Stack, LATE, Reg::R0);
        self.over_threshold(not);
    }

    /// R8 = a record in the ring, with all but `OTHER` and `SYSCALL`; its thread is that of KEY, its owners are of
    /// `value`. To `full` without one. R6 is the program's context.
    fn begin_record(&mut self, kind: u32, value: Reg, full: Label) {
        let room = self.a.label();
        self.a.map(Reg::R1, &self.maps.ring);
        self.a.op(Op::Mov, Reg::R2, i32::try_from(told::BYTES).unwrap_or(0));
        self.a.op(Op::Mov, Reg::R3, 0);
        self.a.call(Helper::RingReserve);
        self.a.jump(If::NotEqual, Reg::R0, 0, room);
        self.a.map_value(Reg::R1, &self.maps.settings);
        self.a.op(Op::Mov, Reg::R2, 1);
        self.a.add_atomic(Reg::R1, settings::LOST, Reg::R2);
        self.a.go(full);
        self.a.here(room);
        self.a.op_reg(Op::Mov, Reg::R8, Reg::R0);
        self.a.store_number(Width::Word, Reg::R8, told::KIND, kind.cast_signed());
        self.a.load(Width::Word, Reg::R1, Reg::Stack, KEY);
        self.a.store(Width::Word, Reg::R8, told::TID, Reg::R1);
        for (from, to) in [(NOW, told::T), (LATE, told::LATENCY)] {
            self.a.load(Width::Double, Reg::R1, Reg::Stack, from);
            self.a.store(Width::Double, Reg::R8, to, Reg::R1);
        }
        self.a.call(Helper::Cpu);
        self.a.store(Width::Word, Reg::R8, told::CPU, Reg::R0);
        self.a.op_reg(Op::Mov, Reg::R1, Reg::R8);
        self.a.op(Op::Add, Reg::R1, i32::from(told::COMM));
        self.a.op(Op::Mov, Reg::R2, 16);
        self.a.call(Helper::Comm);
        for at in (0..OWNERS as i16 * OWNER_BYTES).step_by(8) {
            match kind {
                KIND_LOCK => self.a.load(Width::Double, Reg::R1, value, watched::OWNER + at),
                _ => self.a.op(Op::Mov, Reg::R1, 0),
            }
            self.a.store(Width::Double, Reg::R8, told::OWNER + at, Reg::R1);
        }
        self.a.op_reg(Op::Mov, Reg::R1, Reg::R6);
        self.a.op_reg(Op::Mov, Reg::R2, Reg::R8);
        self.a.op(Op::Add, Reg::R2, i32::from(told::STACK));
        self.a.op(Op::Mov, Reg::R3, i32::try_from(FRAMES * 8).unwrap_or(0));
        self.a.op(Op::Mov, Reg::R4, 0);
        self.a.call(Helper::GetStack);
        self.a.store(Width::Double, Reg::R8, told::STACK_BYTES, Reg::R0);
    }

    fn system_call_of(&mut self, task: Reg) {
        match self.kernel.syscall.filter(|_| self.registers) {
            Some(at) => {
                self.a.op_reg(Op::Mov, Reg::R1, task);
                self.a.call(Helper::TaskRegisters);
                self.a.load(Width::Double, Reg::R1, Reg::R0, at);
                self.a.store(Width::Double, Reg::R8, told::SYSCALL, Reg::R1);
            }
            None => self.a.store_number(Width::Double, Reg::R8, told::SYSCALL, -1),
        }
    }

    fn end_record(&mut self) {
        self.a.op_reg(Op::Mov, Reg::R1, Reg::R8);
        self.a.op(Op::Mov, Reg::R2, NO_WAKEUP);
        self.a.call(Helper::RingSubmit);
    }

    fn forget_owners(&mut self) {
        for i in 0..OWNERS as i16 {
            self.a.store_number(Width::Word, Reg::R9, watched::OWNER + i * OWNER_BYTES + 16, 0);
        }
    }

    /// The thread at the address in READ becomes owner `i` of R9; its address, without flags, stays in R8. To `none`
    /// where there is no thread.
    fn owner(&mut self, i: i16, none: Label) {
        let at = watched::OWNER + i * OWNER_BYTES;
        self.a.load(Width::Double, Reg::R8, Reg::Stack, READ);
        self.a.op(Op::And, Reg::R8, OWNER_FLAGS);
        self.a.jump(If::Equal, Reg::R8, 0, none);
        self.read(READ, Reg::R8, i32::from(self.kernel.pid), 4);
        self.a.load(Width::Word, Reg::R1, Reg::Stack, READ);
        self.a.store(Width::Word, Reg::R9, at + 16, Reg::R1);
        self.a.op_reg(Op::Mov, Reg::R1, Reg::R9);
        self.a.op(Op::Add, Reg::R1, i32::from(at));
        self.a.op(Op::Mov, Reg::R2, 16);
        self.a.op_reg(Op::Mov, Reg::R3, Reg::R8);
        self.a.op(Op::Add, Reg::R3, self.kernel.comm);
        self.a.call(Helper::ReadKernel);
    }

    /// The thread in R7, watched as R9, gives its CPU up: who has the lock that it waits for, and on.
    fn follow_chain(&mut self, chain: &Chain, out: Label) {
        self.a.op_reg(Op::Mov, Reg::R8, Reg::R7);
        for i in 0..OWNERS as i16 {
            // The first time R8 is the thread itself, then the owner of the lock before.
            self.read(READ, Reg::R8, chain.blocked_on, 8);
            for next in [chain.lock, chain.owner] {
                self.a.load(Width::Double, Reg::R8, Reg::Stack, READ);
                self.a.jump(If::Equal, Reg::R8, 0, out);
                self.read(READ, Reg::R8, next, 8);
            }
            if i == 0 {
                self.forget_owners();
                self.a.call(Helper::KtimeNs);
                self.a.store(Width::Double, Reg::R9, watched::HELD_SINCE, Reg::R0);
                self.a.store_number(Width::Double, Reg::R9, watched::HELD_UNTIL, 2);
            }
            self.owner(i, out);
        }
    }
}
