// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes the kernel's events in the order of their times and keeps what [`explain`] needs: what
//! every CPU did, what every thread is, and the wake-ups of the watched ones.
//!
//! Units: ns. Memory is bounded by [`Engine::forget_before`].
//!
//! [`explain`]: Engine::explain

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tailbound_core::words::Word;

use super::clocks::Clocks;
use super::cpu::{Cpu, CpuActivity};
use super::map::Map;
use super::thread::{ORDINARY, State, Thread};
use super::wakeup::{Allowed, At, SwitchRecord, WakeUp, Waker};
use crate::event::{Entry, Event, Vector};
use crate::symbols::Symbols;

/// Most timers of watched threads that are remembered.
const TIMERS_MAX: usize = 4096;
/// Most locks whose last owner is remembered.
const LOCKS_MAX: usize = 4096;
/// Most segments, and most records, of all CPUs together, that are remembered.
const KEPT_MAX: usize = 1 << 20;
/// With more threads than this those that have slept for long are forgotten: most of them have ended,
/// and the next event of one that has not tells its name again.
const THREADS_MAX: usize = 32_768;

/// The threads that stop CPUs, with the CPU's number behind it.
pub(super) const STOPPER: &str = "migration/";
/// A clock was set where a timer was due this much sooner than it had been when it was set.
const STEP_MIN_NS: u64 = 100_000;
/// Timers that the scheduler and the tick set in a thread's time, by how their functions' names begin.
const NOT_ITS_OWN: [&str; 5] = ["sched_", "tick_", "hrtick", "dl_task_timer", "inactive_task"];

/// Whose wake-ups are of interest.
#[derive(Clone, Debug)]
pub enum WatchFilter {
    /// These threads.
    Threads(BTreeSet<i32>),
    /// Every thread with a real-time priority that is not the kernel's own stopper.
    Realtime,
    /// Every thread of one of these names.
    Named(Vec<String>),
    /// Every thread.
    All,
}

/// Where the due times of timers stand on the trace's clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DueTimes {
    /// They are times of the trace's clock, which is `mono`.
    #[default]
    OnTraceClock,
    /// The trace has another clock: each expiry tells how late it was by the timer's own clock, and
    /// lies that long behind the due time. What passed from the interrupt's look at the clock to
    /// the record of the expiry is not in it.
    CarriedOver,
}

/// An interrupt that one CPU sent to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    pub(super) t_ns: u64,
    pub(super) to: u64,
    pub(super) from: u32,
    pub(super) pid: i32,
    pub(super) callsite: u64,
    pub(super) callback: u64,
}

/// Something that happened at one moment and is looked for later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mark {
    /// A timer of this function expired or was set.
    Timer(u64),
    /// A page fault of this thread.
    Fault(i32),
    /// A message went to the kernel's log.
    Console,
    /// The first record since then that the thread itself made: the message had been written.
    ConsoleDone,
    /// A CPU's stopper thread got the CPU.
    Stopper,
    /// The frequency of this CPU changed, to so many kHz.
    Frequency(u32, u64),
    /// This thread was moved from one CPU to another.
    Moved(i32, u32, u32),
}

/// A timer of a watched thread.
#[derive(Clone, Copy, Debug)]
struct Set {
    pid: i32,
    /// What it was set to, on its own clock.
    due_ns: u64,
    /// How much later it may expire.
    slack_ns: u64,
    /// When it was set.
    at_ns: u64,
    /// When it is due on the trace's clock, by what was known of its own then.
    planned_ns: Option<u64>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Engine {
    watched: WatchFilter,
    due_times: DueTimes,
    pub(super) symbols: Arc<Symbols>,
    pub(super) cpus: BTreeMap<u32, Cpu>,
    pub(super) threads: Map<i32, Thread>,
    pub(super) interrupts: Map<i32, Word>,
    pub(super) sent: VecDeque<Sent>,
    pub(super) marks: VecDeque<(u64, u32, Mark)>,
    /// An ordinary thread, or nobody, got this CPU although a real-time one was ready there.
    pub(super) given_up: VecDeque<(u64, u32)>,
    /// Who got a contended lock last.
    pub(super) owners: Map<u64, i32>,
    timers: Map<u64, Set>,
    clocks: Clocks,
    /// The last expiry on each CPU.
    fires: Map<u32, At>,
    open: Map<i32, WakeUp>,
    done: Vec<WakeUp>,
}

impl Engine {
    /// Nothing is known yet.
    #[must_use]
    pub fn new(watched: WatchFilter, symbols: Arc<Symbols>) -> Self {
        Self {
            watched,
            due_times: DueTimes::default(),
            symbols,
            cpus: BTreeMap::new(),
            threads: Map::default(),
            interrupts: Map::default(),
            sent: VecDeque::new(),
            marks: VecDeque::new(),
            clocks: Clocks::default(),
            given_up: VecDeque::new(),
            owners: Map::default(),
            timers: Map::default(),
            fires: Map::default(),
            open: Map::default(),
            done: Vec::new(),
        }
    }

