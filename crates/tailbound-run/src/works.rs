// SPDX-License-Identifier: MIT OR Apache-2.0
//! Works: what the machine costs in throughput, measured after its latencies and never beside
//! them.
//!
//! Context: COLD. Units: ns. Works take turns, all of them once and then all of them again, so
//! that drift of the machine meets each alike.
//! Not here: what a work is (`tailbound-load`), what its times say (`tailbound-stats`).

use std::path::PathBuf;

use tailbound_core::EndReason;
use tailbound_core::Run;
use tailbound_core::finding::{Finding, Impact};
use tailbound_core::record::{End, Line, WorkRecord};
use tailbound_load::StartOptions;
use tailbound_sys::signal::{self, Signals};

use crate::error::RunError;
use crate::journal::Journal;
use crate::output::Output;
use crate::session::Session;
use crate::view::View;

/// Does every work of the plan; what fails or is ended is a finding.
pub(crate) fn all(
    session: &Session,
    journal: &mut Journal,
    signals: &Signals,
    show: &mut dyn FnMut(View<'_>),
) {
    let Some(plan) = &session.plan.work else { return };
    let how = StartOptions::new(&session.exe);
    for repetition in 1..=plan.repeat {
        for spec in &plan.works {
            show(View::Note(&format!("work {spec}, {repetition} of {}", plan.repeat)));
            let mut ended_by = None;
            let done = tailbound_load::do_work(spec, repetition, &how, &mut || {
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
                Err(e) => WorkRecord {
                    work: spec.name.clone(),
                    spec: spec.to_string(),
                    repetition,
                    failed: Some(e.to_string()),
                    ..WorkRecord::default()
                },
            };
            if let Some(reason) = &record.failed {
                journal.finding(
                    Finding::new(
                        &format!("work-failed-{}", record.work),
                        Impact::Notice,
                        format!("work {spec} failed: {reason}"),
                    )
                    .meaning("This repetition has no times; the latencies are not touched by it."),
                );
            }
            journal.line(Line::Work(record));
            journal.flush();
        }
    }
}

/// Says that no work was done.
pub(crate) fn none(session: &Session, journal: &mut Journal) {
    if session.plan.work.is_some() {
        journal.finding(cut_short("the measurement was ended before the works began"));
    }
}

fn cut_short(why: &str) -> Finding {
    Finding::new("works-cut-short", Impact::Notice, format!("not every work was done: {why}"))
        .meaning("What a system costs is told by those that came to their end alone.")
}

/// Does the works of the plan and measures nothing else. Yields the run and where its file is.
///
/// # Errors
/// [`RunError`]: no work in the plan, or the run file had to go elsewhere.
pub fn measure_works(
    session: &Session,
    output: Output,
    signals: &Signals,
    show: &mut dyn FnMut(View<'_>),
) -> Result<(Run, Option<PathBuf>), RunError> {
    if session.plan.work.is_none() {
        return Err(RunError::Usage("no work: name one, such as `messages`".to_owned()));
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
