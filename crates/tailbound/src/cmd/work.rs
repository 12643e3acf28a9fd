// SPDX-License-Identifier: MIT OR Apache-2.0
//! `measure work`: what works cost, without a latency measurement.
//!
//! Context: COLD.

use std::path::Path;
use std::process::ExitCode;

use tailbound_core::plan::RunConfig;
use tailbound_host::Root;
use tailbound_report::decide::works;
use tailbound_run::{Output, Request, Session, resolve};
use tailbound_sys::signal::Signals;

use crate::cli_decide::MeasureWorkArgs;
use crate::live::Live;
use crate::say::{self, Failure};

/// `tailbound measure work`
pub(crate) fn measure(args: &MeasureWorkArgs) -> Result<ExitCode, Failure> {
    let words =
        RunConfig { work: Some(args.works.clone()), repeat: args.repeat, ..RunConfig::default() };
    let root = Root::real();
    let mut plan = resolve(&Request { words, bare: true, ..Request::default() }, &root)?.plan;
    // Nothing is measured but the works.
    (plan.probe, plan.activations, plan.warm_up_ns) = ("work".to_owned(), 0, 0);
    let output = match &args.out {
        Some(path) => Output::open(path, &plan, args.force)?,
        None => Output::none(),
    };
    let signals = Signals::block_and_open().map_err(Failure::cannot)?;
    let mut live = Live::new(args.quiet, "never");
    let exe = std::env::current_exe().map_err(|e| {
        Failure::cannot(format!("works are started from this program, whose path is unknown: {e}"))
    })?;
    let session = Session {
        plan,
        findings: Vec::new(),
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        root,
        exe,
        loads_optional: false,
        inventory_late: false,
        refresh_ms: live.refresh_ms(),
        round: None,
    };
    let made =
        tailbound_run::measure_works(&session, output, &signals, &mut |view| live.show(&view));
    live.clear();
    let (run, _) = made?;
    if args.out.as_deref() != Some(Path::new("-")) {
        if args.json {
            say::answer_json(&works::json(&run))?;
        } else {
            say::answer(&works::text(&run))?;
        }
    }
    let whole = run.findings.iter().all(|f| !f.id.starts_with("work"));
    Ok(ExitCode::from(if whole { 0 } else { 3 }))
}