    /// The trace's clock and that of timers, as [`DueTimes`] says.
    pub fn due_times(&mut self, due_times: DueTimes) {
        self.due_times = due_times;
    }

    /// Gives a thread the name that another source knows.
    pub fn name_thread(&mut self, pid: i32, comm: &str) {
        self.threads.entry(pid).or_default().comm = Word::new(comm);
    }

    /// One thread more is of interest, from here on.
    pub fn watch(&mut self, pid: i32) {
        if let WatchFilter::Threads(pids) = &mut self.watched {
            pids.insert(pid);
        }
    }

    /// The name of a thread, where it is known.
    #[must_use]
    pub fn comm(&self, pid: i32) -> Option<&str> {
        self.threads.get(&pid).map(|t| t.comm.as_str())
    }

    /// Are there any for [`Engine::take_wakeups`]?
    #[must_use]
    pub fn has_wakeups(&self) -> bool {
        !self.done.is_empty()
    }

    /// From when on the oldest wake-up without an end is late.
    #[must_use]
    pub fn oldest_open(&self) -> Option<u64> {
        self.open.values().filter_map(WakeUp::from_ns).min()
    }

    /// Wake-ups of watched threads that have come to their end since the last call.
    pub fn take_wakeups(&mut self) -> Vec<WakeUp> {
        std::mem::take(&mut self.done)
    }

    /// The last of them; where there are several, the others come with the next calls.
    pub(super) fn take_wakeup(&mut self) -> Option<WakeUp> {
        self.done.pop()
    }

    /// Wake-ups whose end was not recorded yet.
    #[must_use]
    pub fn open_wakeups(&self) -> Vec<WakeUp> {
        self.open.values().filter(|w| w.waking.is_some()).cloned().collect()
    }

    /// Nothing before `t_ns` will be asked for any more.
    pub fn forget_before(&mut self, t_ns: u64) {
        self.cpus.values_mut().for_each(|c| c.forget_before(t_ns));
        while self.sent.front().is_some_and(|s| s.t_ns < t_ns) {
            self.sent.pop_front();
        }
        while self.marks.front().is_some_and(|m| m.0 < t_ns) {
            self.marks.pop_front();
        }
        while self.given_up.front().is_some_and(|m| m.0 < t_ns) {
            self.given_up.pop_front();
        }
        // Whatever the times say: what a damaged or a very dense trace holds stays bounded.
        self.sent.drain(..self.sent.len().saturating_sub(KEPT_MAX / 4));
        self.marks.drain(..self.marks.len().saturating_sub(KEPT_MAX));
        self.given_up.drain(..self.given_up.len().saturating_sub(KEPT_MAX / 4));
        let each = KEPT_MAX.checked_div(self.cpus.len()).unwrap_or(KEPT_MAX);
        self.cpus.values_mut().for_each(|c| c.keep_last(each));
        if self.threads.len() > THREADS_MAX {
            let (open, before) = (&self.open, t_ns);
            self.threads.retain(|pid, t| open.contains_key(pid) || !t.is_over(before));
        }
    }

