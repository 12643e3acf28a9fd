// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rules: what a segment of a CPU's time means for the thread that waits.
//!
//! Units: ns. A rule names a cause only by events that show it; where several
//! causes look alike in the events the part is unexplained, and says what it may be.
//! Source: docs/blame.md has the rules as a table; kernel/sched/{deadline,rt}.c for fair server and
//! throttling, Documentation/locking/locktypes.rst for what disables preemption.

use tailbound_core::blame::{Cause, Phase, Sureness};

use super::cpu::{Cpu, CpuActivity, Segment};
use super::engine::{Engine, Mark, STOPPER};
use super::ground::{Ground, signed};
use super::thread::ORDINARY;

/// The shortest silence of a whole machine that is taken for its host's or firmware's doing.
const SILENCE_NS: i64 = 100_000;
/// A part of the kernel's ordinary way is no longer than a twentieth of the latency, within these limits.
const ORDINARY_WAY_NS: (i64, i64) = (3_000, 10_000);
/// More than this, or a tenth of the latency, is not made up of ordinary ways: a storm of short interrupts.
const CROWDED_NS: i64 = 15_000;
/// How near the end of a stretch on the scheduler's time for ordinary threads its timer expires.
const SERVER_NEAR_NS: u64 = 200_000;
/// How long before a stretch of the console's the message may have come.
const CONSOLE_BEFORE_NS: u64 = 1_000_000;
/// A handler of a timer or of another CPU's request that takes longer, without a record, was stopped by a host.
const HANDLER_MAX_NS: i64 = 2_000_000;
/// No CPU's idle state takes longer to leave.
const IDLE_EXIT_MAX_NS: i64 = 3_000_000;
/// How near a change of the frequency lies to the time that it costs, and the most that it costs.
const FREQUENCY_NEAR_NS: u64 = 50_000;
const FREQUENCY_MAX_NS: i64 = 1_000_000;
/// A CPU that is silent proves something where so many records would have been expected, by its rate
/// over several times as long before; or where its tick was due.
const EXPECTED_MIN: usize = 200;
const RATE_OVER: usize = 4;
/// The kernel's tick by the functions of its timer (the second before Linux 6.8), and its longest period.
const TICKS: [&str; 2] = ["tick_nohz_handler", "tick_sched_timer"];
const TICK_MAX_NS: u64 = 11_000_000;

/// Where a segment lies on the thread's way.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentContext {
    pub(super) phase: Phase,
    pub(super) cpu: u32,
    pub(super) pid: i32,
    pub(super) prio: i32,
    pub(super) latency_ns: i64,
    /// The end of the phase.
    pub(super) to: u64,
    /// When the thread was made ready.
    pub(super) ready: Option<u64>,
    /// The thread is a measured loop of this program.
    pub(super) ours: bool,
    /// The wake-up was recorded.
    pub(super) woken: bool,
    /// So many short segments are no ordinary way any more: each is charged to its owner.
    pub(super) crowded: bool,
}

/// What a segment is charged to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Charge {
    pub(super) cause: Cause,
    pub(super) who: String,
    pub(super) sureness: Sureness,
}

fn sure(cause: Cause, who: String) -> Charge {
    Charge { cause, who, sureness: Sureness::Sure }
}

fn likely(cause: Cause, who: String) -> Charge {
    Charge { cause, who, sureness: Sureness::Likely }
}

impl SegmentContext {
    pub(super) fn is_short(&self, s: &Segment) -> bool {
        let most = (self.latency_ns / 20).clamp(ORDINARY_WAY_NS.0, ORDINARY_WAY_NS.1);
        !self.crowded && s.ns() <= most
    }

    /// Are short segments of together so much no ordinary way any more?
    pub(super) fn is_crowded(&self, short_ns: i64) -> bool {
        short_ns > (self.latency_ns / 10).max(CROWDED_NS)
    }

