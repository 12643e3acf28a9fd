// SPDX-License-Identifier: MIT OR Apache-2.0
//! Response times that the literature gives, to the unit, and models that have none.
//!
//! Units: 1 ms of the examples is 1 ms here.

use tailbound_core::Outcome;
use tailbound_core::policy::Policy;
use tailbound_core::tasks::{Arrivals, Model, Task, parse};
use tailbound_stats::tasks::{
    Change, JobHistory, NoBound, ResponseTimes, TermKind, analyse, named,
};

const MS: i64 = 1_000_000;

/// Execution and period in ms, the most urgent first.
fn set(tasks: &[(i64, i64)]) -> Model {
    let tasks = tasks.iter().zip((1..=99).rev()).map(|((cost, period), priority)| {
        let arrivals = Arrivals::Periodic { period_ns: period * MS, jitter_ns: 0 };
        Task::new(&format!("t{}", 100 - priority), Policy::Fifo(priority), 0, arrivals, cost * MS)
    });
    Model { tasks: tasks.collect(), watched_ns: None }
}

fn bounds(model: &Model) -> Vec<Option<i64>> {
    let ns =
        |a: ResponseTimes| a.threads.into_iter().map(|t| t.bound.ok().map(|b| b.ns / MS)).collect();
    ns(analyse(model))
}

#[test]
fn classic_examples_have_their_response_times() {
    for (name, tasks, responses) in [
        // Burns and Wellings, Real-Time Systems and Programming Languages, task set B of chapter 11.
        (
            "Burns and Wellings B",
            &[(10, 30), (10, 40), (12, 50)][..],
            &[Some(10), Some(20), Some(52)][..],
        ),
        ("Burns and Wellings C", &[(5, 20), (10, 40), (40, 80)], &[Some(5), Some(15), Some(80)]),
        ("Burns and Wellings D", &[(3, 7), (3, 12), (5, 20)], &[Some(3), Some(6), Some(20)]),
        // Buttazzo, Hard Real-Time Computing Systems, response-time analysis of four tasks.
        ("Buttazzo", &[(1, 4), (1, 5), (2, 6), (1, 11)], &[Some(1), Some(2), Some(4), Some(10)]),
        // Lehoczky, RTSS 1990, examples 2 and 3: the longest response is not the first job's.
        ("Lehoczky 2", &[(52, 100), (52, 140)], &[Some(52), Some(156)]),
        ("Lehoczky 3", &[(26, 70), (62, 100)], &[Some(26), Some(118)]),
        // Liu and Layland 1973: full load of harmonic periods.
        ("harmonic", &[(1, 2), (1, 4), (2, 8)], &[Some(1), Some(2), Some(8)]),
    ] {
        assert_eq!(bounds(&set(tasks)), responses, "{name}");
    }
}

#[test]
fn blocking_and_jitter_of_the_literature() {
    // Audsley et al. 1993: w = C + B + interference, with the jitter of the others.
    let mut model = set(&[(3, 7), (3, 12), (5, 20)]);
    for (task, blocking) in model.tasks.iter_mut().zip([2, 2, 0]) {
        task.blocking_once_ns = blocking * MS;
    }
    let answer = analyse(&model);
    let found: Vec<_> =
        answer.threads.iter().map(|t| t.bound.as_ref().map(|b| b.ns / MS)).collect();
    // 3 + 2; 3 + 2 + 2 × 3; the blocking of the higher ones does not delay the lowest.
    assert_eq!(found, [Ok(5), Ok(11), Ok(20)]);
    if let Some(first) = model.tasks.first_mut() {
        first.arrivals = Arrivals::Periodic { period_ns: 7 * MS, jitter_ns: 2 * MS };
    }
    if let Some(second) = model.tasks.get_mut(1) {
        second.blocking_once_ns = 0;
    }
    // In 6 ms the first comes twice: 3 + 2 × 3 = 9 ms.
    assert_eq!(bounds(&model).get(1), Some(&Some(9)));
}

