// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab matrix`: every system with every load, resumable.
//!
//! Context: COLD. A cell whose file holds just what would be made is not made again.

use std::path::PathBuf;
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_lab::Asked;
use tailbound_report::matrix;

use super::cells::{self, Bench};
use super::{asked, run};
use crate::cli_lab::LabMatrixArgs;
use crate::input;
use crate::say::{self, Failure};

/// `tailbound lab matrix`
pub(super) fn matrix(args: &LabMatrixArgs) -> Result<ExitCode, Failure> {
    let words = words(args)?;
    let bench = Bench::open(&args.host)?;
    let emulator = bench.emulator(words.arch()?)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    bench.say_unchecked(&labelled);
    let files: Vec<PathBuf> =
        labelled.iter().map(|l| args.out.join(format!("{}.tailbound.jsonl", l.stem()))).collect();
    let mut runs: Vec<Option<Result<Run, String>>> = Vec::new();
    let mut open = Vec::new();
    for (at, (l, path)) in labelled.iter().zip(&files).enumerate() {
        let prepared = l.cell.prepare(&emulator, &bench.store)?;
        let there = path.exists().then(|| input::run(path)).transpose()?;
        let same =
            there.as_ref().is_some_and(|r| r.header.lab.as_deref() == Some(&prepared.record));
        if there.is_some() && !same && !args.force {
            return Err(Failure::usage(format!(
                "{} holds a run of other words or another version: choose another --out, or give --force",
                path.display()
            )));
        }
        if !same {
            open.push(at);
        }
        runs.push(there.filter(|_| same).map(Ok));
    }
    let kept = labelled.len() - open.len();
    if kept > 0 && !args.host.quiet {
        say::note(&format!("{kept} of {} cells were made before", labelled.len()));
    }
    let mut broken = None;
    let all: Vec<_> =
        open.iter().filter_map(|at| labelled.get(*at)).map(|l| l.cell.clone()).collect();
    bench.make(&all, &emulator, &mut |nth, made| {
        let Some(at) = open.get(nth).copied() else { return String::new() };
        let (Some(l), Some(path)) = (labelled.get(at), files.get(at)) else { return String::new() };
        let (run, note) = match made {
            Ok(made) => {
                let note = cells::said(&l.title(), &made);
                if let Err(e) = run::keep(path, &made.run, &made.console, true) {
                    broken.get_or_insert(e);
                }
                (Ok(made.run), note)
            }
            Err(e) => (Err(e.to_string()), format!("{}: failed: {e}", l.title())),
        };
        if let Some(place) = runs.get_mut(at) {
            *place = Some(run);
        }
        note
    })?;
    if let Some(failure) = broken {
        return Err(failure);
    }
    let made = run::as_cells(&labelled, runs, &files);
    show(args, &made)?;
    Ok(run::status(&made))
}

/// Pictures, report and answer.
fn show(args: &LabMatrixArgs, made: &[matrix::Cell]) -> Result<(), Failure> {
    for (kind, file) in &args.svg {
        let svg = matrix::svg(made, kind).ok_or_else(|| {
            Failure::cannot(format!("{}: nothing was measured to draw", file.display()))
        })?;
        input::write(file, &svg, true)?;
    }
    let report = args.out.join("matrix.html");
    input::write(&report, &matrix::html(made), true)?;
    if args.host.json {
        say::answer_json(&matrix::json(made))?;
    } else {
        let style = say::style(&args.host.color.when);
        say::answer_in(&matrix::text(made, style), style)?;
        say::answer(&format!(
            "\nRun files  {}\nReport     {}",
            args.out.display(),
            report.display()
        ))?;
    }
    Ok(())
}

fn words(args: &LabMatrixArgs) -> Result<Asked, Failure> {
    let mut words = match &args.file {
        None => Asked::default(),
        Some(path) => {
            let at = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
            let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
                .map_err(|e| at(&e))?;
            Asked::parse(&text).map_err(|e| at(&e))?
        }
    };
    if !args.kernels.is_empty() {
        words.kernels.clone_from(&args.kernels);
        words.systems.clear();
    }
    if !args.loads.is_empty() {
        words.loads.clone_from(&args.loads);
    }
    if !args.append.is_empty() {
        words.append.clone_from(&args.append);
    }
    asked::lay(&mut words, &args.guest, &args.probe, &args.host)?;
    if !args.svg.is_empty() && words.loads.len() > 1 {
        return Err(Failure::usage(format!(
            "--svg draws one load, and there are {}: choose it with --loads",
            words.loads.len()
        )));
    }
    Ok(words)
}