    fn watches(&self, pid: i32) -> bool {
        match &self.watched {
            WatchFilter::Threads(pids) => pids.contains(&pid),
            WatchFilter::All => pid > 0,
            WatchFilter::Named(names) => {
                let thread = self.threads.get(&pid);
                thread.is_some_and(|t| names.iter().any(|n| n == t.comm.as_str()))
            }
            WatchFilter::Realtime => {
                pid > 0
                    && self.threads.get(&pid).is_some_and(|t| t.prio < ORDINARY - 1 && t.prio > 0)
            }
        }
    }

    fn thread_what(&self, cpu: u32) -> CpuActivity {
        let pid = self.cpus.get(&cpu).and_then(|c| c.pid);
        pid.and_then(|p| self.threads.get(&p)).map_or(CpuActivity::Thread, Thread::what)
    }

    /// Takes the next event; those of one CPU must come in the order of their times.
    pub fn entry(&mut self, e: &Entry) {
        let thread = self.thread_what(e.cpu);
        let cpu = self.cpus.entry(e.cpu).or_default();
        cpu.close(e.t_ns, thread, e.flags);
        let prints = cpu.prints && e.flags.in_thread() && e.event != Event::Console;
        if prints {
            cpu.prints = false;
        }
        cpu.settle(e.flags);
        if prints {
            self.mark(e, Mark::ConsoleDone);
        }
        self.resync(e);
        self.event(e);
        if let Some(cpu) = self.cpus.get_mut(&e.cpu) {
            cpu.told(e.flags);
        }
    }

    /// A record in the name of another thread than the one that had the CPU: the switch between
    /// them was not recorded.
    fn resync(&mut self, e: &Entry) {
        let Some(cpu) = self.cpus.get_mut(&e.cpu) else { return };
        if cpu.pid == Some(e.pid) {
            return;
        }
        // In a switch the CPU is the old thread's; the name of the record is the old one too.
        let known = cpu.pid.replace(e.pid);
        if known.is_some() && !e.flags.in_thread() {
            cpu.frames.retain(|f| f.is_hard());
        }
        let idle_before = known == Some(0);
        if let Some(old) = known.filter(|p| *p > 0)
            && let Some(thread) = self.threads.get_mut(&old)
        {
            thread.state = State::Unknown;
        }
        if e.pid > 0 {
            self.threads.entry(e.pid).or_default().runs(e.t_ns);
            self.is_ready_nowhere(e.pid);
            self.got_cpu(e.pid, At { t_ns: e.t_ns, cpu: e.cpu }, SwitchRecord::Absent);
        }
        if known.is_some()
            && !idle_before
            && let Some(last) = self.cpus.get_mut(&e.cpu).and_then(|c| c.segments.back_mut())
            && last.to == e.t_ns
            && last.what.is_thread()
        {
            // Either of the two may have had the time since the last record.
            last.what = CpuActivity::Unknown;
        }
    }

    /// The end of a wake-up.
    fn got_cpu(&mut self, pid: i32, at: At, record: SwitchRecord) {
        if let Some(mut wakeup) = self.open.remove(&pid)
            && wakeup.waking.is_some()
        {
            wakeup.switch = Some(at);
            wakeup.switch_record = record;
            self.done.push(wakeup);
        }
    }

    fn mark(&mut self, e: &Entry, mark: Mark) {
        self.marks.push_back((e.t_ns, e.cpu, mark));
    }