    /// Is it the rest of the timer's interrupt that woke the thread, or its begin?
    fn is_the_timer(&self, s: &Segment) -> bool {
        let begins = self.phase == Phase::Timer && s.to == self.to;
        begins || self.phase == Phase::WakeUp || self.ready == Some(s.from)
    }
}

impl Engine {
    /// Charges one segment. Where a hypervisor may have had the CPU unseen, nothing long is sure.
    pub(super) fn charge(&self, place: &SegmentContext, s: &Segment, ground: &Ground) -> Charge {
        let mut charge = self.by_events(place, s, ground);
        let may_be_taken = ground.virtual_machine != Some(false) && !ground.virtual_time;
        let quick =
            matches!(s.what, CpuActivity::Timer(_) | CpuActivity::Ipi(..) | CpuActivity::Vector(_));
        if ground.virtual_machine == Some(true) && may_be_taken && quick && self.lasts(place, s) {
            let or =
                format!("{}, or the hypervisor had the CPU", charge.cause.sentence(&charge.who));
            return sure(Cause::Unexplained, or);
        }
        if may_be_taken
            && charge.sureness == Sureness::Sure
            && charge.cause.is_foreign()
            && charge.cause != Cause::Unexplained
            && self.cpus.get(&place.cpu).is_none_or(|c| c.longest_gap(s.from, s.to) >= SILENCE_NS)
        {
            charge.sureness = Sureness::Likely;
        }
        charge
    }

    /// Is it silent for longer than handlers of timers and of other CPUs' requests take?
    fn lasts(&self, place: &SegmentContext, s: &Segment) -> bool {
        let gap = self.cpus.get(&place.cpu).map_or(i64::MAX, |c| c.longest_gap(s.from, s.to));
        gap >= HANDLER_MAX_NS
    }

    /// Did its CPU record nothing within the segment?
    fn silent(&self, place: &SegmentContext, s: &Segment) -> bool {
        self.cpus.get(&place.cpu).is_none_or(|c| c.records_between(s.from, s.to) == 0)
    }

    /// Did its CPU record nothing for so long, most of the segment, that a hypervisor may have had it?
    fn mostly_silent(&self, place: &SegmentContext, s: &Segment) -> bool {
        let gap = self.cpus.get(&place.cpu).map_or(i64::MAX, |c| c.longest_gap(s.from, s.to));
        gap >= SILENCE_NS && gap.saturating_mul(2) >= s.ns()
    }

    fn by_events(&self, place: &SegmentContext, s: &Segment, ground: &Ground) -> Charge {
        let who = self.who(place.cpu, s);
        match s.what {
            CpuActivity::Irq(_) => sure(Cause::Interrupt, who),
            CpuActivity::Softirq(_) => sure(Cause::Softirq, who),
            CpuActivity::Ipi(..) if place.is_short(s) && who.starts_with("reschedule") => {
                sure(Cause::WakeUp, String::new())
            }
            CpuActivity::Ipi(..) => sure(Cause::Ipi, who),
            CpuActivity::Vector(_) => sure(Cause::Interrupt, who),
            CpuActivity::Nmi(_) => sure(Cause::Nmi, who),
            // The timer's interrupt is how every such wake-up begins.
            CpuActivity::Timer(_)
                if place.is_short(s) || place.is_the_timer(s) && s.ns() <= CROWDED_NS =>
            {
                sure(Cause::WakeUp, String::new())
            }
            CpuActivity::Timer(_) => sure(Cause::TimerInterrupt, who),
            CpuActivity::Unknown => sure(
                Cause::Unexplained,
                if ground.lost { "events were lost" } else { "events are missing" }.to_owned(),
            ),
            CpuActivity::Idle(_) => self.idle(place, s, ground, who),
            CpuActivity::Thread | CpuActivity::Work(_) | CpuActivity::Spin(_)
                if s.pid == place.pid =>
            {
                self.target(place, s, ground)
            }
            CpuActivity::Thread | CpuActivity::Work(_) | CpuActivity::Spin(_) => {
                self.other(place, s, ground, who)
            }
        }
    }

