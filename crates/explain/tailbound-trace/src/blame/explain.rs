// SPDX-License-Identifier: MIT OR Apache-2.0
//! One late wake-up, taken apart.
//!
//! Units: ns. The way has phases (due, the timer's interrupt, ready, on the CPU,
//! the thread's own look at the clock). Each is cut up by what its CPU did; the parts adjoin, so that
//! their sum is the latency.

use tailbound_core::blame::{
    Activity, BlameLane, BlamePart, BlameRecord, BlameSpan, Cause, Phase, Sureness,
};
use tailbound_core::order;
use tailbound_core::units::format_ns_i64;

use super::charge::{Charge, SegmentContext};
use super::cpu::{CpuActivity, Segment};
use super::engine::{Engine, Mark};
use super::ground::{Ground, signed, since, total};
use super::thread::ORDINARY;
use super::wakeup::{Allowed, SwitchRecord, WakeUp};

/// A picture begins this long before the due time, or a fifth of the latency.
const BEFORE_NS: u64 = 20_000;
/// Most parts, spans of a CPU, and CPUs of a record: the shortest go.
const PARTS_MAX: usize = 256;
const SPANS_MAX: usize = 512;
const LANES_MAX: usize = 16;
/// Most segments of a phase that are looked at one by one, many more than parts: of more the shortest go.
const SEGMENTS_MAX: usize = 4096;
/// Sentences: parts of at least this share of the latency.
const TOLD_SHARE: i64 = 20;

/// A late wake-up, as the thread itself or its timer tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Which thread.
    pub pid: i32,
    /// When it was due, on the trace's clock.
    pub due_ns: u64,
    /// When it had read the clock, or got the CPU.
    pub end_ns: u64,
    /// The CPU it is pinned to, where known.
    pub cpu: Option<u32>,
    /// It is a measured loop of this program: between its sleeps it only reads the clock.
    pub ours: bool,
}

/// A phase with its CPU.
struct Stretch {
    phase: Phase,
    cpu: u32,
    from: u64,
    to: u64,
}

impl Engine {
    /// Takes `late` apart. `wakeup` is the one it ended with, if its events were seen.
    #[must_use]
    pub fn explain(&self, late: &Late, wakeup: Option<&WakeUp>, ground: &Ground) -> BlameRecord {
        let latency_ns = since(late.end_ns, late.due_ns);
        let mut parts = self.way(late, wakeup, ground);
        shorten(&mut parts);
        let cpu = wakeup.and_then(|w| w.switch).map(|at| at.cpu).or(late.cpu);
        let lanes = self.lanes(late);
        let tracing = parts.iter().filter(|p| p.cause == Cause::Tracing);
        let tracing_ns = total(tracing.map(|p| p.ns));
        let mut record = BlameRecord {
            thread: 0,
            name: self.threads.get(&late.pid).map_or_else(String::new, |t| t.comm.to_string()),
            t_ns: signed(late.due_ns),
            latency_ns,
            cpu,
            chain: Vec::new(),
            parts,
            lanes,
            tracing_ns,
            near: false,
            lost: ground.lost,
        };
        record.chain = self.chain(&record, late, wakeup);
        record
    }

    /// The parts of the way from the due time to the end.
    pub(crate) fn way(
        &self,
        late: &Late,
        wakeup: Option<&WakeUp>,
        ground: &Ground,
    ) -> Vec<BlamePart> {
        let latency_ns = since(late.end_ns, late.due_ns);
        let prio = match (wakeup, self.threads.get(&late.pid)) {
            (Some(w), _) => w.prio,
            (None, Some(t)) => t.prio,
            (None, None) => ORDINARY,
        };
        let ready = wakeup.and_then(|w| w.waking).map(|w| w.at.t_ns);
        let mut parts = Vec::new();
        if let Some((allowed, until)) = wakeup.and_then(|w| allowed(late, w)) {
            let charge = excused(&allowed);
            parts.push(part(Phase::Timer, 0, since(until, late.due_ns), charge));
        }
        for stretch in self.stretches(late, wakeup) {
            let place = SegmentContext {
                phase: stretch.phase,
                cpu: stretch.cpu,
                pid: late.pid,
                prio,
                latency_ns,
                to: stretch.to,
                ready,
                ours: late.ours,
                woken: wakeup.is_some(),
                crowded: false,
            };
            parts.extend(self.phase(late, wakeup, &place, &stretch, ground));
        }
        parts
    }

