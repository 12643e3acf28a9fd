// SPDX-License-Identifier: MIT OR Apache-2.0
//! Takes samples for a while, until the time or the process is over, or a signal comes.

use std::time::{Duration, Instant};

use tailbound_host::Root;
use tailbound_sys::SysError;
use tailbound_sys::perf::Source;
use tailbound_sys::signal::Signals;

use super::{Moment, Sampler};

/// From one look at the samples to the next.
const LOOK_MS: i32 = 50;
/// Looks from one word about the progress to the next.
const TELL_EVERY: u32 = 20;

/// What is sampled.
#[derive(Clone, Debug)]
pub struct SamplingRequest<'a> {
    /// The CPUs.
    pub cpus: &'a [u32],
    /// Samples a second of each.
    pub frequency_hz: u64,
    /// SampleOwner samples are asked about; it is over when this process is.
    pub pid: Option<u32>,
    /// Its threads of these names alone, or all.
    pub comm: &'a [String],
    /// How long.
    pub length: Duration,
}

/// How far it is.
#[derive(Clone, Copy, Debug)]
pub enum SamplingStage {
    /// Samples are taken.
    Samples {
        /// So many are there.
        taken: u64,
        /// So long it still takes.
        left: Duration,
    },
    /// All are taken; functions of programs get their names.
    Names,
}

/// How the samples were taken.
#[derive(Clone, Debug)]
pub struct SamplingEnd {
    /// What made them.
    pub source: &'static str,
    /// How long it took.
    pub seconds: f64,
    /// Samples that were overwritten before they were read.
    pub lost: u64,
    /// What a reader must know.
    pub notes: Vec<String>,
}

/// Samples: `each` gets the moments, `stage` hears how far it is.
///
/// # Errors
/// Not allowed, or the kernel has no such events.
pub fn sample(
    root: Root,
    request: &SamplingRequest<'_>,
    signals: &Signals,
    stage: &mut dyn FnMut(SamplingStage),
    each: &mut dyn FnMut(&Moment<'_>),
) -> Result<SamplingEnd, SysError> {
    let process = request.pid.map(|pid| format!("/proc/{pid}"));
    let there = root.clone();
    let mut sampler = Sampler::begin(root, request)?;
    let mut notes = sampler.take_notes();
    sampler.start()?;
    let begin = Instant::now();
    for look in 1u32.. {
        let left = request.length.saturating_sub(begin.elapsed());
        let wait = i32::try_from(left.as_millis()).unwrap_or(LOOK_MS).min(LOOK_MS);
        if left.is_zero() || signals.wait(wait.max(1)).is_some() {
            break;
        }
        sampler.poll(each);
        if process.as_ref().is_some_and(|p| !there.exists(p)) {
            notes.push("the process ended".to_owned());
            break;
        }
        if look.is_multiple_of(TELL_EVERY) {
            stage(SamplingStage::Samples { taken: sampler.taken(), left });
        }
    }
    let seconds = begin.elapsed().as_secs_f64();
    drop(sampler.stop());
    sampler.poll(each);
    stage(SamplingStage::Names);
    sampler.finish(each);
    notes.append(&mut sampler.take_notes());
    let source = match sampler.source() {
        Source::Cycles => "cycles",
        Source::Clock => "cpu-clock",
    };
    Ok(SamplingEnd { source, seconds, lost: sampler.lost(), notes })
}
