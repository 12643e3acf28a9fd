// SPDX-License-Identifier: MIT OR Apache-2.0
//! `interruptions`: what takes time from chosen CPUs, and who sends them interrupts.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::json;
use tailbound_core::CpuSet;
use tailbound_core::units::grouped;
use tailbound_host::{Cpus, Root};
use tailbound_record::recording::{Recording, RecordingItem};
use tailbound_report::blame::{interruptions as text, interruptions_json};
use tailbound_sys::sched;
use tailbound_trace::blame::Interruptions;

use crate::cli_interruptions::InterruptionsArgs;
use crate::looking::{self, Looking};
use crate::say::{self, Failure};

/// `tailbound irqs`
pub(crate) fn interruptions(args: &InterruptionsArgs) -> Result<ExitCode, Failure> {
    let length = looking::length(&args.duration)?;
    let root = Root::real();
    let machine = Cpus::read(&root).map_err(|e| Failure::cannot(e.to_string()))?;
    let mut notes = Vec::new();
    let chosen = chosen(args, &machine, &mut notes)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let mut looking = Looking::begin(Some(length))?;
    // This program shall not be among what is found.
    if !sched::leave(&chosen, || machine.online.iter().collect()) {
        notes.push(
            "tailbound itself has no other CPU to run on: its own work is among what is shown"
                .to_owned(),
        );
    }
    let mut recording = Recording::begin(&root, &exe, false)
        .map_err(|e| Failure::cannot(format!("interruptions: {e}")))?;
    let mut all = Interruptions::new(chosen, recording.symbols());
    looking.start();
    while looking.next() {
        recording.poll(&mut |seen| take(&mut all, seen));
        looking.say(|| {
            let found = all.so_far();
            let times = found.cpus.values().flat_map(|c| c.taken.values()).map(|t| t.count);
            format!("{} interruptions", grouped(times.fold(0, u64::saturating_add)))
        });
    }
    let ended = recording.end(&mut |seen| take(&mut all, seen));
    drop(looking);
    notes.extend(ended.notes);
    notes.extend(ended.findings.into_iter().map(|f| f.title));
    if ended.lost > 0 {
        notes.push(format!("{} events were lost: what they tell is missing", grouped(ended.lost)));
    }
    let found = all.finish();
    if args.json {
        let mut value = interruptions_json(&found);
        if let Some(members) = value.as_object_mut() {
            members.insert("notes".to_owned(), json!(notes));
            members.insert("lost".to_owned(), json!(ended.lost));
        }
        say::answer_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = say::style(&args.color.when);
    let mut out = text(&found, style);
    for note in &notes {
        out.push_str(&format!("Note: {}.\n", note.trim_end_matches('.')));
    }
    say::answer_in(&out, style)?;
    Ok(ExitCode::SUCCESS)
}

fn take(all: &mut Interruptions, seen: RecordingItem<'_>) {
    match seen {
        RecordingItem::Entry(e) => all.entry(e),
        // The engine takes what runs from the next record of that CPU.
        RecordingItem::Lost(_) => {}
    }
}

/// The CPUs of `-c`; without it the isolated ones, else all.
fn chosen(
    args: &InterruptionsArgs,
    machine: &Cpus,
    notes: &mut Vec<String>,
) -> Result<BTreeSet<u32>, Failure> {
    if let Some(list) = &args.cpus {
        let set: CpuSet = list.parse().map_err(|e| Failure::usage(format!("-c: {e}")))?;
        if let Some(no) = set.iter().find(|c| !machine.online.contains(*c)) {
            return Err(Failure::usage(format!(
                "-c: CPU {no} is not online; online are {}",
                machine.online
            )));
        }
        return Ok(set.iter().collect());
    }
    if machine.isolated.is_empty() {
        notes.push("no CPU is isolated, so all are shown; choose with -c".to_owned());
        return Ok(machine.online.iter().collect());
    }
    Ok(machine.isolated.iter().collect())
}
