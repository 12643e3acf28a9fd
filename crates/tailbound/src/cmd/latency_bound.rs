// SPDX-License-Identifier: MIT OR Apache-2.0
//! `--latency-bound`: a bound on the scheduling latency for task models, from a time or from a file of `bound --theory here`.
//!
//! Not here: what a model does with it (`tailbound_core::tasks`).

use std::path::Path;

use tailbound_core::units::{format_ns_i64, parse_ns};
use tailbound_report::tasks::LatencyBound;

use super::bound_theory;
use crate::say::Failure;

/// What was typed. A file of another kernel than `release` is refused, where that is known.
///
/// # Errors
/// Neither a time nor a file with a bound of a machine.
pub(super) fn read(text: &str, release: Option<&str>) -> Result<LatencyBound, Failure> {
    let usage = |why: String| Failure::usage(format!("--latency-bound: {why}"));
    let path = Path::new(text);
    if !path.exists() {
        let ns = parse_ns(text)
            .map_err(|e| usage(format!("there is no file `{text}`, and as a time: {e}")))?;
        if ns <= 0 {
            return Err(usage(format!("{text} is not above zero")));
        }
        return Ok(LatencyBound { ns, from: "given".to_owned() });
    }
    let stated = bound_theory::read(path)?;
    let ns = stated.latency_ns(text, release).map_err(|e| usage(e.to_string()))?;
    Ok(LatencyBound { ns, from: format!("{} from {text}", format_ns_i64(ns)) })
}