    fn event(&mut self, e: &Entry) {
        match e.event {
            Event::Switch { .. } => self.switch(e),
            Event::Waking { pid, prio, cpu, comm } => self.waking(e, pid, prio, cpu, comm),
            Event::Wakeup { pid, cpu } => {
                if let Some(thread) = self.threads.get_mut(&pid) {
                    thread.cpu = cpu;
                }
                self.is_ready_elsewhere(cpu, pid, e.t_ns);
            }
            Event::Migrate { pid, from, to } => {
                self.threads.entry(pid).or_default().cpu = to;
                self.is_ready_elsewhere(to, pid, e.t_ns);
                self.mark(e, Mark::Moved(pid, from, to));
            }
            Event::Prio { pid, old, new } => {
                let thread = self.threads.entry(pid).or_default();
                (thread.prio, thread.inherited) = (new, new < old);
            }
            Event::LockWait { lock, flags } => {
                // Bit 0: it spins; other waits give the CPU away. Source: LCB_F_SPIN.
                if flags & 1 != 0 {
                    let owner = self.owners.get(&lock).copied().filter(|o| *o != e.pid);
                    self.threads.entry(e.pid).or_default().spins = Some(owner.unwrap_or(0));
                }
            }
            Event::LockGot { lock } => {
                self.threads.entry(e.pid).or_default().spins = None;
                if self.owners.len() >= LOCKS_MAX {
                    self.owners.clear();
                }
                self.owners.insert(lock, e.pid);
            }
            Event::WorkStart { function } => {
                self.threads.entry(e.pid).or_default().work = Some(function);
            }
            Event::WorkEnd => self.threads.entry(e.pid).or_default().work = None,
            Event::PageFault { .. } => self.mark(e, Mark::Fault(e.pid)),
            Event::Console => {
                self.mark(e, Mark::Console);
                self.cpus.entry(e.cpu).or_default().prints = true;
            }
            Event::Frequency { cpu, khz } => self.mark(e, Mark::Frequency(cpu, khz)),
            Event::IpiSend { cpu, callsite, callback } => {
                self.send(e, 1u64.checked_shl(cpu).unwrap_or(0), callsite, callback);
            }
            Event::IpiSendMany { cpus, callsite, callback } => {
                self.send(e, cpus, callsite, callback);
            }
            Event::TimerStart { timer, function, due_ns, latest_ns } => {
                self.mark(e, Mark::Timer(function));
                if e.flags.in_thread() && self.watches(e.pid) && due_ns > 0 && self.is_own(function)
                {
                    if self.timers.len() >= TIMERS_MAX {
                        self.timers.clear();
                    }
                    let set = Set {
                        pid: e.pid,
                        due_ns: due_ns.cast_unsigned(),
                        slack_ns: latest_ns.saturating_sub(due_ns).max(0).cast_unsigned(),
                        at_ns: e.t_ns,
                        planned_ns: self.planned(e.t_ns, due_ns),
                    };
                    self.timers.insert(timer, set);
                }
            }
            Event::TimerExpire { timer, function, now_ns } => {
                self.expire(e, timer, function, now_ns);
            }
            Event::SysEnter { .. } | Event::SysExit { .. } => {}
            _ => self.frames(e),
        }
    }

    /// A CPU goes over from one thread to another.
    fn switch(&mut self, e: &Entry) {
        let Event::Switch { prev, prev_prio, prev_state, prev_comm, next, next_prio, next_comm } =
            e.event
        else {
            return;
        };
        // What the kernel reports as running, or as preempted, would have run on.
        let ready = prev_state & 0xff == 0;
        if next_comm.as_str().starts_with(STOPPER) {
            self.mark(e, Mark::Stopper);
        }
        let gave_up = ready && prev > 0 && prev_prio < ORDINARY;
        if next_prio >= ORDINARY && (gave_up || self.leaves_waiting(e.cpu, next, e.t_ns)) {
            self.given_up.push_back((e.t_ns, e.cpu));
        }
        self.leave(
            e,
            prev,
            prev_prio,
            prev_comm,
            if ready { State::Ready(e.t_ns) } else { State::Asleep(e.t_ns) },
        );
        if gave_up {
            self.is_ready_on(e.cpu, prev, e.t_ns);
        }
        self.is_ready_nowhere(next);
        self.enter(e, next, next_prio, next_comm);
    }

