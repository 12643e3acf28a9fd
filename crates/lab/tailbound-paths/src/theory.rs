// SPDX-License-Identifier: MIT OR Apache-2.0
//! The variables of the theoretical bound, from the log: every stretch of each, interrupts' execution taken out.
//!
//! Units: ns of QEMU's clock.
//!
//! ```text
//! POID   interrupts or preemption disabled, until both are enabled or scheduling begins; not of the idle thread
//! PAIE   to be rescheduled, from where POID ends (or the scheduler returned) until scheduling begins; not of the idle thread.
//!        A kernel that does not preempt its own code disables and enables in between: all of that is in it
//! PSD    from preemption disabled for __schedule (of the idle thread: from __schedule) until it is enabled again
//! ST     from interrupts disabled within that until its end
//! idle   of the idle thread: between scheduler and halt, halt and halt, halt and scheduler, scheduler and scheduler
//! ```
//! Stretches that the window has a part of count; a halt ends what was disabled before it.
//! Every instant between the time at which an interrupt could have come and the scheduler's return is in one of these, or is an
//! interrupt's, or is the instruction after which an interrupt is taken.
//! In a kernel that keeps no preemption count, PSD ends where interrupts are enabled after the switch, and what its threads
//! do with preemption disabled is in PAIE: it does not preempt them anyway.

use std::collections::HashMap;
use std::io::{Read, Seek, SeekFrom};
use tailbound_core::order;

use tailbound_core::theory::{
    Evidence, Holds, Observed, Precondition, Variable, VariableRecord, Vector,
};
use tailbound_trace::symbols::Symbols;

use crate::interrupts::Interrupts;
use crate::log::{Log, LogError};
use crate::names::named;
use crate::outside::OUTSIDE;
use crate::plan::Guest;
use crate::stretches::{Mark, SchedulerMark, Stretches};
use crate::wake_and_wait::WakeAndWait;
use crate::window::GuestWindow;

/// What the evidence is looked for by.
#[derive(Clone, Debug)]
pub struct EvidenceQuery<'a> {
    /// From the first time that was due to the last sample.
    pub window: GuestWindow,
    /// The measured wake-ups.
    pub wakeups: &'a [WakeAndWait],
    /// Whose kernel.
    pub guest: Guest,
    /// The scheduler's address.
    pub schedule: u64,
    /// The idle thread, if its name is known.
    pub idle_thread: u64,
    /// Addresses of [`OUTSIDE`] in this kernel.
    pub outside: [Option<u64>; OUTSIDE.len()],
    /// One instruction.
    pub step_ns: u64,
}

/// Reads the log once more.
///
/// # Errors
/// As [`Log`].
pub fn evidence(
    log: &mut (impl Read + Seek),
    wanted: &EvidenceQuery<'_>,
    symbols: &Symbols,
) -> Result<Evidence, LogError> {
    log.seek(SeekFrom::Start(0))?;
    let interrupt = |entry: u64| wanted.guest.is_interrupt(entry, named(symbols, entry));
    let mut all = Stretches::new(
        Interrupts::new(wanted.schedule, interrupt),
        wanted.schedule,
        SchedulerMark::AtEntry,
        wanted.idle_thread,
        wanted.wakeups.first().map_or(0, |w| w.thread),
        wanted.window,
    );
    Log::open(&mut *log)?.each(|r| all.add(&r))?;
    Ok(told(&mut all, wanted, symbols))
}

