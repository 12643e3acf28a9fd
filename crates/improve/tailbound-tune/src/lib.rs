// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the machine that can be undone exactly: what is to be changed ([`Plan`]), made as a
//! whole or not at all ([`apply()`]), put back ([`undo()`]), looked after ([`verify()`]).
//!
//! ```text
//! profile, words ─► settings ─► Plan ─► apply ─► journal ─► undo
//!                      │ facts             │ INTENT, write, read back, DONE
//!                      ▼                   ▼
//!                 tailbound-host        Machine (the one place that writes)
//! ```
//!
//! Only [`Machine`], `holder`, `dma_latency` and the journal write anything.
//! Not here: what is wrong with a machine (`tailbound-rules`), whether a change helped
//! (`tailbound-stats`).
#![forbid(unsafe_code)]
#![deny(missing_docs)]

mod appeared;
mod apply;
mod boot;
mod coalescing;
mod codec;
pub mod dma_latency;
mod facts;
mod heirs;
mod here;
pub mod holder;
pub mod journal;
mod machine;
mod profile;
mod recipe;
mod rules;
pub mod settings;
mod step;
mod target;
mod undo;
mod verify;

pub use appeared::Appeared;
pub use apply::{Applied, ApplyError, apply, arrow, find};
pub use boot::BootError;
pub use codec::{Codec, CodecError};
pub use facts::{Facts, FactsError, machine_id};
pub use heirs::{Heir, Lineage};
pub use here::{
    ForNow, GUARD_DONE, GUARD_LOCK, HereError, apply_guarded, apply_here, needs_root, now,
    undo_here, undo_under, undo_unless_confirmed,
};
pub use machine::{Machine, Moment, Refused, System, shown};
pub use profile::{Boot, Profile, ProfileError, SHIPPED, Written};
pub use recipe::{PlanError, StaleError, renewed};
pub use rules::{InterruptRule, ServiceRule, ThreadRule, matches};
pub use step::{LeftOut, MachineId, PLAN_FORMAT, Plan, Recipe, State, Step};
pub use target::{InterruptId, Target, ThreadId};
pub use undo::{HeirOutcome, Mode, UndoReport, accept, heir_sentence, sentence, undo};
pub use verify::{Drift, verify};
