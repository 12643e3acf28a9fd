// SPDX-License-Identifier: MIT OR Apache-2.0
//! cyclictest in its four forms: JSON, histogram text, status lines, verbose samples.
//!
//! Context: COLD. Units: µs, or ns with `-N`; only the JSON says which.
//! Values are cut to whole units, so a value stands for itself and up to one unit more.
//! Source: cyclictest(8) of rt-tests 2.4 and 2.10, and their output.

pub(crate) mod histogram;
pub(crate) mod json;
pub(crate) mod status;
pub(crate) mod verbose;

use tailbound_core::record::Event;

use crate::draft::Draft;
use crate::error::Fault;
use crate::read::Options;

/// Below this many of the source's units, the smallest latency can only be in µs: no Linux
/// wakes a thread within 500 ns.
const NOT_NS_BELOW: i64 = 500;

/// The unit of a text that does not name it.
///
/// # Errors
/// The smallest value could as well be ns.
fn unit(smallest: Option<i64>, options: &Options, draft: &mut Draft) -> Result<u64, Fault> {
    if let Some(unit) = options.unit_ns.filter(|u| *u > 0) {
        draft.cut_values(unit);
        draft.lose("The unit is not in the file; it was given by the user.");
        return Ok(unit);
    }
    match smallest {
        Some(min) if min >= NOT_NS_BELOW => Err(Fault::file(format!(
            "the unit is not in the file, and a smallest latency of {min} could be ns (cyclictest -N) \
             or µs: give the unit"
        ))),
        _ => {
            draft.cut_values(1000);
            draft.lose("The unit is not in the file; values this small can only be µs.");
            Ok(1000)
        }
    }
}

/// `# Break thread:` and `# Break value:` end a run that came upon its threshold.
fn break_line(draft: &mut Draft, line: &str, value: &mut Option<String>) {
    if let Some(v) = line.strip_prefix("# Break value:") {
        *value = Some(v.trim().to_owned());
        let text = format!(
            "cyclictest stopped at its threshold, on a latency of {} of its units",
            crate::draft::quoted(v.trim())
        );
        draft.events.push(Event::new(0, "stopped", text));
        draft.lose(
            "The run was stopped by a latency above the threshold (-b); when is not in the file.",
        );
    }
}
