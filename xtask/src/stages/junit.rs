// SPDX-License-Identifier: MIT OR Apache-2.0
//! `target/xtask/junit.xml`: what came of every check, as CI systems read it.
//!
//! Times are not in it: test programs of a stable compiler do not say them.
//! Source: the JUnit XML format, as Jenkins, GitLab and GitHub read it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::tally::{Check, Outcome, Tally};

/// The document.
pub(super) fn document(tally: &Tally) -> String {
    let mut groups: BTreeMap<&str, Vec<&Check>> = BTreeMap::new();
    for check in tally.checks() {
        groups.entry(&check.group).or_default().push(check);
    }
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for (group, checks) in groups {
        let count = |is: fn(&Outcome) -> bool| checks.iter().filter(|c| is(&c.outcome)).count();
        let failures = count(|o| matches!(o, Outcome::Failed(_)));
        let skipped = count(|o| matches!(o, Outcome::Skipped(_)));
        let (group, tests) = (escaped(group), checks.len());
        _ = writeln!(
            text,
            "  <testsuite name=\"{group}\" tests=\"{tests}\" failures=\"{failures}\" skipped=\"{skipped}\">"
        );
        for check in checks {
            let name = escaped(&check.name);
            _ = write!(text, "    <testcase classname=\"{group}\" name=\"{name}\"");
            _ = match &check.outcome {
                Outcome::Passed => writeln!(text, "/>"),
                Outcome::Failed(why) => {
                    writeln!(text, "><failure>{}</failure></testcase>", escaped(why))
                }
                Outcome::Skipped(why) => {
                    writeln!(text, "><skipped message=\"{}\"/></testcase>", escaped(why))
                }
            };
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

/// Text as XML holds it: without the control characters that XML 1.0 cannot hold at all.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_check_is_a_case_of_its_group() {
        let mut tally = Tally::default();
        tally.pass("a");
        tally.fail("b<c>", "left \"1\" & right\u{1b}[0m");
        tally = tally.of("one");
        tally.leave_out("d", "no root");
        let text = document(&tally.of("two"));
        assert!(text.contains("<testsuite name=\"one\" tests=\"2\" failures=\"1\" skipped=\"0\">"));
        assert!(text.contains("<testcase classname=\"one\" name=\"a\"/>"));
        assert!(text.contains(
            "name=\"b&lt;c&gt;\"><failure>left &quot;1&quot; &amp; right\u{fffd}[0m</failure>"
        ));
        assert!(text.contains("classname=\"two\" name=\"d\"><skipped message=\"no root\"/>"));
    }
}
