// SPDX-License-Identifier: MIT OR Apache-2.0
//! A measurement with any source, and the run of it.

use std::sync::atomic::AtomicBool;

use tailbound_box::TimeBase;
use tailbound_box::pico::Streaming;
use tailbound_box::stimulus::{
    StimulusPlan, StimulusProgress, StimulusRecord, StimulusSample, StimulusSink,
};
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

/// A recorder, and who keeps copies of the run while it is made.
struct CopiedRecorder<'a, P> {
    recorder: StimulusRecorder<P>,
    facts: &'a RunFacts,
    keep: &'a mut dyn FnMut(Run),
}

impl<P: FnMut(&StimulusProgress)> StimulusSink for CopiedRecorder<'_, P> {
    fn begin(&mut self, tick: TimeBase, channels: u8) {
        self.recorder.begin(tick, channels);
    }
    fn sample(&mut self, channel: u8, sample: StimulusSample) {
        self.recorder.sample(channel, sample);
    }
    fn progress(&mut self, now: &StimulusProgress) {
        self.recorder.progress(now);
    }
    fn so_far(&mut self, record: &StimulusRecord) {
        // What cannot be a run yet has no copy.
        if let Ok(run) = self.recorder.so_far(record, self.facts) {
            (self.keep)(run);
        }
    }
}

/// Measures until an ending signal comes, and makes a run of it; `keep` gets what it is by then, after a second and
/// then at least once a minute, where the source can tell.
///
/// # Errors
/// As [`measure`].
pub fn run(
    via: &Via,
    plan: &StimulusPlan,
    streaming: Streaming,
    facts: &RunFacts,
    progress: Option<ProgressWriter>,
    keep: &mut dyn FnMut(Run),
) -> Result<Run, StimulusError> {
    let _signals = Signals::block_and_open()?;
    let mut line = ProgressLine::new(progress, plan.duration_ns);
    let recorder = StimulusRecorder::new(|now: &StimulusProgress| line.show(now));
    let mut copied = CopiedRecorder { recorder, facts, keep };
    let measured = measure(via, plan, streaming, &mut copied, &AtomicBool::new(false));
    let run = measured.and_then(|record| {
        copied.recorder.finish(&record, facts).map_err(|e| StimulusError::Impossible(e.to_string()))
    });
    line.clear();
    run
}
