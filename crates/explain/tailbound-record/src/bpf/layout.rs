// SPDX-License-Identifier: MIT OR Apache-2.0
//! Where things lie: in the kernel's structures, by its own description; and in what the programs
//! share with this one.
//!
//! Context: SETUP. Units: bytes, ns.
//! Source: include/linux/{sched,hrtimer,mutex,rwsem,rtmutex}.h; each field is looked up, none assumed.

use tailbound_trace::btf::{Btf, BtfError};
use tailbound_trace::symbols::Symbols;

/// Owners of a chain of locks that are followed: who has the lock, who has the one that it waits for, …
pub(super) const OWNERS: usize = 3;
/// Bytes of an owner: name, number, nothing.
pub(super) const OWNER_BYTES: i16 = 24;
/// Frames of a stack: beyond the interrupt's own there are some twenty left.
pub(super) const FRAMES: usize = 40;
/// Classes of the histogram: four for each power of two.
pub(super) const CLASSES: usize = 256;

/// What is kept of each watched thread.
pub(super) mod watched {
    use super::{CLASSES, OWNER_BYTES, OWNERS};

    /// When it was made ready; 0 while it is not waiting for a CPU.
    pub(crate) const WAKING: i16 = 0;
    pub(crate) const N: i16 = 8;
    pub(crate) const SUM: i16 = 16;
    pub(crate) const MAX: i16 = 24;
    /// Since when it waits for a lock; 0 while it does not.
    pub(crate) const HELD_SINCE: i16 = 32;
    /// 1: until the event of the lock; 2: until it has the CPU again.
    pub(crate) const HELD_UNTIL: i16 = 40;
    pub(crate) const OWNER: i16 = 48;
    pub(crate) const CLASS: i16 = OWNER + OWNERS as i16 * OWNER_BYTES;
    pub(crate) const BYTES: usize = CLASS as usize + CLASSES * 8;
}

/// What a program writes into the ring.
pub(super) mod told {
    use super::{FRAMES, OWNER_BYTES, OWNERS};

    pub(crate) const KIND: i16 = 0;
    pub(crate) const TID: i16 = 4;
    pub(crate) const T: i16 = 8;
    pub(crate) const LATENCY: i16 = 16;
    pub(crate) const OTHER: i16 = 24;
    pub(crate) const CPU: i16 = 28;
    pub(crate) const COMM: i16 = 32;
    pub(crate) const STACK_BYTES: i16 = 48;
    pub(crate) const SYSCALL: i16 = 56;
    pub(crate) const OWNER: i16 = 64;
    pub(crate) const STACK: i16 = OWNER + OWNERS as i16 * OWNER_BYTES;
    pub(crate) const BYTES: usize = STACK as usize + FRAMES * 8;
}

/// A byte for the last bits of a thread's number, not 0 if one that ends so is watched: most threads are told from
/// the watched ones without a look into the table.
pub(super) mod filter {
    pub(crate) const BYTES: usize = 1 << 16;
    pub(crate) const MASK: i32 = 0xffff;
}

/// What is shared by all programs: the threshold, and how many records found no room.
pub(super) mod settings {
    pub(crate) const THRESHOLD: i16 = 0;
    pub(crate) const LOST: i16 = 8;
    pub(crate) const BYTES: usize = 16;
}

/// The kernel's timers of sleeping threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timers {
    pub(super) function: i16,
    pub(super) expires: i16,
    /// From the timer to the thread that it wakes.
    pub(super) task: i32,
    /// The function of such timers.
    pub(super) wakeup: u64,
    /// The event has the address of the time, not the time.
    pub(super) now_is_pointer: bool,
    pub(super) event: u32,
}

/// Who has a lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Locks {
    pub(super) mutex_owner: Option<i32>,
    pub(super) rwsem_owner: Option<i32>,
    pub(super) rt_owner: Option<i32>,
    pub(super) begin: u32,
    pub(super) end: u32,
}

/// Priority inheritance: what a thread waits for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Chain {
    /// Of a thread.
    pub(super) blocked_on: i32,
    /// Of what it is blocked on.
    pub(super) lock: i32,
    /// Of the lock.
    pub(super) owner: i32,
}

