// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest in its four forms: JSON, histogram text, status lines, verbose samples.
//!
//! Units: µs, or ns with `-N`; only the JSON says which, of text it is found out (`unit`).
//! Values are cut to whole units, so a value stands for itself and up to one unit more.
//! A text may hold several runs, each in several forms (`runs`); what stands around the figures is `told`.
//! Source: cyclictest(8) of rt-tests 2.4 and 2.10, and their output.

mod abridged;
pub(crate) mod histogram;
pub(crate) mod json;
pub(crate) mod runs;
pub(crate) mod status;
pub(crate) mod told;
mod unit;
pub(crate) mod verbose;

use tailbound_core::record::Event;

use crate::draft::Draft;

/// `# Break value:` ends a run that came upon its threshold.
fn stopped(draft: &mut Draft, value: &str) {
    let text = format!(
        "cyclictest stopped at its threshold, on a latency of {} of its units",
        crate::draft::quoted(value)
    );
    draft.events.push(Event::new(0, "stopped", text));
    draft.lose(
        "The run was stopped by a latency above the threshold (-b); when is not in the file.",
    );
}
