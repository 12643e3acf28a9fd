// SPDX-License-Identifier: MIT OR Apache-2.0
//! No response that a scheduler shows exceeds the bound computed from what it shows.
//!
//! Units: ns. `TAILBOUND_SEED=N` plays one set alone, `TAILBOUND_SETS=N` plays more.

use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Arrivals, Model, Task, TaskRecord};
use tailbound_stats::random::Random;
use tailbound_stats::tasks::{JobHistory, analyse};

use super::scheduler::{Op, Played, play};
use super::sets::{Habits, between, set};

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

fn records(played: &[Played], exit_ns: i64) -> Vec<TaskRecord> {
    let jobs = play(played, exit_ns);
    played
        .iter()
        .zip(jobs)
        .zip(0..)
        .map(|((task, jobs), thread)| {
            let policy = Policy::Fifo(task.priority);
            let mut watched = JobHistory::new(thread, &format!("t{thread}"), None, policy);
            assert_eq!(jobs.len(), task.jobs.len(), "every job is done");
            for job in &jobs {
                let of = job.execution_ns + job.suspension_ns + job.blocked_ns + job.latency_ns;
                assert!(of <= job.response_ns(), "{job:?}");
                watched.job(job);
            }
            watched.record()
        })
        .collect()
}

/// Bounds that are given and bounds that are not.
fn compare(habits: Habits, seeds: u64) -> (usize, usize) {
    let (mut given, mut refused) = (0, 0);
    let one = number("TAILBOUND_SEED");
    for seed in one.map_or(0..number("TAILBOUND_SETS").unwrap_or(seeds), |s| s..s + 1) {
        let mut random = Random::new(seed);
        let load = 0.2 + 0.75 * random.uniform();
        let exit_ns = if habits.holds { between(&mut random, 0, 30) } else { 0 };
        let played = set(&mut random, habits, load, 400_000);
        let records = records(&played, exit_ns);
        let answer = analyse(&Model::of(&records));
        for (thread, record) in answer.threads.iter().zip(&records) {
            match &thread.bound {
                Ok(bound) => {
                    given += 1;
                    assert!(
                        record.response.ns <= bound.ns,
                        "seed {seed}, {}: a response of {} ns beyond the bound {bound:?}\n{answer:#?}\n{records:#?}",
                        thread.name,
                        record.response.ns,
                    );
                    let sum: i64 = bound.terms.iter().map(|t| t.ns).sum();
                    assert_eq!(sum, bound.ns, "the parts are the whole: {bound:?}");
                }
                Err(_) => refused += 1,
            }
        }
    }
    (given, refused)
}

const PLAIN: Habits = Habits { sleeps: false, locks: false, holds: false, equals: false };

#[test]
fn no_response_exceeds_its_bound_where_jobs_only_compute() {
    let (given, refused) = compare(PLAIN, 2000);
    assert!(given > 9 * refused, "{given} given, {refused} refused");
}

#[test]
fn no_response_exceeds_its_bound_among_equals() {
    let (given, refused) = compare(Habits { equals: true, ..PLAIN }, 1000);
    assert!(given > 4 * refused, "{given} given, {refused} refused");
}

#[test]
fn no_response_exceeds_its_bound_where_jobs_sleep() {
    let (given, refused) = compare(Habits { sleeps: true, ..PLAIN }, 1500);
    assert!(given > refused, "{given} given, {refused} refused");
}

#[test]
fn no_response_exceeds_its_bound_where_jobs_wait_for_lower_ones() {
    let (given, refused) = compare(Habits { locks: true, holds: true, ..PLAIN }, 1500);
    assert!(given > refused, "{given} given, {refused} refused");
}

#[test]
fn no_response_exceeds_its_bound_where_jobs_do_everything() {
    let all = Habits { sleeps: true, locks: true, holds: true, equals: true };
    let (given, refused) = compare(all, 1500);
    assert!(given * 2 > refused, "{given} given, {refused} refused");
}

#[test]
fn the_bound_of_periodic_threads_released_together_is_reached() {
    let mut reached = 0;
    for seed in 0..500 {
        let mut random = Random::new(seed);
        let n = between(&mut random, 2, 6);
        let all: Vec<(i64, i64)> = (0..n)
            .map(|_| {
                let period = between(&mut random, 20, 400);
                (period, between(&mut random, 1, (period / n).max(1)))
            })
            .collect();
        let played: Vec<Played> = all
            .iter()
            .zip(1..)
            .map(|((period, cost), priority)| Played {
                priority,
                jobs: (0..60_000 / period).map(|k| (k * period, vec![Op::Run(*cost)])).collect(),
            })
            .collect();
        let tasks = all.iter().zip(1..).map(|((period_ns, cost), priority)| {
            let arrivals = Arrivals::Periodic { period_ns: *period_ns, jitter_ns: 0 };
            Task::new("t", Policy::Fifo(priority), 0, arrivals, *cost)
        });
        let model = Model { tasks: tasks.collect(), watched_ns: None };
        let answer = analyse(&model);
        for (thread, jobs) in answer.threads.iter().zip(play(&played, 0)) {
            let seen = jobs.iter().map(tailbound_core::tasks::Job::response_ns).max();
            match &thread.bound {
                Ok(bound) => {
                    reached += 1;
                    assert_eq!(seen, Some(bound.ns), "seed {seed}: {answer:?}");
                }
                Err(why) => panic!("seed {seed}: {why}"),
            }
        }
    }
    assert!(reached > 1000);
}
