// SPDX-License-Identifier: MIT OR Apache-2.0
//! Who made a thread late: from the kernel's events to a [`BlameRecord`].
//!
//! Units: ns on the trace's clock.
//!
//! ```text
//! events ─► Cpu: who had it when (segments, nothing left out) ─┐
//!      └──► Thread: name, priority, ready since, waits         ├─► explain: phases of the way,
//!      └──► WakeUp of each watched thread: fire, waking, switch ┘    each cut up by segments,
//!                                                                    each segment charged by `charge`
//! ```
//!
//! Source: Documentation/trace/{events,timerlat-tracer}.rst; kernel/sched/core.c for the order
//! of waking, wakeup and switch.

mod charge;
mod clocks;
mod cpu;
mod engine;
mod explain;
mod follow;
mod ground;
mod inside;
mod interruptions;
mod map;
mod names;
mod note;
mod of_perf;
mod owners;
mod ready;
mod recorded;
mod shared;
mod thread;
mod unended;
mod wakeup;

#[cfg(test)]
mod tests;

pub use engine::{DueTimes, Engine, WatchFilter};
pub use explain::Late;
pub(crate) use explain::{WakeUpRecord, sentences, shorten};
pub use follow::{BlameSelection, BlameSummary, Follow, Followed};
pub use ground::Ground;
pub(crate) use ground::{since, total};
pub(crate) use inside::Stretch;
pub use interruptions::Interruptions;
pub use note::{BlameNote, BlameNoteKind};
pub use of_perf::{PerfBlame, PerfFacts};
pub use recorded::{RecordedBlame, RecordedError, RecordedFacts, TraceExtent};
pub(crate) use unended::InterruptEnds;
pub use wakeup::{At, WakeUp, Waker};

pub use tailbound_core::blame::BlameRecord;
