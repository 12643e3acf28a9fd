// SPDX-License-Identifier: MIT OR Apache-2.0
//! The kernel's trace events that tell what a CPU does, from the bytes of their records.
//!
//! Units: ns. Fields are found by the kernel's own `format` files. An event that
//! a kernel does not have, or that lacks a field, is named by [`EventDecoder::lacking`]; the
//! others are read all the same.
//! Not here: what they mean for a late thread (`crate::blame`), the columns of `--observe`
//! (`crate::decode`).
//! Source: include/trace/events/*.h by their `format` files; trace_flag_type in
//! include/linux/trace_events.h.

use tailbound_core::words::Word;

use crate::format::{EventFormat, Field};

/// The state of the CPU when a record was made: `common_flags` and `common_preempt_count`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    const IRQS_OFF: u8 = 0x01;
    const NEED_RESCHED_LAZY: u8 = 0x02;
    const NEED_RESCHED: u8 = 0x04;
    const HARDIRQ: u8 = 0x08;
    const SOFTIRQ: u8 = 0x10;
    const NMI: u8 = 0x40;

    /// The scheduler had been asked for another thread at once, not only at the next tick.
    #[must_use]
    pub fn need_resched_now(self) -> bool {
        self.0 & Self::NEED_RESCHED != 0
    }
    /// Interrupts were disabled (in an interrupt's handler they are anyway).
    #[must_use]
    pub fn irqs_off(self) -> bool {
        self.0 & Self::IRQS_OFF != 0
    }
    /// The scheduler had been asked for another thread.
    #[must_use]
    pub fn need_resched(self) -> bool {
        self.0 & (Self::NEED_RESCHED | Self::NEED_RESCHED_LAZY) != 0
    }
    /// Made in an interrupt's handler.
    #[must_use]
    pub fn hardirq(self) -> bool {
        self.0 & Self::HARDIRQ != 0
    }
    /// Made in a soft interrupt.
    #[must_use]
    pub fn softirq(self) -> bool {
        self.0 & Self::SOFTIRQ != 0
    }
    /// Made in a non-maskable interrupt.
    #[must_use]
    pub fn nmi(self) -> bool {
        self.0 & Self::NMI != 0
    }
    /// Made by a thread, outside of everything that interrupts it.
    #[must_use]
    pub fn in_thread(self) -> bool {
        self.0 & (Self::HARDIRQ | Self::SOFTIRQ | Self::NMI) == 0
    }
}

