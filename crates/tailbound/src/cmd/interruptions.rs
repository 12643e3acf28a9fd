// SPDX-License-Identifier: MIT OR Apache-2.0
//! `interruptions`: what takes time from chosen CPUs, and who sends them interrupts.

use std::collections::BTreeSet;
use std::process::ExitCode;

use serde_json::json;
use tailbound_host::{Cpus, Root};
use tailbound_record::interruption_session::{InterruptionEnd, interruptions as record};
use tailbound_record::looks::Looks;
use tailbound_record::progress_line::ProgressLine;
use tailbound_report::blame::{interruptions as text, interruptions_json};

use crate::cli_interruptions::InterruptionsArgs;
use crate::flags;
use crate::say::{self, Failure};

/// `tailbound irqs`
pub(crate) fn interruptions(args: &InterruptionsArgs) -> Result<ExitCode, Failure> {
    let length = flags::length(&args.duration)?;
    let root = Root::real();
    let machine = Cpus::read(&root).map_err(|e| Failure::cannot(e.to_string()))?;
    let mut notes = Vec::new();
    let chosen = chosen(args, &machine, &mut notes)?;
    let exe = std::env::current_exe().map_err(Failure::cannot)?;
    let looks = Looks::begin(Some(length)).map_err(Failure::cannot)?;
    let mut line = ProgressLine::new(say::progress(false));
    let ended = record(&root, &exe, &machine, chosen, looks, &mut line);
    drop(line);
    let InterruptionEnd { found, notes: told, lost } =
        ended.map_err(|e| Failure::cannot(format!("interruptions: {e}")))?;
    notes.extend(told);
    if args.json {
        let mut value = interruptions_json(&found);
        if let Some(members) = value.as_object_mut() {
            members.insert("notes".to_owned(), json!(notes));
            members.insert("lost".to_owned(), json!(lost));
        }
        say::answer_json(&value)?;
        return Ok(ExitCode::SUCCESS);
    }
    let style = say::style(args.color.when);
    let mut out = text(&found, style);
    for note in &notes {
        out.push_str(&format!("Note: {}.\n", note.trim_end_matches('.')));
    }
    say::answer_in(&out, style)?;
    Ok(ExitCode::SUCCESS)
}

/// The CPUs of `-c`; without it the isolated ones, else all.
fn chosen(
    args: &InterruptionsArgs,
    machine: &Cpus,
    notes: &mut Vec<String>,
) -> Result<BTreeSet<u32>, Failure> {
    if let Some(list) = &args.cpus {
        let set = machine.looked_at(list).map_err(flags::refused("-c"))?;
        return Ok(set.iter().collect());
    }
    if machine.isolated.is_empty() {
        notes.push("no CPU is isolated, so all are shown; choose with -c".to_owned());
        return Ok(machine.online.iter().collect());
    }
    Ok(machine.isolated.iter().collect())
}
