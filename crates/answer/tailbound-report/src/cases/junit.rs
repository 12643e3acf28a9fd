// SPDX-License-Identifier: MIT OR Apache-2.0
//! JUnit XML, as CI servers read it.
//!
//! Units: s. Source: the JUnit schema of Jenkins' xUnit plugin. `failure`: shown not to be so; `error`:
//! undecided; `skipped`: nothing was required.

use std::fmt::Write as _;

use super::{Case, Status};
use crate::escape::xml;

/// What is said of all cases together.
#[derive(Clone, Debug, Default)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// How long it took in s, where that is known; it stands with the first case as well.
    pub time_s: Option<String>,
    /// When it began, as RFC 3339 without a zone.
    pub began: Option<String>,
    /// Names and values.
    pub properties: Vec<(String, String)>,
    /// What was said.
    pub output: Option<String>,
}

/// The whole text: one suite of cases, each with its class.
#[must_use]
pub fn junit(suite: &Suite, cases: &[(String, Case)]) -> String {
    let count = |which: fn(&Status) -> bool| cases.iter().filter(|(_, c)| which(&c.status)).count();
    let timed = |time: &str| format!(" time=\"{time}\"");
    let time = suite.time_s.as_deref().map(timed).unwrap_or_default();
    let counts = format!(
        "tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"{time}",
        cases.len(),
        count(|s| matches!(s, Status::Fail(_))),
        count(|s| matches!(s, Status::Undecided(_))),
        count(|s| matches!(s, Status::Skip(_))),
    );
    let began = suite.began.as_ref().map(|t| format!(" timestamp=\"{}\"", xml(t)));
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"{}\" {counts}{}>\n",
        xml(&suite.name),
        began.unwrap_or_default()
    );
    if !suite.properties.is_empty() {
        out.push_str("<properties>\n");
        for (name, value) in &suite.properties {
            let _ = writeln!(out, "<property name=\"{}\" value=\"{}\"/>", xml(name), xml(value));
        }
        out.push_str("</properties>\n");
    }
    for (i, (class, case)) in cases.iter().enumerate() {
        // The time of all is told once.
        let time = match (&suite.time_s, i) {
            (None, _) => String::new(),
            (Some(all), 0) => timed(all),
            (Some(_), _) => timed("0"),
        };
        let (class, name) = (xml(class), xml(&case.name));
        let _ = write!(out, "<testcase classname=\"{class}\" name=\"{name}\"{time}>");
        let _ = match &case.status {
            Status::Pass => Ok(()),
            Status::Fail(why) => write!(out, "<failure message=\"{}\"/>", xml(why)),
            Status::Undecided(why) => write!(out, "<error message=\"{}\"/>", xml(why)),
            Status::Skip(why) => write!(out, "<skipped message=\"{}\"/>", xml(why)),
        };
        out.push_str("</testcase>\n");
    }
    if let Some(said) = &suite.output {
        let _ = writeln!(out, "<system-out>{}</system-out>", xml(said));
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}
