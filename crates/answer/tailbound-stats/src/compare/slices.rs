// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether runs of guests with several CPUs can be compared at all.
//!
//! Pure. An emulator that counts instructions executes such CPUs in turn. How long a path takes on one of
//! them depends on how long the slices are and on whether the others have anything to do: so both must be equal, or a
//! ratio is one of shares and not of paths.
//! Source: docs/virtual-time.md, "More than one CPU".

use tailbound_core::Run;
use tailbound_core::lab::LabRecord;

use super::refusal::Refusal;

/// A run of a guest with several counted CPUs.
fn in_turn(run: &Run) -> Option<&LabRecord> {
    run.header.lab.as_deref().filter(|lab| lab.accelerator == "tcg" && lab.smp > 1)
}

/// Why `b` is not compared with `a`.
///
/// # Errors
/// Other slices, another number of CPUs, or another load beside them.
pub fn comparable(a: &Run, b: &Run) -> Result<(), Refusal> {
    let (one, other) = match (in_turn(a), in_turn(b)) {
        (None, None) => return Ok(()),
        (Some(one), Some(other)) => (one, other),
        _ => return Err(Refusal::OneInTurn),
    };
    if one.smp != other.smp {
        return Err(Refusal::Cpus { a: one.smp, b: other.smp });
    }
    if one.slice_ns != other.slice_ns {
        return Err(Refusal::Slices { a_ns: one.slice_ns, b_ns: other.slice_ns });
    }
    let load = |run: &Run, lab: &LabRecord| {
        let loads: Vec<String> = run.header.plan.loads.iter().map(ToString::to_string).collect();
        let beside = lab.job.tester.as_ref().map_or(&[][..], |_| &lab.job.arguments);
        loads.iter().chain(beside).cloned().collect::<Vec<_>>()
    };
    let (a, b) = (load(a, one), load(b, other));
    if a != b {
        return Err(Refusal::OtherLoad { a: named(&a), b: named(&b) });
    }
    Ok(())
}

fn named(loads: &[String]) -> String {
    if loads.is_empty() { "none".to_owned() } else { loads.join(", ") }
}

/// What is to be known of runs that can be compared, but whose slices are long.
#[must_use]
pub fn doubt(runs: &[&Run]) -> Option<String> {
    let long = runs.iter().filter_map(|r| in_turn(r)).find(|lab| lab.slice_ns == 0)?;
    Some(format!(
        "The {} CPUs of these guests ran in turn in long slices, and wake-ups wait for those of other CPUs: what differs may be the slices.",
        long.smp
    ))
}