#[test]
fn the_longer_of_two_jobs_is_not_counted_twice() {
    let mut model = set(&[(4, 10), (5, 30)]);
    if let Some(first) = model.tasks.first_mut() {
        first.execution_ns = vec![4 * MS, 5 * MS];
    }
    // 5 + 4 = 9 ms: before the second job comes. With 2 ms more: 7 + 5.
    assert_eq!(bounds(&model), [Some(4), Some(9)]);
    if let Some(second) = model.tasks.get_mut(1) {
        second.execution_ns = vec![7 * MS];
    }
    assert_eq!(bounds(&model), [Some(4), Some(12)]);
}

#[test]
fn too_much_has_no_fixed_point_and_says_so() {
    let answer = analyse(&set(&[(6, 10), (5, 10)]));
    let [first, second] = answer.threads.as_slice() else { panic!("{answer:?}") };
    assert!(first.bound.is_ok());
    let why = second.bound.as_ref().map(|_| ()).map_err(ToString::to_string);
    assert!(
        why.as_ref().is_err_and(|w| w.starts_with("not schedulable") && w.contains("110 %")),
        "{why:?}"
    );
    assert_eq!(answer.outcome(), Outcome::Undecided);
}

#[test]
fn what_the_analysis_does_not_cover_is_refused() {
    let base = set(&[(1, 10), (1, 10)]);
    let with = |i: usize, change: &dyn Fn(&mut Task)| {
        let mut model = base.clone();
        model.tasks.get_mut(i).map(change);
        analyse(&model).threads.into_iter().map(|t| t.bound.err()).collect::<Vec<_>>()
    };
    let moves = with(0, &|t| t.cpus = vec![0, 1]);
    assert!(
        matches!(moves.as_slice(), [Some(NoBound::Moves(_)), Some(NoBound::OtherMoves { .. })]),
        "{moves:?}"
    );
    let moves = with(1, &|t| t.cpus = vec![0, 1]);
    assert!(matches!(moves.as_slice(), [None, Some(NoBound::Moves(_))]), "{moves:?}");
    let deadline = Policy::Deadline { runtime_ns: 1, period_ns: 2 };
    let edf = with(1, &|t| t.policy = deadline);
    assert!(
        matches!(edf.as_slice(), [Some(NoBound::DeadlineThread { .. }), Some(NoBound::Policy(_))]),
        "{edf:?}"
    );
    assert!(matches!(
        with(1, &|t| t.policy = Policy::Other).as_slice(),
        [None, Some(NoBound::Policy(_))]
    ));
    let few = with(0, &|t| t.arrivals = Arrivals::Curve(Vec::new()));
    assert!(
        matches!(few.as_slice(), [Some(NoBound::FewJobs { .. }), Some(NoBound::FewJobs { .. })]),
        "{few:?}"
    );
    let at_once = with(0, &|t| t.arrivals = Arrivals::Curve(vec![0, 0]));
    assert!(matches!(at_once.as_slice(), [Some(NoBound::AtOnce { .. }), Some(_)]), "{at_once:?}");
}

#[test]
fn numbers_of_anybody_neither_overflow_nor_hang() {
    let odd = [0, 1, 2, i64::MAX, i64::MIN, -1, 1 << 40, 86_400_000_000_000];
    for a in odd {
        for b in odd {
            let mut model = set(&[(1, 10), (1, 20)]);
            for (task, priority) in model.tasks.iter_mut().zip([2, 1]) {
                task.policy = Policy::Fifo(priority);
                task.execution_ns = vec![b, a, 5];
                (task.suspension_ns, task.latency_ns) = (vec![b], vec![a.saturating_abs() / 2, b]);
                task.suspensions = u32::MAX;
                task.non_preemptible_ns = 7;
                task.arrivals = match priority {
                    1 => Arrivals::Curve(vec![a, b]),
                    _ => Arrivals::Periodic { period_ns: a, jitter_ns: b },
                };
            }
            assert_eq!(analyse(&model).threads.len(), 2);
        }
    }
    // Full load in the smallest steps: given up, not computed for ever.
    let mut model = set(&[(1, 2), (1, 2), (1, 1000)]);
    for task in &mut model.tasks {
        task.execution_ns = vec![1];
        task.arrivals = Arrivals::Periodic { period_ns: 2, jitter_ns: 0 };
    }
    assert!(analyse(&model).threads.last().is_some_and(|t| t.bound.is_err()));
}

