// SPDX-License-Identifier: MIT OR Apache-2.0
//! Watches the virtual CPUs: their state, their wake-ups, and in full mode their blocks of instructions.
//!
//! Context: HOT. Units: ns of the guest's virtual time. Everything runs in the one thread of all virtual CPUs, which
//! execute one after the other: what is known of one is put away while another executes.
//! Nothing of the guest is written, unless it is to be varied, and no function of QEMU is called that could end a slice of its time, so that the guest
//! is the same with and without. A callback before instruction k of a block of n knows the time: QEMU takes
//! all n off its counter when the block begins.

use core::ffi::c_int;
use core::ptr::null_mut;

use crate::code::Inside;
use crate::files::{Log, Plan, Pool, Window};
use crate::modes::{Interrupts, ReturnTo};
use crate::qemu::Functions;
use crate::record::{self, guest, kind, mode, plan, point, state, status};
use crate::second::Second;
use crate::turns::{Away, Own};
use crate::variation;
use crate::vary::Vary;
use crate::watch_arm::Arm;
use crate::{arm32, arm64, x86};

/// Wake-ups under way at a time.
const OPEN_MAX: usize = 64;

/// What a callback knows of its instruction.
#[derive(Clone, Copy)]
pub struct InstructionSite {
    pub pc: u64,
    /// Instructions of its block from this one on.
    pub left: u32,
    /// Of the plan's point; of a returning instruction, not 0 where it is not its block's first.
    pub what: u32,
}

/// Architecture of the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guest {
    X86_64,
    Arm64,
    Arm32,
}

/// See the module.
pub struct Watch {
    pub functions: Functions,
    pub inside: Inside,
    plan: Plan,
    pub log: Log,
    pub pool: Pool,
    /// The CPU that executes: its number, and its mark in records' states.
    pub number: usize,
    pub mark: u8,
    pub cpu: *mut u8,
    pub own: Option<Own>,
    /// By their numbers; that of the one that executes is empty.
    pub away: [Away; record::CPUS],
    /// The guest has several CPUs.
    pub several: bool,
    /// Where the one that executes is: `current_cpu`.
    pub executing: *const *mut u8,
    /// The one that executed last halted, or none has begun.
    pub halted: bool,
    pub arm: Arm,
    pub guest: Guest,
    pub state: u8,
    /// An instruction that changes the flag of interrupts to what is not known before it is over: when that is, and where.
    pub moved: Option<(u64, u64)>,
    /// The instruction that executes returns from an interrupt, and where its frame lies is not known yet.
    pub frame_due: bool,
    /// The thread on the CPU.
    pub thread: u64,
    /// Threads that a timer woke and that are not yet in user mode.
    open: [u64; OPEN_MAX],
    opened: usize,
    window: Option<Window>,
    inside_window: bool,
    pub vary: Option<Vary>,
    second: Second,
    /// What was before is not recorded.
    log_from: u64,
    /// A record from this time on is looked at: 0 before the first, if there is a limit.
    limit: u64,
}

impl Watch {
    pub fn new(
        functions: Functions,
        inside: Inside,
        plan: Plan,
        log: Log,
        vary: Option<Vary>,
        cpus: usize,
    ) -> Self {
        let window = plan.window(0);
        let guest = match plan.word(plan::GUEST) {
            guest::ARM64 => Guest::Arm64,
            guest::ARM32 => Guest::Arm32,
            _ => Guest::X86_64,
        };
        // Those of 64 bits are in the plan for x86-64 alone, and the count of 64-bit ARM is found.
        let arm = match guest {
            Guest::Arm32 => Arm::new(true, plan.word(plan::COUNT), plan.word(plan::CURRENT)),
            Guest::Arm64 | Guest::X86_64 => Arm::new(false, 0, 0),
        };
        Self {
            functions,
            inside,
            plan,
            log,
            pool: Pool::new(),
            number: 0,
            mark: 0,
            cpu: null_mut(),
            own: None,
            away: [Away::NOTHING; record::CPUS],
            several: cpus > 1,
            executing: core::ptr::null(),
            halted: true,
            arm,
            guest,
            state: 0,
            moved: None,
            frame_due: false,
            thread: 0,
            open: [0; OPEN_MAX],
            opened: 0,
            window,
            inside_window: false,
            log_from: vary.map_or(0, |v| v.word(variation::LOG_FROM)),
            limit: if plan.word(plan::LIMIT_NS) == 0 { u64::MAX } else { 0 },
            vary,
            second: Second::default(),
        }
    }

