// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab repeat`: the same run again, compared byte for byte.

use std::process::ExitCode;

use serde_json::json;
use tailbound_lab::repeat;
use tailbound_lab::target::Target;

use super::cells::{self, Bench};
use super::run::keep;
use crate::cli_lab::LabRepeatArgs;
use crate::input;
use crate::say::{self, Failure};

/// `tailbound lab repeat`: 0 the same bytes, 1 other bytes, 3 not to be repeated here.
pub(super) fn repeat(args: &LabRepeatArgs) -> Result<ExitCode, Failure> {
    // What was watched was added to the run, and is not repeated.
    let (run, before) = input::lab_run(&args.run)?;
    let record = run.header.lab.as_deref().ok_or_else(Failure::bug)?;
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready_again(record)?;
    let target = args.target.as_deref().map(Target::read).transpose()?;
    let guest = args.host.guest.clone();
    let cell =
        repeat::cell(record, guest, target.as_ref(), &mut |name, arch| bench.obtain(name, arch))?;
    let mut result = None;
    bench.make(&[cell], &emulator, &mut |_, made| {
        let note =
            made.as_ref().map_or_else(|_| "failed".to_owned(), |m| cells::summary("repeated", m));
        result = Some(made);
        note
    })?;
    let made = result.ok_or_else(|| Failure::cannot("nothing was made"))??;
    let now = cells::bytes(&made.run)?;
    if let Some(out) = &args.out {
        keep(out, &made.run, &made.console, args.force)?;
    }
    let same = before == now;
    let reasons = made
        .run
        .header
        .lab
        .as_deref()
        .map_or_else(Vec::new, |new| repeat::differences(record, new));
    let line = first_difference(&before, &now);
    if args.host.json {
        say::answer_json(&json!({
            "identical": same, "bytes": now.len(), "first_different_line": line, "differences": reasons,
        }))?;
    } else if same {
        say::answer(&format!(
            "Identical: {} bytes, repeated with {} on this machine.",
            now.len(),
            emulator.version
        ))?;
    } else {
        let mut text = format!("Different, from line {} on.", line.unwrap_or(0));
        for reason in &reasons {
            text.push_str(&format!("\n  {reason}"));
        }
        if reasons.is_empty() {
            text.push_str(
                "\n  Everything that a run is a function of is the same: something is not pinned. Please report it with both files.",
            );
        }
        say::answer(&text)?;
    }
    Ok(ExitCode::from(u8::from(!same)))
}

fn first_difference(before: &[u8], now: &[u8]) -> Option<usize> {
    let (mut a, mut b) = (before.split(|c| *c == b'\n'), now.split(|c| *c == b'\n'));
    (1usize..).find_map(|line| match (a.next(), b.next()) {
        (None, None) => Some(None),
        (x, y) if x == y => None,
        _ => Some(Some(line)),
    })?
}