    /// Begins and ends of what lies over threads.
    fn frames(&mut self, e: &Entry) {
        if let Event::IrqEntry { irq, name } = e.event {
            self.interrupts.insert(irq, name);
        }
        let Some(cpu) = self.cpus.get_mut(&e.cpu) else { return };
        if matches!(e.event, Event::IrqEntry { .. } | Event::VectorEntry(_)) {
            cpu.interrupted_at = Some(e.t_ns);
        }
        match e.event {
            Event::IrqEntry { irq, .. } => {
                // The entry itself is made within the interrupt: what `settle` took for one.
                cpu.frames.retain(|f| *f != CpuActivity::Vector("interrupt"));
                cpu.push(CpuActivity::Irq(irq));
            }
            Event::IrqExit { irq } => cpu.pop(|f| f == CpuActivity::Irq(irq)),
            Event::SoftirqEntry { vec } => cpu.push(CpuActivity::Softirq(vec)),
            Event::SoftirqExit { vec } => cpu.pop(|f| f == CpuActivity::Softirq(vec)),
            Event::VectorEntry(vector) => {
                cpu.frames.retain(|f| *f != CpuActivity::Vector("interrupt"));
                cpu.push(match vector {
                    Vector::Timer => CpuActivity::Timer(0),
                    Vector::Ipi(name) => CpuActivity::Ipi(name, 0),
                    Vector::Other(name) => CpuActivity::Vector(name),
                });
            }
            Event::VectorExit(vector) => cpu.pop(|f| match vector {
                Vector::Timer => matches!(f, CpuActivity::Timer(_)),
                Vector::Ipi(name) => matches!(f, CpuActivity::Ipi(n, _) if n == name),
                Vector::Other(name) => f == CpuActivity::Vector(name),
            }),
            Event::CallEntry { function } => {
                if let Some(CpuActivity::Ipi(_, asked)) = cpu.frames.last_mut() {
                    *asked = function;
                }
            }
            Event::Nmi { handler, ns } => cpu.told_late(e.t_ns, ns, CpuActivity::Nmi(handler)),
            Event::Idle { state } => cpu.idle = state,
            _ => {}
        }
    }

    fn send(&mut self, e: &Entry, to: u64, callsite: u64, callback: u64) {
        let (t_ns, from, pid) = (e.t_ns, e.cpu, e.pid);
        self.sent.push_back(Sent { t_ns, to, from, pid, callsite, callback });
    }

    /// Is it a timer that a thread set for itself, and not one that the scheduler set in its time?
    pub(crate) fn is_own(&self, function: u64) -> bool {
        let name = self.symbols.name(function);
        name.is_none_or(|name| !NOT_ITS_OWN.iter().any(|begin| name.starts_with(begin)))
    }

    /// When a timer that is set at `t_ns` is due on the trace's clock; `None` where nothing is known of its clock.
    pub(crate) fn planned(&self, t_ns: u64, due_ns: i64) -> Option<u64> {
        self.clocks.planned(t_ns, due_ns)
    }

    /// When `set`, which expires now, was due on the trace's clock, and why it did not have to expire then.
    fn due(&mut self, e: &Entry, set: Set, now_ns: i64) -> (Option<u64>, Option<Allowed>) {
        if self.due_times == DueTimes::CarriedOver {
            let late = now_ns.cast_unsigned().checked_sub(set.due_ns);
            let due = late.and_then(|late| e.t_ns.checked_sub(late));
            return (due, due.and_then(|due| slack(due, set.slack_ns)));
        }
        let since = self.cpus.get(&e.cpu).and_then(|c| c.interrupted_at);
        let within = since.map(|t| e.t_ns.saturating_sub(t));
        let apart = self.clocks.read(e.t_ns, now_ns, within);
        let due = set.due_ns.saturating_add_signed(apart);
        // What it was to be until its clock was set: then it is due at once.
        let before = set.planned_ns.filter(|_| apart != 0).and_then(|p| p.checked_sub(due));
        match before.filter(|ns| *ns >= STEP_MIN_NS) {
            Some(step) => {
                let step_ns = Some(i64::try_from(step).unwrap_or(i64::MAX));
                let until_ns = due.saturating_add(step);
                // Nobody waited for it before it was set, however far its clock was moved.
                (Some(due.max(set.at_ns)), Some(Allowed { until_ns, step_ns }))
            }
            None => (Some(due), slack(due, set.slack_ns)),
        }
    }

