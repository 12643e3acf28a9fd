// SPDX-License-Identifier: MIT OR Apache-2.0
//! The catalogue: one file a group. `docs/check.md` shows it, and a test holds the two together.

mod application;
mod background;
mod caches;
mod clocks;
mod devices;
mod firmware;
mod hardware;
mod interrupts;
mod isolation;
mod kernel;
mod memory;
mod power;
mod scheduler;
mod virtual_machines;

use tailbound_core::CpuSet;

use crate::check::{Check, Group};
use crate::machine::Machine;
use crate::outcome::{CheckOutcome, Level, Look};

/// What a check has that says nothing else.
const PLAIN: Check = Check {
    id: "",
    group: Group::Kernel,
    why: "",
    now: "",
    for_good: "",
    undo: "",
    source: "",
    needs: &[],
    look: |_| Ok(CheckOutcome::unknown("not written")),
};

/// Every check.
#[must_use]
pub fn catalogue() -> Vec<&'static Check> {
    [
        kernel::CHECKS,
        isolation::CHECKS,
        interrupts::CHECKS,
        scheduler::CHECKS,
        background::CHECKS,
        memory::CHECKS,
        power::CHECKS,
        clocks::CHECKS,
        hardware::CHECKS,
        firmware::CHECKS,
        virtual_machines::CHECKS,
        devices::CHECKS,
        application::CHECKS,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A file's number is good, or of this level.
fn number(m: &Machine, path: &str, good: impl Fn(i64) -> bool, otherwise: Level) -> Look {
    let n = m.number(path)?;
    Ok(CheckOutcome::ok_if(good(n), otherwise, format!("{path} is {n}")))
}

/// CPUs that must not be real-time ones.
fn none_of_rt(m: &Machine, what: &str, cpus: &CpuSet) -> CheckOutcome {
    let inside = m.rt_in(cpus);
    if inside.is_empty() {
        CheckOutcome::ok(format!("{what} has none of the real-time CPUs"))
    } else {
        CheckOutcome::bad(format!("{what} has CPUs {inside} (it is {cpus})"))
    }
}

/// A mask in a file, whose CPUs must not be real-time ones.
fn mask_file(m: &Machine, path: &str) -> Look {
    let text = m.text(path)?;
    let cpus = CpuSet::of_mask(&text)
        .ok_or_else(|| CheckOutcome::unknown(format!("{path} reads `{text}`")))?;
    Ok(none_of_rt(m, path, &cpus))
}

/// At most `most` of them by name.
fn few(names: &[String], most: usize) -> String {
    let shown: Vec<&str> = names.iter().take(most).map(String::as_str).collect();
    let rest = names.len().saturating_sub(most);
    match rest {
        0 => shown.join(", "),
        n => format!("{} and {n} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_all_is_said() {
        let all = catalogue();
        let ids: BTreeSet<&str> = all.iter().map(|c| c.id).collect();
        assert_eq!(ids.len(), all.len());
        for check in all {
            assert!(check.id.contains('.') && !check.why.is_empty(), "{}", check.id);
            assert!(!check.source.is_empty(), "{}", check.id);
            assert!(check.now.is_empty() || !check.now.starts_with('-'), "{}", check.id);
        }
    }
}
