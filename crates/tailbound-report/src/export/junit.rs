// SPDX-License-Identifier: MIT OR Apache-2.0
//! JUnit XML, as CI servers read it.
//!
//! Context: COLD. Units: s. Source: the JUnit schema of Jenkins' xUnit plugin. `failure`: not met; `error`:
//! undecided; `skipped`: nothing was required.

use std::fmt::Write as _;

use tailbound_stats::Analysis;

use super::cases::{self, Status};
use crate::escape::xml;

/// A run as one test suite.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let run = analysis.run();
    let cases = cases::of(analysis);
    let count = |which: fn(&Status) -> bool| cases.iter().filter(|c| which(&c.status)).count();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
        cases.len(),
        count(|s| matches!(s, Status::Fail(_))),
        count(|s| matches!(s, Status::Undecided(_))),
        count(|s| matches!(s, Status::Skip(_))),
    );
    let time = super::seconds(run.measured_ns().into());
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts} time=\"{time}\">\n\
         <testsuite name=\"tailbound\" {counts} time=\"{time}\" timestamp=\"{}\">\n",
        xml(run.header.started.trim_end_matches('Z'))
    );
    let _ = writeln!(out, "<properties>");
    for (name, value) in [("id", &run.header.id), ("tool", &run.header.tool)] {
        let _ = writeln!(out, "<property name=\"{name}\" value=\"{}\"/>", xml(value));
    }
    for (name, fact) in &run.header.machine {
        if matches!(name.as_str(), "kernel.release" | "cpu.model" | "kernel.preempt") {
            let _ = writeln!(out, "<property name=\"{name}\" value=\"{}\"/>", xml(&fact.text()));
        }
    }
    out.push_str("</properties>\n");
    for (i, case) in cases.iter().enumerate() {
        // The measurement's time stands with the whole.
        let time = if i == 0 { time.as_str() } else { "0" };
        let _ = write!(
            out,
            "<testcase classname=\"tailbound.{}\" name=\"{}\" time=\"{time}\">",
            xml(&run.header.plan.probe),
            xml(&case.name)
        );
        let _ = match &case.status {
            Status::Pass => Ok(()),
            Status::Fail(why) => write!(out, "<failure message=\"{}\"/>", xml(why)),
            Status::Undecided(why) => write!(out, "<error message=\"{}\"/>", xml(why)),
            Status::Skip(why) => write!(out, "<skipped message=\"{}\"/>", xml(why)),
        };
        out.push_str("</testcase>\n");
    }
    let _ = writeln!(out, "<system-out>{}</system-out>", xml(&crate::digest::headline(run)));
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