fn told<F: Fn(u64) -> bool>(
    all: &mut Stretches<F>,
    wanted: &EvidenceQuery<'_>,
    symbols: &Symbols,
) -> Evidence {
    let mut observed = Observed::default();
    for w in wanted.wakeups {
        // A wake-up during the way in from a timer that was late by itself begins where it could have been taken.
        let (timer, begin) = (w.free_ns.saturating_sub(w.due_ns), w.free_ns);
        let mark = |t_ns| Mark { t_ns, interrupts_ns: 0, at: 0, records: 0 };
        all.ended(Variable::Timer, mark(w.due_ns), mark(w.due_ns + timer));
        observed.n += 1;
        observed.sample_ns = observed.sample_ns.max(w.latency_ns);
        if let Some(end) = all.returns.get(&w.user_ns) {
            let ns = end.saturating_sub(begin).cast_signed();
            observed.scheduling_ns = observed.scheduling_ns.max(ns);
        }
    }
    let mut variables: Vec<VariableRecord> = Variable::ALL
        .into_iter()
        .zip(all.longest)
        .filter(|(_, l)| l.n > 0)
        .map(|(variable, l)| {
            let name =
                |at: u64| if at == 0 { String::new() } else { named(symbols, at).to_owned() };
            VariableRecord {
                variable,
                ns: l.ns.cast_signed(),
                n: l.n,
                tracing_ns: None,
                at_ns: l.begin_ns.saturating_sub(wanted.window.from_ns).cast_signed(),
                from: name(l.from),
                to: if variable == Variable::Return { "user mode".to_owned() } else { name(l.to) },
            }
        })
        .collect();
    variables.extend(reading(wanted));
    let mut vectors: Vec<Vector> = Vec::new();
    for (entry, mut executions) in all.vectors.drain() {
        executions.sort_unstable();
        let name = vector(symbols, entry);
        vectors.push(Vector { name, executions });
    }
    order::by(&mut vectors, |a, b| a.name.cmp(&b.name));
    Evidence {
        variables,
        vectors,
        span_ns: wanted.window.length_ns().cast_signed(),
        step_ns: wanted.step_ns.cast_signed(),
        preconditions: preconditions(&all.outside, wanted, symbols, all.interrupts.unmatched),
        observed,
    }
}

/// The shortest is the reading without an interrupt; due time and sample are each told to 1 ns.
fn reading(wanted: &EvidenceQuery<'_>) -> Option<VariableRecord> {
    let of = |w: &WakeAndWait| w.latency_ns - (w.user_ns.saturating_sub(w.due_ns)).cast_signed();
    let shortest = wanted.wakeups.iter().map(of).min()?;
    Some(VariableRecord {
        variable: Variable::Reading,
        ns: shortest.saturating_add(2).max(0),
        n: wanted.wakeups.len() as u64,
        tracing_ns: None,
        at_ns: 0,
        from: "user mode".to_owned(),
        to: "user mode".to_owned(),
    })
}

/// The entry's name; of a table of entries also which.
fn vector(symbols: &Symbols, entry: u64) -> String {
    let name = named(symbols, entry);
    let short = name.strip_prefix("asm_sysvec_").or_else(|| name.strip_prefix("asm_exc_"));
    match symbols.address(name) {
        Some(begin) if begin < entry => format!("{name}+{:#x}", entry - begin),
        _ => short.unwrap_or(name).to_owned(),
    }
}

