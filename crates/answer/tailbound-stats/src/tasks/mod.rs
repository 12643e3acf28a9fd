// SPDX-License-Identifier: MIT OR Apache-2.0
//! Threads as tasks: from observed jobs to a model, and from a model to bounds of response times.
//!
//! Units: ns. Documentation: docs/tasks.md.
//!
//! ```text
//! Job ─► Watched (one per thread, bounded memory) ─► TaskRecord ─► Model ─► analyse ─► Answer
//!                                     a model written by hand ────┘  └─ what if
//! ```
//! Not here: finding jobs in a trace (`tailbound-trace`), rendering (`tailbound-report`).

mod answer;
mod bound;
mod demand;
mod of_run;
mod period;
mod problem;
mod terms;
mod watched;
mod what_if;

pub use answer::{Bound, NoBound, ResponseTimes, Term, TermKind, Thread};
pub use bound::analyse;
pub use of_run::{DeadlineError, deadline, of_run};
pub use watched::{JobHistory, WINDOW};
pub use what_if::{Change, WhatIfError, named};
