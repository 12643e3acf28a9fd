// SPDX-License-Identifier: MIT OR Apache-2.0
//! One watched thread: from events to its waits and what it did between them.
//!
//! Units: ns on the trace's clock. Everything between the first wait and the last event is
//! in some part, and parts adjoin: `cursor` is where the next one begins. sched_yield and preemption are
//! no waits: the thread stays ready. A thread that is woken and sleeps again within one system call has
//! waited once. Events that contradict each other show that some are missing; the stretch is unexplained
//! then, and so is every stretch in which the recorder lost events.
//! Source: kernel/sched/core.c (order of waking and switch); prev_state of sched_switch.

use std::collections::HashSet;

use tailbound_core::blame::{BlamePart, Cause, Phase, Sureness};

use super::calls::{Call, Calls, Kind};
use super::own_timer::trusted;
use super::part::{Part, PartCharge, Parts, Whats};
use super::wait::{Piece, Site, Wait, sites};
use crate::blame::{Engine, Ground, Late, Stretch, WakeUp};
use crate::event::{Entry, Event};

/// States of a thread that a signal or a tracer has stopped: __TASK_STOPPED, __TASK_TRACED.
const STOPPED: i64 = 4;
const TRACED: i64 = 8;
/// States from which no thread wakes: EXIT_DEAD, EXIT_ZOMBIE, TASK_DEAD.
const DEAD: i64 = 0x10 | 0x20 | 0x80;
/// Latest wake-ups that are taken apart with pictures.
const LATEST: usize = 24;
/// Most places that are remembered to have been slept at.
const SITES_MAX: usize = 4096;

/// What a tracker looks things up in.
pub(super) struct Ctx<'a> {
    pub(super) engine: &'a Engine,
    pub(super) calls: &'a Calls,
    pub(super) whats: &'a mut Whats,
    pub(super) ground: Ground,
    pub(super) holes: &'a [u64],
}

