// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement with any source, and the run of it.

use std::sync::atomic::AtomicBool;

use tailbound_box::pico::Streaming;
use tailbound_box::stimulus::{StimulusPlan, StimulusProgress, StimulusRecord, StimulusSink};
use tailbound_core::Run;
use tailbound_core::progress_writer::ProgressWriter;
use tailbound_import::stimulus::{RunFacts, StimulusRecorder};

use tailbound_sys::signal::Signals;

use crate::error::StimulusError;
use crate::pico;
use crate::progress_line::ProgressLine;
use crate::via::Via;

/// Measures, and hands every sample to the sink, until an ending signal is pending or `stop` is set.
///
/// # Errors
/// Nothing was measured. What ends a measurement that had begun is in its record.
pub fn measure(
    via: &Via,
    plan: &StimulusPlan,
    streaming: Streaming,
    sink: &mut dyn StimulusSink,
    stop: &AtomicBool,
) -> Result<StimulusRecord, StimulusError> {
    match via {
        Via::Pico(port) => pico::measure(port, plan, streaming, sink, stop),
        Via::Latmon(host) => host.measure(plan, sink, stop),
        Via::Linux(sender) => sender.measure(plan, sink, stop),
        Via::Capture(file) => Err(StimulusError::Impossible(format!(
            "{} is measured already: use `tailbound import`",
            file.display()
        ))),
    }
}

/// Measures until an ending signal comes, and makes a run of it.
///
/// # Errors
/// As [`measure`].
pub fn run(
    via: &Via,
    plan: &StimulusPlan,
    streaming: Streaming,
    facts: &RunFacts,
    progress: Option<ProgressWriter>,
) -> Result<Run, StimulusError> {
    let _signals = Signals::block_and_open()?;
    let mut line = ProgressLine::new(progress, plan.duration_ns);
    let mut recorder = StimulusRecorder::new(|now: &StimulusProgress| line.show(now));
    let measured = measure(via, plan, streaming, &mut recorder, &AtomicBool::new(false));
    let run = measured.and_then(|record| {
        recorder.finish(&record, facts).map_err(|e| StimulusError::Impossible(e.to_string()))
    });
    line.clear();
    run
}
