// SPDX-License-Identifier: MIT OR Apache-2.0
//! The programs, as instructions: what happens in the kernel at each event.
//!
//! Context: SETUP (making them), HOT of the kernel (what they do). Units: ns of CLOCK_MONOTONIC.
//! A thread that is not a real-time one costs three comparisons. Nothing is told but what is over the threshold, and
//! nobody is woken but, with a flight recorder, the thread that stops it.
//!
//! ```text
//! sched_waking(p)             p real-time: ready[p] = now, unless it is ready already
//! sched_switch(prev, next)    next real-time, and in ready: late = now - ready[next], into the half of the table that
//!                               is being filled; the longest with its time, its CPU and prev
//!                               late > threshold: into the ring, with prev
//!                             prev real-time: no longer in ready
//! ```
//!
//! By policy, not by the priority that counts at the moment: an ordinary thread that was lent one has no deadline.
//! A thread that is woken while it runs does not wait; that is why it leaves `ready` with its CPU. So a wake-up in the very
//! moment in which its thread gives up its CPU is not counted.

use tailbound_sys::bpf::Map;
use tailbound_trace::bpf::assembler::{Assembler, Helper, If, JumpError, Label, Op, Reg, Width};
use tailbound_trace::bpf::classes;

use crate::layout::{CLASSES, Kernel, entry, key, late, lost, settings};

/// Places on the stack.
const TID: i16 = -4;
const NOW: i16 = -16;
const LATE: i16 = -24;
const KEY: i16 = -40;

/// Numbers of the policies. Source: include/uapi/linux/sched.h.
const FIFO: i32 = 1;
const RR: i32 = 2;
const DEADLINE: i32 = 6;
/// Source: BPF_ANY, BPF_NOEXIST, BPF_RB_NO_WAKEUP; without it who waits is woken if the ring was read empty before.
const ANY: i32 = 0;
const IF_NEW: i32 = 1;
const WAKE: i32 = 0;
const NO_WAKEUP: i32 = 1;

/// The maps of the programs.
#[derive(Debug)]
pub(crate) struct Maps {
    /// Since when threads have been ready, by number.
    pub(crate) ready: Map,
    /// See [`entry`], by [`key`].
    pub(crate) threads: Map,
    /// An entry of zeros.
    pub(crate) empty: Map,
    /// See [`settings`].
    pub(crate) settings: Map,
    /// See [`lost`].
    pub(crate) lost: Map,
    /// See [`late`].
    pub(crate) ring: Map,
}

/// A program under way.
struct Program<'a> {
    a: Assembler,
    kernel: Kernel,
    maps: &'a Maps,
    tells: Tells,
}

/// Is somebody woken by a late wake-up?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// It is read at the next look.
    Nobody,
    /// Who waits for it.
    Waiter,
}

impl<'a> Program<'a> {
    fn new(kernel: Kernel, maps: &'a Maps, tells: Tells) -> Self {
        Self { a: Assembler::default(), kernel, maps, tells }
    }

    fn end(mut self, out: Label) -> Result<Vec<u64>, JumpError> {
        self.a.here(out);
        self.a.exit();
        self.a.finish()
    }

    /// To `not` unless the thread at `task` is a real-time one.
    fn realtime(&mut self, task: Reg, not: Label) {
        let yes = self.a.label();
        self.a.load(Width::Word, Reg::R1, task, self.kernel.policy);
        self.a.jump(If::Equal, Reg::R1, FIFO, yes);
        self.a.jump(If::Equal, Reg::R1, RR, yes);
        self.a.jump(If::NotEqual, Reg::R1, DEADLINE, not);
        self.a.here(yes);
    }

    /// TID = the number of the thread at `task`.
    fn number(&mut self, task: Reg) {
        self.a.load(Width::Word, Reg::R1, task, self.kernel.pid);
        self.a.store(Width::Word, Reg::Stack, TID, Reg::R1);
    }

    /// R1 = `map`, R2 = where the key lies.
    fn at(&mut self, map: &Map, place: i16) {
        self.a.map(Reg::R1, map);
        self.a.on_stack(Reg::R2, i32::from(place));
    }

    fn not_ready(&mut self) {
        self.at(&self.maps.ready, TID);
        self.a.call(Helper::MapDelete);
    }

    fn count_lost(&mut self, what: i16) {
        self.a.map_value(Reg::R1, &self.maps.lost);
        self.a.op(Op::Mov, Reg::R2, 1);
        self.a.add_atomic(Reg::R1, what, Reg::R2);
    }