    /// The CPU was idle while the thread waited.
    fn idle(&self, place: &SegmentContext, s: &Segment, ground: &Ground, who: String) -> Charge {
        if place.is_short(s) {
            return sure(Cause::WakeUp, String::new());
        }
        if let Some(other) = self.not_ready(place, s) {
            return other;
        }
        if let Some(throttled) = self.throttled_idle(place, s) {
            return throttled;
        }
        if let Some(shares) = self.shares(place, s, String::new()) {
            return shares;
        }
        if let Some(taken) = self.taken(place, s, ground) {
            return taken;
        }
        if let Some(changed) = self.frequency(place, s) {
            return changed;
        }
        // An idle CPU of a guest is one that its host gave to others: it comes back when the host lets it.
        let guest = ground.virtual_machine == Some(true) && !ground.virtual_time;
        if guest && s.ns() >= SILENCE_NS {
            let either = "left an idle state, or the hypervisor had the CPU";
            return sure(Cause::Unexplained, either.to_owned());
        }
        if s.ns() > IDLE_EXIT_MAX_NS {
            return sure(
                Cause::Unexplained,
                "the CPU was idle for longer than an exit takes".to_owned(),
            );
        }
        likely(Cause::IdleExit, who)
    }

    /// With RT throttling a CPU idles although real-time threads are ready, where nobody else is.
    fn throttled_idle(&self, place: &SegmentContext, s: &Segment) -> Option<Charge> {
        if place.ready.is_none_or(|ready| ready > s.from) {
            return None;
        }
        self.server(place, s, ORDINARY).filter(|c| c.cause == Cause::RtThrottling)
    }

    /// Without a wake-up it is not known that the thread wanted the CPU, but where it was seen to wait for it.
    fn not_ready(&self, place: &SegmentContext, s: &Segment) -> Option<Charge> {
        if place.woken || place.phase != Phase::Switch {
            return None;
        }
        let waits = self.threads.get(&place.pid).map(|t| t.waits_between(s.from, s.to));
        let lengths = waits.into_iter().flatten().map(|(from, to)| to.saturating_sub(from));
        let ready = signed(lengths.fold(0, u64::saturating_add));
        let known = ready.saturating_mul(2) >= s.ns();
        (!known).then(|| sure(Cause::Unexplained, "its wake-up was not recorded".to_owned()))
    }

    /// Did the CPU change its frequency about then? It stands still for that.
    fn frequency(&self, place: &SegmentContext, s: &Segment) -> Option<Charge> {
        let from = s.from.saturating_sub(FREQUENCY_NEAR_NS);
        let near = self.marks_between(from, s.to).find_map(|(_, _, m)| match m {
            Mark::Frequency(cpu, khz) if *cpu == place.cpu => Some(*khz),
            _ => None,
        });
        let khz = near.filter(|_| s.ns() <= FREQUENCY_MAX_NS)?;
        Some(likely(Cause::Frequency, format!("to {} MHz", khz / 1000)))
    }

    /// The thread itself had the CPU.
    fn target(&self, place: &SegmentContext, s: &Segment, ground: &Ground) -> Charge {
        let fault = self.marked(s.from, s.to, |_, m| *m == Mark::Fault(place.pid));
        if fault {
            return sure(Cause::PageFault, String::new());
        }
        if place.is_short(s) {
            return sure(Cause::Own, String::new());
        }
        if let Some(taken) = self.taken(place, s, ground) {
            return taken;
        }
        if let Some(changed) = self.frequency(place, s) {
            return changed;
        }
        // A measured loop of ours does nothing in which time could pass.
        let silent = self.silent(place, s) || self.mostly_silent(place, s);
        if place.ours && !ground.virtual_time && silent {
            return match ground.virtual_machine {
                Some(true) => {
                    likely(Cause::Host, "it had the CPU, and nothing was recorded".to_owned())
                }
                _ => sure(
                    Cause::Unexplained,
                    "it had the CPU, and nothing was recorded: firmware?".to_owned(),
                ),
            };
        }
        sure(Cause::Own, String::new())
    }

