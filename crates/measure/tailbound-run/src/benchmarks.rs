// SPDX-License-Identifier: MIT OR Apache-2.0
//! Benchmarks: what the machine costs in throughput, measured after its latencies and never beside
//! them.
//!
//! Units: ns. Benchmarks take turns, all of them once and then all of them again, so
//! that drift of the machine meets each alike.
//! Not here: what a benchmark is (`tailbound-load`), what its times say (`tailbound-stats`).

use std::path::PathBuf;

use tailbound_core::EndReason;
use tailbound_core::Run;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::record::{BenchmarkRecord, End, Line};
use tailbound_load::StartOptions;
use tailbound_sys::signal::{self, Signals};

use crate::error::RunError;
use crate::journal::Journal;
use crate::option_error::OptionError;
use crate::output::Output;
use crate::session::Session;
use crate::view::View;
use crate::world::Interruptions;

/// Runs every benchmark of the plan; one that fails or is ended is a finding.
pub(crate) fn all(
    session: &Session,
    journal: &mut Journal,
    signals: &impl Interruptions,
    show: &mut dyn FnMut(View<'_>),
) {
    let Some(plan) = &session.plan.work else { return };
    let how = StartOptions::new(&session.exe);
    for repetition in 1..=plan.repeat {
        for spec in &plan.benchmarks {
            show(View::Note(&format!("benchmark {spec}, {repetition} of {}", plan.repeat)));
            let mut ended_by = None;
            let done = tailbound_load::run_benchmark(spec, repetition, &how, &mut || {
                ended_by = signals.wait(0);
                ended_by.is_some()
            });
            let record = match done {
                Ok(Some(record)) => record,
                Ok(None) => {
                    let by = ended_by.map_or("a signal", signal::name);
                    journal.finding(cut_short(&format!("{spec}, {repetition}, was ended by {by}")));
                    return;
                }
                Err(e) => BenchmarkRecord {
                    work: spec.name.clone(),
                    spec: spec.to_string(),
                    repetition,
                    failed: Some(e.to_string()),
                    ..BenchmarkRecord::default()
                },
            };
            if let Some(reason) = &record.failed {
                journal.finding(Finding::listed(
                    &format!("work-failed-{}", record.work),
                    Impact::Notice,
                    format!("benchmark {spec} failed: {reason}"),
                ));
            }
            journal.line(Line::Benchmark(record));
            journal.flush();
        }
    }
}

/// Adds the finding that no benchmark was run.
pub(crate) fn none(session: &Session, journal: &mut Journal) {
    if session.plan.work.is_some() {
        journal.finding(cut_short("the measurement was ended before the benchmarks began"));
    }
}

fn cut_short(why: &str) -> Finding {
    Finding::listed(
        "works-cut-short",
        Impact::Notice,
        format!("not every benchmark was run: {why}"),
    )
}

/// Runs the benchmarks of the plan and measures nothing else. Yields the run and where its file is.
///
/// # Errors
/// [`RunError`]: no benchmark in the plan, or the run file had to go elsewhere.
pub fn measure_benchmarks(
    session: &Session,
    output: Output,
    signals: &Signals,
    show: &mut dyn FnMut(View<'_>),
) -> Result<(Run, Option<PathBuf>), RunError> {
    if session.plan.work.is_none() {
        return Err(OptionError::NoBenchmark.into());
    }
    let mut journal = Journal::new(output, session.header());
    journal.run.header.machine = session.inventory();
    journal.begin();
    journal.place();
    all(session, &mut journal, signals, show);
    let cut = journal.run.findings.iter().any(|f| f.id == "works-cut-short");
    let reason = if cut { EndReason::Interrupted } else { EndReason::Complete };
    journal.run.end = Some(End { reason, measured_ns: 0, lines: 0 });
    journal.end()
}
