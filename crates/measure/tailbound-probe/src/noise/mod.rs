// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probes that never sleep: what a polling loop, or a queue drained by one, loses to the
//! machine.
//!
//! Context: SETUP here, HOT in `tailbound-rt` (`poll`, `queue`). Units: ticks of the counter; ns.
//! The files: the probes (`busy`, `hwlat`, `queue`, `nmi`), the calibrated counter (`gauge`), the loop's
//! view of the machine (`poller`), interrupts by name (`interrupts`), the threads of a polling
//! probe (`polled`, `poll_settings`) and their figures (`findings`, `observed_share`).

pub(crate) mod busy;
mod findings;
mod gauge;
pub(crate) mod hwlat;
mod interrupts;
pub(crate) mod nmi;
mod observed_share;
mod poll_settings;
pub(crate) mod polled;
mod poller;
pub(crate) mod queue;
mod tracer;