    fn expire(&mut self, e: &Entry, timer: u64, function: u64, now_ns: i64) {
        self.mark(e, Mark::Timer(function));
        let at = At { t_ns: e.t_ns, cpu: e.cpu };
        self.fires.insert(e.cpu, at);
        if let Some(cpu) = self.cpus.get_mut(&e.cpu)
            && let Some(frame) = cpu
                .frames
                .iter_mut()
                .rev()
                .find(|f| matches!(f, CpuActivity::Timer(_) | CpuActivity::Vector(_)))
        {
            *frame = CpuActivity::Timer(function);
        }
        if let Some(set) = self.timers.remove(&timer) {
            let prio = self.threads.get(&set.pid).map_or(ORDINARY, |t| t.prio);
            let (due_ns, allowed) = self.due(e, set, now_ns);
            let wakeup = self.open.entry(set.pid).or_insert_with(|| WakeUp::new(set.pid, prio));
            (wakeup.due_ns, wakeup.allowed) = (due_ns, allowed);
            wakeup.fire = Some(at);
        }
    }

    fn waking(&mut self, e: &Entry, pid: i32, prio: i32, cpu: u32, comm: Word) {
        let thread = self.threads.entry(pid).or_default();
        (thread.comm, thread.prio, thread.cpu) = (comm, prio, cpu);
        let asleep_ns = match thread.state {
            State::Asleep(since) => Some(since),
            // It has the CPU still, or is ready: nothing to wait for.
            State::Running | State::Ready(_) => None,
            State::Unknown => None,
        };
        if !matches!(thread.state, State::Running) {
            thread.state = State::Ready(e.t_ns);
            thread.woken(e.t_ns, if e.flags.in_thread() { e.pid } else { 0 });
            if prio < ORDINARY {
                self.is_ready_on(cpu, pid, e.t_ns);
            }
        }
        if !self.watches(pid) {
            return;
        }
        let by_interrupt = !e.flags.in_thread();
        let fire = self.fires.get(&e.cpu).copied();
        let frame = self
            .cpus
            .get(&e.cpu)
            .is_some_and(|c| c.frames.iter().any(|f| matches!(f, CpuActivity::Timer(_))));
        let wakeup = self.open.entry(pid).or_insert_with(|| WakeUp::new(pid, prio));
        wakeup.prio = prio;
        wakeup.asleep_ns = asleep_ns.or(wakeup.asleep_ns);
        wakeup.waking =
            Some(Waker { at: At { t_ns: e.t_ns, cpu: e.cpu }, pid: e.pid, by_interrupt });
        if wakeup.fire.is_none() && by_interrupt && frame {
            wakeup.fire = fire;
        }
    }

    fn leave(&mut self, e: &Entry, pid: i32, prio: i32, comm: Word, state: State) {
        let frames = match self.cpus.get_mut(&e.cpu) {
            Some(cpu) => std::mem::take(&mut cpu.frames),
            None => Vec::new(),
        };
        if pid == 0 {
            return;
        }
        let thread = self.threads.entry(pid).or_default();
        (thread.comm, thread.prio, thread.cpu) = (comm, prio, e.cpu);
        thread.frames =
            frames.into_iter().filter(|f| matches!(f, CpuActivity::Softirq(_))).collect();
        thread.state = state;
        if matches!(state, State::Asleep(_)) {
            // What is set on the way to sleep and had no end is not of the next time.
            thread.spins = None;
        }
    }

    fn enter(&mut self, e: &Entry, pid: i32, prio: i32, comm: Word) {
        let Some(cpu) = self.cpus.get_mut(&e.cpu) else { return };
        cpu.pid = Some(pid);
        if pid == 0 {
            return;
        }
        cpu.idle = None;
        let thread = self.threads.entry(pid).or_default();
        (thread.comm, thread.prio, thread.cpu) = (comm, prio, e.cpu);
        thread.runs(e.t_ns);
        cpu.frames = std::mem::take(&mut thread.frames);
        self.got_cpu(pid, At { t_ns: e.t_ns, cpu: e.cpu }, SwitchRecord::Present);
    }
}

fn slack(due_ns: u64, slack_ns: u64) -> Option<Allowed> {
    (slack_ns > 0).then(|| Allowed { until_ns: due_ns.saturating_add(slack_ns), step_ns: None })
}
