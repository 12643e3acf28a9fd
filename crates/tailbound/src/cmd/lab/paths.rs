// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab paths`: which sections of the kernel were in the way, and how long they can be.

use std::process::ExitCode;

use serde_json::json;
use tailbound_lab::watching::{self, Depth};

use super::{bench, request};
use crate::cli_lab::LabPathsArgs;
use crate::say::{self, Failure};

/// `tailbound lab paths`
pub(super) fn paths(args: &LabPathsArgs) -> Result<ExitCode, Failure> {
    let mut words = request::of(&args.subject, &args.host)?;
    words.campaign.raw = Some(true);
    watching::possible(&words)?;
    if args.theory {
        watching::theory_possible(words.smp.unwrap_or(1))?;
    }
    let bench = bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    let [one] = labelled.as_slice() else {
        return Err(Failure::usage(
            "lab paths looks at one kernel with one load at a time; lab run --paths takes several",
        ));
    };
    let depth = if args.theory { Depth::Bound } else { Depth::Trees };
    let shown = bench.tasks(1, Some(depth.steps()));
    let watched = watching::watch(&bench, &emulator, &one.cell, depth, &*shown)?;
    watched.plain.notes.iter().for_each(|mended| shown.note(mended));
    shown.clear();
    if args.host.json {
        let mut answer = tailbound_report::paths::json(&watched.record, &one.kernel);
        answer["lab_cost"] = watched.costs;
        if let (Some(record), Some(by)) = (&watched.record.theory, &watched.bound) {
            answer["bound"] = json!(by);
            answer["theory"] = json!(record);
        }
        say::answer_json(&answer)?;
    } else {
        let style = say::style(args.host.color.when);
        let (record, bound) = (&watched.record, watched.bound.as_ref());
        let text = tailbound_report::paths::text(record, bound, &one.kernel, style);
        say::answer_in(&text, style)?;
    }
    Ok(ExitCode::SUCCESS)
}