    /// Another thread had the CPU.
    fn other(&self, place: &SegmentContext, s: &Segment, ground: &Ground, who: String) -> Charge {
        if place.phase == Phase::Timer {
            return self.before_the_timer(place, s, ground, who);
        }
        let prio = self.threads.get(&s.pid).map_or(ORDINARY, |t| t.prio);
        if self.is_stopper(s.pid) {
            return self.stopper(s, who);
        }
        if let Some(other) = self.not_ready(place, s) {
            return other;
        }
        if prio >= ORDINARY
            && !place.is_short(s)
            && s.what == CpuActivity::Thread
            && let Some(shares) = self.shares(place, s, who.clone())
        {
            return shares;
        }
        if prio <= place.prio {
            let inherited = self.threads.get(&s.pid).is_some_and(|t| t.inherited);
            let how = if inherited { " with an inherited priority" } else { "" };
            return sure(Cause::HigherPriority, format!("{who}{how}"));
        }
        if place.is_short(s) {
            return sure(Cause::WakeUp, String::new());
        }
        if let Some(server) = self.server(place, s, prio) {
            return Charge { who, ..server };
        }
        if let CpuActivity::Spin(_) = s.what {
            return sure(Cause::LockSpin, self.with_owner(s, who));
        }
        if let CpuActivity::Work(_) = s.what {
            return sure(Cause::Workqueue, who);
        }
        if let Some(taken) = self.taken(place, s, ground) {
            return taken;
        }
        if self.console(place, s) {
            return likely(Cause::Console, who);
        }
        if s.need_resched {
            return sure(Cause::NotPreemptible, who);
        }
        likely(Cause::NotPreemptible, who)
    }

    /// A thread had the CPU when the timer's interrupt was due: it came late.
    fn before_the_timer(
        &self,
        place: &SegmentContext,
        s: &Segment,
        ground: &Ground,
        who: String,
    ) -> Charge {
        if let CpuActivity::Spin(_) = s.what {
            return sure(Cause::LockSpin, self.with_owner(s, who));
        }
        if self.is_stopper(s.pid) {
            return self.stopper(s, who);
        }
        if place.is_short(s) && !s.irqs_off {
            return sure(Cause::WakeUp, String::new());
        }
        if self.console(place, s) {
            return likely(Cause::Console, who);
        }
        // The timer was due, this CPU went on to make records, and the interrupt did not come. A
        // hypervisor's timer may come late to a CPU that runs.
        if s.irqs_off && (ground.virtual_machine == Some(false) || ground.virtual_time) {
            return sure(Cause::InterruptsOff, who);
        }
        // One record behind a long silence does not show that the CPU went on all the time.
        if s.irqs_off && !self.mostly_silent(place, s) {
            return likely(Cause::InterruptsOff, who);
        }
        if let Some(taken) = self.taken(place, s, ground) {
            return taken;
        }
        if ground.virtual_time {
            return sure(Cause::InterruptsOff, who);
        }
        match ground.virtual_machine {
            // Nothing else stops one CPU alone; that firmware did not is known where it is counted.
            Some(false) if ground.firmware == Some(false) => sure(Cause::InterruptsOff, who),
            Some(false) => likely(Cause::InterruptsOff, who),
            _ => sure(
                Cause::Unexplained,
                format!("interrupts disabled in {who}, or the hypervisor had the CPU"),
            ),
        }
    }

