// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether the supervisor came to its looks in time, and how long one took.
//!
//! Units: ns of the run's clock, from the first due activation.
//! Not here: what a late look did to a load's phases (`tailbound-load`, `phase`).

use tailbound_core::finding::{Finding, Impact};
use tailbound_core::units::format_ns_i64;

/// Later than this is told: a second of the schedule went by without a look.
const LATE_NS: i64 = 1_000_000_000;

/// The worst so far.
#[derive(Debug, Default)]
pub(crate) struct Punctual {
    /// By how much a look began too late, and when that was.
    late: (i64, i64),
    /// How long a look took, and when it began.
    took: (i64, i64),
}

impl Punctual {
    /// A look that was to begin at `due_ns` began at `now_ns`.
    pub(crate) fn woke(&mut self, due_ns: i64, now_ns: i64) {
        self.late = self.late.max((now_ns.saturating_sub(due_ns), now_ns));
    }

    /// A look lasted from `from_ns` to `until_ns`.
    pub(crate) fn looked(&mut self, from_ns: i64, until_ns: i64) {
        self.took = self.took.max((until_ns.saturating_sub(from_ns), from_ns));
    }

    /// What a reader of the run must know of it.
    pub(crate) fn finding(&self) -> Option<Finding> {
        let of = |(ns, at): (i64, i64), what: &str| {
            (ns > LATE_NS)
                .then(|| format!("{what} {} (at {})", format_ns_i64(ns), format_ns_i64(at)))
        };
        let late = of(self.late, "looked up to");
        let late = late.map(|l| l.replacen(" (at", " after its time (at", 1));
        let took = of(self.took, "needed up to").map(|t| t.replacen(" (at", " for a look (at", 1));
        let both: Vec<String> = [late, took].into_iter().flatten().collect();
        if both.is_empty() {
            return None;
        }
        let title = format!("the supervisor of the run {}", both.join(" and "));
        Some(Finding::listed("supervisor-late", Impact::Notice, title))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_supervisor_is_named_with_its_lateness() {
        let mut it = Punctual::default();
        it.woke(1_005_000_000, 1_005_080_000);
        it.looked(1_005_080_000, 1_006_000_000);
        assert!(it.finding().is_none());
        it.woke(2_005_000_000, 12_405_000_000);
        it.woke(13_005_000_000, 13_105_000_000);
        let title = it.finding().map(|f| f.title).unwrap_or_default();
        assert_eq!(
            title,
            "the supervisor of the run looked up to 10.4 s after its time (at 12.4 s)"
        );
        it.looked(14_000_000_000, 16_500_000_000);
        let title = it.finding().map(|f| f.title).unwrap_or_default();
        assert!(title.ends_with("and needed up to 2.50 s for a look (at 14.0 s)"), "{title}");
    }
}
