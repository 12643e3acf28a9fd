// SPDX-License-Identifier: MIT OR Apache-2.0
//! KTAP, version 1, for kselftest, LAVA and KernelCI.
//!
//! What is not decided is `not ok`: a gap is never a pass.
//! Source: Documentation/dev-tools/ktap.rst of the kernel.

use std::fmt::Write as _;

use tailbound_core::printable;

use super::{Case, Status};

/// The whole text.
#[must_use]
pub fn ktap(cases: &[Case]) -> String {
    let mut out = format!("KTAP version 1\n1..{}\n", cases.len());
    for (number, case) in (1..).zip(cases) {
        // A hash begins a directive, and `# SKIP` would be no failure.
        let line = |text: &str| printable::line(text).replace('#', "No.");
        let name = line(&case.name);
        let _ = match &case.status {
            Status::Pass => writeln!(out, "ok {number} {name}"),
            Status::Skip(why) => writeln!(out, "ok {number} {name} # SKIP {}", line(why)),
            Status::Fail(why) => writeln!(out, "# {}\nnot ok {number} {name}", line(why)),
            Status::Undecided(why) => {
                writeln!(out, "# undecided: {}\nnot ok {number} {name}", line(why))
            }
        };
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_strangers_are_no_directives() {
        let case = |name: &str, status| Case { name: name.to_owned(), status };
        let why = "no tracer\nok 2 # SKIP".to_owned();
        let text = ktap(&[
            case("one", Status::Pass),
            case("two # SKIP", Status::Fail(why.clone())),
            case("three", Status::Undecided(why.clone())),
            case("four\nok 5", Status::Skip(why)),
        ]);
        assert_eq!(
            text,
            "KTAP version 1\n1..4\nok 1 one\n# no tracer ok 2 No. SKIP\nnot ok 2 two No. SKIP\n\
             # undecided: no tracer ok 2 No. SKIP\nnot ok 3 three\nok 4 four ok 5 # SKIP no tracer ok 2 No. SKIP\n"
        );
    }
}
