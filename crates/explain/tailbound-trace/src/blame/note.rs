// SPDX-License-Identifier: MIT OR Apache-2.0
//! What programs in the kernel told beside the events (stacks, owners of locks), laid onto the parts
//! of a late wake-up that it explains.
//!
//! Units: ns on the trace's clock. A stack is laid onto one part, and only where the events
//! say that the same thread had the CPU. Of an interrupt that came late the stack decides what the
//! events leave open: it came the moment that somebody enabled interrupts, or anywhere.
//! Not here: the programs (`tailbound-record`).

use tailbound_core::blame::{BlamePart, BlameRecord, Cause, Phase, Sureness};
use tailbound_core::units::format_ns_i64;

/// Two readings of the clock for one moment: the event's, and the program's.
const APART_NS: i64 = 20_000;
/// Callers in the sentence about a place.
const CALLERS: usize = 2;

/// What a program is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlameNoteKind {
    /// The thread got the CPU late; the stack is of the thread that gave it up.
    Switch,
    /// Its timer's interrupt came late; the stack is what it came into, with the interrupt's own functions.
    Timer,
    /// It waited for a lock; the stack is its own.
    Lock,
}

/// One record of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlameNote {
    /// What about.
    pub kind: BlameNoteKind,
    /// The late thread.
    pub tid: i32,
    /// When it was told.
    pub t_ns: i64,
    /// How late, or how long.
    pub latency_ns: i64,
    /// On which CPU.
    pub cpu: u32,
    /// Whose stack it is: `name-number`.
    pub other: String,
    /// The kernel's functions, as they were taken.
    pub frames: Vec<String>,
    /// The system call it was in, where told.
    pub system_call: Option<String>,
    /// Who had the lock, and who had the lock that that one waited for.
    pub owners: Vec<String>,
}

/// The scheduler's and the tracing's own functions, from which a thread is left.
const LEAVING: [&str; 14] = [
    "bpf_",
    "__bpf_",
    "__traceiter_",
    "perf_",
    "trace_",
    "__schedule",
    "schedule",
    "preempt_schedule",
    "__preempt_schedule",
    "__cond_resched",
    "dynamic_cond_resched",
    "dynamic_preempt_schedule",
    "raw_irqentry_exit_cond_resched",
    "irqentry_exit",
];
/// Where an interrupt comes in.
const ENTRIES: [&str; 9] = [
    "asm_sysvec_",
    "asm_common_interrupt",
    "asm_exc_",
    "apic_timer_interrupt",
    "hyperv_stimer0",
    "el1h_64_irq",
    "el1_irq",
    "el0t_64_irq",
    "__irq_svc",
];
/// Functions that enable interrupts: one that was held off comes within them.
const ENABLES: [&str; 8] = [
    "_raw_spin_unlock_irq",
    "_raw_read_unlock_irq",
    "_raw_write_unlock_irq",
    "__raw_spin_unlock_irq",
    "finish_task_switch",
    "handle_softirqs",
    "__do_softirq",
    "irqentry_exit",
];
const IDLE: [&str; 6] =
    ["default_idle", "pv_native_safe_halt", "native_safe_halt", "mwait", "cpuidle", "acpi_"];

fn is_one_of(name: &str, of: &[&str]) -> bool {
    of.iter().any(|o| name.starts_with(o))
}

impl BlameNote {
    /// The stack without the functions through which it was taken: the place first. Empty for an interrupt that came
    /// into user mode.
    #[must_use]
    pub fn stack(&self) -> &[String] {
        let skip = match self.kind {
            BlameNoteKind::Switch | BlameNoteKind::Lock => {
                let first = self.frames.iter().position(|f| !is_one_of(f, &LEAVING));
                let first = first.unwrap_or(self.frames.len());
                // An interrupt asked for the CPU: what counts is what it came into.
                let rest = self.frames.get(first..).unwrap_or_default();
                let entry = rest.iter().take(2).position(|f| is_one_of(f, &ENTRIES));
                first.saturating_add(entry.map_or(0, |at| at.saturating_add(1)))
            }
            BlameNoteKind::Timer => {
                let entry = self.frames.iter().position(|f| is_one_of(f, &ENTRIES));
                entry.map_or(self.frames.len(), |at| at.saturating_add(1))
            }
        };
        self.frames.get(skip..).unwrap_or_default()
    }

