// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab paths`: which sections of the kernel were in the way, and how long they can be.
//!
//! Context: COLD.

use std::io::BufReader;
use std::process::ExitCode;

use tailbound_core::paths::PathsRecord;
use tailbound_core::{Run, runfile};
use tailbound_lab::{Cell, Emulator, paths};
use tailbound_paths::look::{Samples, Sparse};
use tailbound_paths::plan::Plan;
use tailbound_trace::symbols::Symbols;

use super::cells::{self, Bench};
use super::progress::Shown;
use super::request;
use crate::cli_lab::LabPathsArgs;
use crate::say::{self, Failure};

/// `tailbound lab paths`
pub(super) fn paths(args: &LabPathsArgs) -> Result<ExitCode, Failure> {
    let mut words = request::of(&args.subject, &args.host)?;
    words.campaign.raw = Some(true);
    paths::possible(words.arch()?, words.kvm, words.smp.unwrap_or(1))?;
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    let [one] = labelled.as_slice() else {
        return Err(Failure::usage("lab paths looks at one kernel with one load at a time"));
    };
    let mut shown = Shown::new(args.host.quiet, 4);
    let looked = look(&bench, &emulator, &one.cell, Depth::Trees, &mut shown)?;
    shown.clear();
    if args.host.json {
        let mut answer = tailbound_report::paths::json(&looked.record, &one.kernel);
        answer["lab_cost"] = looked.cost;
        say::answer_json(&answer)?;
    } else {
        let style = say::style(&args.host.color.when);
        say::answer_in(&tailbound_report::paths::text(&looked.record, &one.kernel, style), style)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// How much of a run is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cmd) enum Depth {
    /// Sections and wake-ups.
    Sections,
    /// Also what the longest and the latest of them executed.
    Trees,
}

/// A run that was looked at.
pub(in crate::cmd) struct Looked {
    pub(in crate::cmd) run: Run,
    pub(in crate::cmd) record: PathsRecord,
    cost: serde_json::Value,
}

/// Makes the run of a cell whose job keeps raw samples, as always and watched, and checks the one against the other.
pub(in crate::cmd) fn look(
    bench: &Bench<'_>,
    emulator: &Emulator,
    cell: &Cell,
    depth: Depth,
    shown: &mut Shown,
) -> Result<Looked, Failure> {
    paths::plugin(emulator)?;
    let means = bench.means(emulator);
    let mut progress = |p| {
        shown.progress(0, p);
        bench.hear();
    };
    let symbols = paths::symbols(cell, &means, &mut progress)?;
    let plan = Plan::of(&symbols).map_err(Failure::cannot)?;
    let plain = tailbound_lab::run(cell, &means, &mut progress)?;
    let (sparse, mut log) = paths::watched(cell, &means, &plan, &mut progress)?;
    let same = cells::bytes(&plain.run)? == cells::bytes(&sparse.run)?;
    if !same {
        return Err(Failure::cannot(
            "the run has other bytes when it is watched: nothing of it can be told",
        ));
    }
    let names = Symbols::parse(&symbols);
    let latencies_ns = latencies(&plain.run)?;
    let samples = Samples {
        start_ns: start(&plain.run)?,
        latencies_ns: &latencies_ns,
        step_ns: 1 << cell.shift,
    };
    let found =
        Sparse::of(&mut log, plan.marks(), &names, samples, same).map_err(Failure::cannot)?;
    drop(log);
    let (record, full) = match depth {
        Depth::Sections => (found.record(), serde_json::Value::Null),
        Depth::Trees => {
            let plan = plan.full(&found.windows());
            let (full, log) = paths::watched(cell, &means, &plan, &mut progress)?;
            let record = found.full(BufReader::new(log), &names).map_err(Failure::cannot)?;
            (record, cells::cost(&full.cost))
        }
    };
    let cost = serde_json::json!({
        "plain": cells::cost(&plain.cost),
        "sparse": cells::cost(&sparse.cost),
        "full": full,
    });
    Ok(Looked { run: plain.run, record, cost })
}

/// All samples of the only thread, as they were measured.
fn latencies(run: &Run) -> Result<Vec<i64>, Failure> {
    let mut all = Vec::new();
    for raw in run.raw.iter().filter(|raw| raw.thread == 0) {
        all.extend(runfile::unpack_raw(raw).map_err(Failure::cannot)?);
    }
    Ok(all)
}

/// When the first judged activation was due, by the guest's clock.
fn start(run: &Run) -> Result<i64, Failure> {
    let event = run.events.iter().find(|e| e.event == "clock-start");
    let time = event.and_then(|e| e.text.parse().ok());
    time.ok_or_else(|| Failure::cannot("the run does not say when it began"))
}
