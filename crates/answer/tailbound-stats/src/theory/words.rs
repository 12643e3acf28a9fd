// SPDX-License-Identifier: MIT OR Apache-2.0
//! Names of variables, what is taken for granted, and what would lower a term.

use tailbound_core::theory::{Holds, TheoryRecord, Variable};

use super::TheoreticalBound;

/// For people.
#[must_use]
pub(super) fn name(variable: Variable) -> &'static str {
    match variable {
        Variable::Poid => "POID (preemption or interrupts disabled)",
        Variable::Paie => "PAIE (enabled, to be rescheduled)",
        Variable::Psd => "PSD (preemption disabled to schedule)",
        Variable::St => "ST (the switch)",
        Variable::IdleIn => "idle, until the halt",
        Variable::IdleOut => "idle, from the halt on",
        Variable::IdleThrough => "idle, without a halt",
        Variable::Timer => "timer",
        Variable::Return => "return to user mode",
        Variable::Reading => "reading the clock",
    }
}

/// What is taken for granted.
pub(super) fn assumptions(record: &TheoryRecord) -> Vec<String> {
    let mut all = vec![
        "It holds for paths that the load took: a variable is the longest that was observed, and a longer one may be possible.".to_owned(),
        "Interrupts come no more often, and take no longer, than the model says that they did.".to_owned(),
        "The thread has the highest priority of its CPU, and nothing outside of the model holds it off.".to_owned(),
    ];
    all.extend(
        record
            .preconditions
            .iter()
            .filter(|p| p.holds == Holds::Unknown)
            .map(|p| format!("Not checked: {}: {}", p.name, p.why)),
    );
    all
}

/// What would lower the greatest terms.
#[must_use]
pub fn remedies(answer: &TheoreticalBound, record: &TheoryRecord) -> Vec<String> {
    let place = |variable: Variable| {
        let found = record.variables.iter().find(|v| v.variable == variable);
        found.map_or_else(String::new, |v| {
            if v.from == v.to { v.from.clone() } else { format!("{} to {}", v.from, v.to) }
        })
    };
    let one = |term: &super::Term| -> Option<String> {
        let variable = Variable::ALL.into_iter().find(|v| name(*v) == term.name);
        Some(match variable {
            Some(Variable::Poid) => format!("POID: the longest section is {}; `tailbound lab paths` shows what it executed, and another load, driver or PREEMPT_RT avoids it", place(Variable::Poid)),
            Some(Variable::Paie) => "PAIE: a kernel that does not preempt its own code goes on for so long: preempt=full, or PREEMPT_RT".to_owned(),
            Some(Variable::IdleIn | Variable::IdleOut | Variable::IdleThrough) => "Idle: keep the CPU from its idle states (idle=poll, cpu_dma_latency), or keep it busy".to_owned(),
            Some(Variable::Return) => "Return to user mode: it lies behind the scheduler; the tree of the latest wake-up shows it".to_owned(),
            Some(Variable::Psd | Variable::St) => "The scheduler itself: fewer threads and control groups on this CPU; little can be had".to_owned(),
            Some(Variable::Timer | Variable::Reading) => return None,
            None if term.name.contains("timer") => format!("The {}: fewer timers on this CPU: other threads elsewhere (isolcpus=, taskset), no tick (nohz_full=)", term.name),
            None => format!("The {}: keep it from this CPU (irqaffinity=, /proc/irq), or its handlers in threads (threadirqs, PREEMPT_RT)", term.name),
        })
    };
    let mut all: Vec<String> = answer.terms.iter().take(3).filter_map(one).collect();
    all.dedup();
    all
}