    /// The phases of the way, each with the CPU that decides it.
    fn stretches(&self, late: &Late, wakeup: Option<&WakeUp>) -> Vec<Stretch> {
        let last = wakeup.and_then(|w| w.switch).map(|s| s.cpu).or(late.cpu);
        let last = last.or_else(|| self.threads.get(&late.pid).map(|t| t.cpu)).unwrap_or(0);
        let (due, end) = (late.due_ns, late.end_ns);
        let Some(w) = wakeup else {
            return vec![Stretch { phase: Phase::Switch, cpu: last, from: due, to: end }];
        };
        let clamp = |t: u64, from: u64| t.clamp(from, end);
        let fire = w.fire.map(|f| clamp(f.t_ns, due)).unwrap_or(due);
        let waking = w.waking.map_or(fire, |k| clamp(k.at.t_ns, fire));
        // What was not recorded ends the way: then `switch` lies behind the end, or anywhere.
        let switch = match w.switch {
            Some(at) if w.switch_record == SwitchRecord::Present => clamp(at.t_ns, waking),
            _ => end,
        };
        let timer_from = allowed(late, w).map_or(due, |(_, until)| until);
        let timer_cpu = w.fire.map_or(last, |f| f.cpu);
        let waking_cpu = w.waking.map_or(timer_cpu, |k| k.at.cpu);
        [
            (Phase::Timer, timer_cpu, timer_from, fire),
            (Phase::WakeUp, waking_cpu, fire, waking),
            (Phase::Switch, last, waking, switch),
            (Phase::Return, last, switch, end),
        ]
        .into_iter()
        .filter(|(.., from, to)| to > from)
        .map(|(phase, cpu, from, to)| Stretch { phase, cpu, from, to })
        .collect()
    }

    /// What a CPU did.
    pub(super) fn on(&self, cpu: u32, from: u64, to: u64) -> Vec<Segment> {
        let thread = |c: &super::cpu::Cpu| {
            c.pid
                .and_then(|p| self.threads.get(&p))
                .map_or(CpuActivity::Thread, super::thread::Thread::what)
        };
        match self.cpus.get(&cpu) {
            Some(c) => c.between(from, to, thread(c)),
            None => vec![Segment {
                from,
                to,
                what: CpuActivity::Unknown,
                pid: -1,
                irqs_off: false,
                need_resched: false,
            }],
        }
    }

    /// The parts of one phase. What its records cost is taken out of the segments in which they were
    /// made, and stands at the end of the phase as a part of its own.
    fn phase(
        &self,
        late: &Late,
        wakeup: Option<&WakeUp>,
        place: &SegmentContext,
        stretch: &Stretch,
        ground: &Ground,
    ) -> Vec<BlamePart> {
        let blamed = (place.phase == Phase::WakeUp)
            .then(|| self.waker(place, wakeup?.waking?, stretch.from))
            .flatten();
        let mut parts: Vec<BlamePart> = Vec::new();
        let (mut from_ns, mut tracing_ns) = (since(stretch.from, late.due_ns), 0i64);
        let mut segments = self.on(stretch.cpu, stretch.from, stretch.to);
        thin(&mut segments);
        let short = total(segments.iter().filter(|s| place.is_short(s)).map(Segment::ns));
        let place = &SegmentContext { crowded: place.is_crowded(short), ..*place };
        for s in segments {
            let charge = blamed.clone().unwrap_or_else(|| self.charge(place, &s, ground));
            let records = self.cpus.get(&stretch.cpu).map_or(0, |c| c.records_from(s.from, s.to));
            let records = i64::try_from(records).unwrap_or(i64::MAX);
            let cost_ns = ground.event_ns.saturating_mul(records).clamp(0, s.ns());
            tracing_ns = tracing_ns.saturating_add(cost_ns);
            let ns = s.ns().saturating_sub(cost_ns);
            if ns > 0 {
                join(&mut parts, part(place.phase, from_ns, ns, charge));
                from_ns = from_ns.saturating_add(ns);
            }
        }
        if tracing_ns > 0 {
            // A mean of the cost is known, not what each record took.
            let tracing =
                Charge { cause: Cause::Tracing, who: String::new(), sureness: Sureness::Likely };
            parts.push(part(place.phase, from_ns, tracing_ns, tracing));
        }
        parts
    }

