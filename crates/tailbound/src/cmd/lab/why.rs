// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab why`: from when on a late sample was inevitable, and what happened there.

use std::process::ExitCode;

use tailbound_core::why::WhyRecord;
use tailbound_lab::progress::TaskListener;
use tailbound_search::why::{Base, GivenRun, WhyQuestion, debug_at, search};

use super::bench;
use crate::cli_lab_why::LabWhyArgs;
use crate::input::{self, Existing};
use crate::say::{self, Failure, Form};

/// Interrupted: what was found so far was told.
const INTERRUPTED: u8 = 5;

/// `tailbound lab why`
pub(super) fn why(args: &LabWhyArgs) -> Result<ExitCode, Failure> {
    if let Some(page) = &args.html {
        input::may_write(page, Existing::replaced_if(args.force))?;
    }
    if args.variations == 0 && args.seeds == Some(0) {
        return Err(Failure::usage("--variations 0 --seeds 0: nothing is left to vary"));
    }
    let (run, bytes) = tailbound_files::lab_run(&args.run)?;
    let given = GivenRun::of(&args.run, run, bytes)?;
    let question = WhyQuestion {
        activation: args.activation,
        variations: args.variations,
        seeds: args.seeds,
        late_percent: args.late,
        target: args.target.clone(),
    };
    let bench = bench::open(&args.host)?;
    let shown = &*bench.tasks(1, None);
    let mut base = Base::make(&bench, &question, given, shown)?;
    if let Some(since_start_ns) = args.at {
        return debug(args, &base, since_start_ns, shown);
    }
    let found = search(&mut base, &question, shown)?;
    shown.clear();
    answer(args, &base, &found)?;
    if !found.is_whole {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if args.gdb {
        let Some(instant) = &found.inevitable else {
            return Err(Failure::cannot("there is no instant to stop the guest at"));
        };
        return debug(args, &base, instant.at_ns, shown);
    }
    Ok(ExitCode::SUCCESS)
}

/// Stops the guest at an instant; an answer for scripts is on standard output already, or is none.
fn debug(
    args: &LabWhyArgs,
    base: &Base<'_>,
    since_start_ns: i64,
    shown: &dyn TaskListener,
) -> Result<ExitCode, Failure> {
    let at_ns = base.instant(since_start_ns)?;
    debug_at(base, at_ns, shown, &mut |text| {
        if args.host.json {
            say::note(text);
            return Ok(());
        }
        Ok(say::answer(text)?)
    })?;
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &LabWhyArgs, base: &Base<'_>, found: &WhyRecord) -> Result<(), Failure> {
    if let Some(page) = &args.html {
        let html = tailbound_report::why::html(found, base.kernel());
        input::write(page, &html, Existing::replaced_if(args.force))?;
    }
    let form = Form::of(args.host.json, args.host.color.when);
    let json = || tailbound_report::why::json(found, base.kernel());
    form.answer(json, |style| tailbound_report::why::text(found, style))
}