    /// Is it about the wake-up of `record`, which was due at `due_ns`?
    #[must_use]
    pub fn is_of(&self, record: &BlameRecord, due_ns: i64) -> bool {
        let end = due_ns.saturating_add(record.latency_ns);
        self.t_ns >= due_ns.saturating_sub(APART_NS) && self.t_ns <= end.saturating_add(APART_NS)
    }

    /// Lays it onto `record`, due at `due_ns`; `false` where no part is explained by it.
    pub fn onto(&self, record: &mut BlameRecord, due_ns: i64) -> bool {
        if !self.is_of(record, due_ns) {
            return false;
        }
        let at = self.t_ns.saturating_sub(due_ns);
        let Some(sentence) = (match self.kind {
            BlameNoteKind::Switch => self.onto_switch(record, at),
            BlameNoteKind::Timer => self.onto_timer(record, at),
            BlameNoteKind::Lock => self.onto_lock(record, at),
        }) else {
            return false;
        };
        record.chain.push(sentence);
        true
    }

    /// Lays it onto a cycle on the trace's clock. Cycles overlap where one began late: a wait for a lock is of the one that
    /// has its part.
    pub fn onto_cycle(&self, record: &mut BlameRecord) -> bool {
        let (due_ns, at) = (record.t_ns, self.t_ns.saturating_sub(record.t_ns));
        let fits = self.kind != BlameNoteKind::Lock || self.part_of_wait(record, at).is_some();
        fits && self.onto(record, due_ns)
    }

    /// Lays a wait for a lock onto a cycle, if that has not been done.
    pub fn onto_cycle_once(&self, record: &mut BlameRecord) {
        let sentence = self.lock_sentence();
        if !record.chain.iter().any(|said| said.contains(&sentence)) {
            self.onto_cycle(record);
        }
    }

    fn called(&self) -> String {
        let stack = self.stack();
        let mut out = stack.first().cloned().unwrap_or_default();
        for caller in stack.iter().skip(1).take(CALLERS) {
            out.push_str(&format!(", called from {caller}"));
        }
        match &self.system_call {
            Some(call) => format!("{out} (system call {call})"),
            None => out,
        }
    }

    fn onto_switch(&self, record: &mut BlameRecord, at: i64) -> Option<String> {
        let stack = self.stack();
        let part = longest(record, |p| {
            p.phase == Phase::Switch && p.cause.is_foreign() && is_about(&p.who, &self.other)
        })?;
        if stack.is_empty() {
            return None;
        }
        part.stack = stack.to_vec();
        if let Some(call) = &self.system_call {
            part.in_system_call(call);
        }
        Some(format!(
            "At {} {} could at last be preempted, in {}.",
            format_ns_i64(at),
            self.other,
            self.called()
        ))
    }

    fn onto_timer(&self, record: &mut BlameRecord, at: i64) -> Option<String> {
        let stack = self.stack();
        let first = stack.first()?;
        if is_one_of(first, &IDLE) || stack.iter().any(|f| f == "do_idle") {
            return None;
        }
        // Where another interrupt had come in first, the timer's may have become due with it: a guest that goes on after a
        // stop finds all of them at once.
        let after_another =
            stack.iter().any(|f| is_one_of(f, &ENTRIES) && !f.starts_with("asm_exc_"));
        let enabled = is_one_of(first, &ENABLES) && !after_another;
        let part = longest(record, |p| {
            let open = matches!(
                p.cause,
                Cause::Unexplained | Cause::InterruptsOff | Cause::LockSpin | Cause::Console
            );
            p.phase == Phase::Timer && open && is_about(&p.who, &self.other)
        })?;
        if part.cause == Cause::Unexplained {
            // Who is stopped from below the kernel goes on anywhere, not where interrupts are enabled.
            if !enabled {
                return None;
            }
            part.cause = Cause::InterruptsOff;
            part.who.clone_from(&self.other);
            part.sureness = Sureness::Likely;
        }
        part.stack = stack.to_vec();
        Some(format!(
            "The timer's interrupt came at {} into {}, in {}.",
            format_ns_i64(at),
            self.other,
            self.called()
        ))
    }