    /// Is every block to be looked at, for the instant from which the run is varied?
    pub fn varies(&self) -> bool {
        self.vary.is_some()
    }

    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    pub fn status(&mut self, status: u64) {
        self.log.status(status);
    }

    /// All that was looked for is found.
    pub fn found(&mut self) {
        self.log.found();
    }

    pub fn is_arm(&self) -> bool {
        self.guest != Guest::X86_64
    }

    /// An address as it is told: see [`arm32::lifted`].
    pub fn lifted(&self, address: u64) -> u64 {
        if self.guest == Guest::Arm32 { arm32::lifted(address) } else { address }
    }

    /// An address as QEMU has it.
    fn lowered(&self, address: u64) -> u64 {
        if self.guest == Guest::Arm32 { address & u64::from(u32::MAX) } else { address }
    }

    pub fn full(&self) -> bool {
        self.plan.word(plan::MODE) == mode::FULL
    }

    #[inline]
    fn of_cpu<T: Copy>(&self, offset: usize) -> T {
        // SAFETY: an offset that QEMU's own code uses with this type, in a CPU that lives as long as the guest.
        unsafe { self.cpu.add(offset).cast::<T>().read_volatile() }
    }

    #[inline]
    pub fn register(&self, offset: usize) -> u64 {
        self.of_cpu(self.inside.registers + offset)
    }

    #[inline]
    pub fn half_register(&self, offset: usize) -> u32 {
        self.of_cpu(self.inside.registers + offset)
    }

    /// A pointer in a register, at the begin of a block.
    pub fn argument(&self, offset: usize) -> u64 {
        match self.guest {
            Guest::Arm32 => self.lifted(u64::from(self.half_register(offset))),
            Guest::Arm64 | Guest::X86_64 => self.register(offset),
        }
    }

    /// Of a function that begins, where it is a pointer.
    fn first_argument(&self) -> u64 {
        self.argument(match self.guest {
            Guest::X86_64 => x86::RDI,
            Guest::Arm64 => arm64::X0,
            Guest::Arm32 => arm32::R0,
        })
    }

    /// A thread is on the CPU: it may be one that a second kernel woke.
    pub fn switched_second(&mut self, thread: u64) {
        let bytes = if self.guest == Guest::Arm32 { 4 } else { 8 };
        let mut second = self.second;
        second.switched(thread, bytes, |at| self.pointer(at));
        self.second = second;
    }

    /// A pointer of the kernel in its memory.
    pub fn pointer(&self, at: u64) -> Option<u64> {
        match self.guest {
            Guest::Arm32 => self.read::<u32>(at).map(|low| self.lifted(u64::from(low))),
            Guest::Arm64 | Guest::X86_64 => self.read::<u64>(at),
        }
    }

    /// Virtual time at the end of the block under way.
    #[inline]
    pub fn end_ns(&self) -> (i64, u32) {
        // SAFETY: addresses that QEMU's own code uses with these types.
        let (counted, shift) = unsafe {
            (
                (self.inside.counted as *const i64).read_volatile(),
                (self.inside.shift as *const i16).read_volatile(),
            )
        };
        let budget: i64 = self.of_cpu(self.inside.budget);
        let extra: i64 = self.of_cpu(self.inside.extra);
        let left: u16 = self.of_cpu(self.inside.left);
        (counted + budget - extra - i64::from(left), u32::from(shift.cast_unsigned()))
    }

    /// Is the CPU to come back to its loop behind this block? The word beside what is left of a slice has all its bits then.
    pub fn is_wanted_back(&self) -> bool {
        self.of_cpu::<u16>(self.inside.left + 2) == u16::MAX
    }

    /// Virtual time `left` instructions before the end of the block.
    #[inline]
    pub fn time(&self, left: u32) -> u64 {
        let (end, shift) = self.end_ns();
        // SAFETY: as above.
        let bias = unsafe { (self.inside.bias as *const i64).read_volatile() };
        (((end - i64::from(left)) << shift) + bias).cast_unsigned()
    }

