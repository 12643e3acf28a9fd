// SPDX-License-Identifier: MIT OR Apache-2.0
//! Which sections are longer in one kernel than in another.
//!
//! Context: COLD. Units: ns. Sections are the same where kind, first and last function are. Records name the longest
//! of each kind: one that is missing before was shorter than the shortest named there, and is told as such.

use serde::Serialize;
use tailbound_core::paths::{PathsRecord, SectionKind};

/// A section that grew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Grown {
    /// What is not possible in it.
    pub kind: SectionKind,
    /// Where it begins.
    pub from: String,
    /// Where it ends.
    pub to: String,
    /// Its longest before; none: not among the longest there.
    pub before_ns: Option<i64>,
    /// Its longest now.
    pub after_ns: i64,
}

/// Those that grew, the most grown first. One that is not among the longest before counts from the shortest that is.
#[must_use]
pub fn grown(before: &PathsRecord, after: &PathsRecord) -> Vec<Grown> {
    let mut all: Vec<(i64, Grown)> = Vec::new();
    for s in &after.sections {
        let of_kind = || before.sections.iter().filter(|b| b.kind == s.kind);
        let same = of_kind().find(|b| (&b.from, &b.to) == (&s.from, &s.to));
        let before_ns = same.map(|b| b.longest_ns);
        let least = of_kind().map(|b| b.longest_ns).min().unwrap_or(0);
        let by = s.longest_ns.saturating_sub(before_ns.unwrap_or(least));
        if by > 0 {
            let (from, to) = (s.from.clone(), s.to.clone());
            all.push((by, Grown { kind: s.kind, from, to, before_ns, after_ns: s.longest_ns }));
        }
    }
    all.sort_by_key(|(by, _)| std::cmp::Reverse(*by));
    all.into_iter().map(|(_, grown)| grown).collect()
}

#[cfg(test)]
mod tests {
    use tailbound_core::paths::SectionRecord;

    use super::*;

    fn record(sections: &[(&str, i64)]) -> PathsRecord {
        let section = |(from, longest_ns): &(&str, i64)| SectionRecord {
            kind: SectionKind::InterruptsOff,
            from: (*from).to_owned(),
            to: "end".to_owned(),
            n: 1,
            mean_ns: 1,
            longest_ns: *longest_ns,
            at_ns: 0,
            tree: Vec::new(),
        };
        PathsRecord { sections: sections.iter().map(section).collect(), ..PathsRecord::default() }
    }

    #[test]
    fn the_most_grown_come_first_and_what_shrank_not_at_all() {
        let before = record(&[("a", 500), ("b", 300), ("c", 200)]);
        let after = record(&[("new", 900), ("b", 450), ("a", 490), ("c", 201)]);
        let all: Vec<(String, Option<i64>, i64)> =
            grown(&before, &after).into_iter().map(|g| (g.from, g.before_ns, g.after_ns)).collect();
        assert_eq!(
            all,
            [
                ("new".to_owned(), None, 900),
                ("b".to_owned(), Some(300), 450),
                ("c".to_owned(), Some(200), 201)
            ]
        );
    }
}