/// Interrupts that have no handler of a device: what `irq_vectors` and `ipi` tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Vector {
    /// The CPU's own timer.
    Timer,
    /// From another CPU; the kernel's name for it.
    Ipi(&'static str),
    /// The CPU's own, of another kind.
    Other(&'static str),
}

/// The mode of a CPU at a page fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultMode {
    /// The thread touched memory itself.
    User,
    /// The kernel did, on a thread's behalf or on ours.
    Kernel,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named as the kernel names them")]
pub enum Event {
    /// The CPU goes over to another thread.
    Switch {
        prev: i32,
        prev_prio: i32,
        prev_state: i64,
        prev_comm: Word,
        next: i32,
        next_prio: i32,
        next_comm: Word,
    },
    /// A thread is being woken.
    Waking { pid: i32, prio: i32, cpu: u32, comm: Word },
    /// A thread was put on a CPU's list of ready threads.
    Wakeup { pid: i32, cpu: u32 },
    /// A thread was moved.
    Migrate { pid: i32, from: u32, to: u32 },
    /// Priority inheritance changed a thread's priority.
    Prio { pid: i32, old: i32, new: i32 },
    /// A high-resolution timer was set: to a time, and by its slack no later than another.
    TimerStart { timer: u64, function: u64, due_ns: i64, latest_ns: i64 },
    /// The interrupt found a timer expired; its function begins.
    TimerExpire { timer: u64, function: u64, now_ns: i64 },
    /// Its function has ended.
    TimerExit { timer: u64 },
    /// A device's interrupt handler begins.
    IrqEntry { irq: i32, name: Word },
    /// It ends.
    IrqExit { irq: i32 },
    /// A soft interrupt begins.
    SoftirqEntry { vec: u32 },
    /// It ends.
    SoftirqExit { vec: u32 },
    /// Another interrupt begins.
    VectorEntry(Vector),
    /// It ends.
    VectorExit(Vector),
    /// One CPU interrupts another.
    IpiSend { cpu: u32, callsite: u64, callback: u64 },
    /// One CPU interrupts several: those of the first 64.
    IpiSendMany { cpus: u64, callsite: u64, callback: u64 },
    /// A function that another CPU asked for begins.
    CallEntry { function: u64 },
    /// It ends.
    CallExit,
    /// A handler of the non-maskable interrupt has ended.
    Nmi { handler: u64, ns: i64 },
    /// A work queue's function begins.
    WorkStart { function: u64 },
    /// It ends.
    WorkEnd,
    /// A thread begins to wait for a lock of the kernel.
    LockWait { lock: u64, flags: u32 },
    /// It has it, or has given up.
    LockGot { lock: u64 },
    /// A page fault.
    PageFault { mode: FaultMode, address: u64 },
    /// The CPU enters an idle state, or leaves it (`None`).
    Idle { state: Option<u32> },
    /// A CPU's frequency changes.
    Frequency { cpu: u32, khz: u64 },
    /// A message of the kernel goes to its log.
    Console,
    /// A system call begins.
    SysEnter { id: i64, args: [u64; 4] },
    /// It ends.
    SysExit { id: i64, ret: i64 },
    /// A thread or a process is begun.
    Fork { child: i32, comm: Word },
    /// Interrupts are disabled, or about to be enabled: where, and what called that, from the begin of the kernel's code on.
    Interrupts { off: bool, caller: i64, parent: i64 },
    /// The same of preemption.
    Preemption { off: bool, caller: i64, parent: i64 },
    /// Something of no interest: it tells who had the CPU then, and in which state.
    Other,
}

impl Event {
    /// The threads that it names.
    pub fn thread_names(&self) -> impl Iterator<Item = (i32, Word)> + use<> {
        let both = match *self {
            Self::Switch { prev, prev_comm, next, next_comm, .. } => {
                [Some((prev, prev_comm)), Some((next, next_comm))]
            }
            Self::Waking { pid, comm, .. } => [Some((pid, comm)), None],
            _ => [None, None],
        };
        both.into_iter().flatten()
    }

    /// The functions of the kernel that it points to.
    pub fn functions(&self) -> impl Iterator<Item = u64> + use<> {
        let both = match *self {
            Self::TimerStart { function, .. }
            | Self::TimerExpire { function, .. }
            | Self::WorkStart { function }
            | Self::CallEntry { function } => [function, 0],
            Self::IpiSend { callsite, callback, .. }
            | Self::IpiSendMany { callsite, callback, .. } => [callsite, callback],
            Self::Nmi { handler, .. } => [handler, 0],
            _ => [0, 0],
        };
        both.into_iter().filter(|address| *address > 0)
    }
}

/// One record with its time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// When, on the trace's clock.
    pub t_ns: u64,
    /// On which CPU.
    pub cpu: u32,
    /// The thread that ran there.
    pub pid: i32,
    /// The state of the CPU.
    pub flags: Flags,
    /// What.
    pub event: Event,
}

/// An event that is used, by its system and name; whether nothing can be attributed without it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventSpec {
    /// The folder below `events/`.
    pub system: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Nothing can be said without it.
    pub needed: bool,
}

const fn wanted(system: &'static str, name: &'static str) -> EventSpec {
    EventSpec { system, name, needed: false }
}

const fn needed(system: &'static str, name: &'static str) -> EventSpec {
    EventSpec { system, name, needed: true }
}

