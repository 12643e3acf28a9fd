// SPDX-License-Identifier: MIT OR Apache-2.0
//! What a check came to.
//!
//! An absent file is *not applicable* and one that refuses is *unknown*: neither is
//! ever *ok*.

use serde::Serialize;
use tailbound_host::root::Missing;

/// What a check came to; the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// It costs real-time work a lot, or makes figures void.
    Bad,
    /// It costs something, or may.
    Warn,
    /// It is set, and counts after a reboot.
    NeedsReboot,
    /// It could not be found out.
    Unknown,
    /// As it should be.
    Ok,
    /// This machine, kernel or purpose has no such thing.
    NotApplicable,
}

impl Level {
    /// Every level, the gravest first.
    pub const ALL: [Self; 6] =
        [Self::Bad, Self::Warn, Self::NeedsReboot, Self::Unknown, Self::Ok, Self::NotApplicable];

    /// As it is printed.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::NeedsReboot => "needs reboot",
            Self::Unknown => "unknown",
            Self::Ok => "ok",
            Self::NotApplicable => "not applicable",
        }
    }
}

/// What was seen, and how it is judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckOutcome {
    /// The judgement.
    pub level: Level,
    /// What was found, with figures; for what is unknown or not applicable the reason.
    pub found: String,
}

impl CheckOutcome {
    fn of(level: Level, found: impl Into<String>) -> Self {
        Self { level, found: one_cpu(&found.into()) }
    }
    pub(crate) fn ok(found: impl Into<String>) -> Self {
        Self::of(Level::Ok, found)
    }
    pub(crate) fn warn(found: impl Into<String>) -> Self {
        Self::of(Level::Warn, found)
    }
    pub(crate) fn bad(found: impl Into<String>) -> Self {
        Self::of(Level::Bad, found)
    }
    pub(crate) fn reboot(found: impl Into<String>) -> Self {
        Self::of(Level::NeedsReboot, found)
    }
    pub(crate) fn unknown(why: impl Into<String>) -> Self {
        Self::of(Level::Unknown, why)
    }
    pub(crate) fn not_applicable(why: impl Into<String>) -> Self {
        Self::of(Level::NotApplicable, why)
    }
    /// Ok or this level.
    pub(crate) fn ok_if(good: bool, otherwise: Level, found: impl Into<String>) -> Self {
        Self::of(if good { Level::Ok } else { otherwise }, found)
    }
}

/// `CPU 3` where one is named.
fn one_cpu(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let next_is_one = |i: usize| {
        let next = words.get(i.saturating_add(1)).map(|w| w.trim_end_matches([')', ';', ':']));
        next.is_some_and(|w| w.parse::<u32>().is_ok())
    };
    let named = words.iter().enumerate().map(|(i, word)| match *word {
        "CPUs" if next_is_one(i) => "CPU",
        word => word,
    });
    named.collect::<Vec<_>>().join(" ")
}

impl From<Missing> for CheckOutcome {
    fn from(missing: Missing) -> Self {
        match missing {
            Missing::NotApplicable(why) => Self::not_applicable(why),
            Missing::Unknown(why) => Self::unknown(why),
        }
    }
}

/// `?` ends a check with the reason why something could not be read.
pub(crate) type Look = Result<CheckOutcome, CheckOutcome>;
