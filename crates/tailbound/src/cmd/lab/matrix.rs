// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab matrix`: every system with every load, resumable.

use std::path::Path;
use std::process::ExitCode;

use tailbound_lab::Request;
use tailbound_lab::matrix::{Cells, Matrix};
use tailbound_lab::watching::{self, Watching};
use tailbound_report::matrix;
use tailbound_sys::new_file::Existing;

use super::{bench, request, run};
use crate::cli_lab::LabMatrixArgs;
use crate::input;
use crate::say::{self, Failure, Form};

/// `tailbound lab matrix`
pub(super) fn matrix(args: &LabMatrixArgs) -> Result<ExitCode, Failure> {
    let mut words = words(args)?;
    if args.paths {
        words.campaign.raw = Some(true);
        watching::possible(&words)?;
    }
    let words = words;
    let bench = bench::open(&args.host)?;
    let emulator = bench.ready(&words)?;
    words.draft(&bench.store)?;
    let labelled = words.cells(&mut |name, arch| bench.obtain(name, arch))?;
    bench.note_unchecked(&labelled);
    let more = request::more(&words, &args.probe);
    let watching = if args.paths { Watching::Paths } else { Watching::Off };
    let cells = Cells { bench: &bench, emulator: &emulator, labelled: &labelled, watching };
    let wanted = Matrix::of(cells, &more)?;
    let existing = Existing::replaced_if(args.force);
    let mut folder = wanted.folder(args.out.as_deref(), existing, &|path| Ok(input::run(path)?))?;
    wanted.make(&mut folder)?;
    let made = run::as_cells(&labelled, folder.runs, &folder.files);
    show(args, &folder.out, &made)?;
    Ok(ExitCode::from(matrix::exit_status(&made)))
}

/// Pictures, report and answer.
fn show(args: &LabMatrixArgs, out: &Path, made: &[matrix::Cell]) -> Result<(), Failure> {
    for (kind, file) in &args.svg {
        let svg = matrix::svg(made, kind).ok_or_else(|| {
            Failure::cannot(format!("{}: nothing was measured to draw", file.display()))
        })?;
        input::write(file, &svg, Existing::Replace)?;
    }
    let report = out.join("matrix.html");
    input::write(&report, &matrix::html(made), Existing::Replace)?;
    let form = Form::of(args.host.json, args.host.color.when);
    form.answer(|| matrix::json(made), |style| matrix::text(made, style))?;
    if !form.is_json() {
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