/// Why timers of this kernel are not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoTimers {
    #[error(transparent)]
    Types(#[from] BtfError),
    #[error("a timer of another shape")]
    Shape,
    #[error("/proc/kallsyms does not tell where hrtimer_wakeup is")]
    Wakeup,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Kernel {
    pub(super) pid: i16,
    pub(super) comm: i32,
    pub(super) waking: u32,
    pub(super) switch: u32,
    pub(super) timers: Result<Timers, NoTimers>,
    pub(super) locks: Result<Locks, BtfError>,
    pub(super) chain: Result<Chain, BtfError>,
    /// The number of a thread's system call, in its registers.
    pub(super) syscall: Option<i16>,
}

fn near(btf: &Btf<'_>, name: &str, path: &[&str]) -> Result<i16, BtfError> {
    let offset = btf.field(name, path)?.offset;
    i16::try_from(offset)
        .map_err(|_| BtfError::Lacking(format!("field {} near enough", path.join("."))))
}

fn far(btf: &Btf<'_>, name: &str, path: &[&str]) -> Result<i32, BtfError> {
    let offset = btf.field(name, path)?.offset;
    i32::try_from(offset)
        .map_err(|_| BtfError::Lacking(format!("field {} near enough", path.join("."))))
}

impl Kernel {
    /// Looks everything up.
    ///
    /// # Errors
    /// What no program can do without.
    pub(super) fn of(btf: &Btf<'_>, symbols: &Symbols) -> Result<Self, BtfError> {
        Ok(Self {
            pid: near(btf, "task_struct", &["pid"])?,
            comm: far(btf, "task_struct", &["comm"])?,
            waking: btf.tracepoint("sched_waking")?.id,
            switch: btf.tracepoint("sched_switch")?.id,
            timers: Self::timers(btf, symbols),
            locks: Self::locks(btf),
            chain: Self::chain(btf),
            syscall: ["orig_ax", "syscallno"]
                .iter()
                .find_map(|field| near(btf, "pt_regs", &[field]).ok()),
        })
    }

    fn timers(btf: &Btf<'_>, symbols: &Symbols) -> Result<Timers, NoTimers> {
        let event = btf.tracepoint("hrtimer_expire_entry")?;
        let task = far(btf, "hrtimer_sleeper", &["task"])?;
        let timer = far(btf, "hrtimer_sleeper", &["timer"])?;
        let wakeup = symbols.address("hrtimer_wakeup");
        Ok(Timers {
            function: near(btf, "hrtimer", &["function"])?,
            expires: near(btf, "hrtimer", &["_softexpires"])?,
            task: task.checked_sub(timer).ok_or(NoTimers::Shape)?,
            wakeup: wakeup.ok_or(NoTimers::Wakeup)?,
            now_is_pointer: event.pointers.get(1).copied().unwrap_or(true),
            event: event.id,
        })
    }

    fn locks(btf: &Btf<'_>) -> Result<Locks, BtfError> {
        // What this kernel's configuration does not have (a mutex of PREEMPT_RT is an rt_mutex) has no owner.
        let owner = |name: &str, path: &[&str]| far(btf, name, path).ok();
        Ok(Locks {
            mutex_owner: owner("mutex", &["owner"]),
            rwsem_owner: owner("rw_semaphore", &["owner"]),
            rt_owner: owner("rt_mutex_base", &["owner"]),
            begin: btf.tracepoint("contention_begin")?.id,
            end: btf.tracepoint("contention_end")?.id,
        })
    }

    fn chain(btf: &Btf<'_>) -> Result<Chain, BtfError> {
        Ok(Chain {
            blocked_on: far(btf, "task_struct", &["pi_blocked_on"])?,
            lock: far(btf, "rt_mutex_waiter", &["lock"])?,
            // Before Linux 5.15 the lock was a structure of another name.
            owner: far(btf, "rt_mutex_base", &["owner"])
                .or_else(|_| far(btf, "rt_mutex", &["owner"]))?,
        })
    }
}
