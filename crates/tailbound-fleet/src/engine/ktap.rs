// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became of each run as KTAP, for kselftest, LAVA and KernelCI.
//!
//! Context: COLD. Only a run that came to its end is `ok`: what could not be made, for lack of a tool, a
//! tracer or a machine, is `not ok` with the reason.
//! Source: Documentation/dev-tools/ktap.rst of Linux.

use std::fmt::Write as _;

/// One run of one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The target.
    pub target: String,
    /// The run.
    pub part: String,
    /// Why it is not whole; nothing where it is.
    pub why: Option<String>,
}

/// The whole text.
#[must_use]
pub fn ktap(cases: &[Case]) -> String {
    let mut out = format!("KTAP version 1\n1..{}\n", cases.len());
    for (i, case) in cases.iter().enumerate() {
        let name = format!("{}.{}", case.target, case.part).replace(['#', '\n'], "_");
        // A `#` begins a directive, and `# SKIP` would be no failure.
        let _infallible = match &case.why {
            None => writeln!(out, "ok {} {name}", i + 1),
            Some(why) => {
                let why = why.replace(['#', '\n', '\r'], " ");
                writeln!(out, "# {why}\nnot ok {} {name}", i + 1)
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_made_never_passes_or_is_skipped() {
        let case = |part: &str, why: Option<&str>| Case {
            target: "a".to_owned(),
            part: part.to_owned(),
            why: why.map(str::to_owned),
        };
        let text = ktap(&[case("one", None), case("two", Some("no tracer\nok 2 # SKIP"))]);
        assert_eq!(
            text,
            "KTAP version 1\n1..2\nok 1 a.one\n# no tracer ok 2   SKIP\nnot ok 2 a.two\n"
        );
    }
}
