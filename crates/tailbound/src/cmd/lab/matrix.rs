// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab matrix`: every system with every load, resumable.
//!
//! A cell whose file holds just what would be made is not made again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use tailbound_core::Run;
use tailbound_core::lab::LabRecord;
use tailbound_lab::{Labelled, Request};
use tailbound_report::matrix;

use super::cells::{self, Bench};
use super::{request, run, watching};
use crate::cli_lab::LabMatrixArgs;
use crate::input;
use crate::names;
use crate::say::{self, Failure};

/// Where nobody names a folder.
const FOLDER: &str = "matrix";

/// `tailbound lab matrix`
pub(super) fn matrix(args: &LabMatrixArgs) -> Result<ExitCode, Failure> {
    let mut words = words(args)?;
    if args.paths {
        words.campaign.raw = Some(true);
        watching::possible(&words)?;
    }
    let words = words;
    let bench = Bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    words.draft(&bench.store)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    bench.note_unchecked(&labelled);
    let more = request::more(&words, &args.probe);
    let records = labelled
        .iter()
        .map(|l| l.cell.prepare(&emulator).map(|prepared| prepared.record))
        .collect::<Result<Vec<_>, _>>()?;
    let wanted = Wanted { labelled: &labelled, records: &records, paths: args.paths };
    let look = |out: &Path| look(out, &wanted, &more);
    let Folder { out, files, mut runs, other } = match &args.out {
        Some(out) => look(out)?,
        // A folder that holds other words is not the one of these.
        None => {
            let mut all = names::numbered(Path::new(FOLDER));
            loop {
                let folder = look(&all.next().ok_or_else(Failure::bug)?)?;
                if folder.other.is_none() || args.force {
                    break folder;
                }
            }
        }
    };
    if let (Some(path), false) = (other, args.force) {
        return Err(Failure::usage(format!(
            "{} holds a run made with different options or by another version: choose another --out, or give --force",
            path.display()
        )));
    }
    let open: Vec<usize> =
        (0..).zip(&runs).filter(|(_, r)| r.is_none()).map(|(at, _)| at).collect();
    let kept = labelled.len() - open.len();
    if kept > 0 && !args.host.quiet {
        say::note(&format!("{kept} of {} cells were made before", labelled.len()));
    }
    let mut broken = None;
    let all: Vec<_> =
        open.iter().filter_map(|at| labelled.get(*at)).map(|l| l.cell.clone()).collect();
    let mut done = |nth: usize, made: Result<tailbound_lab::Made, tailbound_lab::LabError>| {
        let Some(at) = open.get(nth).copied() else { return String::new() };
        let (Some(l), Some(path)) = (labelled.get(at), files.get(at)) else { return String::new() };
        let (run, note) = match made {
            Ok(made) => {
                let note = cells::summary(&l.title(), &made);
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
    };
    if args.paths {
        watching::all(&bench, &all, &emulator, args.host.quiet, &mut done)?;
    } else {
        bench.make(&all, &emulator, &mut done)?;
    }
    if let Some(failure) = broken {
        return Err(failure);
    }
    let made = run::as_cells(&labelled, runs, &files);
    show(args, &out, &made)?;
    Ok(run::status(&made))
}

/// What is in a folder of the cells that are asked for.
struct Folder {
    out: PathBuf,
    files: Vec<PathBuf>,
    runs: Vec<Option<Result<Run, String>>>,
    /// A file of one of them that holds something else.
    other: Option<PathBuf>,
}

/// What a folder is to hold.
struct Wanted<'a> {
    labelled: &'a [Labelled],
    records: &'a [LabRecord],
    /// Each run with what was watched.
    paths: bool,
}

fn look(out: &Path, wanted: &Wanted<'_>, more: &str) -> Result<Folder, Failure> {
    let place = |l: &Labelled| out.join(format!("{}{more}.tailbound.jsonl", l.stem()));
    let files: Vec<PathBuf> = wanted.labelled.iter().map(place).collect();
    let (mut runs, mut other) = (Vec::new(), None);
    for (path, record) in files.iter().zip(wanted.records) {
        let there = path.exists().then(|| input::run(path)).transpose()?;
        let same = there.as_ref().is_some_and(|r| r.header.lab.as_deref() == Some(record));
        if there.is_some() && !same {
            other.get_or_insert_with(|| path.clone());
        }
        let whole = |r: &Run| same && (r.paths.is_some() || !wanted.paths);
        runs.push(there.filter(whole).map(Ok));
    }
    Ok(Folder { out: out.to_owned(), files, runs, other })
}

/// Pictures, report and answer.
fn show(args: &LabMatrixArgs, out: &Path, made: &[matrix::Cell]) -> Result<(), Failure> {
    for (kind, file) in &args.svg {
        let svg = matrix::svg(made, kind).ok_or_else(|| {
            Failure::cannot(format!("{}: nothing was measured to draw", file.display()))
        })?;
        input::write(file, &svg, true)?;
    }
    let report = out.join("matrix.html");
    input::write(&report, &matrix::html(made), true)?;
    if args.host.json {
        say::answer_json(&matrix::json(made))?;
    } else {
        let style = say::style(&args.host.color.when);
        say::answer_in(&matrix::text(made, style), style)?;
        say::answer(&format!("\nRun files  {}\nReport     {}", out.display(), report.display()))?;
    }
    Ok(())
}

fn words(args: &LabMatrixArgs) -> Result<Request, Failure> {
    let mut words = match &args.file {
        None => Request::default(),
        Some(path) => {
            let at = |e: &dyn std::fmt::Display| Failure::usage(format!("{}: {e}", path.display()));
            let text = tailbound_sys::given::text(path, tailbound_core::limits::TEXT_BYTES_MAX)
                .map_err(|e| at(&e))?;
            Request::parse(&text).map_err(|e| at(&e))?
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
    request::lay(&mut words, &args.guest, &args.probe, &args.host)?;
    if !args.svg.is_empty() && words.loads.len() > 1 {
        return Err(Failure::usage(format!(
            "--svg draws one load, and there are {}: choose it with --loads",
            words.loads.len()
        )));
    }
    Ok(words)
}