/// Every event that is understood.
pub const WANTED: &[EventSpec] = &[
    needed("sched", "sched_switch"),
    needed("sched", "sched_waking"),
    wanted("sched", "sched_wakeup"),
    wanted("sched", "sched_migrate_task"),
    wanted("sched", "sched_pi_setprio"),
    wanted("timer", "hrtimer_start"),
    wanted("timer", "hrtimer_expire_entry"),
    wanted("timer", "hrtimer_expire_exit"),
    wanted("irq", "irq_handler_entry"),
    wanted("irq", "irq_handler_exit"),
    wanted("irq", "softirq_entry"),
    wanted("irq", "softirq_exit"),
    wanted("irq_vectors", "local_timer_entry"),
    wanted("irq_vectors", "local_timer_exit"),
    wanted("irq_vectors", "reschedule_entry"),
    wanted("irq_vectors", "reschedule_exit"),
    wanted("irq_vectors", "call_function_entry"),
    wanted("irq_vectors", "call_function_exit"),
    wanted("irq_vectors", "call_function_single_entry"),
    wanted("irq_vectors", "call_function_single_exit"),
    wanted("irq_vectors", "irq_work_entry"),
    wanted("irq_vectors", "irq_work_exit"),
    wanted("irq_vectors", "thermal_apic_entry"),
    wanted("irq_vectors", "thermal_apic_exit"),
    wanted("ipi", "ipi_send_cpu"),
    wanted("ipi", "ipi_send_cpumask"),
    wanted("ipi", "ipi_entry"),
    wanted("ipi", "ipi_exit"),
    wanted("csd", "csd_function_entry"),
    wanted("csd", "csd_function_exit"),
    wanted("nmi", "nmi_handler"),
    wanted("workqueue", "workqueue_execute_start"),
    wanted("workqueue", "workqueue_execute_end"),
    wanted("lock", "contention_begin"),
    wanted("lock", "contention_end"),
    wanted("exceptions", "page_fault_user"),
    wanted("exceptions", "page_fault_kernel"),
    wanted("power", "cpu_idle"),
    wanted("power", "cpu_frequency"),
    wanted("printk", "console"),
];

/// Events that are understood beside the [`WANTED`].
const ALSO: &[EventSpec] = &[
    wanted("sched", "sched_wakeup_new"),
    wanted("exceptions", "page_fault_kernel"),
    wanted("raw_syscalls", "sys_enter"),
    wanted("raw_syscalls", "sys_exit"),
    wanted("sched", "sched_process_fork"),
    wanted("preemptirq", "irq_disable"),
    wanted("preemptirq", "irq_enable"),
    wanted("preemptirq", "preempt_disable"),
    wanted("preemptirq", "preempt_enable"),
];

/// The system and name of an event that is understood, by what a file says.
pub(crate) fn understood(system: &str, name: &str) -> Option<(&'static str, &'static str)> {
    let all = WANTED.iter().chain(ALSO);
    all.map(|w| (w.system, w.name)).find(|(s, n)| *s == system && *n == name)
}

/// What to make of a record: the fields in the order that [`make`] wants them.
#[derive(Clone, Copy, Debug)]
struct Layout {
    kind: Kind,
    fields: [Field; 7],
}

/// The events by what is read of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch,
    Waking,
    Wakeup,
    Migrate,
    Prio,
    TimerStart,
    TimerExpire,
    TimerExit,
    IrqEntry,
    IrqExit,
    SoftirqEntry,
    SoftirqExit,
    VectorEntry(Vector),
    VectorExit(Vector),
    IpiSend,
    IpiSendMany,
    CallEntry,
    CallExit,
    Nmi,
    WorkStart,
    WorkEnd,
    LockWait,
    LockGot,
    UserFault,
    KernelFault,
    Idle,
    Frequency,
    Console,
    SysEnter,
    SysExit,
    Fork,
    Interrupts(bool),
    Preemption(bool),
}

