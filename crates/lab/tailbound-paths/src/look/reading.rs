// SPDX-License-Identifier: MIT OR Apache-2.0
//! What readings of the log find: the wake-ups of the measured thread, and the sections around them.
//!
//! Units: ns; of the guest's clock (due), or of QEMU's.
//! The log is read twice: for the wake-ups, which give the window, and for the sections within it.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io::{Read, Seek, SeekFrom};
use tailbound_core::order;

use tailbound_core::paths::SectionKind;

use super::{LookError, Samples};
use crate::log::Log;
use crate::record::{kind, state};
use crate::sections::{Section, Sections};
use crate::turns::Turns;
use crate::wake_and_wait::WakeAndWait;
use crate::wakeups::{Marks, WakeUp, WakeUps};
use crate::window::GuestWindow;

/// A timer that is due when it is set comes so much later at most: a microsecond is the shortest time that the kernel lets a
/// device have (kernel/time/clockevents.c, `cev_delta2ns`), the rest is what it executes until the device has it.
const SHORTEST_NS: u64 = 1_200;

/// What one reading of the log found.
pub(super) struct LogReading {
    /// Of each CPU: that of the measured thread first.
    pub(super) sections: Vec<(u8, Sections)>,
    /// By the CPU's own time at which an interrupt was taken: the section before.
    pub(super) before: HashMap<(u8, u64), Section>,
    /// The same, for timers that were set when they were due already: the section that kept the kernel from setting it.
    set_late: HashMap<(u8, u64), Section>,
    /// Of each wake-up: how long the section lasted that it fell into.
    pub(super) residual: Vec<u64>,
    pub(super) turns: Turns,
}

impl LogReading {
    /// The section that an interrupt waited for. With several CPUs, one that ended where its CPU halted before the timer was
    /// due is no such: a halted CPU has no time of its own.
    pub(super) fn behind(&self, w: &WakeUp, due_ns: u64) -> Option<&Section> {
        let (timer, _) = w.cpus;
        let taken = self.taken(w);
        let found = self.before.get(&taken).or_else(|| self.set_late.get(&taken));
        found.filter(|s| !self.several() || self.turns.own(timer, due_ns) < s.own.1)
    }

    /// Was the timer of such an interrupt set when it was due already, so that it came after the shortest time that can be set?
    pub(super) fn is_set_late(&self, w: &WakeUp) -> bool {
        let taken = self.taken(w);
        !self.before.contains_key(&taken) && self.set_late.contains_key(&taken)
    }

    /// By what the sections before interrupts are found.
    fn taken(&self, w: &WakeUp) -> (u8, u64) {
        (w.cpus.0, self.turns.own(w.cpus.0, w.taken_ns))
    }

    pub(super) fn several(&self) -> bool {
        self.turns.several()
    }
}

/// The wake-ups of the measured thread: that one of all threads whose timers were due when the run's were.
pub(super) fn judged(
    log: &mut (impl Read + Seek),
    marks: Marks,
    samples: Samples<'_>,
) -> Result<(Vec<WakeUp>, Turns), LookError> {
    log.seek(SeekFrom::Start(0))?;
    let (mut wakeups, mut turns) = (WakeUps::new(marks), Turns::default());
    Log::open(&mut *log)?.each(|r| {
        turns.add(&r);
        wakeups.add(&r);
    })?;
    if turns.wrong > 0 {
        return Err(LookError::Turns { wrong: turns.wrong, all: turns.n });
    }
    let start = samples.start_ns.max(0).cast_unsigned();
    // Cobalt's timers are due one ns later than was asked for: it counts from the end of the ns.
    let begins =
        |w: &&WakeUp| w.due_ns.checked_sub(start).is_some_and(|d| d <= u64::from(w.second));
    let own = wakeups.all.iter().find(begins).map(|w| w.thread);
    let all = wakeups.all.iter().filter(|w| Some(w.thread) == own && w.due_ns >= start);
    Ok((all.copied().take(samples.latencies_ns.len()).collect(), turns))
}

