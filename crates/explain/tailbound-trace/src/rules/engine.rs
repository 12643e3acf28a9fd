// SPDX-License-Identifier: MIT OR Apache-2.0
//! Events in, violations out.
//!
//! Units: ns on the trace's clock. Events in the order of time; lost ones are told by
//! [`Rules::lost`], and what began before them is not judged.
//! Not here: what a call may sleep in (`judge`), where a cycle ends (`cycle`), what is a lock (`locks`).

use std::collections::BTreeMap;

use tailbound_core::rules::{Cost, Rule};
use tailbound_core::units::format_ns_i64;
use tailbound_core::words::Word;

use super::Violation;
use super::call::{Call, InCall};
use super::calls::CallTable;
use super::cycle::Wait;
use super::judge::{self, EpollWait, Futex};
use super::locks::is_contended;
use super::task::{
    DEAD, Fault, INTERRUPTIBLE, ORDINARY, PolicyRefusal, Sleep, Task, Waker, Who, sleeps,
};
use crate::event::{Entry, Event, FaultMode};

/// Source: include/trace/events/lock.h, LCB_F_RT.
const RT_LOCK: u32 = 1 << 3;
/// Source: include/uapi/linux/sched.h.
const SCHED_FIFO: u64 = 1;
const SCHED_RR: u64 = 2;
const RESET_ON_FORK: u64 = 0x4000_0000;
const EPERM: i64 = -1;
/// Threads that are remembered; beyond that those that have ended are forgotten.
const TASKS_MAX: usize = 4096;
/// Violations of one cycle that are kept until its end.
const PENDING_MAX: usize = 256;

/// The site of a page fault that the kernel made, on the thread's behalf or on ours.
pub const KERNEL_ACCESS: &str = "kernel access";

/// Who runs on a CPU.
#[derive(Clone, Copy, Debug)]
struct Running {
    pid: i32,
    /// Unknown after it may have changed.
    prio: Option<i32>,
    comm: Word,
}

/// When a thread got the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CpuGain {
    /// At this event.
    Now,
    /// Before it; when is not known.
    Before,
}

/// See the module.
#[derive(Debug)]
pub struct Rules {
    calls: CallTable,
    epoll_wait: EpollWait,
    tasks: BTreeMap<i32, Task>,
    cpus: BTreeMap<u32, Running>,
    out: Vec<Violation>,
    too_late: u64,
}

impl Rules {
    /// For a machine whose system calls have these numbers.
    #[must_use]
    pub fn new(calls: CallTable) -> Self {
        let epoll_wait = EpollWait::of(&calls);
        Self {
            calls,
            epoll_wait,
            tasks: BTreeMap::new(),
            cpus: BTreeMap::new(),
            out: Vec::new(),
            too_late: 0,
        }
    }

    /// One thread more, from here on.
    pub fn watch(&mut self, tid: i32) {
        if self.tasks.len() >= TASKS_MAX {
            // What a thread was refused is told at the end.
            self.tasks.retain(|_, t| !t.dead || t.refused.is_some());
        }
        self.tasks.entry(tid).or_default();
    }

