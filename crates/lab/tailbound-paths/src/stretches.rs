// SPDX-License-Identifier: MIT OR Apache-2.0
//! Every stretch of each variable of the theoretical bound, from records of one CPU in the order of time.
//!
//! Units: ns. What the variables are: `crate::theory`. The records are the plugin's, or made of the kernel's own
//! events (`crate::machine`), which tell of the scheduler only when it goes over to another thread: see [`SchedulerMark`].
//! Not here: where records are from, names.

use std::collections::HashMap;

use tailbound_core::theory::{Execution, Variable};

use crate::interrupts::Interrupts;
use crate::log::Record;
use crate::record::{kind, state};
use crate::window::GuestWindow;

const OFF: u8 = state::INTERRUPTS_OFF | state::PREEMPTION_OFF;

/// Where a stretch began: when, what interrupts had taken until then, and by which instruction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark {
    pub(crate) t_ns: u64,
    pub(crate) interrupts_ns: u64,
    pub(crate) at: u64,
    /// Events that were recorded up to then.
    pub(crate) records: u64,
}

/// The longest of a variable.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Longest {
    pub(crate) n: u64,
    pub(crate) ns: u64,
    pub(crate) begin_ns: u64,
    pub(crate) from: u64,
    pub(crate) to: u64,
    /// Events within it, those of interrupts too.
    pub(crate) records: u64,
}

/// What the idle thread does.
#[derive(Clone, Copy, Debug)]
enum Idle {
    Since(Mark, Variable),
    Halted,
}

/// The scheduler is under way.
#[derive(Clone, Copy, Debug)]
struct Scheduling {
    begin: Mark,
    /// Interrupts are disabled since.
    switch: Option<Mark>,
    /// Preemption is counted.
    counted: bool,
}

/// How the records tell of the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SchedulerMark {
    /// Where it begins.
    AtEntry,
    /// Where it goes over to another thread: it began where preemption was disabled for it, of the idle thread where
    /// interrupts were.
    AtSwitch,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Stretches<F> {
    pub(crate) interrupts: Interrupts<F>,
    schedule: u64,
    seen: SchedulerMark,
    idle_thread: u64,
    own: u64,
    window: GuestWindow,
    state: u8,
    off: Option<Mark>,
    preemption: Option<Mark>,
    /// Interrupts are disabled since.
    disabled: Option<Mark>,
    pending: Option<Mark>,
    scheduling: Option<Scheduling>,
    idle: Option<Idle>,
    pub(crate) longest: [Longest; Variable::ALL.len()],
    pub(crate) vectors: HashMap<u64, Vec<Execution>>,
    pub(crate) outside: HashMap<u64, u64>,
    records: u64,
    /// The measured thread was woken, and the scheduler has not returned to it.
    woken: bool,
    returned: Option<Mark>,
    /// When the scheduler returned to it, by the time at which it was in user mode.
    pub(crate) returns: HashMap<u64, u64>,
}

impl<F: Fn(u64) -> bool> Stretches<F> {
    /// `schedule` is the scheduler's address, `own` the measured thread.
    pub(crate) fn new(
        interrupts: Interrupts<F>,
        schedule: u64,
        seen: SchedulerMark,
        idle_thread: u64,
        own: u64,
        window: GuestWindow,
    ) -> Self {
        Self {
            interrupts,
            schedule,
            seen,
            idle_thread,
            own,
            window,
            state: 0,
            off: None,
            preemption: None,
            disabled: None,
            pending: None,
            scheduling: None,
            idle: None,
            longest: Default::default(),
            vectors: HashMap::new(),
            outside: HashMap::new(),
            records: 0,
            woken: false,
            returned: None,
            returns: HashMap::new(),
        }
    }

    /// Records are missing: nothing is known from here on but that the scheduler is under way, in `state`.
    pub(crate) fn lose(&mut self, state: u8) {
        self.interrupts.lose();
        self.state = state;
        (self.off, self.preemption, self.disabled, self.pending) = (None, None, None, None);
        (self.scheduling, self.idle, self.returned, self.woken) = (None, None, None, false);
    }

    /// One more event was recorded.
    pub(crate) fn count(&mut self) {
        self.records += 1;
    }

    /// Is the scheduler under way?
    pub(crate) fn schedules_now(&self) -> bool {
        self.scheduling.is_some()
    }

    fn mark(&self, t_ns: u64, at: u64) -> Mark {
        Mark { t_ns, interrupts_ns: self.interrupts.until(t_ns), at, records: self.records }
    }

    /// A stretch is over, at the time of `end`.
    pub(crate) fn ended(&mut self, variable: Variable, from: Mark, end: Mark) {
        if end.t_ns < self.window.from_ns || from.t_ns > self.window.to_ns || end.t_ns < from.t_ns {
            return;
        }
        let all = end.t_ns - from.t_ns;
        let ns = all.saturating_sub(end.interrupts_ns.saturating_sub(from.interrupts_ns));
        let Some(longest) = self.longest.get_mut(variable as usize) else { return };
        longest.n += 1;
        if ns > longest.ns || longest.n == 1 {
            let n = longest.n;
            let records = end.records.saturating_sub(from.records);
            *longest = Longest { n, ns, begin_ns: from.t_ns, from: from.at, to: end.at, records };
        }
    }

    fn is_idle(&self) -> bool {
        self.interrupts.thread() == self.idle_thread
    }

