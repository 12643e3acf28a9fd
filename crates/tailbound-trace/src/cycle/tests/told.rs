// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told of cycles: the parts of one, overruns, who held a lock, a given period.

use tailbound_core::blame::{Cause, Phase};
use tailbound_core::cycle::PaceKind;

use super::story::{FUTEX, NANOSLEEP, Pacing, READ, Spec, Step, Story};
use super::{Wish, cycles, faults};

const SECOND: u64 = 1_000_000_000;

fn wish() -> Wish {
    Wish { worst: 5, ..Wish::default() }
}

#[test]
fn a_sleep_within_the_cycle_is_a_part_of_it() {
    let sleep = Step::Suspend {
        id: NANOSLEEP,
        args: [1, 0, 0x9000, 0],
        least: 3_000_000,
        most: 3_000_001,
        one_in: 1,
    };
    let spec = Spec {
        pid: 7,
        prio: 20,
        pacing: Pacing::Timer { period: 10_000_000 },
        steps: vec![Step::Run(500_000, 500_001), sleep, Step::Fault, Step::Run(200_000, 200_001)],
    };
    let (entries, truth) = Story::new(3, &[spec], 0).play(2 * SECOND);
    let found = cycles(&[7], &entries, &[], wish()).remove(&7).expect("the thread");
    assert!(faults(&found, &truth[&7], &[]).is_empty());
    let c = &found.cycles;
    assert_eq!((c.pace.kind, c.pace.period_ns), (PaceKind::Periodic, Some(10_000_000)));
    assert_eq!(c.page_faults, c.cycles);
    let blocked = c.causes.iter().find(|x| x.phase == Phase::Blocked).expect("blocked");
    assert_eq!(
        (blocked.cause, blocked.who.as_str()),
        (Cause::Blocked, "in clock_nanosleep for a time")
    );
    assert!(blocked.cycles == c.cycles && (2_990_000..3_010_000).contains(&blocked.worst_ns));
    let own = c.causes.iter().find(|x| x.cause == Cause::Own).expect("own work");
    let mean = own.total_ns / i64::try_from(c.cycles).expect("a count");
    assert!((700_000..720_000).contains(&mean), "{mean}");
    let worst = c.worst.first().expect("a longest cycle");
    assert!(worst.chain.iter().any(|s| s.contains("clock_nanosleep")), "{:?}", worst.chain);
    assert!(!worst.lanes.is_empty());
}

#[test]
fn overruns_are_cycles_of_their_own() {
    // One in some cycles takes longer than the period: the next begins without a sleep.
    let long = Step::Suspend {
        id: FUTEX,
        args: [0x77, 0x80, 0, 0],
        least: 6_000_000,
        most: 7_000_000,
        one_in: 8,
    };
    let spec = Spec {
        pid: 7,
        prio: 20,
        pacing: Pacing::Timer { period: 5_000_000 },
        steps: vec![Step::Run(300_000, 900_000), long, Step::Run(100_000, 200_000)],
    };
    let (entries, truth) = Story::new(9, &[spec], 0).play(3 * SECOND);
    let found = cycles(&[7], &entries, &[], wish()).remove(&7).expect("the thread");
    let wrong = faults(&found, &truth[&7], &[]);
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(found.cycles.overruns > 20, "{}", found.cycles.overruns);
    assert!(found.cycles.misses >= found.cycles.overruns, "{}", found.cycles.misses);
}

#[test]
fn backlogs_of_a_driven_thread_are_cycles_of_their_own() {
    let long = Step::Suspend {
        id: FUTEX,
        args: [0x77, 0x80, 0, 0],
        least: 9_000_000,
        most: 14_000_000,
        one_in: 10,
    };
    let spec = Spec {
        pid: 7,
        prio: 20,
        pacing: Pacing::Outside { period: 5_000_000, jitter: 100_000 },
        steps: vec![Step::Run(300_000, 900_000), long, Step::Run(100_000, 200_000)],
    };
    let (entries, truth) = Story::new(11, &[spec], 0).play(3 * SECOND);
    let found = cycles(&[7], &entries, &[], wish()).remove(&7).expect("the thread");
    let ends: std::collections::HashSet<u64> = truth[&7].iter().map(|t| t.end).collect();
    let jobs = &found.cycles.jobs;
    assert!(jobs.iter().all(|j| ends.contains(&(j.release_ns + j.response_ns).cast_unsigned())));
    // The first began before anything was seen; of the last two the next wait was not seen to its end.
    assert_eq!(jobs.len() + 3, truth[&7].len());
}

#[test]
fn a_higher_thread_is_told_as_preemption() {
    let low = Spec {
        pid: 7,
        prio: 50,
        pacing: Pacing::Timer { period: 10_000_000 },
        steps: vec![Step::Run(4_000_000, 4_000_001)],
    };
    let high = Spec {
        pid: 8,
        prio: 10,
        pacing: Pacing::Timer { period: 3_000_000 },
        steps: vec![Step::Run(700_000, 700_001)],
    };
    let (entries, _) = Story::new(5, &[low, high], 0).play(2 * SECOND);
    let found = cycles(&[7], &entries, &[], wish()).remove(&7).expect("the thread");
    let preempted = found.cycles.causes.iter().find(|c| c.phase == Phase::Preempted);
    let preempted = preempted.expect("preempted");
    assert_eq!((preempted.cause, preempted.who.as_str()), (Cause::HigherPriority, "t8"));
}

#[test]
fn what_the_user_knows_stands() {
    let spec = Spec {
        pid: 7,
        prio: 20,
        pacing: Pacing::Outside { period: 4_000_000, jitter: 10_000 },
        steps: vec![
            Step::Run(200_000, 300_000),
            Step::Suspend {
                id: READ,
                args: [9, 0, 4, 0],
                least: 100_000,
                most: 400_000,
                one_in: 1,
            },
            Step::Run(200_000, 300_000),
        ],
    };
    let (entries, _) = Story::new(5, &[spec], 0).play(2 * SECOND);
    let known = Wish {
        period_ns: Some(4_000_000),
        deadline_ns: Some(800_000),
        activation: Some("read".to_owned()),
        ..wish()
    };
    let found = cycles(&[7], &entries, &[], known).remove(&7).expect("the thread");
    let c = &found.cycles;
    assert!(c.pace.given && c.activation.as_ref().is_some_and(|a| a.given));
    assert_eq!(c.activation.as_ref().map(|a| a.wait.as_str()), Some("read of descriptor 5"));
    assert_eq!(c.deadline_ns, Some(800_000));
    let late = c.jobs.iter().filter(|j| j.response_ns > 800_000).count() as u64;
    assert!(late > 0 && c.misses == late);
    let none = Wish { activation: Some("ioctl".to_owned()), ..wish() };
    let found = cycles(&[7], &entries, &[], none).remove(&7).expect("the thread");
    assert_eq!((found.cycles.cycles, found.cycles.activation), (0, None));
}
