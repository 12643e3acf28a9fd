// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loops of somebody else's, on simulated time: nothing that fell due is forgotten, whether
//! the loop serves it late or leaves it out.

use std::sync::atomic::Ordering;

use tailbound_rt::h2;
use tailbound_rt::jobs::{Counts, JobError, Jobs};
use tailbound_rt::recorder::Recorder;

const P: i64 = 1_000_000;

struct World {
    start: Box<Recorder>,
    completion: Box<Recorder>,
    counts: Counts,
}

fn recorder() -> Box<Recorder> {
    Box::default()
}

impl World {
    fn new() -> Self {
        Self { start: recorder(), completion: recorder(), counts: Counts::new() }
    }
    fn jobs(&self) -> Jobs<'_> {
        Jobs::new(&self.start, &self.completion, &self.counts, P)
    }
}

/// The missed activations as a sorted list of bucket lows.
fn missed(r: &Recorder) -> Vec<u64> {
    let mut out = Vec::new();
    for (i, bucket) in r.missed_buckets().iter().enumerate() {
        let n = bucket.load(Ordering::Relaxed);
        out.extend((0..n).map(|_| h2::bounds(i, h2::PRECISION).0));
    }
    out
}

fn bucket(v: u64) -> u64 {
    h2::bounds(h2::index(v, h2::PRECISION), h2::PRECISION).0
}

#[test]
fn a_loop_that_serves_everything_has_nothing_missed() {
    let w = World::new();
    let mut jobs = w.jobs();
    // The third cycle takes 4.5 periods; what fell due meanwhile is served late, one by one.
    let mut free = 0;
    for k in 0..10i64 {
        let due = k * P;
        let now = free.max(due + 2_000);
        jobs.start(due, now).expect("in order");
        free = now + if k == 2 { 4 * P + P / 2 } else { 50_000 };
        jobs.end(free).expect("started");
    }
    jobs.finish();
    assert_eq!((w.start.wakeups().n, w.start.missed().n), (10, 0));
    assert_eq!(w.start.wakeups().max_ns, Some(3 * P + P / 2 + 2_000), "the fourth started late");
    assert_eq!(w.completion.wakeups().max_ns, Some(4 * P + P / 2 + 2_000));
    let progress = w.counts.progress();
    assert_eq!((progress.activations, progress.unended, progress.finished), (10, 0, true));
}

#[test]
fn what_an_overrun_leaves_out_is_missed_as_late_as_it_would_have_been() {
    let w = World::new();
    let mut jobs = w.jobs();
    jobs.start(0, 1_000).expect("first");
    let free = 3 * P + 400_000;
    jobs.end(free).expect("done");
    let due = jobs.next_due_ns(free);
    assert_eq!(due, 4 * P, "the first that is still to come");
    jobs.start(due, due + 5_000).expect("second");
    jobs.end(due + 45_000).expect("done");
    jobs.finish();
    // Three were left out: they could have started at 3.4 ms.
    let late = [400_000u64, 1_400_000, 2_400_000];
    assert_eq!(missed(&w.start), late.map(bucket));
    // Each would have taken as long as the cycle that came: 40 µs.
    assert_eq!(missed(&w.completion), late.map(|l| bucket(l + 40_000)));
    assert_eq!(w.start.missed().max_ns, Some(2_400_000));
    assert_eq!(w.counts.progress().activations, 5);
}

#[test]
fn what_was_slept_through_could_have_started_with_the_next() {
    let w = World::new();
    let mut jobs = w.jobs();
    jobs.start(0, 1_000).expect("first");
    jobs.end(30_000).expect("done");
    // The loop slept until the fourth period although nothing held it up.
    jobs.start(4 * P, 4 * P + 7_000).expect("next");
    jobs.end(4 * P + 9_000).expect("done");
    jobs.finish();
    assert_eq!(missed(&w.start), [1_007_000, 2_007_000, 3_007_000].map(bucket));
    assert_eq!(missed(&w.completion), [1_009_000, 2_009_000, 3_009_000].map(bucket));
}

#[test]
fn wrong_calls_are_refused_and_counted() {
    let w = World::new();
    let mut jobs = w.jobs();
    assert_eq!(jobs.end(5), Err(JobError::NotStarted));
    assert_eq!(jobs.next_due_ns(7), 7 + P);
    jobs.start(P, P + 10).expect("first");
    jobs.end(P + 20).expect("done");
    assert_eq!(jobs.start(P, P + 30), Err(JobError::Order), "the same cycle twice");
    assert_eq!(jobs.end(P + 40), Err(JobError::NotStarted));
    jobs.start(2 * P, 2 * P - 10).expect("early is a latency too");
    jobs.start(3 * P, 3 * P + 10).expect("the cycle before was never ended");
    jobs.finish();
    let progress = w.counts.progress();
    assert_eq!((progress.refused, progress.unended), (3, 2));
    assert_eq!((w.start.wakeups().n, w.completion.wakeups().n), (3, 1));
    assert_eq!(w.start.wakeups().min_ns, Some(-10));
}

#[test]
fn absurd_times_are_survived() {
    let w = World::new();
    let mut jobs = w.jobs();
    for (due, now) in [(i64::MIN, i64::MAX), (0, i64::MAX), (i64::MAX, 0), (i64::MAX, 1)] {
        let _ = jobs.start(due, now);
        let _ = jobs.end(now);
    }
    jobs.finish();
    assert_eq!(w.start.wakeups().n, 2);
    assert_eq!(w.counts.progress().refused, 4, "what is yet to come cannot be left out");
}
