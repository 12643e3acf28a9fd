// SPDX-License-Identifier: MIT OR Apache-2.0
//! `load`: the bare loads, beside whatever else measures.

use std::process::ExitCode;
use std::time::Duration;

use tailbound_core::Spec;
use tailbound_load::{Loads, StartOptions};
use tailbound_sys::signal::Signals;

use crate::cli::LoadArgs;
use crate::flags;
use crate::say::{self, Failure};

/// `tailbound load`
pub(crate) fn load(args: &LoadArgs) -> Result<ExitCode, Failure> {
    let mut specs = Vec::new();
    for text in args.names.iter().flat_map(|n| tailbound_core::split_loads(n)) {
        let spec: Spec = text.parse().map_err(Failure::usage)?;
        tailbound_load::check(&spec).map_err(Failure::usage)?;
        specs.push(spec);
    }
    let length = flags::given_time("--duration", args.duration.as_ref())?;
    let length = length.map(|ns| Duration::from_nanos(u64::try_from(ns).unwrap_or(0)));
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let exe =
        std::env::current_exe().map_err(|e| Failure::cannot(format!("own path unknown: {e}")))?;
    let mut loads = Loads::start(&specs, &StartOptions::new(&exe)).map_err(Failure::cannot)?;
    loads.ready(Duration::from_secs(10)).map_err(Failure::cannot)?;
    let totals = loads.run_alone(length, &signals, &mut |event| {
        if !args.quiet {
            say::note(&event.text());
        }
    });
    if args.json {
        say::answer_json(&totals.json())?;
    } else {
        totals.lines().iter().try_for_each(|line| say::answer(line))?;
    }
    Ok(ExitCode::from(if totals.has_failed() { 3 } else { 0 }))
}
