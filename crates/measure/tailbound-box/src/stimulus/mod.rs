// SPDX-License-Identifier: MIT OR Apache-2.0
//! Pulses from an outside source and what it measured: the same record whichever source it is.
//!
//! Units: ticks of the source's own clock, which a [`TimeBase`](crate::TimeBase) turns into ns.
//! Not here: a source's protocol (`pico` has the box's), ports, run records (`tailbound-import`).

mod account;
mod plan;
mod record;

pub use account::SampleAccount;
pub use plan::{StimulusPlan, StimulusShape, StimulusSpacing, UnknownPulseWord};
pub use record::{
    CellCount, CellTable, LinkLosses, SenderNumbers, SourceLimit, StimulusChannel,
    StimulusCounters, StimulusEnd, StimulusOrigin, StimulusProgress, StimulusReaction,
    StimulusRecord, StimulusSample, StimulusSchedule, StimulusSink,
};