#[test]
fn what_if_changes_the_answer() {
    let text = r#"
        [[task]]
        name = "slow"
        priority = 80
        period = "100ms"
        wcet = "20ms"
        [[task]]
        name = "fast"
        priority = 70
        period = "10ms"
        wcet = "2ms"
        deadline = "10ms"
    "#;
    let mut model = parse(text).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bounds(&model), [Some(20), Some(22)]);
    assert_eq!(analyse(&model).outcome(), Outcome::Undecided);
    let change: Change = "priority:fast=90".parse().unwrap_or_else(|e| panic!("{e}"));
    change.apply(&mut model).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bounds(&model), [Some(26), Some(2)]);
    assert_eq!(analyse(&model).outcome(), Outcome::Met);
    let change: Change =
        "add:name=x,period=5ms,wcet=1ms,priority=95".parse().unwrap_or_else(|e| panic!("{e}"));
    change.apply(&mut model).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bounds(&model), [Some(35), Some(3), Some(1)]);
    assert!(change.apply(&mut model).is_err_and(|e| e.to_string().contains("already")));
    let change: Change = "cpu:slow=1".parse().unwrap_or_else(|e| panic!("{e}"));
    change.apply(&mut model).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(bounds(&model), [Some(20), Some(3), Some(1)]);
    let wrong = named(&mut model, "fats").map(|_| ()).map_err(|e| e.to_string());
    assert!(wrong.as_ref().is_err_and(|e| e.contains("did you mean `fast`?")), "{wrong:?}");
    for text in [
        "",
        "priority",
        "priority:x",
        "priority:x=0",
        "priority:x=100",
        "cpu:x=9999",
        "cpu:x=-1",
        "add:name",
        "drop:x=1",
    ] {
        assert!(text.parse::<Change>().is_err(), "{text}");
    }
}

#[test]
fn a_section_that_one_thread_met_can_meet_every_thread_of_its_cpu() {
    let mut model = set(&[(1, 10), (1, 20)]);
    if let Some(second) = model.tasks.get_mut(1) {
        (second.section_ns, second.latency_ns) = (3 * MS, vec![3 * MS]);
    }
    let answer = analyse(&model);
    assert_eq!(bounds(&model), [Some(4), Some(5)]);
    let first = answer.threads.first().and_then(|t| t.bound.as_ref().ok());
    assert_eq!(first.and_then(|b| b.largest()).map(|t| &t.kind), Some(&TermKind::Latency));
}

#[test]
fn what_was_watched_is_a_condition() {
    let mut watched = JobHistory::new(0, "w", None, Policy::Fifo(9));
    for k in 0..100 {
        watched.job(&tailbound_core::tasks::Job {
            release_ns: k * 10 * MS,
            end_ns: k * 10 * MS + 2 * MS,
            execution_ns: 2 * MS,
            ..Default::default()
        });
    }
    let answer = analyse(&Model::of(&[watched.record()]));
    assert!(
        answer.condition().contains("992 ms") && answer.condition().contains("no guarantee"),
        "{}",
        answer.condition()
    );
    assert_eq!(
        answer.threads.first().and_then(|t| t.bound.as_ref().ok()).map(|b| b.ns),
        Some(2 * MS)
    );
}

/// A stall that is longer than the period holds several jobs up, but once.
#[test]
fn one_stall_of_several_periods_is_not_one_for_each_job() {
    let mut watched = JobHistory::new(0, "w", None, Policy::Fifo(9));
    for k in 0..1000i64 {
        // From job 500 on: 6.5 ms late, and the next ones as late as they still have to be.
        let stall_end = 500 * 2 * MS + 13 * MS / 2;
        let release_ns = k * 2 * MS;
        let late =
            if (500..504).contains(&k) { stall_end - release_ns + (k - 500) * MS / 10 } else { 0 };
        let alone = if k == 500 { late } else { 0 };
        watched.job(&tailbound_core::tasks::Job {
            release_ns,
            end_ns: release_ns + late + MS / 10,
            execution_ns: MS / 10,
            latency_ns: alone,
            section_ns: alone,
            ..Default::default()
        });
    }
    let answer = analyse(&Model::of(&[watched.record()]));
    let bound = answer.threads.first().map(|t| t.bound.as_ref().map(|b| b.ns));
    assert_eq!(bound, Some(Ok(13 * MS / 2 + MS / 10)), "{answer:?}");
}