    pub(crate) fn lanes(&self, late: &Late) -> Vec<BlameLane> {
        let before = BEFORE_NS.max(late.end_ns.saturating_sub(late.due_ns) / 5);
        let from = late.due_ns.saturating_sub(before);
        let to = late.end_ns.saturating_add(before / 4);
        let lane = |(cpu, _): (&u32, &super::cpu::Cpu)| BlameLane {
            cpu: *cpu,
            spans: self.spans(late, *cpu, from, to),
        };
        self.cpus.iter().map(lane).filter(|l| !l.spans.is_empty()).take(LANES_MAX).collect()
    }

    fn spans(&self, late: &Late, cpu: u32, from: u64, to: u64) -> Vec<BlameSpan> {
        let mut spans: Vec<BlameSpan> = Vec::new();
        let mut segments = self.on(cpu, from, to);
        thin(&mut segments);
        for s in segments {
            let Some(activity) = activity(&s, late.pid) else { continue };
            let who = if activity == Activity::Idle { String::new() } else { self.who(cpu, &s) };
            let (from_ns, to_ns) = (since(s.from, late.due_ns), since(s.to, late.due_ns));
            match spans.last_mut() {
                Some(l) if l.to_ns == from_ns && l.activity == activity && l.who == who => {
                    l.to_ns = to_ns;
                }
                _ => spans.push(BlameSpan { from_ns, to_ns, activity, who }),
            }
        }
        let mut stays = longest(&spans, SPANS_MAX, |s| s.to_ns.saturating_sub(s.from_ns));
        spans.retain(|_| stays.next().unwrap_or(true));
        spans
    }

    /// What happened, in sentences.
    fn chain(&self, record: &BlameRecord, late: &Late, wakeup: Option<&WakeUp>) -> Vec<String> {
        let mut out = Vec::new();
        if let Some(waker) = wakeup.and_then(|w| w.waking).filter(|k| !k.by_interrupt && k.pid > 0)
        {
            let (by, at) = (self.thread_name(waker.pid), since(waker.at.t_ns, late.due_ns));
            out.push(format!("It was woken by {by} at {}.", offset(at)));
            out.extend(self.owners(late.due_ns, &waker));
        }
        let woken = if wakeup.is_some() { WakeUpRecord::Present } else { WakeUpRecord::Absent };
        out.extend(sentences(&record.parts, woken));
        let first = self.marks.partition_point(|(t, ..)| *t < late.due_ns);
        let moved = self.marks.iter().skip(first).take_while(|(t, ..)| *t <= late.end_ns);
        for (t, _, mark) in moved {
            if let Mark::Moved(pid, from, to) = mark
                && *pid == late.pid
            {
                let at = offset(since(*t, late.due_ns));
                out.push(format!("At {at} it was moved from CPU {from} to CPU {to}."));
            }
        }
        out
    }
}

/// Why the timer of `late` did not have to expire when it was due, and until when that counts.
fn allowed(late: &Late, w: &WakeUp) -> Option<(Allowed, u64)> {
    let (allowed, fire) = (w.allowed?, w.fire?);
    let until = allowed.until_ns.min(fire.t_ns).min(late.end_ns);
    (w.due_ns == Some(late.due_ns) && until > late.due_ns).then_some((allowed, until))
}

fn excused(allowed: &Allowed) -> Charge {
    let (cause, who) = match allowed.step_ns {
        Some(step) => (Cause::ClockStep, format!("forward by {}", format_ns_i64(step))),
        None => (Cause::TimerSlack, String::new()),
    };
    Charge { cause, who, sureness: Sureness::Sure }
}

/// Was a wake-up recorded?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WakeUpRecord {
    Present,
    Absent,
}

/// The parts that a person wants to read of, a sentence each.
pub(crate) fn sentences(parts: &[BlamePart], woken: WakeUpRecord) -> Vec<String> {
    let sentence = |part: &BlamePart| {
        let state = match part.phase {
            Phase::Timer => "its timer was due and had not been seen",
            Phase::WakeUp => "it had not been woken yet",
            Phase::Switch if woken == WakeUpRecord::Absent => "no wake-up of it was recorded",
            Phase::Switch | Phase::Preempted => "it was ready and had no CPU",
            Phase::Running => "it had the CPU",
            Phase::Blocked => "it waited",
            _ => "it had the CPU, on its way to user mode",
        };
        format!(
            "From {} to {} {state}: {}, {}.",
            offset(part.from_ns),
            offset(part.from_ns.saturating_add(part.ns)),
            part.cause.sentence(&part.who),
            format_ns_i64(part.ns)
        )
    };
    told(parts).iter().map(sentence).collect()
}

