// SPDX-License-Identifier: MIT OR Apache-2.0
//! `page-faults`: a measured thread touched memory that was not there, inside the loop.
//!
//! Source: getrusage(2), RUSAGE_THREAD.

use tailbound_core::record::{Fact, ThreadRecord};
use tailbound_core::{Finding, Impact};

/// Looks at the counters of the measured threads.
pub(crate) fn judge(threads: &[ThreadRecord]) -> (Vec<Finding>, Fact) {
    let (mut minor, mut major, mut which, mut unknown) = (0u64, 0u64, Vec::new(), 0usize);
    for t in threads {
        match (t.counters.get("minor_faults"), t.counters.get("major_faults")) {
            (None, None) => unknown = unknown.saturating_add(1),
            (a, b) => {
                // getrusage(2) gives both or neither; only a file of others can lack one.
                let (a, b) = (a.copied().unwrap_or(0), b.copied().unwrap_or(0));
                (minor, major) = (minor.saturating_add(a), major.saturating_add(b));
                if a > 0 || b > 0 {
                    which.push(
                        t.cpu
                            .map_or_else(|| format!("thread {}", t.thread), |c| format!("CPU {c}")),
                    );
                }
            }
        }
    }
    let fact = match (threads.len(), unknown) {
        (0, _) => Fact::Unknown("no thread was measured".to_owned()),
        (_, 0) => Fact::of("watched"),
        (all, n) => Fact::Unknown(format!("{n} of {all} threads have no counters")),
    };
    if which.is_empty() {
        return (Vec::new(), fact);
    }
    let finding = Finding::listed(
        "page-faults",
        Impact::Doubt,
        format!(
            "page faults inside the measuring loop: {minor} minor, {major} major ({})",
            which.join(", ")
        ),
    );
    (vec![finding], fact)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn thread(counters: &[(&str, u64)]) -> ThreadRecord {
        let counters: BTreeMap<String, u64> =
            counters.iter().map(|(k, v)| ((*k).to_owned(), *v)).collect();
        ThreadRecord { cpu: Some(1), counters, ..ThreadRecord::default() }
    }

    #[test]
    fn no_counters_is_not_no_faults() {
        let clean = thread(&[("minor_faults", 0), ("major_faults", 0)]);
        assert_eq!(judge(std::slice::from_ref(&clean)), (Vec::new(), Fact::of("watched")));
        assert!(matches!(judge(&[clean.clone(), thread(&[])]).1, Fact::Unknown(_)));
        assert!(matches!(judge(&[]).1, Fact::Unknown(_)));
        let (found, _) = judge(&[clean, thread(&[("minor_faults", 3), ("major_faults", 1)])]);
        let found: Vec<_> =
            found.iter().map(|f| (f.id.as_str(), f.impact, f.title.as_str())).collect();
        let title = "page faults inside the measuring loop: 3 minor, 1 major (CPU 1)";
        assert_eq!(found, [("page-faults", Impact::Doubt, title)]);
    }
}
