// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became worse, in words, for a mail or a terminal, and as JUnit and KTAP, a case a series.
//!
//! Context: COLD. A series of which nothing can be told is skipped, never passed. Source: the JUnit schema of Jenkins' xUnit plugin;
//! Documentation/dev-tools/ktap.rst of Linux.

use std::fmt::{self, Display, Formatter, Write as _};

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::units::format_ns_i64;
use tailbound_report::escape::xml;

use super::{Found, Moved, Regression, State, Told};

/// Letters of an identity that are enough for `store get`.
const SHOWN: usize = 12;

impl Display for Moved {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let of = |ns: f64| format_ns_i64(ns.whole_i64());
        let percent = (self.ratio - 1.0) * 100.0;
        write!(
            f,
            "{} {} → {} ({percent:+.0} %)",
            self.figure,
            of(self.before_ns),
            of(self.after_ns)
        )
    }
}

impl Regression {
    /// What became of the kernel, in words.
    #[must_use]
    pub fn kernel_words(&self) -> String {
        match &self.kernel {
            None => "the same".to_owned(),
            Some([a, b]) if a == b => format!("{a}, built or configured anew"),
            Some([a, b]) => format!("{a} → {b}"),
        }
    }

    /// All of it in one sentence.
    #[must_use]
    pub fn sentence(&self) -> String {
        let moved: Vec<String> = self.moved.iter().map(ToString::to_string).collect();
        let short = self.since_run.get(..SHOWN).unwrap_or(&self.since_run);
        format!(
            "worse since {} (run {short}): {}; kernel: {}",
            self.since,
            moved.join(", "),
            self.kernel_words()
        )
    }
}

/// One line, whatever is in it; a `#` would begin a directive of KTAP.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '#' { ' ' } else { c }).collect()
}

impl Told {
    fn name(&self) -> String {
        format!("{}: {}", self.system, self.workload)
    }
}

impl Found {
    /// A text that can be mailed: the first line says it all.
    #[must_use]
    pub fn words(&self) -> String {
        let n = match self.regressions.len() {
            0 => "None".to_owned(),
            n => n.to_string(),
        };
        let mut text = format!("{n} of {} series became worse and stayed so.\n", self.series);
        for r in &self.regressions {
            let loads = if r.loads.is_empty() {
                "without load".to_owned()
            } else {
                format!("beside {}", r.loads)
            };
            let _ = write!(text, "\n{}, {loads}\n  {}\n", plain(&r.name), plain(&r.sentence()));
        }
        let _ = write!(
            text,
            "\n{} more are too short to tell. Each search is wrong in at most {} % of series without a change: about {:.1} here could be chance.\n",
            self.short,
            self.level * 100.0,
            self.series.real() * self.level
        );
        text
    }

    /// As JUnit XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{}\"",
            self.told.len(),
            self.regressions.len(),
            self.short
        );
        let mut out = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {counts}>\n<testsuite name=\"tailbound regressions\" {counts}>\n"
        );
        for told in &self.told {
            let name = xml(&told.workload);
            let _ = write!(out, "<testcase classname=\"{}\" name=\"{name}\">", xml(&told.system));
            let _ = match &told.state {
                State::Well => Ok(()),
                State::Unknown(why) => write!(out, "<skipped message=\"{}\"/>", xml(why)),
                State::Worse(r) => write!(out, "<failure message=\"{}\"/>", xml(&r.sentence())),
            };
            out.push_str("</testcase>\n");
        }
        out.push_str("</testsuite>\n</testsuites>\n");
        out
    }

    /// As KTAP, version 1.
    #[must_use]
    pub fn ktap(&self) -> String {
        let mut out = format!("KTAP version 1\n1..{}\n", self.told.len());
        for (n, told) in (1..).zip(&self.told) {
            let name = plain(&told.name());
            let _ = match &told.state {
                State::Well => writeln!(out, "ok {n} {name}"),
                State::Unknown(why) => writeln!(out, "ok {n} {name} # SKIP {}", plain(why)),
                State::Worse(r) => writeln!(out, "# {}\nnot ok {n} {name}", plain(&r.sentence())),
            };
        }
        out
    }
}