    fn onto_lock(&self, record: &mut BlameRecord, at: i64) -> Option<String> {
        let holder = self.owners.join(", which waited for ");
        if holder.is_empty() {
            return None;
        }
        // A wait that ended with the wake-up lies before it: then the sentence alone.
        if let Some(part) = self.part_of_wait(record, at) {
            part.holder.clone_from(&holder);
            if part.stack.is_empty() && part.cause == Cause::Blocked {
                part.stack = self.stack().to_vec();
            }
        }
        Some(format!("Up to {} {}.", format_ns_i64(at), self.lock_sentence()))
    }

    /// The part that is this wait, which ended `at`: of those that overlap with it the one that is most like it.
    fn part_of_wait<'a>(&self, record: &'a mut BlameRecord, at: i64) -> Option<&'a mut BlamePart> {
        let from = at.saturating_sub(self.latency_ns);
        let end = |p: &BlamePart| p.from_ns.saturating_add(p.ns);
        let waits = |p: &BlamePart| {
            let of_kind = matches!(
                p.cause,
                Cause::Blocked | Cause::PriorityInversion | Cause::Waker | Cause::LockSpin
            );
            of_kind
                && p.from_ns <= at.saturating_add(APART_NS)
                && end(p) >= from.saturating_sub(APART_NS)
        };
        let apart = |p: &BlamePart| from.abs_diff(p.from_ns).saturating_add(at.abs_diff(end(p)));
        record.parts.iter_mut().filter(|p| waits(p)).min_by_key(|p| apart(p))
    }

    /// `it waited 3.35 ms for a lock that low-7 had, which waits for lower-6`
    #[must_use]
    pub fn lock_sentence(&self) -> String {
        let had = match self.owners.split_first() {
            None => "a lock of an owner that is not known".to_owned(),
            Some((first, [])) => format!("a lock that {first} had"),
            Some((first, more)) => {
                format!(
                    "a lock that {first} had, which waited for {}",
                    more.join(", which waited for ")
                )
            }
        };
        format!("it waited {} for {had}", format_ns_i64(self.latency_ns))
    }
}

/// Does `who`, a cause's name, begin with or contain the thread `other`?
fn is_about(who: &str, other: &str) -> bool {
    !other.is_empty() && who.split(' ').any(|w| w.trim_end_matches(',') == other)
}

