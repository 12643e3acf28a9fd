// SPDX-License-Identifier: MIT OR Apache-2.0
//! `tailbound box run`, `box join`, `box check`, `box flash`, `box latmon`: pulses from outside, and the box that sends them.
//!
//! Not here: sources (`tailbound-stimulus`).

use std::path::Path;
use std::process::ExitCode;

use tailbound_stimulus::flash::{self as firmware, FlashTarget};
use tailbound_stimulus::{Answerer, StimulusPlan, Streaming, Via};

use super::{import, run as runs};
use crate::cli::ImportArgs;
use crate::cli_box::{BoxFlashArgs, BoxJoinArgs, BoxLatmonArgs, BoxRunArgs, ViaArgs};
use crate::cli_color::ColorChoice;
use crate::flags;
use crate::input::{self, Existing};
use crate::names;
use crate::say::{self, Failure, Form};

/// `tailbound box run`
pub(super) fn run(args: &BoxRunArgs) -> Result<ExitCode, Failure> {
    let via: Via = args.source.via.parse().map_err(flags::refused("--via"))?;
    let as_import = |file| ImportArgs {
        file,
        stimulus: args.answer.as_ref().map(|_| args.stimulus.clone()),
        answer: args.answer.clone(),
        edge: "toggle".to_owned(),
        deadline: args.deadline.clone(),
        out: args.out.clone(),
        force: args.force,
        json: args.source.json,
        ..ImportArgs::default()
    };
    if let Via::Capture(file) = via {
        return import::import(&as_import(file));
    }
    let deadline_ns = flags::given_time("--deadline", args.deadline.as_ref())?;
    let plan = StimulusPlan {
        period_ns: flags::positive_time("--interval", &args.interval)?,
        duration_ns: flags::positive_time("--duration", &args.duration)?,
        channels: args.source.channels,
        shape: args.stimulus.parse().map_err(flags::refused("--stimulus"))?,
        spacing: args.spacing.parse().map_err(flags::refused("--spacing"))?,
        deadline_ns,
    };
    let facts = tailbound_stimulus::run_facts(deadline_ns);
    let name = format!("{}.tailbound.jsonl", facts.file_name());
    let free = (!args.source.json).then(|| names::free(Path::new(&name), &[]));
    let out = args.out.clone().or(free);
    if let Some(out) = &out {
        input::may_write(out, Existing::replaced_if(args.force))?;
    }
    // So that a kill leaves what was measured. A file that cannot be written is told at the end.
    let mut keep = |mut run| {
        tailbound_stats::judge(&mut run);
        let file = out.as_deref().filter(|out| *out != Path::new("-"));
        let _ = file.map(|file| import::write(file, &run, Existing::Replace));
    };
    let streaming = if args.no_samples { Streaming::Cells } else { Streaming::Samples };
    let answerer = args.answer.as_deref().map(|place| {
        let place = place.parse().map_err(flags::refused("--answer"))?;
        let beside = out.as_deref().unwrap_or(Path::new(&name));
        let file = input::sibling(beside, ".answers.tailbound.jsonl");
        let existing = Existing::replaced_if(args.force);
        Ok::<_, Failure>(Answerer::begin(&place, &args.words, &plan, &file, existing)?)
    });
    let answerer = answerer.transpose()?;
    let progress = say::progress(args.quiet);
    let mut run = tailbound_stimulus::run(&via, &plan, streaming, &facts, progress, &mut keep)?;
    tailbound_stats::judge(&mut run);
    keep(run.clone());
    let answers = answerer.map(|answerer| answerer.finish(&mut run)).transpose()?;
    let told = ImportArgs { out, force: true, ..as_import(facts.file_name().into()) };
    import::written(&told, &run, String::new())?;
    if let Some(answers) = answers {
        let text = format!("Answers   {}", answers.display());
        if args.source.json { say::note(&text) } else { say::answer(&text)? }
    }
    Ok(runs::status(&run))
}

/// `tailbound box join`
pub(super) fn join(args: &BoxJoinArgs) -> Result<ExitCode, Failure> {
    let (mut run, answers) = (input::run(&args.run)?, input::run(&args.answers)?);
    tailbound_stimulus::join(&mut run, &answers);
    let (file, out) = (args.run.clone(), args.out.clone());
    let told = ImportArgs { file, out, ..ImportArgs::default() };
    import::written(&told, &run, String::new())?;
    Ok(runs::status(&run))
}

/// `tailbound box check`
pub(super) fn check(args: &ViaArgs) -> Result<ExitCode, Failure> {
    let via: Via = args.via.parse().map_err(flags::refused("--via"))?;
    let report = tailbound_stimulus::check(&via, args.channels)?;
    Form::of(args.json, ColorChoice::Never).answer(
        || tailbound_stimulus::check_json(&report),
        |_| tailbound_stimulus::check_text(&report),
    )?;
    Ok(ExitCode::from(u8::from(!report.refusals().is_empty())))
}

/// `tailbound box flash`
pub(super) fn flash(args: &BoxFlashArgs) -> Result<ExitCode, Failure> {
    let (chip, drive, file) = (args.chip.as_deref(), args.to.as_deref(), args.out.as_deref());
    say::answer(&firmware::flash(FlashTarget { chip, drive, file })?)?;
    Ok(ExitCode::SUCCESS)
}

/// `tailbound box latmon`
pub(super) fn latmon(args: &BoxLatmonArgs) -> Result<ExitCode, Failure> {
    let via: Via = args.via.parse().map_err(flags::refused("--via"))?;
    tailbound_stimulus::serve_latmon(args.listen, via, say::note)?;
    Ok(ExitCode::SUCCESS)
}