fn kind(name: &str) -> Option<(Kind, &'static [&'static str])> {
    let vector = |name: &str| match name {
        "local_timer" => Some(Vector::Timer),
        "reschedule" => Some(Vector::Ipi("reschedule")),
        "call_function" | "call_function_single" => Some(Vector::Ipi("function call")),
        "irq_work" => Some(Vector::Ipi("irq_work")),
        "ipi" => Some(Vector::Ipi("ipi")),
        "thermal_apic" => Some(Vector::Other("thermal interrupt")),
        _ => None,
    };
    if let Some(vector) = name.strip_suffix("_entry").and_then(vector) {
        return Some((Kind::VectorEntry(vector), &[]));
    }
    if let Some(vector) = name.strip_suffix("_exit").and_then(vector) {
        return Some((Kind::VectorExit(vector), &[]));
    }
    Some(match name {
        "sched_switch" => (
            Kind::Switch,
            &[
                "prev_pid",
                "prev_prio",
                "prev_state",
                "prev_comm",
                "next_pid",
                "next_prio",
                "next_comm",
            ],
        ),
        "sched_waking" => (Kind::Waking, &["pid", "prio", "target_cpu", "comm"]),
        "sched_wakeup" | "sched_wakeup_new" => (Kind::Wakeup, &["pid", "target_cpu"]),
        "sched_migrate_task" => (Kind::Migrate, &["pid", "orig_cpu", "dest_cpu"]),
        "sched_pi_setprio" => (Kind::Prio, &["pid", "oldprio", "newprio"]),
        "hrtimer_start" => (Kind::TimerStart, &["hrtimer", "function", "softexpires", "expires"]),
        "hrtimer_expire_entry" => (Kind::TimerExpire, &["hrtimer", "function", "now"]),
        "hrtimer_expire_exit" => (Kind::TimerExit, &["hrtimer"]),
        "irq_handler_entry" => (Kind::IrqEntry, &["irq", "name"]),
        "irq_handler_exit" => (Kind::IrqExit, &["irq"]),
        "softirq_entry" => (Kind::SoftirqEntry, &["vec"]),
        "softirq_exit" => (Kind::SoftirqExit, &["vec"]),
        "ipi_send_cpu" => (Kind::IpiSend, &["cpu", "callsite", "callback"]),
        "ipi_send_cpumask" => (Kind::IpiSendMany, &["cpumask", "callsite", "callback"]),
        "csd_function_entry" => (Kind::CallEntry, &["func"]),
        "csd_function_exit" => (Kind::CallExit, &[]),
        "nmi_handler" => (Kind::Nmi, &["handler", "delta_ns"]),
        "workqueue_execute_start" => (Kind::WorkStart, &["function"]),
        "workqueue_execute_end" => (Kind::WorkEnd, &[]),
        "contention_begin" => (Kind::LockWait, &["lock_addr", "flags"]),
        "contention_end" => (Kind::LockGot, &["lock_addr"]),
        "page_fault_user" => (Kind::UserFault, &["address"]),
        "page_fault_kernel" => (Kind::KernelFault, &["address"]),
        "cpu_idle" => (Kind::Idle, &["state"]),
        "cpu_frequency" => (Kind::Frequency, &["cpu_id", "state"]),
        "console" => (Kind::Console, &[]),
        "sys_enter" => (Kind::SysEnter, &["id", "args"]),
        "sys_exit" => (Kind::SysExit, &["id", "ret"]),
        "irq_disable" => (Kind::Interrupts(true), &["caller_offs", "parent_offs"]),
        "irq_enable" => (Kind::Interrupts(false), &["caller_offs", "parent_offs"]),
        "preempt_disable" => (Kind::Preemption(true), &["caller_offs", "parent_offs"]),
        "preempt_enable" => (Kind::Preemption(false), &["caller_offs", "parent_offs"]),
        "sched_process_fork" => (Kind::Fork, &["child_pid", "child_comm"]),
        _ => return None,
    })
}

/// Knows one kernel's layouts of these events.
#[derive(Clone, Debug)]
pub struct EventDecoder {
    flags: Option<Field>,
    pid: Option<Field>,
    kinds: Vec<Layout>,
    /// By the number of an event: its place in `kinds`, from 1; 0 for none.
    places: Vec<u8>,
    lacking: Vec<String>,
}

