// SPDX-License-Identifier: MIT OR Apache-2.0
//! What became worse, in words, for a mail or a terminal, and as JUnit and KTAP, a case a series.
//!
//! A series of which nothing can be told is skipped, never passed. Not here: those formats
//! (`tailbound_report::cases`).

use std::fmt::{self, Display, Formatter, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tailbound_core::number::{Real as _, Whole as _};
use tailbound_core::printable::line;
use tailbound_core::units::format_ns_i64;
use tailbound_report::cases::{Case, Status, Suite, junit, ktap};

use crate::changes::fact_words;

use super::{Moved, Regression, RegressionSearch, SeriesOutcome, State};

/// Facts that are named at most.
const FACTS: usize = 8;
/// What is said where none changed.
pub(crate) const NO_FACT: &str = "no recorded fact within five runs";
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

impl Regression {
    /// What a mail about it is called.
    #[must_use]
    pub fn subject(&self) -> String {
        // The one that grew most.
        let most = self.moved.iter().max_by(|a, b| a.ratio.total_cmp(&b.ratio));
        let moved = most.map_or_else(String::new, |m| format!(": {m}"));
        format!("Tailbound: {} became worse{moved}", plain(&self.name))
    }

    /// What it says: all that is known, a line each.
    #[must_use]
    pub fn mail(&self) -> String {
        let loads = if self.loads.is_empty() { "none" } else { &self.loads };
        let short = |id: &str| id.get(..SHOWN).unwrap_or(id).to_owned();
        let mut text = format!(
            "{} became worse and stayed so.\n\nSince:        {} (run {})\nBefore:       run {}\nLoads:        {}\nKernel:       {}\n",
            plain(&self.name),
            self.since,
            short(&self.since_run),
            short(&self.before_run),
            plain(loads),
            plain(&self.kernel_words()),
        );
        let facts: Vec<String> = self.facts.iter().take(FACTS).map(fact_words).collect();
        let changed = match self.facts.len() {
            0 => NO_FACT.to_owned(),
            n if n > FACTS => format!("{}; and {} more", facts.join("; "), n - FACTS),
            _ => facts.join("; "),
        };
        let _ = writeln!(text, "Else changed: {}\n", plain(&changed));
        for moved in &self.moved {
            let _ = writeln!(text, "  {moved}");
        }
        text
    }
}

/// A header of a mail: as it is where it is plain, else in encoded words, each of 75 characters at most.
fn header(text: &str) -> String {
    const BYTES: usize = 42;
    if text.bytes().all(|b| (b' '..=b'~').contains(&b)) && !text.contains("=?") {
        return text.to_owned();
    }
    let mut words = vec![String::new()];
    for c in text.chars() {
        match words.last_mut() {
            Some(word) if word.len() + c.len_utf8() <= BYTES => word.push(c),
            _ => words.push(c.to_string()),
        }
    }
    let code = |word: &String| format!("=?UTF-8?B?{}?=", STANDARD.encode(word));
    words.iter().map(code).collect::<Vec<_>>().join("\n ")
}

/// One line, whatever is in it; a `#` would begin a directive of KTAP.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '#' { ' ' } else { c }).collect()
}

impl SeriesOutcome {
    fn status(&self) -> Status {
        match &self.state {
            State::Well => Status::Pass,
            State::Unknown(why) => Status::Skip(why.clone()),
            State::Worse(r) => Status::Fail(r.sentence()),
        }
    }
}

impl RegressionSearch {
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

    /// A mail for sendmail(1), without whom it is to.
    #[must_use]
    pub fn mail(&self) -> String {
        let subject = match self.regressions.as_slice() {
            [] => format!("Tailbound: none of {} series became worse", self.series),
            [one] => one.subject(),
            all => {
                let names: Vec<String> = all.iter().take(3).map(|r| plain(&r.name)).collect();
                let more = if all.len() > names.len() { ", …" } else { "" };
                let (n, of) = (all.len(), self.series);
                format!("Tailbound: {n} of {of} series became worse: {}{more}", names.join(", "))
            }
        };
        let mut text = format!(
            "Subject: {}\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\nAuto-Submitted: auto-generated\n\n{}",
            header(&subject),
            self.words()
        );
        for regression in &self.regressions {
            let _ = write!(text, "\n{}", regression.mail());
        }
        text
    }

    /// As JUnit XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let suite = Suite { name: "tailbound regressions".to_owned(), ..Suite::default() };
        let case = |told: &SeriesOutcome| {
            let case = Case { name: told.workload.clone(), status: told.status() };
            (told.system.clone(), case)
        };
        junit(&suite, &self.told.iter().map(case).collect::<Vec<_>>())
    }

    /// As KTAP, version 1.
    #[must_use]
    pub fn ktap(&self) -> String {
        let case = |told: &SeriesOutcome| Case {
            name: format!("{}: {}", told.system, told.workload),
            status: told.status(),
        };
        ktap(&self.told.iter().map(case).collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_one_line_of_ascii_or_encoded_words() {
        assert_eq!(header("Tailbound: press 7"), "Tailbound: press 7");
        let long = header(&"µ".repeat(60));
        for line in long.lines() {
            let word = line.trim_start();
            assert!(word.len() <= 75 && word.is_ascii() && word.ends_with("?="), "{long}");
        }
        let coded = long.replace("=?UTF-8?B?", "").replace("?=", "");
        let bytes: Vec<u8> =
            coded.split_whitespace().flat_map(|w| STANDARD.decode(w).unwrap_or_default()).collect();
        assert_eq!(String::from_utf8_lossy(&bytes), "µ".repeat(60));
        // A name cannot add a header of its own.
        let injected = Regression { name: "a\nBcc: b".to_owned(), ..Regression::default() };
        assert!(!header(&injected.subject()).contains("\nBcc"));
    }
}