fn longest(record: &mut BlameRecord, fits: impl Fn(&BlamePart) -> bool) -> Option<&mut BlamePart> {
    record.parts.iter_mut().filter(|p| fits(p)).max_by_key(|p| p.ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|f| (*f).to_owned()).collect()
    }

    fn told(kind: BlameNoteKind, frames: &[&str]) -> BlameNote {
        BlameNote {
            kind,
            tid: 7,
            t_ns: 1_000_300,
            latency_ns: 250,
            cpu: 0,
            other: "cc1-9".to_owned(),
            frames: names(frames),
            system_call: None,
            owners: Vec::new(),
        }
    }

    fn record(phase: Phase, cause: Cause, who: &str) -> BlameRecord {
        let (who, sureness) = (who.to_owned(), Sureness::Sure);
        let part = BlamePart { phase, ns: 300, cause, who, sureness, ..BlamePart::default() };
        let parts = vec![part];
        BlameRecord { latency_ns: 300, cpu: Some(0), parts, ..BlameRecord::default() }
    }

    const DUE: i64 = 1_000_000;
    const CHAIN: [&str; 7] = [
        "bpf_trampoline_1",
        "__traceiter_sched_switch",
        "__schedule",
        "preempt_schedule_irq",
        "asm_sysvec_reschedule_ipi",
        "clear_page",
        "__x64_sys_mmap",
    ];

    #[test]
    fn the_thread_that_left_the_cpu_is_charged_with_its_place() {
        let mut r = record(Phase::Switch, Cause::NotPreemptible, "cc1-9");
        assert!(told(BlameNoteKind::Switch, &CHAIN).onto(&mut r, DUE));
        let part = r.parts.first().unwrap();
        assert_eq!(part.stack, names(&["clear_page", "__x64_sys_mmap"]));
        assert_eq!(part.system_call(), Some("mmap"));
        assert!(r.chain.first().unwrap().contains("preempted, in clear_page, called from"));
    }

    #[test]
    fn a_stack_of_somebody_else_or_of_another_time_is_laid_nowhere() {
        let mut r = record(Phase::Switch, Cause::NotPreemptible, "cc1-91");
        assert!(!told(BlameNoteKind::Switch, &CHAIN).onto(&mut r, DUE));
        let mut r = record(Phase::Switch, Cause::NotPreemptible, "cc1-9");
        assert!(!told(BlameNoteKind::Switch, &CHAIN).onto(&mut r, DUE + 1_000_000));
        assert!(!told(BlameNoteKind::Switch, &["__schedule"]).onto(&mut r, DUE), "nothing is left");
        assert!(r.chain.is_empty() && r.parts.iter().all(|p| p.stack.is_empty()));
    }

    #[test]
    fn an_interrupt_that_came_where_interrupts_are_enabled_was_held_off() {
        let open = "interrupts disabled in cc1-9, or the hypervisor had the CPU";
        let late = ["hrtimer_interrupt", "asm_sysvec_apic_timer_interrupt"];
        let frames = [&late[..], &["_raw_spin_unlock_irqrestore", "try_to_wake_up"]].concat();
        let mut r = record(Phase::Timer, Cause::Unexplained, open);
        assert!(told(BlameNoteKind::Timer, &frames).onto(&mut r, DUE));
        let part = r.parts.first().unwrap();
        assert_eq!((part.cause, part.sureness), (Cause::InterruptsOff, Sureness::Likely));
        assert_eq!((part.who.as_str(), part.place()), ("cc1-9", Some("try_to_wake_up")));
        let behind_another = ["irqentry_exit_to_user_mode", "asm_sysvec_reschedule_ipi"];
        for elsewhere in [&["memcpy"][..], &[], &behind_another] {
            let frames = [&late[..], elsewhere].concat();
            let mut r = record(Phase::Timer, Cause::Unexplained, open);
            assert!(!told(BlameNoteKind::Timer, &frames).onto(&mut r, DUE), "{elsewhere:?}");
            assert_eq!(r.parts.first().unwrap().cause, Cause::Unexplained);
        }
    }

    #[test]
    fn owners_of_a_chain_of_locks_are_told_in_their_order() {
        let mut r = record(Phase::WakeUp, Cause::PriorityInversion, "low-3");
        let mut t = told(BlameNoteKind::Lock, &[]);
        assert!(!t.onto(&mut r, DUE), "nobody is known to have it");
        t.owners = names(&["low-3", "lower-2"]);
        assert!(t.onto(&mut r, DUE));
        assert_eq!(r.parts.first().unwrap().holder, "low-3, which waited for lower-2");
        let sentence = r.chain.first().unwrap();
        assert!(sentence.contains("that low-3 had, which waited for lower-2"), "{sentence}");
    }

    #[test]
    fn the_owner_of_a_lock_is_told_of_the_wait_that_was_for_it() {
        let mut r = record(Phase::Blocked, Cause::Blocked, "in read");
        let mut second = r.parts.first().unwrap().clone();
        (second.from_ns, second.ns, second.who) = (300, 100, "in a lock".to_owned());
        r.parts.push(second);
        r.latency_ns = 400;
        let mut lock = told(BlameNoteKind::Lock, &["mutex_lock"]);
        (lock.t_ns, lock.latency_ns, lock.owners) = (DUE + 400, 100, names(&["low-3"]));
        assert!(lock.onto(&mut r, DUE));
        let holders: Vec<&str> = r.parts.iter().map(|p| p.holder.as_str()).collect();
        assert_eq!(holders, ["", "low-3"], "not of the longest one");
        r.t_ns = DUE;
        let said = r.chain.len();
        lock.onto_cycle_once(&mut r);
        assert_eq!(r.chain.len(), said, "it was said already");
        r.parts.iter_mut().for_each(|p| p.cause = Cause::Own);
        assert!(!lock.onto_cycle(&mut r), "the wait is of another cycle");
    }
}