impl EventDecoder {
    /// A decoder of those of `formats` that are understood.
    #[must_use]
    pub fn new(formats: &[EventFormat]) -> Self {
        const NONE: Field = Field { offset: 0, size: 0, signed: false };
        let mut kinds: Vec<Layout> = Vec::new();
        let mut places = Vec::new();
        let mut lacking = Vec::new();
        for format in formats {
            let Some((kind, names)) = kind(&format.name) else { continue };
            let mut fields = [NONE; 7];
            let mut whole = true;
            for (slot, name) in fields.iter_mut().zip(names) {
                match format.field(name) {
                    Ok(field) => *slot = field,
                    // Absent before Linux 5.12 and never decisive.
                    Err(_) if ["function", "softexpires", "expires"].contains(name) => {}
                    Err(e) => {
                        lacking.push(e.to_string());
                        whole = false;
                    }
                }
            }
            if whole {
                let id = usize::from(format.id);
                if places.len() <= id {
                    places.resize(id + 1, 0);
                }
                kinds.push(Layout { kind, fields });
                if let (Some(slot), Ok(at)) = (places.get_mut(id), u8::try_from(kinds.len())) {
                    *slot = at;
                }
            }
        }
        let common = |name: &str| formats.iter().find_map(|f| f.field(name).ok());
        Self { flags: common("common_flags"), pid: common("common_pid"), kinds, places, lacking }
    }

    /// Fields that this kernel's events do not have: those events are passed over.
    #[must_use]
    pub fn lacking(&self) -> &[String] {
        &self.lacking
    }

    /// Is it of an event that is understood, whatever it says?
    #[must_use]
    pub fn understands(&self, bytes: &[u8]) -> bool {
        let id = bytes.get(..2).and_then(|b| b.try_into().ok()).map(u16::from_le_bytes);
        let place = id.and_then(|id| self.places.get(usize::from(id)));
        place.is_some_and(|place| *place > 0)
    }

    /// What `bytes` says; `None` for events that are not understood and for records that are too
    /// short.
    #[must_use]
    pub fn decode(&self, t_ns: u64, cpu: u32, bytes: &[u8]) -> Option<Entry> {
        let id = u16::from_le_bytes(bytes.get(..2)?.try_into().ok()?);
        let place = self.places.get(usize::from(id)).copied()?;
        let layout = self.kinds.get(usize::from(place).checked_sub(1)?)?;
        let event = make(layout, bytes)?;
        let flags = self.flags.and_then(|f| f.get(bytes)).unwrap_or(0);
        let pid = self.pid.and_then(|f| f.get(bytes)).and_then(|p| i32::try_from(p).ok());
        let flags = Flags(u8::try_from(flags & 0xff).unwrap_or(0));
        Some(Entry { t_ns, cpu, pid: pid.unwrap_or(0), flags, event })
    }
}

