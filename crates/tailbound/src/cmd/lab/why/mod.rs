// SPDX-License-Identifier: MIT OR Apache-2.0
//! `lab why`: from when on a late sample was inevitable, and what happened there.
//!
//! Units: ns of the guest's virtual time.
//!
//! ```text
//! base.rs     the run again, watched: the sample, and that the run is the same
//! control.rs  the run varied at an instant; by nothing it is the same
//! search.rs   instants and their variations, on all cores
//! debug.rs    the guest stopped at the instant, for gdb
//! ```

mod base;
mod control;
mod debug;
mod search;

use std::process::ExitCode;

use tailbound_core::why::WhyRecord;

use super::cells::Bench;
use super::progress::Shown;
use crate::cli_lab_why::LabWhyArgs;
use crate::input;
use crate::say::{self, Failure};

use base::Base;

/// Interrupted: what was found so far was told.
const INTERRUPTED: u8 = 5;

/// `tailbound lab why`
pub(super) fn why(args: &LabWhyArgs) -> Result<ExitCode, Failure> {
    if let Some(page) = &args.html {
        input::may_write(page, args.force)?;
    }
    if args.variations == 0 && args.seeds == Some(0) {
        return Err(Failure::usage("--variations 0 --seeds 0: nothing is left to vary"));
    }
    let run = base::run(&args.run)?;
    let bench = Bench::open(&args.host)?;
    let shown = Shown::new(args.host.quiet, 1);
    let mut base = Base::make(&bench, args, run, &shown)?;
    if let Some(since_start_ns) = args.at {
        debug::at(&base, base.instant(since_start_ns)?, args.host.json, &shown)?;
        return Ok(ExitCode::SUCCESS);
    }
    let found = search::search(&mut base, args, &shown)?;
    shown.clear();
    answer(args, &base, &found)?;
    if !found.is_whole {
        return Ok(ExitCode::from(INTERRUPTED));
    }
    if args.gdb {
        let Some(instant) = &found.inevitable else {
            return Err(Failure::cannot("there is no instant to stop the guest at"));
        };
        debug::at(&base, base.instant(instant.at_ns)?, args.host.json, &shown)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn answer(args: &LabWhyArgs, base: &Base<'_>, found: &WhyRecord) -> Result<(), Failure> {
    if let Some(page) = &args.html {
        let html = tailbound_report::why::html(found, base.kernel());
        input::write(page, &html, args.force)?;
    }
    if args.host.json {
        return say::answer_json(&tailbound_report::why::json(found, base.kernel()));
    }
    let style = say::style(&args.host.color.when);
    say::answer_in(&tailbound_report::why::text(found, style), style)
}
