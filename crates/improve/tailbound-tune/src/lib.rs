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
pub mod boost;
mod boot;
pub mod candidates;
pub mod chosen;
mod coalescing;
mod codec;
pub mod dma_latency;
mod error;
mod facts;
mod guard;
mod heirs;
mod here;
pub mod holder;
mod interval;
pub mod journal;
mod keep;
mod look;
mod machine;
pub mod offered;
mod profile;
mod recipe;
mod refused;
mod resctrl;
mod rules;
pub mod settings;
pub mod status;
mod step;
mod target;
pub mod typed;
mod undo;
mod unit;
mod verify;
pub mod view;
pub mod words;

pub use appeared::Appeared;
pub use apply::{Applied, ApplyError, apply, arrow, find};
pub use boot::BootError;
pub use codec::{Codec, CodecError};
pub use error::TuneError;
pub use facts::{Cpu0, Facts, FactsError, machine_id};
pub use guard::guard;
pub use heirs::{Heir, Lineage};
pub use here::{
    ForNow, ForeignValues, GUARD_DONE, GUARD_LOCK, HereError, apply_guarded, apply_here,
    needs_root, now, undo_here, undo_under, undo_unless_confirmed,
};
pub use keep::{KeepEvent, keep};
pub use look::{chosen_cpus, look_interval_ns, look_now};
pub use machine::{Machine, Moment, System, shown};
pub use profile::{Boot, Profile, ProfileError, SHIPPED, Written};
pub use recipe::{PlanError, StaleError, renewed};
pub use refused::Refused;
pub use rules::{InterruptRule, RuleError, ServiceRule, ThreadRule, matches};
pub use step::{LeftOut, MachineId, PLAN_FORMAT, Plan, Recipe, State, Step};
pub use target::{InterruptId, Target, ThreadId};
pub use undo::{HeirOutcome, Mode, UndoReport, accept, heir_sentence, sentence, undo};
pub use unit::unit;
pub use verify::{Drift, verify};
