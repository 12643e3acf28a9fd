// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed from a run is computed once, and says why where it cannot be known.
//!
//! Units: ns.

use tailbound_core::record::{ExceedanceRecord, ThreadRecord};
use tailbound_core::{Context, Distribution, Outcome};
use tailbound_stats::{Analysis, Summary};

use crate::verdicts::{plan, run_of};

fn thread(thread: u32, us: i64) -> ThreadRecord {
    let mut wakeup = Distribution::default();
    (0..1000).for_each(|i| wakeup.add(us * 1000 + i));
    let mut missed = Distribution::default();
    missed.add(9_000_000);
    ThreadRecord { thread, cpu: Some(thread), wakeup, missed, ..ThreadRecord::default() }
}

#[test]
fn every_part_is_that_of_the_function_that_makes_it() {
    let run = run_of(plan(None), vec![thread(0, 20), thread(1, 30)]);
    let analysis = Analysis::of(&run);
    assert_eq!(analysis.outcome(), Outcome::Undecided, "nobody judged it");
    let first = &analysis.threads()[0];
    assert_eq!(first.wakeup, Summary::of(&run.threads[0].wakeup));
    assert_eq!((first.missed(), first.due.max_ns), (1, Some(9_000_000)));
    let totals = analysis.totals();
    assert_eq!((totals.len(), totals[0].threads, totals[0].context), (1, 2, Context::User));
    let judged = analysis.judged().expect("threads");
    assert_eq!((judged.due.n, judged.missed()), (2002, 2));
    assert!(analysis.precision().is_some_and(|p| p.why_not.is_some()), "there are no stretches");
    assert!(analysis.phases().is_err_and(|why| why.stretches == 0));
    let bound = analysis.bound().expect("threads");
    assert_eq!(bound, &tailbound_stats::bound::of_run(&run));
    assert!(std::ptr::eq(bound, analysis.bound().expect("threads")), "made once");
}

#[test]
fn a_run_without_threads_has_no_figures() {
    let run = run_of(plan(None), Vec::new());
    let analysis = Analysis::of(&run);
    assert!(analysis.judged().is_none() && analysis.bound().is_none());
    assert!(analysis.threads().is_empty() && analysis.loads().is_empty());
}

#[test]
fn a_mean_beyond_what_sums_hold_is_that_of_the_values() {
    let mut d = Distribution::default();
    d.add_many(3_000_000_000, 2000);
    let s = Summary::of(&d);
    assert_eq!((s.mean_ns, s.sd_ns, s.clamped), (Some(3e9), Some(0.0), 2000));
    assert_eq!((s.skewness, s.kurtosis), (None, None), "not known from a histogram");
    d.add_many(30_000_000_000, 2);
    assert_eq!(Summary::of(&d).mean_ns, None, "two values over range are of unknown size");
}

#[test]
fn missed_activations_are_late_ones_in_a_row() {
    let mut run = run_of(plan(None), vec![thread(0, 20)]);
    let interval_ns = run.header.plan.interval_ns;
    let late = |activation: u64, error_ns: i64, missed: u64| ExceedanceRecord {
        thread: 0,
        activation,
        error_ns,
        t_ns: 0,
        missed,
    };
    run.exceedances = (0..40).map(|i| late(i * 5_000, 100_000, 0)).collect();
    let alone = tailbound_stats::bound::of_run(&run).clustering.expect("forty of them");
    assert!(alone.sentence.contains("one by one"), "{}", alone.sentence);
    run.exceedances.push(late(300_000, 68 * interval_ns + 200_000, 68));
    let row = tailbound_stats::bound::of_run(&run).clustering.expect("more of them");
    assert_eq!(row.exceedances, 40 + 69);
    assert!(row.index < 0.9 && !row.sentence.contains("one by one ("), "{}", row.sentence);
}