    /// Between two blocks: is our time QEMU's? It counts where time has gone on in a halt, which is told apart from
    /// instructions.
    pub fn compare(&mut self) {
        // SAFETY: as in `end_ns`.
        if !self.has_cpu() || unsafe { (self.inside.bias as *const i64).read_volatile() } == 0 {
            return;
        }
        // SAFETY: QEMU's function, called where no block executes: what executed is taken from the slice and added to
        // what was counted, and their sum stays.
        let theirs = unsafe { (self.functions.time)() };
        self.log.compared();
        if self.time(0) != theirs.cast_unsigned() {
            self.status(status::OTHER_TIME);
        }
    }

    pub fn has_cpu(&mut self) -> bool {
        if self.cpu.is_null() {
            // SAFETY: QEMU's function; there is this CPU once a block was translated for it.
            self.cpu = unsafe { (self.functions.cpu)(self.number as c_int) };
        }
        !self.cpu.is_null()
    }

    pub fn read<T: Default>(&self, address: u64) -> Option<T> {
        let mut value = T::default();
        // SAFETY: writes that many bytes to where they fit.
        let failed = unsafe {
            (self.functions.memory)(
                self.cpu,
                self.lowered(address),
                (&raw mut value).cast(),
                size_of::<T>() as u64,
                false,
            )
        };
        (failed == 0).then_some(value)
    }

    /// Where the guest's memory at `address` is in ours.
    pub fn host(&self, address: u64) -> Option<*const u8> {
        let address = self.lowered(address);
        let mut attributes = [0u32; 4];
        let mut bytes = 4096u64;
        // SAFETY: QEMU's functions with room for their answers; the page is the kernel's own and stays.
        let at = unsafe {
            let page =
                (self.functions.physical)(self.cpu, address & !0xfff, (&raw mut attributes).cast());
            if page == u64::MAX {
                return None;
            }
            (self.functions.map)(page, &raw mut bytes, false)
        };
        if at.is_null() {
            return None;
        }
        // SAFETY: within the page.
        Some(unsafe { at.add((address & 0xfff) as usize).cast_const() })
    }

    /// Finds the guest's own data, which is there once its kernel set it up.
    pub fn ready(&mut self) -> bool {
        if self.is_arm() {
            return self.ready_arm();
        }
        if self.own.is_some() {
            return true;
        }
        if !self.has_cpu() {
            return false;
        }
        let at = self.plan.word(plan::OFFSET_AT);
        let offset = if at == 0 { Some(0) } else { self.read::<u64>(at + self.number as u64 * 8) };
        let Some(offset) = offset else { return false };
        let count_at = offset.wrapping_add(self.plan.word(plan::COUNT));
        let current_at = offset.wrapping_add(self.plan.word(plan::CURRENT));
        if !x86::kernel(count_at) {
            return false;
        }
        let (Some(count), Some(current)) = (self.host(count_at), self.host(current_at)) else {
            return false;
        };
        let count_bytes = self.plan.word(plan::COUNT_BYTES);
        self.own = Some(Own {
            count_at,
            count_bytes,
            current_at,
            count: count.cast(),
            current: current.cast(),
        });
        true
    }

    #[inline]
    fn count(&self) -> u32 {
        if self.is_arm() {
            return self.arm.count();
        }
        self.own.as_ref().map_or(0, Own::count)
    }

    #[inline]
    pub fn current(&self) -> u64 {
        if self.is_arm() {
            return self.thread;
        }
        // SAFETY: as above.
        self.own.as_ref().map_or(0, |own| unsafe { own.current.read_volatile() })
    }

    #[inline]
    fn interrupts(&self) -> Interrupts {
        Interrupts::off_if(self.register(x86::FLAGS) & x86::FLAG_INTERRUPTS == 0)
    }

    /// The state of the kernel from `t` on, by the instruction at `pc`.
    #[inline]
    pub fn becomes(&mut self, t: u64, pc: u64, interrupts: Interrupts) {
        self.enters(t, pc, interrupts, ReturnTo::Kernel);
    }

