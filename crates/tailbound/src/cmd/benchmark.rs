// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure benchmark`: what benchmarks cost, without a latency measurement.

use std::path::Path;
use std::process::ExitCode;
use tailbound_sys::new_file::Existing;

use tailbound_core::plan::RunConfig;
use tailbound_host::Root;
use tailbound_report::decide::benchmarks;
use tailbound_run::{Output, Request, Session, resolve};
use tailbound_sys::signal::Signals;

use crate::cli_color::ColorChoice;
use crate::cli_decide::MeasureBenchmarkArgs;
use crate::live::Live;
use crate::machine::{self, WhileHeld};
use crate::say::{self, Failure};

/// `tailbound measure benchmark`
pub(crate) fn measure(args: &MeasureBenchmarkArgs) -> Result<ExitCode, Failure> {
    let words = RunConfig {
        work: Some(args.benchmarks.clone()),
        repeat: args.repeat,
        ..RunConfig::default()
    };
    let machine = machine::share(WhileHeld::Refuse)?;
    let root = Root::real();
    let mut plan = resolve(&Request { config: words, bare: true }, &root)?.plan;
    // Nothing is measured but the benchmarks.
    (plan.probe, plan.activations, plan.warm_up_ns) = ("work".to_owned(), 0, 0);
    let output = match &args.out {
        Some(path) => Output::open(path, &plan, Existing::replaced_if(args.force))?,
        None => Output::none(),
    };
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut live = Live::new(args.quiet, ColorChoice::Never);
    let exe = std::env::current_exe().map_err(|e| {
        Failure::cannot(format!(
            "benchmarks are started from this program, whose path is unknown: {e}"
        ))
    })?;
    let session = Session {
        refresh_ms: live.refresh_ms(),
        machine: Some(machine),
        ..Session::of_plan(plan, root, exe)
    };
    let made =
        tailbound_run::measure_benchmarks(&session, output, &signals, &mut |view| live.show(&view));
    live.clear();
    let (run, _) = made?;
    if args.out.as_deref() != Some(Path::new("-")) {
        if args.json {
            say::answer_json(&benchmarks::json(&run))?;
        } else {
            say::answer(&benchmarks::text(&run))?;
        }
    }
    let whole = run.findings.iter().all(|f| !f.id.starts_with("work"));
    Ok(ExitCode::from(if whole { 0 } else { 3 }))
}