    /// Was the whole machine silent, as it is when something below the kernel takes it?
    fn taken(&self, place: &SegmentContext, s: &Segment, ground: &Ground) -> Option<Charge> {
        if s.ns() < SILENCE_NS || ground.virtual_time {
            return None;
        }
        // A tenth at either end: CPUs are not stopped and let go at the same moment.
        let margin = s.to.saturating_sub(s.from) / 10;
        let (from, to) = (s.from.saturating_add(margin), s.to.saturating_sub(margin));
        let here = self.cpus.get(&place.cpu)?;
        if here.records_between(from, to) > 0 {
            return None;
        }
        let others = self.cpus.iter().filter(|(cpu, _)| **cpu != place.cpu);
        let (mut silent, mut busy) = (0u32, 0u32);
        for (cpu, other) in others {
            if other.records_between(from, to) > 0 {
                return None;
            }
            silent = silent.saturating_add(1);
            let did = other.between(from, to, CpuActivity::Thread);
            let worked =
                did.iter().all(|s| !matches!(s.what, CpuActivity::Idle(_) | CpuActivity::Unknown));
            // A thread in user mode makes no records either, from one tick to the next.
            let long = to.saturating_sub(from).saturating_mul(RATE_OVER as u64);
            let before = from.saturating_sub(long);
            let expected = other.records_from(before, from) / RATE_OVER;
            let proves = expected >= EXPECTED_MIN || self.tick_due(*cpu, from, to);
            busy = busy.saturating_add(u32::from(worked && proves));
        }
        // Idle CPUs are silent anyway.
        if silent == 0 || busy == 0 {
            return None;
        }
        match (ground.virtual_machine, ground.firmware) {
            (_, Some(true)) => Some(likely(Cause::Firmware, "every CPU was silent".to_owned())),
            (Some(true), _) => Some(likely(Cause::Host, "every CPU was silent".to_owned())),
            _ => None,
        }
    }

    /// Does an ordinary thread, or nobody, have the CPU in time that the scheduler keeps for ordinary ones?
    fn server(&self, place: &SegmentContext, s: &Segment, prio: i32) -> Option<Charge> {
        if place.prio >= ORDINARY || prio < ORDINARY {
            return None;
        }
        let until = s.from.max(place.ready.unwrap_or(0));
        let given_up = self.given_up.iter().rev().find(|(t, c)| *c == place.cpu && *t <= until);
        // Had another real-time thread got the CPU since, it would not be over.
        let (since, _) = given_up?;
        let cpu = self.cpus.get(&place.cpu)?;
        let urgent = |x: &Segment| {
            x.what.is_thread() && self.threads.get(&x.pid).is_some_and(|t| t.prio < ORDINARY)
        };
        if cpu.between(*since, s.from.max(*since), CpuActivity::Unknown).iter().any(urgent) {
            return None;
        }
        let near = |name: &str| {
            let (from, to) = (place.to.saturating_sub(SERVER_NEAR_NS), place.to.saturating_add(1));
            self.marked(from, to, |cpu, m| match m {
                Mark::Timer(function) => {
                    cpu == place.cpu && self.symbols.name(*function) == Some(name)
                }
                _ => false,
            })
        };
        if near("sched_rt_period_timer") {
            return Some(sure(Cause::RtThrottling, String::new()));
        }
        if near("dl_task_timer") {
            return Some(sure(Cause::FairServer, String::new()));
        }
        Some(Charge { cause: Cause::FairServer, who: String::new(), sureness: Sureness::Unsure })
    }

    /// Was a tick of `cpu` due between two times, by the two before?
    fn tick_due(&self, cpu: u32, from: u64, to: u64) -> bool {
        let is_tick = |f: u64| self.symbols.name(f).is_some_and(|name| TICKS.contains(&name));
        let before = self.marks_between(from.saturating_sub(2 * TICK_MAX_NS), from);
        let ticks: Vec<u64> = before
            .filter(|(_, on, m)| *on == cpu && matches!(m, Mark::Timer(f) if is_tick(*f)))
            .map(|(t, ..)| *t)
            .collect();
        let [.., one, last] = ticks.as_slice() else { return false };
        // Ticks whose times go back have no period, and prove nothing.
        let Some(period) = last.checked_sub(*one) else { return false };
        let due = last.saturating_add(period);
        period > 0 && period <= TICK_MAX_NS && (from..to).contains(&due)
    }