fn preconditions(
    seen: &HashMap<u64, u64>,
    wanted: &EvidenceQuery<'_>,
    symbols: &Symbols,
    unmatched: u64,
) -> Vec<Precondition> {
    let of = |((name, function, what), at): (&(&str, &str, &str), Option<u64>)| {
        let (holds, why) = match at.map(|at| seen.get(&at).copied().unwrap_or(0)) {
            Some(0) => (Holds::Yes, format!("{function} was not called")),
            Some(n) => (Holds::No, format!("{what} ({function}, {n} times)")),
            // Kernels before 6.12 have no such server at all.
            None if *name == "fair server" && symbols.address("dl_server_start").is_none() => {
                (Holds::Yes, format!("this kernel has no {function}"))
            }
            None => (Holds::Unknown, format!("the kernel's symbols have no {function}")),
        };
        Precondition { name: (*name).to_owned(), holds, why }
    };
    let mut all: Vec<Precondition> = OUTSIDE.iter().zip(wanted.outside).map(of).collect();
    let fixed = |name: &str, why: &str| Precondition {
        name: name.to_owned(),
        holds: Holds::Yes,
        why: why.to_owned(),
    };
    all.push(fixed(
        "steal",
        "the guest's time is its instructions: a host that waits takes none of it",
    ));
    all.push(fixed("firmware (SMI)", "QEMU's machine raises no system management interrupt by itself, and its instructions would be counted"));
    all.push(fixed("CPUs", "the guest has one"));
    all.push(Precondition {
        name: "interrupts' entries and returns".to_owned(),
        holds: if unmatched == 0 { Holds::Yes } else { Holds::Unknown },
        why: format!("{unmatched} returns belong to no entry that was seen"),
    });
    all
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::log::tests::made;
    use crate::record::{kind, state};

    const I: u8 = state::INTERRUPTS_OFF;
    const P: u8 = state::PREEMPTION_OFF;
    const R: u8 = state::RESCHED;
    const TIMER: u64 = 0xffff_ffff_8100_1000;
    const SCHEDULE: u64 = 0xffff_ffff_8100_2000;
    const DEADLINE: u64 = 0xffff_ffff_8100_3000;
    const OWN: u64 = 7;
    const IDLE: u64 = 0x99;
    const SYMBOLS: &str = "ffffffff81001000 T asm_sysvec_timer\nffffffff81002000 T __schedule\nffffffff81003000 T enqueue_task_dl\n";

    fn log(records: &[(u64, u8, u8, u64)]) -> Cursor<Vec<u8>> {
        Cursor::new(made(records))
    }

    /// An interrupt wakes the thread within a section; then the thread sleeps, and the idle thread is woken.
    fn records() -> Vec<(u64, u8, u8, u64)> {
        use kind::{ENTER, HALT, LEAVE, POINT, RETURN, STATE, SWITCH, WAKE};
        let s = TIMER;
        vec![
            (0, SWITCH, 0, 0x10),
            (100, STATE, P, s),
            (150, ENTER, P, TIMER),
            (150, STATE, I | P, s),
            (180, WAKE, I | P, OWN),
            (190, STATE, I | P | R, s),
            (200, STATE, P | R, s),
            (200, LEAVE, P | R, s),
            (300, STATE, R, s),
            (310, STATE, P | R, s),
            (320, POINT, P | R, SCHEDULE),
            (330, STATE, I | P | R, s),
            (340, STATE, I | P, s),
            (350, SWITCH, I | P, OWN),
            (360, STATE, P, s),
            (400, STATE, 0, s),
            (450, STATE, state::USER, s),
            (450, RETURN, state::USER, OWN),
            (460, STATE, I, s),
            (470, STATE, 0, s),
            (500, STATE, P, s),
            (505, POINT, P, SCHEDULE),
            (510, STATE, I | P, s),
            (520, SWITCH, I | P, IDLE),
            (530, STATE, P, s),
            (600, HALT, P, s),
            (700, ENTER, P, TIMER),
            (700, STATE, I | P, s),
            (740, STATE, P, s),
            (740, LEAVE, P, s),
            (790, POINT, P, SCHEDULE),
            (800, STATE, I | P, s),
            (810, SWITCH, I | P, OWN),
            (820, STATE, P, s),
            (830, STATE, 0, s),
        ]
    }

    fn evidence_of(records: &[(u64, u8, u8, u64)]) -> Evidence {
        let wakeup =
            WakeAndWait { thread: OWN, due_ns: 145, free_ns: 150, user_ns: 450, latency_ns: 335 };
        let wanted = EvidenceQuery {
            window: GuestWindow { from_ns: 50, to_ns: 1000 },
            wakeups: &[wakeup],
            guest: Guest::X86_64,
            schedule: SCHEDULE,
            idle_thread: IDLE,
            outside: [Some(DEADLINE), None, None],
            step_ns: 1,
        };
        evidence(&mut log(records), &wanted, &Symbols::parse(SYMBOLS)).unwrap()
    }

    #[test]
    fn every_stretch_of_a_wake_up_is_in_one_variable() {
        let found = evidence_of(&records());
        let longest: Vec<_> = found.variables.iter().map(|v| (v.variable, v.ns, v.n)).collect();
        assert_eq!(
            longest,
            [
                (Variable::Poid, 150, 2),
                (Variable::Paie, 10, 1),
                (Variable::Psd, 90, 3),
                (Variable::St, 70, 3),
                (Variable::IdleIn, 70, 1),
                (Variable::IdleOut, 50, 1),
                (Variable::Timer, 5, 1),
                (Variable::Return, 50, 1),
                (Variable::Reading, 32, 1),
            ]
        );
        let executed: Vec<_> = found.vectors[0].executions.iter().map(|e| e.ns).collect();
        assert_eq!((found.vectors[0].name.as_str(), executed), ("timer", vec![50, 40]));
        let observed = Observed { n: 1, scheduling_ns: 250, sample_ns: 335 };
        assert_eq!(found.observed, observed);
        assert!(found.preconditions.iter().any(|p| p.holds == Holds::Unknown));
    }

    #[test]
    fn what_lies_outside_of_the_model_is_seen() {
        let mut records = records();
        records.insert(4, (160, kind::POINT, I | P, DEADLINE));
        let found = evidence_of(&records);
        let deadline = &found.preconditions[0];
        assert_eq!((deadline.name.as_str(), deadline.holds), ("deadline tasks", Holds::No));
    }
}