    /// R9 = the entry of R8's thread, a new one if it has none; to `none` without room.
    fn find_entry(&mut self, none: Label) {
        let (found, made) = (self.a.label(), self.a.label());
        self.a.load(Width::Double, Reg::R1, Reg::R8, self.kernel.start);
        self.a.store(Width::Double, Reg::Stack, KEY + key::START, Reg::R1);
        self.a.load(Width::Word, Reg::R1, Reg::R8, self.kernel.pid);
        self.a.store(Width::Word, Reg::Stack, KEY + key::TID, Reg::R1);
        self.a.map_value(Reg::R1, &self.maps.settings);
        self.a.load(Width::Word, Reg::R1, Reg::R1, settings::HALF);
        self.a.store(Width::Word, Reg::Stack, KEY + key::HALF, Reg::R1);
        self.at(&self.maps.threads, KEY);
        self.a.call(Helper::MapLookup);
        self.a.jump(If::NotEqual, Reg::R0, 0, found);
        self.at(&self.maps.threads, KEY);
        self.a.map_value(Reg::R3, &self.maps.empty);
        self.a.op(Op::Mov, Reg::R4, ANY);
        self.a.call(Helper::MapUpdate);
        self.at(&self.maps.threads, KEY);
        self.a.call(Helper::MapLookup);
        self.a.jump(If::NotEqual, Reg::R0, 0, made);
        self.count_lost(lost::WAKEUPS);
        self.a.go(none);
        self.a.here(made);
        self.a.op_reg(Op::Mov, Reg::R9, Reg::R0);
        self.name(Reg::R9, entry::COMM, Reg::R8);
        self.copy_word(Reg::R9, entry::FLAGS, Reg::R8, self.kernel.flags);
        self.a.op_reg(Op::Mov, Reg::R0, Reg::R9);
        self.a.here(found);
        self.a.op_reg(Op::Mov, Reg::R9, Reg::R0);
    }

    fn copy_word(&mut self, to: Reg, at: i16, task: Reg, field: i16) {
        self.a.load(Width::Word, Reg::R1, task, field);
        self.a.store(Width::Word, to, at, Reg::R1);
    }

    /// The name of the thread at `task`, to `to + at`.
    fn name(&mut self, to: Reg, at: i16, task: Reg) {
        self.a.op_reg(Op::Mov, Reg::R1, to);
        self.a.op(Op::Add, Reg::R1, i32::from(at));
        self.a.op(Op::Mov, Reg::R2, 16);
        self.a.op_reg(Op::Mov, Reg::R3, task);
        self.a.op(Op::Add, Reg::R3, self.kernel.comm);
        self.a.call(Helper::ReadKernel);
    }

    fn cpu(&mut self, to: Reg, at: i16) {
        self.a.call(Helper::Cpu);
        self.a.store(Width::Word, to, at, Reg::R0);
    }

    /// LATE into the sums of R9; is it the longest, with what belongs to it. R7 had the CPU until now.
    fn count(&mut self) {
        let longest = self.a.label();
        let a = &mut self.a;
        a.load(Width::Double, Reg::R0, Reg::Stack, LATE);
        for (at, number) in [(entry::N, Reg::R2), (entry::SUM, Reg::R0)] {
            a.op(Op::Mov, Reg::R2, 1);
            a.load(Width::Double, Reg::R3, Reg::R9, at);
            a.op_reg(Op::Add, Reg::R3, number);
            a.store(Width::Double, Reg::R9, at, Reg::R3);
        }
        a.load(Width::Double, Reg::R3, Reg::R9, entry::MAX);
        a.jump_reg(If::AtMost, Reg::R0, Reg::R3, longest);
        a.store(Width::Double, Reg::R9, entry::MAX, Reg::R0);
        a.load(Width::Double, Reg::R1, Reg::Stack, NOW);
        a.store(Width::Double, Reg::R9, entry::MAX_AT, Reg::R1);
        self.cpu(Reg::R9, entry::MAX_CPU);
        self.copy_word(Reg::R9, entry::BEFORE_TID, Reg::R7, self.kernel.pid);
        self.copy_word(Reg::R9, entry::BEFORE_POLICY, Reg::R7, self.kernel.policy);
        self.copy_word(Reg::R9, entry::BEFORE_PRIORITY, Reg::R7, self.kernel.priority);
        self.name(Reg::R9, entry::BEFORE_COMM, Reg::R7);
        self.name(Reg::R9, entry::COMM, Reg::R8);
        self.a.here(longest);
        self.copy_word(Reg::R9, entry::POLICY, Reg::R8, self.kernel.policy);
        self.copy_word(Reg::R9, entry::PRIORITY, Reg::R8, self.kernel.priority);
        self.cpu(Reg::R9, entry::CPU);
    }

    /// LATE into the histogram of R9.
    fn classify(&mut self) {
        let a = &mut self.a;
        a.load(Width::Double, Reg::R0, Reg::Stack, LATE);
        classes::classify(a, CLASSES);
        a.op(Op::ShiftLeft, Reg::R2, 3);
        a.op_reg(Op::Mov, Reg::R3, Reg::R9);
        a.op_reg(Op::Add, Reg::R3, Reg::R2);
        a.load(Width::Double, Reg::R1, Reg::R3, entry::CLASS);
        a.op(Op::Add, Reg::R1, 1);
        a.store(Width::Double, Reg::R3, entry::CLASS, Reg::R1);
    }