    /// What it is called, until an event tells it.
    pub fn call(&mut self, tid: i32, name: &str) {
        self.watch(tid);
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.comm.get_or_insert_with(|| Word::new(name));
        }
    }

    /// Is this thread remembered?
    #[must_use]
    pub fn knows(&self, tid: i32) -> bool {
        self.tasks.contains_key(&tid)
    }

    /// Events of some CPU were lost: nothing that was under way is known any more.
    pub fn lost(&mut self) {
        self.cpus.clear();
        for task in self.tasks.values_mut() {
            (task.call, task.sleep, task.fault) = (InCall::Unknown, None, None);
            (task.prio, task.rt_mutex, task.woken_by) = (None, false, None);
            (task.early, task.outside, task.pending) = (None, None, Vec::new());
        }
    }

    /// What a thread was called when it was last seen.
    #[must_use]
    pub fn name(&self, tid: i32) -> Option<&str> {
        self.tasks.get(&tid)?.comm.as_ref().map(Word::as_str).filter(|name| !name.is_empty())
    }

    /// What was found since the last call.
    pub fn take(&mut self) -> Vec<Violation> {
        std::mem::take(&mut self.out)
    }

    /// Wake-ups by less urgent threads that did not end the call: the thread slept on, so nothing depended on them.
    ///
    /// The kernel's monitor tells them. It happens where a lock is handed over while its next owner still spins for it: the
    /// wake-up that was on its way then finds that thread in a later sleep.
    #[must_use]
    pub fn too_late(&self) -> u64 {
        self.too_late
    }

    /// What only the end shows: policies that were refused, and the thread went on without.
    #[must_use]
    pub fn finish(&mut self) -> Vec<Violation> {
        for (tid, task) in &mut self.tasks {
            if let Some(fault) = task.fault {
                close_fault(task, *tid, fault.t_ns, &mut self.out);
                // Nothing followed that would limit it.
                if let Some(last) = self.out.last_mut() {
                    last.cost = Cost::default();
                }
            }
            self.out.extend(task.early.take());
            self.out.extend(task.outside.take());
            task.locks.rest(&mut self.out);
            let Some(refused) = task.refused else { continue };
            let ran_on = task.seen_ns > refused.t_ns && task.prio.is_some_and(|p| p >= ORDINARY);
            if ran_on {
                let times = match refused.times {
                    1 => String::new(),
                    n => format!(" ({n} times)"),
                };
                self.out.push(Violation {
                    rule: Rule::PolicyRefused,
                    tid: *tid,
                    t_ns: refused.t_ns,
                    at_ns: refused.t_ns,
                    site: refused.call.to_owned(),
                    address: 0,
                    cost: Cost::default(),
                    text: format!(
                        "{} was refused a real-time policy by {} with error {}{times}, and ran on as an ordinary thread",
                        task.who(*tid).words(),
                        refused.call,
                        refused.error.saturating_neg()
                    ),
                });
            }
        }
        self.take()
    }

    /// Takes the next event.
    pub fn entry(&mut self, e: &Entry) {
        if matches!(
            e.event,
            Event::SysEnter { .. } | Event::SysExit { .. } | Event::PageFault { .. }
        ) {
            self.runs(e);
        }
        match e.event {
            Event::Switch {
                prev,
                prev_prio,
                prev_state,
                prev_comm,
                next,
                next_prio,
                next_comm,
            } => {
                self.leaves(e, prev, prev_prio, prev_state, prev_comm);
                self.cpus
                    .insert(e.cpu, Running { pid: next, prio: Some(next_prio), comm: next_comm });
                self.enters(e, next, next_prio, next_comm);
            }
            Event::Waking { pid, prio, comm, .. } => self.waking(e, pid, prio, comm),
            Event::Prio { pid, new, .. } => {
                if let Some(task) = self.tasks.get_mut(&pid) {
                    task.prio = Some(new);
                }
                for running in self.cpus.values_mut().filter(|r| r.pid == pid) {
                    running.prio = Some(new);
                }
            }
            Event::LockWait { flags, .. } if flags & RT_LOCK != 0 => self.waits_for_rt_mutex(e),
            Event::LockGot { .. } => self.got_lock(e),
            Event::PageFault { mode, address } => self.fault(e, mode, address),
            Event::SysEnter { id, args } => self.begins(e, id, args),
            Event::SysExit { id, ret } => self.ends(e, id, ret),
            _ => {}
        }
    }

    /// The thread of this event runs. Some kernels do not tell every switch from an idle CPU to a thread.
    fn runs(&mut self, e: &Entry) {
        if self.cpus.get(&e.cpu).is_some_and(|r| r.pid == e.pid) {
            return;
        }
        let Some(task) = self.tasks.get_mut(&e.pid) else { return };
        let comm = task.comm.unwrap_or_else(|| Word::new(""));
        self.cpus.insert(e.cpu, Running { pid: e.pid, prio: task.prio, comm });
        self.gets_cpu(e, e.pid, CpuGain::Before);
    }

    fn waits_for_rt_mutex(&mut self, e: &Entry) {
        if let Some(task) = self.tasks.get_mut(&e.pid) {
            task.rt_mutex = true;
        }
    }

    fn got_lock(&mut self, e: &Entry) {
        if let Some(task) = self.tasks.get_mut(&e.pid) {
            task.rt_mutex = false;
        }
    }

    /// The monitor `pagefault`: RULE = always (RT imply not PAGEFAULT).
    fn fault(&mut self, e: &Entry, mode: FaultMode, address: u64) {
        let Some(task) = self.tasks.get_mut(&e.pid) else { return };
        close_fault(task, e.pid, e.t_ns, &mut self.out);
        self.out.extend(task.outside.take());
        if task.is_realtime() {
            task.fault = Some(Fault { t_ns: e.t_ns, mode, address });
        }
    }

    fn begins(&mut self, e: &Entry, id: i64, args: [u64; 4]) {
        let Some(task) = self.tasks.get_mut(&e.pid) else { return };
        close_fault(task, e.pid, e.t_ns, &mut self.out);
        self.out.extend(task.early.take());
        let name = self.calls.name(id).unwrap_or("");
        let call = Call { id, name, args, t_ns: e.t_ns };
        self.out.extend(task.outside.take().map(|v| judge::at_entry(v, &call)));
        task.call = InCall::Yes(call);
        task.seen_ns = e.t_ns;
        if let Some(Futex::Wake { address }) = judge::futex(&call) {
            task.locks.wakes(address, &mut self.out);
        }
    }

    fn ends(&mut self, e: &Entry, id: i64, ret: i64) {
        let Some(task) = self.tasks.get_mut(&e.pid) else { return };
        close_fault(task, e.pid, e.t_ns, &mut self.out);
        self.out.extend(task.early.take());
        let call = std::mem::replace(&mut task.call, InCall::No);
        task.seen_ns = e.t_ns;
        if let Some(held) = task.outside.take() {
            // A call that only ends never began: it was answered for, or refused.
            let name = self.calls.name(id).unwrap_or("");
            let refused = Call { id, name, args: [0; 4], t_ns: e.t_ns };
            self.out.push(judge::at_entry(held, &refused));
        }
        let InCall::Yes(call) = call else { return };
        if call.id != id {
            return;
        }
        if judge::allocates(call.name) && task.is_realtime() {
            let ns = span(call.t_ns, e.t_ns);
            pend(
                task,
                Violation {
                    rule: Rule::Allocation,
                    tid: e.pid,
                    t_ns: call.t_ns,
                    at_ns: call.t_ns,
                    site: call.name.to_owned(),
                    address: 0,
                    cost: Cost::exact(ns),
                    text: format!(
                        "{} called {} within its cycle, which took {}",
                        task.who(e.pid).words(),
                        call.name,
                        format_ns_i64(ns)
                    ),
                },
            );
        }
        if matches!(call.name, "sched_setscheduler" | "sched_setattr" | "sched_setparam") {
            self.policy(e, &call, ret);
        }
    }

    /// A thread has asked for a policy, of itself or of another.
    fn policy(&mut self, e: &Entry, call: &Call, ret: i64) {
        let [target, policy, ..] = call.args;
        let tid = match i32::try_from(target & 0xffff_ffff) {
            Ok(0) | Err(_) => e.pid,
            Ok(tid) => tid,
        };
        let policy = policy & 0xffff_ffff & !RESET_ON_FORK;
        let told = call.name == "sched_setscheduler";
        let realtime = !told || matches!(policy, SCHED_FIFO | SCHED_RR);
        for running in self.cpus.values_mut().filter(|r| r.pid == tid && ret >= 0) {
            running.prio = None;
        }
        let Some(task) = self.tasks.get_mut(&tid) else { return };
        if ret >= 0 {
            // Its priority is in memory, which the event does not show. That it is real-time is known.
            task.prio = match (told, realtime) {
                (true, true) => Some(ORDINARY - 1),
                (true, false) => Some(ORDINARY + 20),
                _ => None,
            };
            task.refused = None;
        } else if ret == EPERM && realtime {
            let times = task.refused.map_or(0, |r| r.times).saturating_add(1);
            let t_ns = task.refused.map_or(e.t_ns, |r| r.t_ns);
            task.refused = Some(PolicyRefusal { t_ns, call: call.name, error: ret, times });
        }
    }

    fn leaves(&mut self, e: &Entry, pid: i32, prio: i32, state: i64, comm: Word) {
        if self.cpus.get(&e.cpu).is_none_or(|r| r.pid != pid) {
            self.gets_cpu(e, pid, CpuGain::Before);
        }
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        // After a policy was set the kernel's number is not known before this.
        (task.prio, task.comm, task.seen_ns) = (Some(prio), Some(comm), e.t_ns);
        if state & DEAD != 0 {
            // What it did on its way out is of no cycle.
            task.pending.clear();
            task.dead = true;
        }
        if !sleeps(state) {
            return;
        }
        self.out.extend(task.outside.take());
        if state & INTERRUPTIBLE != 0 && task.early.take().is_some() {
            self.too_late = self.too_late.saturating_add(1);
        }
        let (call, rt_mutex) = (task.call, task.rt_mutex);
        let none = Sleep {
            t_ns: e.t_ns,
            state,
            prio,
            call,
            rt_mutex,
            waker: None,
            friendly: false,
            unjudged: false,
        };
        task.sleep = Some(none);
        task.woken_by = None;
    }

    fn waking(&mut self, e: &Entry, pid: i32, prio: i32, comm: Word) {
        let by = self.waker(e);
        if let (Waker::Thread(who), true) = (by, pid != e.pid) {
            self.dips(e, who, pid, prio, comm);
        }
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        (task.prio, task.comm) = (Some(prio), Some(comm));
        let Some(sleep) = &mut task.sleep else { return };
        // The first waker is who wakes it; a second one finds it awake.
        sleep.waker = sleep.waker.or(Some(by));
        match by {
            Waker::Hard => sleep.friendly = true,
            Waker::Soft => {}
            Waker::Thread(who) => match who.prio {
                Some(of_waker) => sleep.friendly |= of_waker <= prio,
                None => sleep.unjudged = true,
            },
        }
        let for_lock = matches!(
            sleep.call,
            InCall::Yes(call) if match judge::futex(&call) {
                Some(Futex::Wait { value, .. }) => is_contended(value),
                Some(Futex::LockPi { .. }) => true,
                _ => false,
            }
        );
        if let (Waker::Thread(who), false) = (by, for_lock) {
            task.woken_by = Some((who, e.t_ns, None));
        }
    }

    /// handle_sched_waking of the monitor: an interrupt's handler goes before a thread, a thread
    /// before an NMI, and a soft interrupt is none of them.
    fn waker(&self, e: &Entry) -> Waker {
        if e.flags.hardirq() || e.flags.nmi() {
            return Waker::Hard;
        }
        if e.flags.softirq() {
            return Waker::Soft;
        }
        let running = self.cpus.get(&e.cpu).filter(|r| r.pid == e.pid);
        let task = self.tasks.get(&e.pid);
        let prio = running.and_then(|r| r.prio).or(task.and_then(|t| t.prio));
        let comm = running.map(|r| r.comm).or(task.and_then(|t| t.comm));
        let comm = comm.unwrap_or_else(|| Word::new(""));
        Waker::Thread(Who { pid: e.pid, prio, comm })
    }

    /// PipelineOrder: A wakes B, B wakes C, and B is less urgent than both.
    fn dips(&mut self, e: &Entry, by: Who, pid: i32, prio: i32, comm: Word) {
        let Some(task) = self.tasks.get(&by.pid) else { return };
        let (Some((first, woken_ns, waited)), Some(own)) = (task.woken_by, by.prio) else { return };
        let Some(before) = first.prio else { return };
        // Threads of the program: the kernel's own, which anybody wakes, are no links.
        let watched = |tid: i32| self.tasks.contains_key(&tid);
        if !watched(first.pid)
            || !watched(pid)
            || before >= own
            || prio >= own
            || prio >= ORDINARY
            || before >= ORDINARY
        {
            return;
        }
        let cost = waited.map_or_else(Cost::default, |t| Cost::exact(span(woken_ns, t)));
        let last = Who { pid, prio: Some(prio), comm };
        let site = format!("{} → {} → {}", name_of(&first), name_of(&by), name_of(&last));
        self.out.push(Violation {
            rule: Rule::PipelineOrder,
            tid: by.pid,
            t_ns: e.t_ns,
            at_ns: match task.call {
                InCall::Yes(call) => call.t_ns,
                _ => e.t_ns,
            },
            text: format!(
                "{} wakes {}, which wakes {}: the chain is no more urgent than the one in the middle",
                first.words(),
                by.words(),
                last.words()
            ),
            site,
            address: 0,
            cost,
        });
    }

    fn enters(&mut self, e: &Entry, pid: i32, prio: i32, comm: Word) {
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        if task.dead {
            // Another one that has its number.
            *task = Task { refused: task.refused, ..Task::default() };
        }
        (task.prio, task.comm, task.seen_ns) = (Some(prio), Some(comm), e.t_ns);
        self.gets_cpu(e, pid, CpuGain::Now);
    }

    fn gets_cpu(&mut self, e: &Entry, pid: i32, gain: CpuGain) {
        let epoll_wait = self.epoll_wait;
        let Some(task) = self.tasks.get_mut(&pid) else { return };
        if let Some((.., waited @ None)) = &mut task.woken_by {
            *waited = Some(e.t_ns);
        }
        if let Some(sleep) = task.sleep.take() {
            let ns = span(sleep.t_ns, e.t_ns);
            let cost = match gain {
                CpuGain::Now => Cost::exact(ns),
                CpuGain::Before => Cost::at_most(ns),
            };
            slept(task, pid, &sleep, cost, epoll_wait, &mut self.out);
        }
    }
}

