// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is computed from a run is computed once, and says why where it cannot be known.
//!
//! Context: COLD. Units: ns.

use tailbound_core::record::ThreadRecord;
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
