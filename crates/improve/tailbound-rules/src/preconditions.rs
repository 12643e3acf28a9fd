// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bound that is computed from a model takes for granted, as facts with their evidence.
//!
//! A theoretical bound on the scheduling latency holds only where nothing stands
//! above real-time threads that the model does not know. Source: de Oliveira et al., "Demystifying
//! the Real-Time Linux Scheduling Latency", ECRTS 2020, section 4.

use serde::Serialize;
use serde_json::json;
use tailbound_core::Policy;
use tailbound_core::record::{Fact, Facts};

use crate::machine::Machine;
use crate::outcome::{CheckOutcome, Level};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Precondition {
    /// Its name.
    pub name: &'static str,
    /// Does it hold? `None`: not known.
    pub holds: Option<bool>,
    /// What that is known from, or why not.
    pub evidence: String,
}

/// Whether it holds, and what that is known from; or why it is not known.
type PreconditionCheck = Result<(bool, String), CheckOutcome>;

/// A name, and how to find out.
type Named = (&'static str, fn(&Machine) -> PreconditionCheck);

/// All of them.
#[must_use]
pub fn preconditions(m: &Machine) -> Vec<Precondition> {
    let all: [Named; 6] = [
        ("no-deadline-task", deadline_tasks),
        ("no-fair-server", fair_server),
        ("no-throttling", throttling),
        ("no-stop-machine", stop_machine),
        ("no-smi", smi),
        ("no-steal", steal),
    ];
    all.into_iter()
        .map(|(name, look)| match look(m) {
            Ok((holds, evidence)) => Precondition { name, holds: Some(holds), evidence },
            Err(why) => Precondition { name, holds: None, evidence: why.found },
        })
        .collect()
}

/// The same as facts of a run, `precondition.NAME`.
#[must_use]
pub fn precondition_facts(m: &Machine) -> Facts {
    let fact = |p: Precondition| match p.holds {
        Some(holds) => Fact::of(json!({ "holds": holds, "evidence": p.evidence })),
        None => Fact::Unknown(p.evidence),
    };
    preconditions(m).into_iter().map(|p| (format!("{PREFIX}{}", p.name), fact(p))).collect()
}

/// What the names of these facts begin with.
pub const PREFIX: &str = "precondition.";

fn deadline_tasks(m: &Machine) -> PreconditionCheck {
    let names: Vec<&str> = m
        .threads()?
        .iter()
        .filter(|t| matches!(t.policy, Policy::Deadline { .. }))
        .map(|t| t.name.as_str())
        .collect();
    Ok(match names.as_slice() {
        [] => (true, "no thread has SCHED_DEADLINE".to_owned()),
        some => (false, format!("SCHED_DEADLINE: {}", some.join(", "))),
    })
}

/// The judgement of a check as a fact.
fn of_check(m: &Machine, id: &str) -> PreconditionCheck {
    let check = crate::catalogue().into_iter().find(|c| c.id == id);
    let Some(check) = check else { return Err(CheckOutcome::unknown("there is no such check")) };
    let seen = check.seen(m);
    match seen.level {
        Level::Ok | Level::NotApplicable => Ok((true, seen.found)),
        Level::Bad | Level::Warn => Ok((false, seen.found)),
        Level::Unknown | Level::NeedsReboot => Err(seen),
    }
}

fn fair_server(m: &Machine) -> PreconditionCheck {
    if m.rt.is_empty() && m.release >= (6, 12) {
        return Err(CheckOutcome::unknown("no CPUs for real-time work were named"));
    }
    of_check(m, "sched.fair-server")
}

fn throttling(m: &Machine) -> PreconditionCheck {
    // Every kernel has it: a tree without the file says nothing.
    if m.number("/proc/sys/kernel/sched_rt_runtime_us").is_err() {
        return Err(CheckOutcome::unknown("no /proc/sys/kernel/sched_rt_runtime_us could be read"));
    }
    of_check(m, "sched.rt-throttle")
}

fn stop_machine(_: &Machine) -> PreconditionCheck {
    Err(CheckOutcome::unknown(
        "the kernel stops all CPUs when its code is changed (modules, tracing, hotplug): only a trace tells that it did not",
    ))
}

fn smi(m: &Machine) -> PreconditionCheck {
    if let Some(kind) = m.hypervisor() {
        return Err(CheckOutcome::unknown(format!(
            "a virtual machine ({kind}) cannot see the firmware of its host"
        )));
    }
    m.text("/proc/cpuinfo")?;
    if !m.is_x86() {
        return Ok((true, "this is not an x86 machine".to_owned()));
    }
    Err(CheckOutcome::unknown("a run counts them: tailbound measure hwlat"))
}

fn steal(m: &Machine) -> PreconditionCheck {
    // Where nobody knows whether this is a virtual machine, nobody knows this either.
    m.word("virt.kind")?;
    // Without the count, which is another at each look.
    let (holds, evidence) = of_check(m, "virt.steal")?;
    Ok((holds, if holds { evidence } else { "the host took time since boot".to_owned() }))
}
