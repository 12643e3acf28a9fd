// SPDX-License-Identifier: MIT OR Apache-2.0
//! Record slots: where something is recorded, and with what.
//!
//! Context: SETUP. Units: ns.

use tailbound_core::Context;
use tailbound_rt::recorder::Recorder;
use tailbound_sys::error::SysError;
use tailbound_sys::mem::Prefaulted;

/// Where something is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordSlot {
    /// Its number, from 0: unique within a run.
    pub thread: u32,
    /// The CPU its thread is pinned to; `None`: not pinned (SCHED_DEADLINE, a plan with tasks).
    pub cpu: Option<u32>,
    /// Its activations fall due this much after those of slot 0.
    pub phase_ns: i64,
    /// What is recorded here: `user` is judged; others (`send`, `round-trip`) stand beside it.
    pub context: Context,
}

impl RecordSlot {
    /// A judged slot on `cpu`, in phase.
    #[must_use]
    pub fn user(thread: u32, cpu: Option<u32>) -> Self {
        Self { thread, cpu, phase_ns: 0, context: Context::User }
    }

    /// For people: its CPU, or `any`.
    pub(super) fn cpu_name(&self) -> String {
        self.cpu.map_or("any".to_owned(), |c| c.to_string())
    }
}

/// Are the samples of a slot kept one by one?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSamples {
    /// All of them.
    Kept,
    /// None.
    NotKept,
}

/// The two recorders of one slot.
#[derive(Debug)]
pub struct Recorders {
    /// What the warm-up saw.
    pub warm_up: Prefaulted<Recorder>,
    /// The measurement.
    pub measured: Prefaulted<Recorder>,
}

impl Recorders {
    /// Empty ones; what is written of the measurement's is in memory that is there.
    ///
    /// # Errors
    /// No memory for them.
    pub fn new(samples: RawSamples) -> Result<Self, SysError> {
        let bytes = match samples {
            RawSamples::Kept => size_of::<Recorder>(),
            RawSamples::NotKept => Recorder::BYTES_WITHOUT_RAW,
        };
        let it = Self {
            // Fetched by the warm-up itself: it is written to a few pages of it.
            warm_up: Prefaulted::up_to(0)?,
            measured: Prefaulted::up_to(bytes)?,
        };
        if samples == RawSamples::Kept {
            it.measured.record_raw();
        }
        Ok(it)
    }
}