/// Time since the due time: `+31.8 µs`.
pub(super) fn offset(ns: i64) -> String {
    if ns < 0 { format_ns_i64(ns) } else { format!("+{}", format_ns_i64(ns)) }
}

/// The parts that a person wants to read of, in the order of time: neighbours of one cause and name are one.
fn told(parts: &[BlamePart]) -> Vec<BlamePart> {
    let total = total(parts.iter().map(|p| p.ns));
    let mut out: Vec<BlamePart> = Vec::new();
    for part in parts.iter().filter(|p| p.ns.saturating_mul(TOLD_SHARE) >= total) {
        match out.last_mut() {
            Some(last)
                if (last.phase, last.cause, &last.who) == (part.phase, part.cause, &part.who) =>
            {
                last.ns = part.from_ns.saturating_add(part.ns).saturating_sub(last.from_ns);
            }
            _ => out.push(part.clone()),
        }
    }
    out
}

pub(super) fn activity(s: &Segment, target: i32) -> Option<Activity> {
    Some(match s.what {
        CpuActivity::Unknown => return None,
        CpuActivity::Idle(_) => Activity::Idle,
        CpuActivity::Thread if s.pid == target => Activity::Target,
        CpuActivity::Thread => Activity::Thread,
        CpuActivity::Work(_) => Activity::Work,
        CpuActivity::Spin(_) => Activity::Spin,
        CpuActivity::Irq(_) | CpuActivity::Vector(_) => Activity::Interrupt,
        CpuActivity::Timer(_) => Activity::Timer,
        CpuActivity::Ipi(..) => Activity::Ipi,
        CpuActivity::Softirq(_) => Activity::Softirq,
        CpuActivity::Nmi(_) => Activity::Nmi,
    })
}

pub(super) fn part(phase: Phase, from_ns: i64, ns: i64, charge: Charge) -> BlamePart {
    let Charge { cause, who, sureness } = charge;
    BlamePart { phase, from_ns, ns, cause, who, sureness, stack: Vec::new(), holder: String::new() }
}

/// Appends a part, or lengthens the last one where it is the same.
pub(super) fn join(parts: &mut Vec<BlamePart>, part: BlamePart) {
    match parts.last_mut() {
        Some(last)
            if (last.phase, last.cause, &last.who) == (part.phase, part.cause, &part.who) =>
        {
            last.ns = last.ns.saturating_add(part.ns);
            last.sureness = last.sureness.max(part.sureness);
        }
        _ => parts.push(part),
    }
}

/// Keeps a record of bounded length: the shortest parts become ones of their neighbours'.
pub(crate) fn shorten(parts: &mut Vec<BlamePart>) {
    let mut stays = longest(parts, PARTS_MAX, |p| p.ns);
    let mut kept: Vec<BlamePart> = Vec::new();
    for part in parts.drain(..) {
        match (stays.next(), kept.last_mut()) {
            (Some(false), Some(last)) => {
                last.ns = last.ns.saturating_add(part.ns);
                last.sureness = Sureness::Unsure;
            }
            _ => kept.push(part),
        }
    }
    *parts = kept;
}

/// The same for segments: the shortest go to the one before.
fn thin(segments: &mut Vec<Segment>) {
    if segments.len() <= SEGMENTS_MAX {
        return;
    }
    let mut stays = longest(segments, SEGMENTS_MAX, Segment::ns);
    let mut kept: Vec<Segment> = Vec::new();
    for segment in segments.drain(..) {
        match (stays.next(), kept.last_mut()) {
            (Some(false), Some(last)) => last.to = segment.to,
            _ => kept.push(segment),
        }
    }
    *segments = kept;
}

/// Of each whether it is among the `most` longest, of equals the first; nothing where there are no more.
fn longest<T>(all: &[T], most: usize, length: impl Fn(&T) -> i64) -> std::vec::IntoIter<bool> {
    let lengths: Vec<i64> = all.iter().map(length).collect();
    if lengths.len() <= most {
        return Vec::new().into_iter();
    }
    let mut sorted = lengths.clone();
    order::by_key(&mut sorted, |ns| std::cmp::Reverse(*ns));
    let least = most.checked_sub(1).and_then(|i| sorted.get(i)).copied().unwrap_or(i64::MAX);
    let longer = lengths.iter().filter(|ns| **ns > least).count();
    let mut equals = 0..most.saturating_sub(longer);
    let stays = |ns: &i64| *ns > least || *ns == least && equals.next().is_some();
    lengths.iter().map(stays).collect::<Vec<_>>().into_iter()
}