    #[inline]
    fn enters(&mut self, t: u64, pc: u64, interrupts: Interrupts, code: ReturnTo) {
        let count = self.count();
        let now = u8::from(interrupts == Interrupts::Off) * state::INTERRUPTS_OFF
            | u8::from(count & !x86::COUNT_NOT_RESCHED != 0) * state::PREEMPTION_OFF
            | u8::from(count & x86::COUNT_NOT_RESCHED == 0) * state::RESCHED
            | u8::from(code == ReturnTo::User) * state::USER;
        if now != self.state {
            self.state = now;
            self.write(t, kind::STATE, pc);
        }
    }

    #[inline]
    pub fn write(&mut self, t: u64, kind: u8, value: u64) {
        if t >= self.log_from {
            self.log.write(record::head(t, self.state | self.mark, kind), value);
        }
        if t >= self.limit {
            self.reached_limit(t);
        }
    }

    /// The first record begins the guest's time, or that is over: who started QEMU sees it, and ends it.
    #[cold]
    fn reached_limit(&mut self, t: u64) {
        if self.limit > 0 {
            self.status(status::OVERTIME);
        }
        self.limit = if self.limit == 0 { t + self.plan.word(plan::LIMIT_NS) } else { u64::MAX };
    }

    /// Before an instruction that changes the interrupt flag.
    pub fn changes(&mut self, place: InstructionSite, does: x86::Does) {
        if !self.ready() {
            return;
        }
        let after = place.left - 1;
        match does {
            x86::Does::Disables => self.becomes(self.time(after), place.pc, Interrupts::Off),
            x86::Does::Enables => self.becomes(self.time(after), place.pc, Interrupts::On),
            // In the middle of a block the stack pointer is not known: the first load tells where the frame is.
            x86::Does::ReturnsFromInterrupt if place.what != 0 => self.frame_due = true,
            x86::Does::ReturnsFromInterrupt => {
                self.leaves_interrupt(place, self.register(x86::RSP));
            }
            x86::Does::ReturnsFromCall => self.leaves(self.time(after), place.pc, Interrupts::On, ReturnTo::User),
            x86::Does::Halts => {
                self.write(self.time(place.left), kind::HALT, place.pc);
                self.halted = true;
            }
            x86::Does::PopsFlags => self.moved = Some((self.time(after), place.pc)),
            x86::Does::OwnData | x86::Does::ReadsCounter | x86::Does::Nothing => {}
        }
    }

    pub fn leaves(&mut self, t: u64, pc: u64, interrupts: Interrupts, to: ReturnTo) {
        self.enters(t, pc, interrupts, to);
        if to == ReturnTo::Kernel || self.opened == 0 {
            return;
        }
        let current = self.current();
        let mut at = 0;
        while at < self.opened {
            if self.open.get(at) == Some(&current) {
                self.write(t, kind::RETURN, current);
                if let Some(vary) = &self.vary {
                    vary.returned(current);
                }
                self.opened -= 1;
                self.open.swap(at, self.opened);
            } else {
                at += 1;
            }
        }
    }

    /// An interrupt is returned from whose frame lies there.
    fn leaves_interrupt(&mut self, place: InstructionSite, frame: u64) {
        let Some([_, segment, flags]) = self.read::<[u64; 3]>(frame) else { return };
        let t = self.time(place.left - 1);
        let to = ReturnTo::user_if(segment & 3 != 0);
        self.leaves(t, place.pc, Interrupts::off_if(flags & x86::FLAG_INTERRUPTS == 0), to);
        self.write(t, kind::LEAVE, place.pc);
    }

    /// A return from an interrupt loads from there: of its loads the first is the frame's.
    pub fn loads_frame(&mut self, place: InstructionSite, address: u64) {
        if core::mem::take(&mut self.frame_due) {
            self.leaves_interrupt(place, address);
        }
    }

    /// A block begins behind popf, which others may reach by a jump.
    pub fn popped(&mut self, place: InstructionSite) {
        let before = place.pc.wrapping_sub(1);
        if let Some((t, pc)) = self.moved.take_if(|(_, pc)| *pc == before) {
            self.becomes(t, pc, self.interrupts());
        }
    }

    /// An interrupt is taken: the instruction just before it, if it may have enabled interrupts, has.
    pub fn taken(&mut self) {
        if let Some((t, pc)) = self.moved.take()
            && self.state & state::INTERRUPTS_OFF != 0
        {
            self.becomes(t, pc, Interrupts::On);
        }
    }

