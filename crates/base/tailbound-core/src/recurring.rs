// SPDX-License-Identifier: MIT OR Apache-2.0
//! What came again and again while a run went on, so that a period of late wake-ups can be laid beside it: threads
//! that come before the measured ones, interrupts, what the kernel does every so often. The fact [`FACT`] has them.
//!
//! Units: ns.
//! Not here: reading them (`tailbound-host`), which of them has the period of late wake-ups (`tailbound-stats`).

use serde::{Deserialize, Serialize};

use crate::number::Real as _;
use crate::record::{Fact, Facts};
use crate::words::open_words;

/// The fact after a run that holds the list.
pub const FACT: &str = "watch.recurring";

open_words! {
    /// What recurs.
    RecurringKind {
        /// A thread that ran.
        Thread = "thread",
        /// An interrupt that came.
        Interrupt = "interrupt",
        /// Something of the kernel whose period is a setting.
        Setting = "setting",
    }
}

/// Something that came again and again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recurring {
    /// What.
    pub kind: RecurringKind,
    /// Its name.
    pub name: String,
    /// The CPU on which it comes; absent where it may be any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
    /// So often,
    #[serde(default)]
    pub count: u64,
    /// in so long.
    #[serde(default)]
    pub span_ns: i64,
    /// Of a setting: its period.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period_ns: Option<i64>,
}

impl Recurring {
    /// Fewest times that show a period.
    pub const COUNT_MIN: u64 = 8;
    /// Most of a period by which the mean period may differ, whatever the error of the other.
    const SHARE_MAX: f64 = 0.02;

    /// Does it have the period, as far as its count can tell?
    #[must_use]
    pub fn has_period(&self, period_ns: i64, error_ns: i64) -> bool {
        if let Some(own_ns) = self.period_ns {
            return own_ns.abs_diff(period_ns) <= error_ns.max(0).cast_unsigned();
        }
        if self.count < Self::COUNT_MIN || period_ns <= 0 || self.span_ns <= 0 {
            return false;
        }
        let expected = self.span_ns.real() / period_ns.real();
        let share = (error_ns.max(0).real() / period_ns.real()).min(Self::SHARE_MAX);
        (self.count.real() - expected).abs() <= 1.0 + expected * share
    }

    /// Those that the facts after a run have; none where there is no list.
    #[must_use]
    pub fn of_facts(after: &Facts) -> Vec<Self> {
        match after.get(FACT) {
            Some(Fact::Value(list)) => {
                let all = list.as_array().map(Vec::as_slice).unwrap_or_default();
                all.iter().filter_map(|r| serde_json::from_value(r.clone()).ok()).collect()
            }
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_is_shared_within_what_the_count_can_tell() {
        let (s, ms) = (1_000_000_000, 1_000_000);
        let thread = |count, span_s: i64| Recurring {
            kind: RecurringKind::Thread,
            name: "x".to_owned(),
            cpu: None,
            count,
            span_ns: span_s * s,
            period_ns: None,
        };
        assert!(thread(60, 30).has_period(500 * ms, ms) && thread(61, 30).has_period(500 * ms, ms));
        assert!(!thread(63, 30).has_period(500 * ms, ms), "another period");
        assert!(!thread(30, 30).has_period(500 * ms, 400 * ms), "a great error forgives nothing");
        assert!(!thread(4, 2).has_period(500 * ms, ms), "too few");
        assert!(!thread(60, 30).has_period(0, ms) && !thread(60, 0).has_period(1, 1));
        let setting = Recurring { period_ns: Some(s), ..thread(0, 0) };
        assert!(setting.has_period(s + ms, ms) && !setting.has_period(s + 2 * ms, ms));
        let facts = |value| [(FACT.to_owned(), Fact::Value(value))].into();
        let list = serde_json::to_value([&setting]).unwrap();
        assert_eq!(Recurring::of_facts(&facts(list)), [setting]);
        assert_eq!(Recurring::of_facts(&facts(serde_json::json!([7, {"kind": 1}]))), []);
        assert_eq!(Recurring::of_facts(&Facts::new()), []);
    }
}
