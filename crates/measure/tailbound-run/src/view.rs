// SPDX-License-Identifier: MIT OR Apache-2.0
//! What whoever watches a run is shown.
//!
//! Context: COLD, at most ten times a second.

use tailbound_core::progress::Progress;
use tailbound_core::record::ExceedanceRecord;

/// One thing to show.
#[derive(Debug)]
pub enum View<'a> {
    /// Something that takes longer than two seconds, in words.
    Note(&'a str),
    /// Something that went wrong beside the run, in words: also for who wants no progress.
    Alert(&'a str),
    /// The run so far.
    Progress(&'a Progress),
    /// Samples that a thread recorded since the last look, where [`SamplesTo::Viewer`] asks for them.
    Samples(ThreadSamples<'a>),
}

/// Where every sample of a run goes, one by one, beside the histograms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SamplesTo {
    /// Into the run file, where the plan asks for raw samples.
    #[default]
    File,
    /// To the viewer, and to no file. The plan asks for raw samples too; the run file says that it has none.
    Viewer,
}

/// Samples of one thread, in their order.
#[derive(Clone, Copy, Debug)]
pub struct ThreadSamples<'a> {
    /// Which thread.
    pub thread: u32,
    /// How late each wake-up was.
    pub errors_ns: &'a [i64],
    /// Those above the thread's threshold, with the time of each.
    pub exceedances: &'a [ExceedanceRecord],
}
