// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became worse, in words, for a mail or a terminal, and as JUnit and KTAP, a case a series.
//!
//! Context: COLD. A series of which nothing can be told is skipped, never passed. Not here: those formats
//! (`tailbound_report::cases`).

use std::fmt::{self, Display, Formatter, Write as _};

use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::printable::line;
use tailbound_core::units::format_ns_i64;
use tailbound_report::cases::{Case, Status, Suite, junit, ktap};

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

impl Told {
    fn status(&self) -> Status {
        match &self.state {
            State::Well => Status::Pass,
            State::Unknown(why) => Status::Skip(why.clone()),
            State::Worse(r) => Status::Fail(r.sentence()),
        }
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
            let _ = write!(text, "\n{}, {loads}\n  {}\n", line(&r.name), line(&r.sentence()));
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
        let suite = Suite { name: "tailbound regressions".to_owned(), ..Suite::default() };
        let case = |told: &Told| {
            let case = Case { name: told.workload.clone(), status: told.status() };
            (told.system.clone(), case)
        };
        junit(&suite, &self.told.iter().map(case).collect::<Vec<_>>())
    }

    /// As KTAP, version 1.
    #[must_use]
    pub fn ktap(&self) -> String {
        let case = |told: &Told| Case {
            name: format!("{}: {}", told.system, told.workload),
            status: told.status(),
        };
        ktap(&self.told.iter().map(case).collect::<Vec<_>>())
    }
}