fn make(layout: &Layout, bytes: &[u8]) -> Option<Event> {
    let int = |i: usize| layout.fields.get(i)?.get(bytes);
    let unsigned = |i: usize| int(i).map(i64::cast_unsigned);
    let small = |i: usize| int(i).and_then(|v| i32::try_from(v).ok());
    let count = |i: usize| int(i).and_then(|v| u32::try_from(v & 0xffff_ffff).ok());
    let words = |i: usize| layout.fields.get(i).and_then(|f| text(*f, bytes));
    Some(match layout.kind {
        Kind::Switch => Event::Switch {
            prev: small(0)?,
            prev_prio: small(1)?,
            prev_state: int(2)?,
            prev_comm: words(3)?,
            next: small(4)?,
            next_prio: small(5)?,
            next_comm: words(6)?,
        },
        Kind::Waking => {
            Event::Waking { pid: small(0)?, prio: small(1)?, cpu: count(2)?, comm: words(3)? }
        }
        Kind::Wakeup => Event::Wakeup { pid: small(0)?, cpu: count(1)? },
        Kind::Migrate => Event::Migrate { pid: small(0)?, from: count(1)?, to: count(2)? },
        Kind::Prio => Event::Prio { pid: small(0)?, old: small(1)?, new: small(2)? },
        Kind::TimerStart => Event::TimerStart {
            timer: unsigned(0)?,
            function: unsigned(1).unwrap_or(0),
            due_ns: int(2).unwrap_or(0),
            latest_ns: int(3).unwrap_or(0),
        },
        Kind::TimerExpire => Event::TimerExpire {
            timer: unsigned(0)?,
            function: unsigned(1).unwrap_or(0),
            now_ns: int(2)?,
        },
        Kind::TimerExit => Event::TimerExit { timer: unsigned(0)? },
        Kind::IrqEntry => Event::IrqEntry { irq: small(0)?, name: words(1)? },
        Kind::IrqExit => Event::IrqExit { irq: small(0)? },
        Kind::SoftirqEntry => Event::SoftirqEntry { vec: count(0)? },
        Kind::SoftirqExit => Event::SoftirqExit { vec: count(0)? },
        Kind::VectorEntry(vector) => Event::VectorEntry(vector),
        Kind::VectorExit(vector) => Event::VectorExit(vector),
        Kind::IpiSend => {
            Event::IpiSend { cpu: count(0)?, callsite: unsigned(1)?, callback: unsigned(2)? }
        }
        Kind::IpiSendMany => Event::IpiSendMany {
            cpus: layout.fields.first().and_then(|f| mask(*f, bytes))?,
            callsite: unsigned(1)?,
            callback: unsigned(2)?,
        },
        Kind::CallEntry => Event::CallEntry { function: unsigned(0)? },
        Kind::CallExit => Event::CallExit,
        Kind::Nmi => Event::Nmi { handler: unsigned(0)?, ns: int(1)? },
        Kind::WorkStart => Event::WorkStart { function: unsigned(0)? },
        Kind::WorkEnd => Event::WorkEnd,
        Kind::LockWait => Event::LockWait { lock: unsigned(0)?, flags: count(1)? },
        Kind::LockGot => Event::LockGot { lock: unsigned(0)? },
        Kind::UserFault => Event::PageFault { mode: FaultMode::User, address: unsigned(0)? },
        Kind::KernelFault => Event::PageFault { mode: FaultMode::Kernel, address: unsigned(0)? },
        // PWR_EVENT_EXIT is -1 as u32.
        Kind::Idle => Event::Idle { state: count(0).filter(|s| *s != u32::MAX) },
        Kind::Frequency => Event::Frequency { cpu: count(0)?, khz: unsigned(1)? },
        Kind::Console => Event::Console,
        Kind::SysEnter => {
            Event::SysEnter { id: int(0)?, args: arguments(layout.fields.get(1).copied()?, bytes)? }
        }
        Kind::SysExit => Event::SysExit { id: int(0)?, ret: int(1)? },
        Kind::Interrupts(off) => Event::Interrupts { off, caller: int(0)?, parent: int(1)? },
        Kind::Preemption(off) => Event::Preemption { off, caller: int(0)?, parent: int(1)? },
        Kind::Fork => Event::Fork { child: small(0)?, comm: words(1)? },
    })
}

/// Where a `__data_loc` field's data lies: its low half says where, its high half how long.
fn located(field: Field, bytes: &[u8]) -> Option<&[u8]> {
    let place = field.get(bytes)?.cast_unsigned();
    let at = usize::try_from(place & 0xffff).ok()?;
    let length = usize::try_from(place >> 16 & 0xffff).ok()?;
    bytes.get(at..at.checked_add(length)?)
}

/// A text: an array of the record, or behind a `__data_loc` of four bytes. The kernel went over from
/// one to the other, and no text of interest has four bytes.
fn text(field: Field, bytes: &[u8]) -> Option<Word> {
    let raw = match field.size {
        4 => located(field, bytes)?,
        size => bytes.get(field.offset..field.offset.checked_add(size)?)?,
    };
    let end = raw.iter().position(|b| *b == 0).unwrap_or(raw.len());
    Some(Word::new(&String::from_utf8_lossy(raw.get(..end)?)))
}

/// The first 64 CPUs of a mask behind a `__data_loc`.
fn mask(field: Field, bytes: &[u8]) -> Option<u64> {
    let raw = located(field, bytes)?;
    let mut word = [0u8; 8];
    let n = raw.len().min(8);
    word.get_mut(..n)?.copy_from_slice(raw.get(..n)?);
    Some(u64::from_le_bytes(word))
}

/// The first four of a system call's six arguments: an array of the kernel's `long`.
fn arguments(field: Field, bytes: &[u8]) -> Option<[u64; 4]> {
    const RECORDED: usize = 6;
    let size = field.size / RECORDED;
    let one = |i: usize| {
        let argument =
            Field { offset: field.offset.checked_add(i.checked_mul(size)?)?, size, signed: false };
        argument.get(bytes).map(i64::cast_unsigned)
    };
    Some([one(0)?, one(1)?, one(2)?, one(3)?])
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
