// SPDX-License-Identifier: MIT OR Apache-2.0
//! Runs side by side: ratios, what is missing, and the notes.
//!
//! Units: ns.

use tailbound_core::EndReason;
use tailbound_core::record::{End, Round, ThreadRecord};
use tailbound_stats::compare::{Design, Systems};
use tailbound_stats::{Quantile, compare};

use crate::verdicts::{plan, run_of};

fn thread(context: &str, value_ns: i64, n: u64) -> ThreadRecord {
    let mut t = ThreadRecord { context: context.into(), ..ThreadRecord::default() };
    t.wakeup.add_many(value_ns, n);
    t
}

#[test]
fn ratios_are_to_the_first_run_and_gaps_stay_gaps() {
    let a = run_of(plan(None), vec![thread("user", 1000, 2000), thread("irq", 500, 2000)]);
    let mut b = run_of(plan(None), vec![thread("user", 1500, 500)]);
    b.threads[0].missed.add_many(1500, 3);
    b.header.plan.interval_ns = 200_000;
    let table = compare(&[("a", &a), ("b", &b)]);
    let cell = |context: &str, statistic: &str| {
        let row =
            table.rows.iter().find(|r| r.context.as_str() == context && r.statistic == statistic);
        row.and_then(|r| r.cells.get(1)).copied().expect("a cell")
    };
    assert_eq!(cell("user", "p50").ratio, Some(1.5));
    assert_eq!(cell("user", "max").ratio, Some(1.5));
    assert_eq!(cell("user", "p99").value, Quantile::Needs { more: 497 });
    assert_eq!(cell("user", "p99").ratio, None);
    assert_eq!(cell("irq", "p50").value, Quantile::Unknown);
    assert_eq!(table.runs[1].contexts[0].missed, 3);
    let notes = table.notes.join("\n");
    for part in
        ["differ in the interval: 500 µs; 200 µs", "`b` has no context `irq`", "missed 3 of 503"]
    {
        assert!(notes.contains(part), "`{part}` in {notes}");
    }
    assert!(serde_json::to_string(&table).is_ok());
    assert!(compare(&[]).rows.is_empty());
}

#[test]
fn files_of_one_series_without_a_common_round_are_single_runs() {
    let of = |variant: &str, round: u32| {
        let mut run = run_of(plan(None), vec![thread("user", 1000, 2000)]);
        run.end = Some(End { reason: EndReason::Complete, measured_ns: 1, lines: 0 });
        run.header.round = Some(Round {
            series: "s".into(),
            variant: variant.into(),
            round,
            rounds: 6,
            place: 0,
            seed: 1,
        });
        run
    };
    for second in [of("slow", 1), of("plain", 1)] {
        let given = [("a".to_owned(), vec![of("plain", 0)]), ("b".to_owned(), vec![second])];
        let systems = Systems::of(&given, &[]).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((systems.design, systems.names().len()), (Design::Stretches, 2));
        assert!(systems.notes.iter().any(|n| n.contains("no round in common")));
    }
    let given = [("a".to_owned(), vec![of("plain", 0)]), ("b".to_owned(), vec![of("slow", 0)])];
    assert_eq!(Systems::of(&given, &[]).map(|s| s.design), Ok(Design::Rounds));
}
