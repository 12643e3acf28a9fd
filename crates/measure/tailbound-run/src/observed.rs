// SPDX-License-Identifier: MIT OR Apache-2.0
//! How many of the wake-ups that happened the kernel's tracepoints had.
//!
//! The threads count their own wake-ups; what a column of the trace lacks of them
//! is in its record, in the tables, and a finding.
//! Not here: the trace (`tailbound_record::Observer`).

use std::collections::BTreeMap;

use tailbound_core::finding::Impact;
use tailbound_core::plan::Observe;
use tailbound_core::record::{ThreadRecord, WAKEUPS_NOT_SEEN};
use tailbound_core::units::grouped;
use tailbound_core::{Finding, Plan};

/// Enters what each record lacks of the wake-ups that `happened`, by thread.
pub(crate) fn whole(
    plan: &Plan,
    records: &mut [ThreadRecord],
    happened: &BTreeMap<u32, u64>,
) -> Option<Finding> {
    if plan.observe != Some(Observe::Tracepoints) {
        return None;
    }
    // Contexts in the order of the way.
    let mut sums: Vec<(String, u64, u64)> = Vec::new();
    for record in records {
        let Some(all) = happened.get(&record.thread).copied() else { continue };
        let unseen = all.saturating_sub(record.wakeup.n);
        if unseen > 0 {
            record.dropped.insert(WAKEUPS_NOT_SEEN.to_owned(), unseen);
        }
        let context = record.context.to_string();
        match sums.iter_mut().find(|(c, ..)| *c == context) {
            Some((_, n, of)) => (*n, *of) = (*n + record.wakeup.n.min(all), *of + all),
            None => sums.push((context, record.wakeup.n.min(all), all)),
        }
    }
    let lacking: Vec<String> = sums
        .iter()
        .filter(|(_, n, of)| n < of)
        .map(|(context, n, of)| format!("{} of {} in {context}", grouped(*n), grouped(*of)))
        .collect();
    (!lacking.is_empty()).then(|| {
        Finding::listed(
            "partly-observed",
            Impact::Notice,
            format!("the kernel's trace does not contain every wake-up: {}", lacking.join(", ")),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_trace_lacks_is_counted_and_a_finding() {
        let record = |thread, context: &str, n| {
            let mut record =
                ThreadRecord { thread, context: context.into(), ..ThreadRecord::default() };
            record.wakeup.add_many(1000, n);
            record
        };
        let campaign = tailbound_core::plan::RunConfig::default();
        let request = crate::Request { config: campaign, bare: true };
        let mut plan =
            crate::resolve(&request, &tailbound_host::Root::real()).expect("a plan").plan;
        plan.observe = Some(Observe::Tracepoints);
        let happened = BTreeMap::from([(0, 3000), (1, 3000)]);
        let mut all = [record(0, "irq", 3000), record(0, "thread", 3000)];
        assert_eq!(whole(&plan, &mut all, &happened), None);
        let mut some = [
            record(0, "irq", 3000),
            record(0, "thread", 7),
            record(1, "irq", 3000),
            record(1, "thread", 60),
        ];
        let finding = whole(&plan, &mut some, &happened).expect("a finding");
        assert!(finding.title.ends_with("67 of 6,000 in thread"), "{}", finding.title);
        assert_eq!(some[1].dropped.get(WAKEUPS_NOT_SEEN), Some(&2993));
        assert!(some[0].dropped.is_empty());
        let mut none = [record(0, "irq", 0), record(0, "thread", 0)];
        let finding = whole(&plan, &mut none, &happened).expect("a finding");
        assert!(finding.title.contains("0 of 3,000 in irq, 0 of 3,000 in thread"));
    }
}