    fn is_stopper(&self, pid: i32) -> bool {
        self.threads.get(&pid).is_some_and(|t| t.comm.as_str().starts_with(STOPPER))
    }

    /// A CPU's stopper thread: for one CPU, or for all of them at once.
    fn stopper(&self, s: &Segment, who: String) -> Charge {
        let stops = |x: &Segment| x.what.is_thread() && self.is_stopper(x.pid);
        // Of a CPU that is taken off the begin alone is recorded.
        let on = |from, to| {
            let begun = |cpu| self.marked(from, to, |c, m| c == cpu && *m == Mark::Stopper);
            let has = |c: &Cpu| c.between(from, to, CpuActivity::Thread).iter().any(stops);
            self.cpus.iter().filter(|(cpu, c)| has(c) || begun(**cpu)).count()
        };
        // They do not begin and end at one moment, and a CPU that is taken off does not come back.
        let near = s.to.saturating_sub(s.from);
        match (on(s.from, s.to), on(s.from.saturating_sub(near), s.to.saturating_add(near))) {
            (2.., _) => sure(Cause::StopMachine, who),
            (_, 2..) => likely(Cause::StopMachine, who),
            _ => sure(Cause::HigherPriority, who),
        }
    }

    fn console(&self, place: &SegmentContext, s: &Segment) -> bool {
        // What the thread did after it had made another record is not the message any more.
        let from = s.from.saturating_sub(CONSOLE_BEFORE_NS);
        let here = self.marks_between(from, s.to).filter(|(_, cpu, _)| *cpu == place.cpu);
        let mut prints = false;
        for (t, _, mark) in here {
            match mark {
                Mark::Console => prints = true,
                Mark::ConsoleDone if *t <= s.from => prints = false,
                _ => {}
            }
        }
        prints
    }

    /// `hackbench-3975 (last got by hackbench-3838)`.
    pub(super) fn with_owner(&self, s: &Segment, who: String) -> String {
        match s.what {
            CpuActivity::Spin(owner) if owner > 0 => {
                format!("{who} (last got by {})", self.thread_name(owner))
            }
            _ => who,
        }
    }

    /// The marks from `from` to `to`.
    fn marks_between(&self, from: u64, to: u64) -> impl Iterator<Item = &(u64, u32, Mark)> {
        let first = self.marks.partition_point(|(t, ..)| *t < from);
        self.marks.iter().skip(first).take_while(move |(t, ..)| *t < to)
    }

    /// Is there such a mark from `from` to `to`?
    pub(super) fn marked(&self, from: u64, to: u64, is: impl Fn(u32, &Mark) -> bool) -> bool {
        self.marks_between(from, to).any(|(_, cpu, m)| is(*cpu, m))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::engine::WatchFilter;
    use super::*;
    use crate::symbols::Symbols;

    #[test]
    fn ticks_whose_times_go_back_prove_nothing() {
        let tick = 0xffff_ffff_8100_0000;
        let symbols = Arc::new(Symbols::parse("ffffffff81000000 T tick_nohz_handler\n"));
        let due = |ticks: [u64; 2]| {
            let mut engine = Engine::new(WatchFilter::All, symbols.clone());
            engine.marks.extend(ticks.map(|t_ns| (t_ns, 0, Mark::Timer(tick))));
            engine.tick_due(0, 22_000_000, 30_000_000)
        };
        assert!(due([16_000_000, 20_000_000]));
        assert!(!due([20_000_000, 16_000_000]));
        assert!(!due([20_000_000, 20_000_000]));
    }
}
