// SPDX-License-Identifier: MIT OR Apache-2.0
//! jitterdebugger's two files: results.json and samples.raw.
//!
//! It keeps an absolute schedule and catches up after a late wake-up, so
//! missed periods stand among its samples. Source: output of jitterdebugger 0.3.1.

pub(crate) mod raw;
pub(crate) mod results;

use tailbound_core::Policy;
use tailbound_core::plan::{Clock, Means};

use crate::draft::Draft;

/// What holds for every run of the tool, and what neither file says.
fn always(draft: &mut Draft) {
    draft.clock = Some(Clock::Monotonic);
    draft.means = Some(Means::Nanosleep);
    draft.policy = Some(Policy::Fifo(80));
    draft.lose("The priority is not in the file; jitterdebugger always takes fifo, and 80 unless configured otherwise (its manual page says 98): the plan says fifo:80.");
    draft.lose("Threads are numbered in the order of the CPUs they were started on; which CPUs is not in the file.");
    draft.lose("jitterdebugger discards no warm-up: the first wake-ups are among the figures.");
    crate::command::dma_latency(draft, 0);
}
