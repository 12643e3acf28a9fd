// SPDX-License-Identifier: MIT OR Apache-2.0
//! Records for a while what takes time from chosen CPUs.
//!
//! This process leaves the chosen CPUs first, so that it is not among what is found.
//! Not here: what the events come to (`tailbound_trace::blame`).

use std::collections::BTreeSet;
use std::path::Path;

use tailbound_core::blame::Interrupted;
use tailbound_core::units::grouped;
use tailbound_host::{Cpus, Root};
use tailbound_sys::sched;
use tailbound_trace::blame::Interruptions;

use crate::error::ObserveError;
use crate::looks::{LookProgress, Looks};
use crate::recording::{Recording, RecordingItem, SystemCalls};

/// What it came to.
#[derive(Debug)]
pub struct InterruptionEnd {
    /// By CPU.
    pub found: Interrupted,
    /// What a reader must know.
    pub notes: Vec<String>,
    /// Events that were overwritten before they were read.
    pub lost: u64,
}

/// Records. `exe trace-guard` removes the trace if this process is killed.
///
/// # Errors
/// [`ObserveError`]; nothing is left behind then.
pub fn interruptions(
    root: &Root,
    exe: &Path,
    machine: &Cpus,
    chosen: BTreeSet<u32>,
    mut looks: Looks,
    progress: &mut dyn LookProgress,
) -> Result<InterruptionEnd, ObserveError> {
    let mut notes = Vec::new();
    if !sched::leave(&chosen, || machine.online.iter().collect()) {
        notes.push(
            "tailbound itself has no other CPU to run on: its own work is among what is shown"
                .to_owned(),
        );
    }
    let mut recording = Recording::begin(root, exe, SystemCalls::LeftOut)?;
    let mut all = Interruptions::new(chosen, recording.symbols());
    looks.start();
    while looks.wait() {
        recording.poll(&mut |item| take(&mut all, item));
        looks.tell(progress, &mut || {
            let found = all.so_far();
            let times = found.cpus.values().flat_map(|c| c.taken.values()).map(|t| t.count);
            format!("{} interruptions", grouped(times.fold(0, u64::saturating_add)))
        });
    }
    let ended = recording.end(&mut |item| take(&mut all, item));
    notes.extend(ended.notes);
    notes.extend(ended.findings.into_iter().map(|f| f.title));
    if ended.lost > 0 {
        notes.push(format!("{} events were lost: what they tell is missing", grouped(ended.lost)));
    }
    Ok(InterruptionEnd { found: all.finish(), notes, lost: ended.lost })
}

fn take(all: &mut Interruptions, item: RecordingItem<'_>) {
    match item {
        RecordingItem::Entry(e) => all.entry(e),
        // The engine takes what runs from the next record of that CPU.
        RecordingItem::Lost(_) => {}
    }
}
