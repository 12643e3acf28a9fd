// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab run`: one run per kernel, and side by side where there are several.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::Value;
use tailbound_core::Run;
use tailbound_lab::keep::keep_run;
use tailbound_lab::matrix::{CellRun, Cells};
use tailbound_lab::watching::{self, Watching};
use tailbound_lab::{LabError, Labelled, Made, bench as lab_bench};
use tailbound_report::matrix;
use tailbound_sys::new_file::Existing;

use super::{bench, request};
use crate::cli_lab::LabRunArgs;
use crate::input;
use crate::names;
use crate::say::{self, Failure, Form};

/// `tailbound lab run`
pub(super) fn run(args: &LabRunArgs) -> Result<ExitCode, Failure> {
    let mut words = request::of(&args.subject, &args.host)?;
    if args.paths {
        words.campaign.raw = Some(true);
        watching::possible(&words)?;
    }
    let words = words;
    let bench = bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    let draft = words.draft(&bench.store)?;
    nothing_there(args, &places(args, &draft, &request::more(&words, &args.subject.probe)))?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    bench.note_unchecked(&labelled);
    let more = request::more(&words, &args.subject.probe);
    let files = places(args, &labelled, &more);
    nothing_there(args, &files)?;
    let watching = if args.paths { Watching::Paths } else { Watching::Off };
    let cells = Cells { bench: &bench, emulator: &emulator, labelled: &labelled, watching };
    let existing = Existing::replaced_if(args.force);
    let all = cells.make_all(&files, &mut |path, made| Ok(keep(path, made, existing)?))?;
    let (runs, costs) = all.into_iter().unzip();
    let made = as_cells(&labelled, runs, &files);
    let report = report(args, &made, &files)?;
    answer(args, &made, &files, report.as_deref(), costs)
}

/// Writes the report; where it went.
fn report(
    args: &LabRunArgs,
    made: &[matrix::Cell],
    files: &[PathBuf],
) -> Result<Option<PathBuf>, Failure> {
    let existing = Existing::replaced_if(args.force);
    if let Some(given) = &args.report {
        return input::write(given, &matrix::page(made), existing).map(|()| Some(given.clone()));
    }
    let Some(first) = files.first().filter(|f| *f != Path::new("-")) else { return Ok(None) };
    if made.iter().all(|cell| cell.run.is_err()) {
        return Ok(None);
    }
    let place = match files {
        [one] => input::sibling(one, ".html"),
        _ => first.with_file_name("lab.html"),
    };
    names::write(&place, &matrix::page(made), existing).map(Some)
}

/// May everything be written that these runs leave?
fn nothing_there(args: &LabRunArgs, files: &[PathBuf]) -> Result<(), Failure> {
    let existing = Existing::replaced_if(args.force);
    for path in files.iter().filter(|p| *p != Path::new("-")) {
        input::may_write(path, existing)?;
        input::may_write(&console_file(path), existing)?;
    }
    args.report.as_ref().map_or(Ok(()), |report| input::may_write(report, existing))
}

/// What was made, as the report knows it.
pub(super) fn as_cells(
    labelled: &[Labelled],
    runs: Vec<Option<CellRun>>,
    files: &[PathBuf],
) -> Vec<matrix::Cell> {
    let made = labelled.iter().zip(runs).zip(files);
    made.map(|((l, run), path)| {
        let why = |e: LabError| matrix::CellFailure { why: e.to_string() };
        let not_made = || Err(matrix::CellFailure { why: "not made".to_owned() });
        let run = run.map_or_else(not_made, |run| run.map_err(why));
        cell(l, run, &input::name(path))
    })
    .collect()
}

fn cell(l: &Labelled, run: Result<Run, matrix::CellFailure>, file: &str) -> matrix::Cell {
    let load = if l.load == "none" { String::new() } else { l.load.clone() };
    matrix::Cell {
        labels: matrix::Labels { kernel: l.kernel.clone(), load, append: l.append.clone() },
        file: run.is_ok().then(|| file.to_owned()),
        run,
    }
}

fn answer(
    args: &LabRunArgs,
    made: &[matrix::Cell],
    files: &[PathBuf],
    report: Option<&Path>,
    costs: Vec<Value>,
) -> Result<ExitCode, Failure> {
    if let [matrix::Cell { run: Err(failure), .. }] = made {
        return Err(Failure::cannot(&failure.why));
    }
    if files.first().is_none_or(|f| f != Path::new("-")) {
        let form = Form::of(args.host.json, args.host.color.when);
        let json = || matrix::answer_json(made, costs);
        form.answer(json, |style| matrix::answer_text(made, style))?;
        if !form.is_json() {
            say::answer(&matrix::files_text(made, files, report))?;
        }
    }
    Ok(ExitCode::from(matrix::exit_status(made)))
}

/// Where each run goes. Without --out the names were chosen here, and are free ones.
fn places(args: &LabRunArgs, labelled: &[Labelled], more: &str) -> Vec<PathBuf> {
    let mut places: Vec<PathBuf> = Vec::new();
    for l in labelled {
        let name = format!("{}{more}.tailbound.jsonl", l.stem());
        let place = match &args.out {
            Some(out) if labelled.len() == 1 && !out.is_dir() => out.clone(),
            Some(folder) => folder.join(name),
            None if args.force => PathBuf::from(name),
            None => names::free(Path::new(&name), &[".console"]),
        };
        // Two of one name, such as one kernel twice.
        let other = names::numbered(&place).find(|p| !places.contains(p));
        places.push(other.unwrap_or(place));
    }
    places
}

/// Where the console of a run goes.
fn console_file(run: &Path) -> PathBuf {
    input::sibling(run, ".console")
}

/// Writes the run and, beside it, the console.
pub(super) fn keep(path: &Path, made: &Made, existing: Existing) -> Result<(), Failure> {
    if path == Path::new("-") {
        let text = String::from_utf8(lab_bench::bytes(&made.run)?).map_err(Failure::cannot)?;
        return say::answer(&text);
    }
    keep_run(path, &made.run, existing)?;
    input::write_bytes(&console_file(path), &made.console, existing)
}