fn name_of(who: &Who) -> String {
    match who.comm.as_str() {
        "" => format!("thread {}", who.pid),
        comm => comm.to_owned(),
    }
}

fn span(from: u64, to: u64) -> i64 {
    i64::try_from(to.saturating_sub(from)).unwrap_or(i64::MAX)
}

fn pend(task: &mut Task, violation: Violation) {
    if task.cycle.is_known() && task.pending.len() < PENDING_MAX {
        task.pending.push(violation);
    }
}

/// A page fault ends before the thread's next system call or fault begins; its time is at most that.
fn close_fault(task: &mut Task, tid: i32, t_ns: u64, out: &mut Vec<Violation>) {
    let Some(fault) = task.fault.take() else { return };
    let (site, what) = match fault.mode {
        FaultMode::User => ("user access", "touched memory"),
        FaultMode::Kernel => (KERNEL_ACCESS, "had the kernel touch memory of its own"),
    };
    // The address itself is not told: a run file is sent to strangers.
    let null = if fault.address < 4096 { " at address 0" } else { "" };
    out.push(Violation {
        rule: Rule::PageFault,
        tid,
        t_ns: fault.t_ns,
        at_ns: fault.t_ns,
        site: site.to_owned(),
        address: fault.address,
        cost: Cost::at_most(span(fault.t_ns, t_ns)),
        text: format!("{} {what} that was not there: page fault{null}", task.who(tid).words()),
    });
}

