// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a bound takes for granted that is computed from sections which were recorded on a machine: what checks
//! say of settings, what counted up meanwhile, and what no recording sees.
//!
//! Not here: the recording (`tailbound-probe`), the bound (`tailbound-stats`).

use tailbound_core::theory::{Holds, Precondition as Assumption};
use tailbound_core::units::format_ns_i64;
use tailbound_host::Root;
use tailbound_host::procstat::{self, Ticks};
use tailbound_host::smi::NoSmiCount;

use crate::preconditions::Precondition;

/// What counts up on its own.
#[derive(Debug)]
pub struct RecordingCounts {
    ticks: Option<Ticks>,
    smis: Result<u64, NoSmiCount>,
}

impl RecordingCounts {
    /// As they are now; `smis` are the interrupts of the firmware, or why nobody knows them.
    #[must_use]
    pub fn read(root: &Root, smis: Result<u64, NoSmiCount>) -> Self {
        Self { ticks: procstat::read(root).ok(), smis }
    }
}

/// What was taken for granted of the recording of `cpu`: `found` is what the checks say, `event_ns` what recording
/// one event costs, where that could be measured.
#[must_use]
pub fn assumptions(
    found: &[Precondition],
    before: &RecordingCounts,
    after: &RecordingCounts,
    cpu: u32,
    event_ns: Option<i64>,
) -> Vec<Assumption> {
    let mut all = settings(found);
    all.extend(counted(before, after, cpu, found));
    all.extend(always(event_ns));
    all
}

fn named(name: &str, holds: Holds, why: String) -> Assumption {
    Assumption { name: name.to_owned(), holds, why }
}

/// What `check` says of settings. One that lets something happen which did not happen is an assumption: the trace
/// tells what did.
fn settings(found: &[Precondition]) -> Vec<Assumption> {
    let wanted = [
        ("no-fair-server", "fair server"),
        ("no-throttling", "throttling of real-time threads"),
        ("no-deadline-task", "deadline tasks later"),
    ];
    let one = |(id, name): (&str, &str)| {
        let p = found.iter().find(|p| p.name == id)?;
        Some(match p.holds {
            Some(true) => named(name, Holds::Yes, p.evidence.clone()),
            Some(false) => named(
                name,
                Holds::Unknown,
                format!(
                    "{}: while it was recorded that did nothing unless it says so above",
                    p.evidence
                ),
            ),
            None => named(name, Holds::Unknown, p.evidence.clone()),
        })
    };
    wanted.into_iter().filter_map(one).collect()
}

/// What counts tell of the time in between.
fn counted(
    before: &RecordingCounts,
    after: &RecordingCounts,
    cpu: u32,
    found: &[Precondition],
) -> Vec<Assumption> {
    let by_check = |id: &str| found.iter().find(|p| p.name == id);
    let ticks =
        |c: &RecordingCounts| c.ticks.as_ref().and_then(|t| t.get(&cpu)).and_then(|t| t.steal);
    let steal = match (ticks(before), ticks(after)) {
        (Some(b), Some(a)) if a > b => (
            Holds::No,
            format!(
                "the host took {} ticks of CPU {cpu} while it was recorded",
                a.saturating_sub(b)
            ),
        ),
        _ => match by_check("no-steal") {
            Some(p) if p.holds == Some(true) => (Holds::Yes, p.evidence.clone()),
            Some(p) => (
                Holds::Unknown,
                format!(
                    "{}; none is counted for the time of the recording, and less than a tick would not be",
                    p.evidence
                ),
            ),
            None => (Holds::Unknown, "no check tells".to_owned()),
        },
    };
    let smi = match (&before.smis, &after.smis) {
        (Ok(b), Ok(a)) if a > b => (
            Holds::No,
            format!(
                "the firmware interrupted {} times while it was recorded",
                a.saturating_sub(*b)
            ),
        ),
        (Ok(_), Ok(_)) => (Holds::Yes, "the CPU counted none while it was recorded".to_owned()),
        (Err(why), _) | (_, Err(why)) => match by_check("no-smi") {
            Some(p) if p.holds == Some(true) => (Holds::Yes, p.evidence.clone()),
            Some(p) => (Holds::Unknown, format!("{} ({why})", p.evidence)),
            None => (Holds::Unknown, why.to_string()),
        },
    };
    vec![named("steal", steal.0, steal.1), named("firmware (SMI)", smi.0, smi.1)]
}

/// What holds for every machine.
fn always(event_ns: Option<i64>) -> Vec<Assumption> {
    let cost = event_ns.map_or_else(
        || "what one event costs could not be measured".to_owned(),
        |ns| format!("about {} for each event", format_ns_i64(ns)),
    );
    vec![
        named(
            "recording",
            Holds::Unknown,
            format!("it lengthens what it records, {cost}: the bound is that of a machine that is recorded, and nothing is taken off"),
        ),
        named(
            "hardware",
            Holds::Unknown,
            "from an interrupt's being raised to the kernel's first event, and the way out of an idle state before that, are not seen".to_owned(),
        ),
    ]
}