    /// Behind a store with the prefix gs.
    pub fn stored(&mut self, place: InstructionSite, address: u64) {
        let Some(own) = &self.own else { return };
        if own.has_count(address) {
            self.becomes(self.time(place.left - 1), place.pc, self.interrupts());
        } else if address == own.current_at {
            // QEMU 7.2 calls for loads too.
            let current = self.current();
            if current != self.thread {
                self.thread = current;
                self.switched_second(current);
                let t = self.time(place.left - 1);
                self.write(t, kind::SWITCH, current);
                if t >= self.log_from {
                    self.name(t, current);
                }
            }
        } else if self.several
            && self.away.iter().filter_map(|away| away.own.as_ref()).any(|own| own.has(address))
        {
            self.status(status::OTHER_CPU);
        }
    }

    /// A point of the plan.
    pub fn point(&mut self, place: InstructionSite) {
        if u64::from(place.what) == point::SWITCH {
            return self.switches_arm(place);
        }
        if !self.ready() {
            return;
        }
        let t = self.time(place.left);
        match u64::from(place.what) {
            point::ENTER if self.is_arm() => self.vector_arm(place),
            point::ENTRY | point::ENTER => {
                if u64::from(place.what) == point::ENTER {
                    self.taken();
                    self.write(t, kind::ENTER, place.pc);
                }
                self.becomes(t, place.pc, self.interrupts());
            }
            point::WAKE => {
                let timer = self.first_argument();
                let due = self.read::<u64>(timer.wrapping_add(self.plan.word(plan::TIMER_DUE)));
                let thread =
                    self.pointer(timer.wrapping_add(self.plan.word(plan::TIMER_THREAD)));
                let (Some(due), Some(thread)) = (due, thread) else { return };
                self.wakes(t, thread, due);
            }
            point::WAKE_SECOND => {
                let mut second = self.second;
                let timer = self.first_argument();
                let woken = second.woken(timer, |at| self.read::<u64>(at), |at| self.pointer(at));
                self.second = second;
                if let Some((thread, due)) = woken {
                    self.wakes(t, thread, due);
                }
            }
            _ => self.write(t, kind::POINT, place.pc),
        }
    }

    /// A timer wakes a thread.
    fn wakes(&mut self, t: u64, thread: u64, due: u64) {
        self.write(t, kind::WAKE, thread);
        self.write(t, kind::DUE, due);
        if let Some(vary) = &mut self.vary {
            vary.wakes(thread, due);
        }
        // One of the kernel's own sleeps and wakes again and again, and never comes to user mode.
        let open = self.open.get(..self.opened).unwrap_or_default();
        if open.contains(&thread) {
            return;
        }
        // Where there are more of those than places, each is in the place of another one.
        let at = if self.opened < OPEN_MAX { self.opened } else { t as usize % OPEN_MAX };
        if let Some(place) = self.open.get_mut(at) {
            *place = thread;
            self.opened = (at + 1).max(self.opened);
        }
    }

    /// Full mode: a block begins.
    pub fn block(&mut self, place: InstructionSite) {
        if !self.has_cpu() {
            return;
        }
        let t = self.time(place.left);
        let Some(window) = self.window else { return };
        if t < window.from_ns {
            return;
        }
        if t >= window.to_ns {
            self.inside_window = false;
            return self.window = self.plan.window(window.nth + 1);
        }
        if !self.inside_window {
            self.inside_window = true;
            self.write(t, kind::WINDOW, window.nth as u64);
        }
        // At the begin of a block QEMU's registers are in memory.
        let stack = self.argument(match self.guest {
            Guest::X86_64 => x86::RSP,
            Guest::Arm64 => arm64::SP,
            Guest::Arm32 => arm32::SP,
        });
        // Stacks lie in several areas: their upper halves tell which one.
        let stack = stack ^ (stack >> 32) << 16;
        let here = if x86::kernel(place.pc) { record::block::KERNEL } else { 0 };
        let value = stack << 32 | place.pc & u64::from(u32::MAX);
        self.log.write(record::head(t, here | self.mark, kind::BLOCK), value);
    }
}