/// The thread has the CPU again: what it slept in, and who woke it.
fn slept(
    task: &mut Task,
    tid: i32,
    sleep: &Sleep,
    cost: Cost,
    epoll_wait: EpollWait,
    out: &mut Vec<Violation>,
) {
    let ns = cost.ns.unwrap_or(0);
    let (site, what) = judge::describe(&sleep.call);
    let at_ns = match sleep.call {
        InCall::Yes(call) => call.t_ns,
        _ => task.fault.map_or(sleep.t_ns, |f| f.t_ns),
    };
    let who = Who { prio: Some(sleep.prio), ..task.who(tid) }.words();
    let make = |rule, site: &str, text| Violation {
        rule,
        tid,
        t_ns: sleep.t_ns,
        at_ns,
        site: site.to_owned(),
        address: 0,
        cost,
        text,
    };
    let realtime = sleep.prio < ORDINARY;
    let rule = judge::monitored(sleep, epoll_wait).filter(|_| realtime);
    match rule {
        Some(Rule::SleepMethod) => {
            let text = format!("{who} slept for {} {what}", format_ns_i64(ns));
            let violation = make(Rule::SleepMethod, &site, text);
            match sleep.call {
                // What comes next shows whether it was at the entry of a call.
                InCall::No => task.outside = Some(violation),
                _ => out.push(violation),
            }
        }
        Some(rule) => {
            let by = match sleep.waker {
                Some(Waker::Thread(by)) => by.words(),
                _ => "a soft interrupt, which anything may delay".to_owned(),
            };
            let text =
                format!("{who} slept for {} {what} and was woken by {by}", format_ns_i64(ns));
            task.early = Some(make(rule, &site, text));
        }
        None => {}
    }
    let InCall::Yes(call) = sleep.call else { return };
    if let (Some(Futex::Wait { address, value }), Some(Waker::Thread(by)), true) =
        (judge::futex(&call), sleep.waker, realtime)
        && is_contended(value)
    {
        let text = format!(
            "{who} waited {} for a lock without priority inheritance, held by {}",
            format_ns_i64(ns),
            by.words()
        );
        let other = task.early.take();
        task.locks.waited(address, make(Rule::NonPiLock, "futex", text), other, out);
    }
    let wait = Wait::of(&call);
    let uninterruptible = sleep.state & INTERRUPTIBLE == 0;
    if uninterruptible && realtime && task.cycle.ends(wait) == Some(false) && rule.is_none() {
        let text =
            format!("{who} was off the CPU for {} {what}, within its cycle", format_ns_i64(ns));
        pend(task, make(Rule::BlockingCall, &site, text));
    }
    if !uninterruptible && task.cycle.slept(wait) {
        task.pending.clear();
    } else if task.cycle.ends(wait) == Some(true) {
        out.append(&mut task.pending);
    }
}
