// SPDX-License-Identifier: MIT OR Apache-2.0
//! The names of the files of a search: its journal, and a run file of each step.

use crate::bisect::Journal;

/// The journal.
pub(super) const JOURNAL: &str = "journal.jsonl";
const STEP: &str = "step-";
const RUN_FILE: &str = ".tailbound.jsonl";

/// The name of the run file of the next step: that of no other.
pub(super) fn run_name(journal: &Journal) -> String {
    let name = |n: usize| format!("{STEP}{n:03}{RUN_FILE}");
    let is_free = |name: &String| !journal.steps().iter().any(|s| s.run.as_ref() == Some(name));
    // Steps may have been forgotten: their number says nothing of those that are there.
    let first = journal.steps().len() + 1;
    (first..).map(name).find(is_free).unwrap_or_else(|| name(first))
}

/// Is it a name that [`run_name`] gives?
pub(super) fn is_run_name(name: &str) -> bool {
    let number = name.strip_prefix(STEP).and_then(|n| n.strip_suffix(RUN_FILE));
    number.is_some_and(|n| (3..=9).contains(&n.len()) && n.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use crate::bisect::{Measured, Step};

    use super::*;

    #[test]
    fn a_new_run_file_takes_the_place_of_no_other() {
        let mut journal = Journal::new("x");
        for at in 0..5 {
            let run = run_name(&journal);
            assert!(is_run_name(&run) && run == format!("step-{:03}.tailbound.jsonl", at + 1));
            let (key, measured) = (at.to_string(), Measured::ValueNs(1));
            let run = Some(run);
            journal.add(Step { key, title: None, measured, run, run_sha256: None, note: None });
        }
        journal.keep(|s| s.key != "1");
        assert_eq!(run_name(&journal), "step-006.tailbound.jsonl");
    }
}