    /// Tells a wake-up over the threshold. R9 is free afterwards.
    fn tell(&mut self, not: Label) {
        let room = self.a.label();
        self.a.map_value(Reg::R1, &self.maps.settings);
        self.a.load(Width::Double, Reg::R2, Reg::R1, settings::THRESHOLD);
        self.a.load(Width::Double, Reg::R1, Reg::Stack, LATE);
        self.a.jump_reg(If::AtMost, Reg::R1, Reg::R2, not);
        self.a.map(Reg::R1, &self.maps.ring);
        self.a.op(Op::Mov, Reg::R2, i32::try_from(late::BYTES).unwrap_or(0));
        self.a.op(Op::Mov, Reg::R3, 0);
        self.a.call(Helper::RingReserve);
        self.a.jump(If::NotEqual, Reg::R0, 0, room);
        self.count_lost(lost::LATE);
        self.a.go(not);
        self.a.here(room);
        self.a.op_reg(Op::Mov, Reg::R9, Reg::R0);
        for (from, to) in [(NOW, late::T), (LATE, late::LATENCY)] {
            self.a.load(Width::Double, Reg::R1, Reg::Stack, from);
            self.a.store(Width::Double, Reg::R9, to, Reg::R1);
        }
        self.cpu(Reg::R9, late::CPU);
        for (task, tid, policy, priority, comm) in [
            (Reg::R8, late::TID, late::POLICY, late::PRIORITY, late::COMM),
            (
                Reg::R7,
                late::BEFORE_TID,
                late::BEFORE_POLICY,
                late::BEFORE_PRIORITY,
                late::BEFORE_COMM,
            ),
        ] {
            self.copy_word(Reg::R9, tid, task, self.kernel.pid);
            self.copy_word(Reg::R9, policy, task, self.kernel.policy);
            self.copy_word(Reg::R9, priority, task, self.kernel.priority);
            self.name(Reg::R9, comm, task);
        }
        self.a.op_reg(Op::Mov, Reg::R1, Reg::R9);
        let flags = if self.tells == Tells::Waiter { WAKE } else { NO_WAKEUP };
        self.a.op(Op::Mov, Reg::R2, flags);
        self.a.call(Helper::RingSubmit);
    }
}

/// sched_waking
pub(crate) fn waking(kernel: Kernel, maps: &Maps) -> Result<Vec<u64>, JumpError> {
    let mut p = Program::new(kernel, maps, Tells::Nobody);
    let out = p.a.label();
    p.a.load(Width::Double, Reg::R6, Reg::R1, 0);
    p.realtime(Reg::R6, out);
    p.number(Reg::R6);
    p.a.call(Helper::KtimeNs);
    p.a.store(Width::Double, Reg::Stack, NOW, Reg::R0);
    p.at(&maps.ready, TID);
    p.a.on_stack(Reg::R3, i32::from(NOW));
    p.a.op(Op::Mov, Reg::R4, IF_NEW);
    p.a.call(Helper::MapUpdate);
    // Ready already: the wait goes on.
    p.a.jump(If::Equal, Reg::R0, 0, out);
    p.a.jump(If::Equal, Reg::R0, -EEXIST, out);
    p.count_lost(lost::WAKEUPS);
    p.end(out)
}

/// Source: errno(3).
const EEXIST: i32 = 17;

/// sched_switch
pub(crate) fn switch(kernel: Kernel, maps: &Maps, tells: Tells) -> Result<Vec<u64>, JumpError> {
    let mut p = Program::new(kernel, maps, tells);
    let (leaving, out) = (p.a.label(), p.a.label());
    p.a.op_reg(Op::Mov, Reg::R6, Reg::R1);
    p.a.load(Width::Double, Reg::R7, Reg::R6, 8);
    p.a.load(Width::Double, Reg::R8, Reg::R6, 16);
    p.realtime(Reg::R8, leaving);
    p.number(Reg::R8);
    p.at(&maps.ready, TID);
    p.a.call(Helper::MapLookup);
    p.a.jump(If::Equal, Reg::R0, 0, leaving);
    p.a.load(Width::Double, Reg::R9, Reg::R0, 0);
    p.a.call(Helper::KtimeNs);
    p.a.store(Width::Double, Reg::Stack, NOW, Reg::R0);
    p.a.op_reg(Op::Sub, Reg::R0, Reg::R9);
    p.a.store(Width::Double, Reg::Stack, LATE, Reg::R0);
    p.not_ready();
    p.find_entry(leaving);
    p.count();
    p.classify();
    p.tell(leaving);
    p.a.here(leaving);
    p.realtime(Reg::R7, out);
    p.number(Reg::R7);
    p.not_ready();
    p.end(out)
}