/// From when on nothing but the kernel was in the way of each wake-up.
pub(super) fn waits(
    wakeups: &[WakeUp],
    samples: Samples<'_>,
    dues: &[u64],
    seen: &LogReading,
) -> Vec<WakeAndWait> {
    let one = |((w, due_ns), latency_ns): ((&WakeUp, &u64), &i64)| {
        // Interrupts were disabled when it was due, or were before the timer came.
        let free = seen.behind(w, *due_ns).map_or(w.taken_ns, |s| s.from_ns.max(*due_ns));
        WakeAndWait {
            thread: w.thread,
            due_ns: *due_ns,
            free_ns: free.max(*due_ns),
            user_ns: w.user_ns,
            latency_ns: *latency_ns,
        }
    };
    wakeups.iter().zip(dues).zip(samples.latencies_ns).map(one).collect()
}

/// Reads the log: the sections within the window, and which of them each wake-up met.
pub(super) fn read(
    log: &mut (impl Read + Seek),
    window: GuestWindow,
    wakeups: &[WakeUp],
    dues: &[u64],
    step_ns: u64,
    marks: Marks,
    turns: Turns,
) -> Result<LogReading, LookError> {
    log.seek(SeekFrom::Start(0))?;
    // A second kernel preempts Linux wherever interrupts are enabled.
    let waits = match wakeups.first() {
        Some(w) if w.second => SectionKind::InterruptsOff,
        _ => SectionKind::NotPreemptible,
    };
    let measured = wakeups.first().map_or(0, |w| w.cpus.1);
    let mut sections: BTreeMap<u8, Sections> =
        turns.cpus().into_iter().map(|cpu| (cpu, Sections::new(window, waits))).collect();
    let (mut before, mut residual) = (HashMap::new(), vec![0; dues.len()]);
    // By CPU, in its own time: what another one executed meanwhile is in nobody's way.
    let mut taken: BTreeMap<u8, VecDeque<u64>> = BTreeMap::new();
    for w in wakeups {
        let own_ns = turns.own(w.cpus.0, w.taken_ns);
        taken.entry(w.cpus.0).or_default().push_back(own_ns);
    }
    // With several CPUs such a time is allowed for as one in which it was not the CPU's turn.
    let mut set: VecDeque<&WakeUp> = VecDeque::new();
    if !turns.several() {
        let is_late = |(w, due): &(&WakeUp, &u64)| {
            w.set_ns >= **due && w.taken_ns.saturating_sub(w.set_ns) <= SHORTEST_NS
        };
        set.extend(wakeups.iter().zip(dues).filter(is_late).map(|(w, _)| w));
    }
    let mut set_late = HashMap::new();
    let (mut next, mut disabled) = (0, 0);
    Log::open(&mut *log)?.each(|r| {
        let timer = r.kind == kind::ENTER && marks.entries.contains(&r.value);
        let within = window.holds(r.t_ns);
        disabled += u64::from(timer && within && r.state & state::INTERRUPTS_OFF != 0);
        let Some(sections) = sections.get_mut(&r.cpu) else { return };
        sections.add(&r, turns.own(r.cpu, r.t_ns), |kind, s| {
            if kind == SectionKind::InterruptsOff
                && let Some(taken) = taken.get_mut(&r.cpu)
            {
                while taken.front().is_some_and(|t| *t < s.own.1) {
                    taken.pop_front();
                }
                if let Some(t) = taken.front().filter(|t| **t <= s.own.1 + step_ns) {
                    before.insert((r.cpu, *t), s);
                }
            }
            if kind == SectionKind::InterruptsOff {
                while let Some(w) = set.front().filter(|w| w.set_ns <= s.to_ns) {
                    if w.set_ns >= s.from_ns {
                        set_late.insert((r.cpu, turns.own(r.cpu, w.taken_ns)), s);
                    }
                    set.pop_front();
                }
            }
            if kind == waits && r.cpu == measured {
                while let Some(due) = dues.get(next).filter(|due| **due < s.to_ns) {
                    if *due >= s.from_ns
                        && let Some(residual) = residual.get_mut(next)
                    {
                        *residual = s.to_ns - due;
                    }
                    next += 1;
                }
            }
        });
    })?;
    if disabled > 0 {
        return Err(LookError::Disabled(disabled));
    }
    let mut sections: Vec<(u8, Sections)> = sections.into_iter().collect();
    order::by_key(&mut sections, |(cpu, _)| *cpu != measured);
    Ok(LogReading { sections, before, set_late, residual, turns })
}