impl Ctx<'_> {
    /// Were events lost from `from` to `to`?
    fn hole(&self, from: u64, to: u64) -> bool {
        self.holes.iter().any(|h| *h > from && *h <= to)
    }

    pub(super) fn what(
        &mut self,
        phase: Phase,
        cause: Cause,
        who: String,
        sureness: Sureness,
    ) -> u32 {
        self.whats.number(PartCharge { phase, cause, who, sureness })
    }

    fn unexplained(&mut self, phase: Phase) -> u32 {
        self.what(phase, Cause::Unexplained, "events were lost".to_owned(), Sureness::Sure)
    }

    fn add(&mut self, to: &mut Parts, wall: usize, parts: Vec<BlamePart>) {
        for p in parts {
            let what = self.what(p.phase, p.cause, p.who, p.sureness);
            to.push(Part { ns: p.ns.max(0).cast_unsigned(), what }, wall);
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Sleep {
    pub(super) from: u64,
    /// It continues the wait of the piece under way: the same call.
    again: bool,
    pub(super) fault: bool,
    pub(super) lock: Option<(u64, u32)>,
}

#[derive(Clone, Debug)]
enum State {
    /// Not seen yet, or gone.
    Unknown,
    Running,
    Ready,
    Asleep(Sleep),
    /// It was stopped: that is no wait of its own.
    Held {
        from: u64,
        by: Stopper,
    },
}

/// What stops a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stopper {
    Signal,
    Tracer,
}

/// See the module.
#[derive(Clone, Debug)]
pub(super) struct Tracker {
    pub(super) pid: i32,
    state: State,
    cpu: u32,
    pub(super) cursor: u64,
    pub(super) call: Option<Call>,
    /// Where in `run` the call under way began.
    wall: usize,
    /// When a timer that was set within the call is due, and what it was set to on its own clock.
    due: Option<u64>,
    set_to: Option<i64>,
    /// A sleep that a signal interrupted: `restart_syscall` goes on with it.
    pub(super) to_restart: Option<Call>,
    /// No cycle is released before this: until then a clock that was set had not yet made it due.
    floor: u64,
    /// The last thing it did was a page fault.
    fault: bool,
    lock: Option<(u64, u32)>,
    pub(super) piece: Option<Piece>,
    slept_at: HashSet<Site>,
    latest: Vec<i64>,
    /// Moves while it was ready.
    moved: Vec<(u64, u32)>,
    /// The call in which another thread woke it last.
    pub(super) woken_in: Option<Call>,
}

impl Tracker {
    pub(super) fn new(pid: i32) -> Self {
        Self {
            pid,
            state: State::Unknown,
            cpu: 0,
            cursor: 0,
            call: None,
            wall: 0,
            due: None,
            set_to: None,
            to_restart: None,
            floor: 0,
            fault: false,
            lock: None,
            piece: None,
            slept_at: HashSet::new(),
            latest: Vec::new(),
            moved: Vec::new(),
            woken_in: None,
        }
    }

    /// It is being woken by a thread that is in `call`.
    pub(super) fn woken_in(&mut self, call: Option<Call>) {
        self.woken_in = call;
    }

    /// From when on the engine is still asked.
    pub(super) fn since(&self) -> Option<u64> {
        match &self.state {
            State::Unknown => None,
            State::Asleep(s) => Some(s.from),
            State::Held { from, .. } => Some(*from),
            _ => Some(self.cursor),
        }
    }

    /// Takes an event that names the thread, or was made in its time; `wakeup` ended with it. A piece
    /// that came to its end is handed over.
    pub(super) fn entry(
        &mut self,
        c: &mut Ctx<'_>,
        e: &Entry,
        wakeup: Option<&WakeUp>,
    ) -> Option<Piece> {
        match e.event {
            Event::Switch { prev, prev_state, .. } if prev == self.pid => {
                return self.leaves(c, e, prev_state);
            }
            Event::Switch { next, .. } if next == self.pid => {
                self.gets_cpu(c, e, wakeup);
                return None;
            }
            Event::Migrate { pid, to, .. } if pid == self.pid => {
                if matches!(self.state, State::Ready) {
                    self.moved.push((e.t_ns, to));
                }
                return None;
            }
            _ if e.pid != self.pid => return None,
            _ => {}
        }
        // Made in its time: it has the CPU, whatever was believed.
        match self.state {
            State::Running => {}
            State::Unknown => return self.first(e),
            _ => self.gets_cpu(c, e, wakeup),
        }
        if !e.flags.in_thread() {
            return None;
        }
        match e.event {
            Event::SysEnter { id, args } => {
                let mut call = Call { id, args, since: e.t_ns };
                if c.calls.kind(id) == Kind::Restart {
                    let goes_on = self.to_restart.take();
                    call = goes_on.map_or(call, |old| Call { since: e.t_ns, ..old });
                }
                self.was_at_entry(c, &call);
                // Only where it may sleep is it worth knowing what came before the call.
                if self.may_wait(c.calls, &call) {
                    self.run_to(c, e.t_ns);
                }
                self.wall = self.piece.as_ref().map_or(0, |p| p.run.0.len());
                (self.call, self.due, self.set_to) = (Some(call), None, None);
                self.fault = false;
            }
            Event::SysExit { id, ret } => {
                let restarted = c.calls.kind(id) == Kind::Restart;
                let call = self.call.take().filter(|call| call.id == id || restarted);
                (self.fault, self.lock) = (false, None);
                let interrupted = call.filter(|_| Calls::was_interrupted(ret));
                self.to_restart = interrupted;
                if call.is_none() {
                    // A call that only ends never began: it was answered for, or refused.
                    self.was_at_entry(c, &Call { id, args: [0; 4], since: e.t_ns });
                }
                if let Some(call) = interrupted {
                    self.interrupted(c, &call);
                }
                return self.returns(c, e, call?, ret);
            }
            Event::TimerStart { due_ns, function, .. } if c.engine.is_own(function) => {
                if self.call.is_some() {
                    self.set_to = Some(due_ns);
                }
                if let Some(due) = c.engine.planned(e.t_ns, due_ns) {
                    self.due = Some(due);
                    // A sleep that was over before it began: from the next time on it is looked for.
                    if let Some(call) = self.call.filter(|k| c.calls.sleeps(k))
                        && self.slept_at.len() < SITES_MAX
                    {
                        self.slept_at.insert(sites(c.calls, Some(&call), None)[0]);
                    }
                }
            }
            Event::PageFault { .. } => {
                self.fault = true;
                if let Some(piece) = &mut self.piece {
                    piece.faults = piece.faults.saturating_add(1);
                }
            }
            Event::LockWait { lock, flags } => self.lock = Some((lock, flags)),
            Event::LockGot { .. } => self.lock = None,
            _ => {}
        }
        None
    }

    fn may_wait(&self, calls: &Calls, call: &Call) -> bool {
        self.slept_at.contains(&sites(calls, Some(call), None)[0])
    }

    /// The first that is seen of it: nothing can be said before its next wait.
    fn first(&mut self, e: &Entry) -> Option<Piece> {
        (self.state, self.cpu, self.cursor) = (State::Running, e.cpu, e.t_ns);
        if let Event::SysEnter { id, args } = e.event {
            self.call = Some(Call { id, args, since: e.t_ns });
        }
        None
    }

    /// Appends what it did on its CPU up to `t`.
    fn run_to(&mut self, c: &mut Ctx<'_>, t: u64) {
        self.stretch_to(c, Phase::Running, self.cpu, t);
    }

    fn stretch_to(&mut self, c: &mut Ctx<'_>, phase: Phase, cpu: u32, t: u64) {
        let (from, pid, wall) = (self.cursor, self.pid, self.wall);
        self.cursor = t.max(from);
        let Some(piece) = &mut self.piece else { return };
        if t <= from {
            return;
        }
        if c.hole(from, t) {
            let what = c.unexplained(phase);
            piece.run.push(Part { ns: t.saturating_sub(from), what }, wall);
            piece.lost = true;
            return;
        }
        let ground = c.ground;
        let parts = c.engine.stretch(&Stretch { phase, cpu, pid, from, to: t }, &ground);
        c.add(&mut piece.run, wall, parts);
    }

    fn ready_to(&mut self, c: &mut Ctx<'_>, t: u64) {
        for (at, to) in std::mem::take(&mut self.moved) {
            self.stretch_to(c, Phase::Preempted, self.cpu, at.min(t));
            self.cpu = to;
        }
        self.stretch_to(c, Phase::Preempted, self.cpu, t);
    }

    /// What happened since the cursor contradicts what is seen now.
    fn missed_to(&mut self, c: &mut Ctx<'_>, t: u64) {
        let (from, wall) = (self.cursor, self.wall);
        self.cursor = t.max(from);
        let Some(piece) = &mut self.piece else { return };
        let what = c.unexplained(Phase::Running);
        piece.run.push(Part { ns: t.saturating_sub(from), what }, wall);
        piece.lost = true;
    }

    /// It gives the CPU away.
    fn leaves(&mut self, c: &mut Ctx<'_>, e: &Entry, prev_state: i64) -> Option<Piece> {
        match self.state {
            State::Running if self.cpu == e.cpu => self.run_to(c, e.t_ns),
            State::Running | State::Ready => self.missed_to(c, e.t_ns),
            State::Asleep(_) | State::Held { .. } => self.gets_cpu(c, e, None),
            State::Unknown => self.cursor = e.t_ns,
        }
        (self.cpu, self.cursor) = (e.cpu, e.t_ns);
        self.moved.clear();
        if prev_state & 0xff == 0 {
            self.state = State::Ready;
            return None;
        }
        if prev_state & (STOPPED | TRACED) != 0 {
            let by = if prev_state & TRACED != 0 { Stopper::Tracer } else { Stopper::Signal };
            self.state = State::Held { from: e.t_ns, by };
            return None;
        }
        if prev_state & DEAD != 0 {
            self.state = State::Unknown;
            self.piece = None;
            return None;
        }
        let piece = self.piece.as_ref();
        let last = piece.and_then(|p| p.wait.as_ref()).filter(|w| w.slept).and_then(|w| w.call);
        let again = self.call.is_some() && last.map(|l| l.since) == self.call.map(|n| n.since);
        let sleep = Sleep { from: e.t_ns, again, fault: self.fault, lock: self.lock };
        self.state = State::Asleep(sleep);
        if again { None } else { self.close(e.t_ns) }
    }

    /// The piece under way ends at `t`.
    fn close(&mut self, t: u64) -> Option<Piece> {
        self.wall = 0;
        let mut piece = self.piece.take()?;
        (piece.end, piece.cpu) = (t, self.cpu);
        Some(piece)
    }

    /// It has the CPU, from whatever state.
    fn gets_cpu(&mut self, c: &mut Ctx<'_>, e: &Entry, wakeup: Option<&WakeUp>) {
        let state = std::mem::replace(&mut self.state, State::Running);
        match state {
            State::Ready => self.ready_to(c, e.t_ns),
            State::Running => self.missed_to(c, e.t_ns),
            State::Unknown => {}
            State::Asleep(sleep) => self.woke(c, e, &sleep, wakeup),
            State::Held { from, by } => self.goes_on(c, e, from, by, wakeup),
        }
        (self.cpu, self.cursor) = (e.cpu, self.cursor.max(e.t_ns));
    }

    /// The wait of the piece under way was for `call`, which a signal ended.
    fn interrupted(&mut self, c: &Ctx<'_>, call: &Call) {
        let wait = self.piece.as_mut().and_then(|p| p.wait.as_mut());
        if let Some(wait) = wait.filter(|w| w.call.map(|w| w.since) == Some(call.since)) {
            wait.interrupted = !wait.timed && !c.calls.waits_for_signals(call);
        }
    }

    /// What had stopped it lets it go on.
    fn goes_on(
        &mut self,
        c: &mut Ctx<'_>,
        e: &Entry,
        from: u64,
        stopper: Stopper,
        wakeup: Option<&WakeUp>,
    ) {
        let t = e.t_ns;
        let seen = wakeup.and_then(|w| w.waking).filter(|k| (from..=t).contains(&k.at.t_ns));
        let by = seen.filter(|k| !k.by_interrupt && k.pid > 0);
        let by = by.map(|k| c.engine.thread_name(k.pid));
        let what = match (c.hole(from, t), stopper) {
            (true, _) => c.unexplained(Phase::Blocked),
            (false, Stopper::Tracer) => {
                let who = by.unwrap_or_else(|| "not known".to_owned());
                c.what(Phase::Blocked, Cause::Traced, who, Sureness::Sure)
            }
            (false, Stopper::Signal) => {
                let who = by.map_or_else(String::new, |b| format!("until {b} let it go on"));
                c.what(Phase::Blocked, Cause::Stopped, who, Sureness::Sure)
            }
        };
        let held_to = seen.map_or(t, |k| k.at.t_ns);
        let wall = self.wall;
        let Some(piece) = &mut self.piece else { return };
        piece.run.push(Part { ns: held_to.saturating_sub(from), what }, wall);
        piece.lost |= c.hole(from, t);
        if held_to < t {
            let late =
                Late { pid: self.pid, due_ns: held_to, end_ns: t, cpu: Some(e.cpu), ours: false };
            let after =
                wakeup.map(|w| WakeUp { due_ns: None, allowed: None, fire: None, ..w.clone() });
            let ground = c.ground;
            let way = c.engine.way(&late, after.as_ref(), &ground);
            c.add(&mut piece.run, wall, way);
        }
        self.cursor = t;
    }

    /// The end of a sleep.
    fn woke(&mut self, c: &mut Ctx<'_>, e: &Entry, sleep: &Sleep, wakeup: Option<&WakeUp>) {
        let t = e.t_ns;
        // A timer whose setting was lost has the due time of its last one.
        let since = |w: &WakeUp| w.due_ns.map_or(sleep.from, |due| due.min(sleep.from));
        let seen = wakeup.filter(|w| {
            w.waking.is_some_and(|k| k.at.t_ns >= sleep.from && k.at.t_ns <= t)
                && !c.hole(since(w), t)
        });
        let wakeup = seen.map(|w| trusted(w, sleep.from));
        let waker = wakeup.as_ref().and_then(|w| w.waking);
        let due = wakeup.as_ref().and_then(WakeUp::from_ns).unwrap_or(t);
        if wakeup.as_ref().and_then(|w| w.allowed).is_some_and(|a| a.step_ns.is_some()) {
            self.floor = due;
        }
        let release = due.max(self.floor).min(t);
        let timed = wakeup.as_ref().is_some_and(|w| w.due_ns.is_some());
        let mut within = Parts::default();
        let asleep_to = waker.map_or(t, |k| k.at.t_ns);
        let what = match &waker {
            Some(k) => self.blocked_on(c, sleep, k, wakeup.as_ref().and_then(|w| w.due_ns)),
            None => c.unexplained(Phase::Blocked),
        };
        within.push(Part { ns: asleep_to.saturating_sub(sleep.from), what }, 0);
        let ready =
            Late { pid: self.pid, due_ns: asleep_to, end_ns: t, cpu: Some(e.cpu), ours: false };
        let ground = c.ground;
        if asleep_to < t {
            let after = wakeup.as_ref().map(|w| WakeUp {
                due_ns: None,
                allowed: None,
                fire: None,
                ..w.clone()
            });
            c.add(&mut within, 0, c.engine.way(&ready, after.as_ref(), &ground));
        }
        let late = Late { due_ns: release, ..ready };
        let mut way = Parts::default();
        if release < t {
            c.add(&mut way, 0, c.engine.way(&late, wakeup.as_ref(), &ground));
        }
        let call = self.call;
        let planned = timed.then(|| release.saturating_sub(sleep.from));
        let mut wait = Wait {
            sites: sites(c.calls, call.as_ref(), planned),
            call,
            from: sleep.from,
            release,
            timed,
            to: t,
            slept: true,
            within,
            way,
            late: None,
            lost: wakeup.is_none(),
            set_to: self.set_to,
            interrupted: false,
        };
        if wakeup.is_some() && self.is_among_latest(t.saturating_sub(release)) {
            wait.late = Some(Box::new(c.engine.explain(&late, wakeup.as_ref(), &ground)));
        }
        if self.slept_at.len() < SITES_MAX && call.is_some() {
            self.slept_at.insert(wait.sites[0]);
        }
        if sleep.again {
            wait = self.continued(wait);
        }
        self.begin(wait);
    }

    /// The wait of the piece under way, which `wait` continues.
    fn continued(&mut self, wait: Wait) -> Wait {
        let Some(piece) = self.piece.take() else { return wait };
        let Some(before) = piece.wait else { return wait };
        let mut within = before.within;
        piece.run.0.iter().chain(&wait.within.0).for_each(|p| within.push(*p, 0));
        Wait { from: before.from, within, lost: wait.lost || piece.lost, ..wait }
    }

    /// A new piece begins with `wait`.
    fn begin(&mut self, wait: Wait) {
        (self.cursor, self.wall) = (wait.to, 0);
        self.piece = Some(Piece {
            wait: Some(wait),
            run: Parts::default(),
            end: self.cursor,
            faults: 0,
            cpu: self.cpu,
            lost: false,
        });
    }

    fn is_among_latest(&mut self, latency: u64) -> bool {
        let latency = i64::try_from(latency).unwrap_or(i64::MAX);
        let place = self.latest.partition_point(|l| *l >= latency);
        self.latest.insert(place, latency);
        self.latest.truncate(LATEST);
        place < LATEST
    }

    /// A call is over.
    fn returns(&mut self, c: &mut Ctx<'_>, e: &Entry, call: Call, ret: i64) -> Option<Piece> {
        let wall = std::mem::take(&mut self.wall);
        let piece = self.piece.as_ref()?;
        let waited = piece.wait.as_ref().and_then(|w| w.call).map(|w| w.since) == Some(call.since);
        if waited || !self.may_wait(c.calls, &call) || !c.calls.was_ready(&call, ret) {
            return None;
        }
        self.wall = wall;
        self.run_to(c, e.t_ns);
        let mut piece = self.piece.take()?;
        let within = Parts(piece.run.0.split_off(wall.min(piece.run.0.len())));
        (piece.end, piece.cpu) = (call.since.max(e.t_ns.saturating_sub(within.ns())), self.cpu);
        let due = self.due.take().map(|due| due.max(self.floor));
        let wait = Wait {
            sites: sites(c.calls, Some(&call), None),
            call: Some(call),
            from: piece.end,
            release: due.unwrap_or(e.t_ns).min(e.t_ns),
            timed: due.is_some(),
            to: e.t_ns,
            slept: false,
            within,
            way: Parts::default(),
            late: None,
            lost: false,
            set_to: self.set_to,
            interrupted: false,
        };
        self.begin(wait);
        Some(piece)
    }
}