    pub(crate) fn add(&mut self, r: &Record) {
        let (window, vectors) = (self.window, &mut self.vectors);
        self.interrupts.add(r, |e| {
            let (at, end) = (e.execution.at_ns, e.execution.end_ns);
            if end >= window.from_ns.cast_signed() && at <= window.to_ns.cast_signed() {
                vectors.entry(e.entry).or_default().push(e.execution);
            }
        });
        match r.kind {
            kind::HALT => self.halts(r),
            kind::POINT if r.value == self.schedule => self.schedules(r),
            kind::POINT if self.window.holds(r.t_ns) => {
                *self.outside.entry(r.value).or_default() += 1;
            }
            kind::WAKE => self.woken |= r.value == self.own,
            kind::RETURN if r.value == self.own => {
                if let Some(from) = self.returned.take() {
                    self.returns.insert(r.t_ns, from.t_ns);
                    self.ended(Variable::Return, from, self.mark(r.t_ns, r.value));
                }
            }
            kind::ENTER | kind::STATE => {
                if matches!(self.idle, Some(Idle::Halted)) {
                    self.idle = Some(Idle::Since(self.mark(r.t_ns, r.value), Variable::IdleOut));
                }
                if r.kind == kind::STATE {
                    self.changes(r);
                }
            }
            _ => {}
        }
    }

    fn halts(&mut self, r: &Record) {
        let end = self.mark(r.t_ns, r.value);
        if let Some(Idle::Since(from, _)) = self.idle {
            self.ended(Variable::IdleIn, from, end);
        }
        // Which thread halts, that one is the idle one.
        self.idle_thread = self.interrupts.thread();
        self.idle = Some(Idle::Halted);
        (self.off, self.pending, self.scheduling) = (None, None, None);
    }

    /// The scheduler is called.
    fn schedules(&mut self, r: &Record) {
        let here = self.mark(r.t_ns, r.value);
        if self.scheduling.is_some() {
            return;
        }
        let counted = self.state & state::PREEMPTION_OFF != 0;
        let late = self.disabled.filter(|_| self.seen == SchedulerMark::AtSwitch);
        let begin = match self.preemption.filter(|_| counted && !self.is_idle()) {
            Some(since) => since,
            None => late.unwrap_or(here),
        };
        if let Some(Idle::Since(from, variable)) = self.idle.take() {
            self.ended(variable, from, begin);
        }
        if let Some(from) = self.off.take().filter(|from| from.t_ns < begin.t_ns && !self.is_idle())
        {
            self.ended(Variable::Poid, from, begin);
        }
        if let Some(from) = self.pending.take() {
            self.ended(Variable::Paie, from, begin);
        }
        let disabled = self.state & state::INTERRUPTS_OFF != 0;
        let switch = disabled.then(|| late.filter(|l| l.t_ns >= begin.t_ns).unwrap_or(here));
        self.scheduling = Some(Scheduling { begin, switch, counted });
    }

    fn changes(&mut self, r: &Record) {
        let here = self.mark(r.t_ns, r.value);
        let was = std::mem::replace(&mut self.state, r.state);
        if r.state & state::PREEMPTION_OFF == 0 {
            self.preemption = None;
        } else if was & state::PREEMPTION_OFF == 0 || self.preemption.is_none() {
            self.preemption = Some(here);
        }
        if r.state & state::INTERRUPTS_OFF == 0 {
            self.disabled = None;
        } else if was & state::INTERRUPTS_OFF == 0 {
            self.disabled = Some(here);
        }
        if let Some(mut now) = self.scheduling {
            let disabled = r.state & state::INTERRUPTS_OFF != 0;
            if disabled && now.switch.is_none() && !self.interrupts.under_way() {
                now.switch = Some(here);
            }
            let over = if now.counted {
                // The idle thread has preemption disabled for good.
                r.state & state::PREEMPTION_OFF == 0
                    || (self.is_idle() && !disabled && now.switch.is_some())
            } else {
                now.switch.is_some() && !disabled
            };
            self.scheduling = Some(now);
            if over {
                self.returns_from_scheduler(now, here);
            }
            return;
        }
        self.follow(here);
    }

    fn returns_from_scheduler(&mut self, now: Scheduling, here: Mark) {
        self.scheduling = None;
        self.ended(Variable::Psd, now.begin, here);
        if let Some(from) = now.switch {
            self.ended(Variable::St, from, here);
        }
        if std::mem::take(&mut self.woken) {
            if self.interrupts.thread() == self.own {
                self.returned = Some(here);
            } else {
                self.woken = true;
            }
        }
        if self.is_idle() {
            self.idle = Some(Idle::Since(here, Variable::IdleThrough));
        } else if self.state & state::RESCHED != 0 {
            self.pending = Some(here);
        }
        self.follow(here);
    }

    /// Outside of the scheduler: what begins and what ends here.
    fn follow(&mut self, here: Mark) {
        if self.is_idle() {
            (self.off, self.pending) = (None, None);
            return;
        }
        if self.state & OFF != 0 {
            self.off.get_or_insert(here);
        } else if let Some(from) = self.off.take() {
            self.ended(Variable::Poid, from, here);
        }
        if self.state & state::RESCHED == 0 {
            if let Some(from) = self.pending.take() {
                self.ended(Variable::Paie, from, here);
            }
        } else if self.state & OFF == 0 {
            self.pending.get_or_insert(here);
        }
    }
}
