// SPDX-License-Identifier: MIT OR Apache-2.0
//! What made it later? The search alone: whom it asks is an [`Oracle`], which here knows nothing of kernels.
//!
//! Units: ns. Pure: no file, no process, no clock.
//! Not here: what is asked in the lab, and files (`bisect_runs`); words (`tailbound-report`).
//!
//! ```text
//! oracle.rs   question, answer              ends.rs         where good ends and bad begins; the noise floor
//! span.rs     ordered versions, with skips  differences.rs  from two lists of options to changes
//! culprits.rs unordered changes             journal.rs      what was measured before, as JSON Lines
//! judged.rs   a meter, a journal and a limit are an oracle
//! arm.rs      a variant itself, or its control
//! ```
//!
//! Source: Zeller and Hildebrandt, *Simplifying and Isolating Failure-Inducing Input* (2002), for the guarantee
//! (no change of the answer can be left out); git-bisect(1) for skips.

pub mod arm;
pub mod culprits;
pub mod differences;
pub mod ends;
pub mod journal;
pub mod judged;
pub mod oracle;
pub mod span;

pub use arm::Arm;
pub use culprits::{Culprit, Culprits};
pub use differences::{Difference, configurations, words};
pub use ends::{Ends, EndsError, Limit};
pub use journal::{Journal, JournalError, Measured, Step};
pub use judged::{Judged, Meter, recall};
pub use oracle::{Answer, Oracle};
pub use span::Span;
