// SPDX-License-Identifier: MIT OR Apache-2.0
//! What is told of cycles: the parts of one, overruns, who held a lock, a given period.

use tailbound_core::blame::{Cause, Phase};
use tailbound_core::cycle::PaceKind;

use super::story::{FUTEX, NANOSLEEP, Pacing, READ, Spec, Step, Story};
use super::{Wish, cycles, faults};
use crate::event::{Entry, Event, Flags};

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
fn a_loop_that_is_always_late_is_still_paced_by_its_timer() {
    // A service within the cycle takes about as long as the period, or longer.
    for (most, seed) in [(12_000_000, 21), (40_000_000, 22)] {
        let service =
            Step::Suspend { id: READ, args: [5, 0, 1, 0], least: 3_000_000, most, one_in: 1 };
        let spec = Spec {
            pid: 7,
            prio: 20,
            pacing: Pacing::Timer { period: 8_000_000 },
            steps: vec![Step::Run(300_000, 400_000), service, Step::Run(100_000, 200_000)],
        };
        let (entries, truth) = Story::new(seed, &[spec], 0).play(5 * SECOND);
        let found = cycles(&[7], &entries, &[], wish()).remove(&7).expect("the thread");
        let wrong = faults(&found, &truth[&7], &[]);
        assert!(wrong.is_empty(), "{wrong:#?}");
        let c = &found.cycles;
        assert_eq!((c.pace.kind, c.pace.period_ns), (PaceKind::Periodic, Some(8_000_000)));
        assert!(c.overruns * 2 > c.cycles, "{} of {}", c.overruns, c.cycles);
    }
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
    // Before it slept in its call for the first time nobody knows that call; of the last one the next is not seen.
    let ends: Vec<u64> = truth[&7].iter().map(|t| t.end).collect();
    let jobs: Vec<u64> =
        found.cycles.jobs.iter().map(|j| (j.release_ns + j.response_ns).cast_unsigned()).collect();
    let first =
        ends.iter().position(|e| Some(e) == jobs.first()).expect("the first is one of them");
    assert!(first < 5, "{first}");
    assert_eq!(jobs[..], ends[first..ends.len() - 1]);
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

/// A low thread has the CPU and wakes thread 7 out of its futex by FUTEX_WAKE of the same word.
#[test]
fn who_released_a_futex_is_told() {
    let spec =
        |pid, prio, steps| Spec { pid, prio, pacing: Pacing::Timer { period: 10_000_000 }, steps };
    let wait = Step::Suspend {
        id: FUTEX,
        args: [0x4000, 0x80, 2, 0],
        least: 400_000,
        most: 500_000,
        one_in: 1,
    };
    let steps = vec![Step::Run(100_000, 200_000), wait, Step::Run(100_000, 200_000)];
    let (entries, _) = Story::new(3, &[spec(7, 20, steps)], 0).play(2 * SECOND);
    // The interrupt that ends the wait becomes another thread's call on another CPU.
    let mut out = Vec::new();
    for (i, e) in entries.iter().enumerate() {
        let mut e = *e;
        let in_futex = entries[..i].iter().rev().find_map(|b| match b.event {
            Event::SysEnter { id, .. } if b.pid == 7 => Some(id == FUTEX),
            _ => None,
        });
        if let Event::Waking { .. } = e.event
            && in_futex == Some(true)
        {
            let call = |t_ns, event| Entry { t_ns, cpu: 1, pid: 9, flags: Flags(0), event };
            out.push(call(e.t_ns - 2, Event::SysEnter { id: FUTEX, args: [0x4000, 0x81, 1, 0] }));
            e = call(e.t_ns - 1, e.event);
            out.push(e);
            out.push(call(e.t_ns + 1, Event::SysExit { id: FUTEX, ret: 1 }));
            continue;
        }
        out.push(e);
    }
    let found = cycles(&[7], &out, &[], wish()).remove(&7).expect("the thread");
    let blocked = found.cycles.causes.iter().find(|c| c.phase == Phase::Blocked).expect("blocked");
    assert!(blocked.who.starts_with("in futex 0x4000, released by thread 9"), "{}", blocked.who);
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
